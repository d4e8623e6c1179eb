"""Stands in for Qt where a test forbids it: on PYTHONPATH it hides the installed package."""

raise ImportError("Qt is blocked from import in this test")
