"""The mixture of experts on an Ascend NPU: see :mod:`~desktop.engines.ascend.moe.patch`.

Runs on Python 3.9 without any other package.
"""

from __future__ import annotations

from pathlib import Path

_AT_IMPORT = """

if __name__ != "__main__":
    OUTCOME = apply()
"""


def on_import() -> str:
    """The source of a module that applies the patch when it is imported, for Python 3.9 and
    without Verso: for a folder with the model's code. ``OUTCOME`` in it says what was done."""
    return script().read_text(encoding="utf-8") + _AT_IMPORT


def script() -> Path:
    """The patch as a file: run by the interpreter that has vLLM, it prints last one line of JSON
    that says whether the patch is needed there, and changes nothing."""
    return Path(__file__).with_name("patch.py")
