"""Which of the two binary forms of C++ strings a torch was built with, without importing it.

What is linked with torch, as ATB's libraries are, must have the same form. Importing torch takes
seconds, and torch_npu loads itself with it and fails where the environment is not right yet. The
form shows in the names of the library's symbols.

Standard library only, Python 3.9.
"""

from __future__ import annotations

import mmap
import os
import re
from pathlib import Path
from typing import Optional

_SYMBOL = b"_ZN3c105ErrorC1ENS_14SourceLocationE"
"""``c10::Error(SourceLocation, std::string)``; what follows is how the string is spelled."""


def of(folder: str) -> Optional[int]:
    """0 or 1 for the torch in FOLDER (``…/site-packages/torch``); None where it cannot be told."""
    form = _of_library(os.path.join(folder, "lib", "libc10.so"))
    return form if form is not None else _of_settings(folder)


def _of_library(file: str) -> Optional[int]:
    try:
        with open(file, "rb") as stream, \
                mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as content:
            position = content.find(_SYMBOL)
            while position >= 0:
                after = content[position + len(_SYMBOL):position + len(_SYMBOL) + 16]
                if after.startswith(b"NSt7__cxx11"):
                    return 1
                if after.startswith(b"Ss"):
                    return 0
                position = content.find(_SYMBOL, position + 1)
    except (OSError, ValueError):  # not there, not to be read, or empty
        return None
    return None


def _of_settings(folder: str) -> Optional[int]:
    """From the flags that older releases hand to who builds on them."""
    try:
        text = Path(folder, "share/cmake/Torch/TorchConfig.cmake").read_text(
            encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(r"_GLIBCXX_USE_CXX11_ABI=([01])", text)
    return int(found[1]) if found is not None else None
