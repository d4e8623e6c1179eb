"""Verso: images and PDFs to structured Markdown, reviewed beside the page they were read from.

This package must stay importable by any Python from 3.10 on with nothing but the standard
library: the worker process may run under an interpreter that has vLLM and little else.
"""

__version__ = "0.1.0"
