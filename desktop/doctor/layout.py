"""How the examination is laid out in a terminal."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from desktop.errors import Problem
from desktop.i18n import _

WIDTH = 96
_GB = 1 << 30
_FACT = 12
"""Columns of a fact's name."""


def size(count: int) -> str:
    """Bytes in words."""
    if count < _GB:
        return _("{n} MB").format(n=round(count / (1 << 20)))
    return _("{n} GB").format(n=f"{count / _GB:.1f}")


def fact(name: str, text: str, indent: int = 2) -> Iterator[str]:
    """A name and what there is to say of it."""
    head = f"{'':{indent}}{name:{_FACT}}"
    yield from textwrap.wrap(text, WIDTH, initial_indent=head, break_long_words=False,
                             break_on_hyphens=False,
                             subsequent_indent=" " * (indent + _FACT)) or [head.rstrip()]


def problem(mark: str, found: Problem, indent: int) -> Iterator[str]:
    """What is wrong, and below it what helps."""
    yield from textwrap.wrap(found.message, WIDTH, initial_indent=f"{'':{indent}}{mark} ",
                             subsequent_indent=" " * (indent + 2), break_long_words=False)
    if found.hint:
        # A command is copied: it stays in one piece.
        yield from textwrap.wrap(found.hint, WIDTH, initial_indent=f"{'':{indent + 2}}→ ",
                                 subsequent_indent=" " * (indent + 4), break_long_words=False,
                                 break_on_hyphens=False)
