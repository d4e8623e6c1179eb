"""Changes of Python source at places that are found in its syntax tree.

A change is made by replacing exact spans of the text, so that every other byte – comments,
spacing, line ends – stays. What is looked for and not found is reported, never guessed.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator
from typing import NamedTuple

OLDEST_PYTHON = (3, 9)
"""The prepared code runs on the Pythons of the legacy stack."""

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")


class Missing(NamedTuple):
    """Something that should be in a file and is not."""

    file: str
    """Relative to the source, with ``/``."""
    what: str
    """The line, or a description of it; "" when the file itself is missing."""

    def __str__(self) -> str:
        return f"{self.file}: {self.what}" if self.what else self.file


class Change(NamedTuple):
    """A line as it was and as it becomes."""

    file: str
    line: int
    """Of the source, from 1; where lines are added, the line before them (0: the beginning)."""
    old: str
    """"" where lines are added."""
    new: str

    def __str__(self) -> str:
        place = f"{self.file}:{self.line}"
        if not self.old:
            return "\n".join(f"{place} + {line}" for line in self.new.split("\n"))
        return f"{place} - {self.old}\n{place} + {self.new}"


class Source:
    """One Python file with the changes that are to be made in it.

    NAME is the file's, relative to the source; DATA its bytes. What cannot be done is collected
    in :attr:`missing`; :meth:`text` gives the file with everything else done.
    """

    def __init__(self, name: str, data: bytes) -> None:
        self.name = name
        self.missing: list[Missing] = []
        self.tree: ast.Module | None = None
        self._spans: dict[int, dict[tuple[int, int], str]] = {}
        self._added: dict[int, list[str]] = {}
        try:
            text = data.decode("utf-8-sig")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", SyntaxWarning)
                self.tree = ast.parse(text, feature_version=OLDEST_PYTHON)
        except (UnicodeDecodeError, SyntaxError, ValueError) as error:
            text = ""
            self.lack(f"Python {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} in UTF-8 ({error})")
        self._lines: list[str] = _LINE.findall(text)
        ends = [line for line in self._lines if line.endswith(("\n", "\r"))]
        self._end = "\r\n" if ends and ends[0].endswith("\r\n") else "\n"

    def lack(self, what: str) -> None:
        """Note that WHAT was not found."""
        self.missing.append(Missing(self.name, what))

    # --- finding
    def statements(self) -> list[ast.stmt]:
        """Of the module itself, in order."""
        return self.tree.body if self.tree is not None else []

    def calls(self, names: frozenset[str]) -> list[ast.Call]:
        """Calls of functions so named, called by name or as an attribute."""
        return [node for node in self._walk() if isinstance(node, ast.Call)
                and _called(node.func) in names]

    def uses(self, name: str) -> list[int]:
        """Lines that read the variable NAME."""
        return [node.lineno for node in self._walk() if isinstance(node, ast.Name)
                and node.id == name and isinstance(node.ctx, ast.Load)]

    def assigned(self) -> dict[str, ast.expr]:
        """What the module assigns to plain names; of several assignments, the last."""
        return {target.id: node.value for node in self.statements() if isinstance(node, ast.Assign)
                for target in node.targets if isinstance(target, ast.Name)}

    # --- changing
    def comment_out(self, node: ast.stmt) -> None:
        """Make a comment of the lines of NODE."""
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
            self._spans.setdefault(line, {})[0, 0] = "# "

    def replace(self, node: ast.expr, new: str) -> None:
        """Put NEW in the place of NODE, which must lie in one line; the last NEW for it counts."""
        self._spans.setdefault(node.lineno, {})[self._columns(node)] = new

    def add_after(self, line: int, lines: list[str]) -> None:
        """Put LINES, without their ends, after LINE (0: at the beginning)."""
        self._added.setdefault(line, []).extend(lines)

    def append(self, lines: list[str]) -> None:
        """Put LINES at the end."""
        self.add_after(len(self._lines), lines)

    def rest(self, node: ast.expr) -> str:
        """What follows NODE in its line, without the line's end."""
        return self._lines[node.lineno - 1][self._columns(node)[1]:].rstrip("\r\n")

    def indentation(self, line: int) -> str:
        """The white space that LINE begins with."""
        text = self._lines[line - 1]
        return text[:len(text) - len(text.lstrip(" \t"))]

    # --- results
    def text(self) -> str:
        """The file after all changes."""
        return "".join(new for _old, new, added in self._changed() for new in (new, *added))

    def data(self) -> bytes:
        """:meth:`text` in UTF-8."""
        return self.text().encode("utf-8")

    def changes(self) -> list[Change]:
        """What :meth:`text` does, in the order of the file."""
        found = []
        for line, (old, new, added) in enumerate(self._changed()):
            if old.rstrip("\r\n") != new.rstrip("\r\n"):
                found.append(Change(self.name, line, old.rstrip("\r\n"), new.rstrip("\r\n")))
            if added:
                found.append(Change(self.name, line, "", "\n".join(
                    text.rstrip("\r\n") for text in added)))
        return found

    # --- inside
    def _changed(self) -> Iterator[tuple[str, str, list[str]]]:
        """For each line, from 0 (before the first): old, new, the lines added after it."""
        for number, old in enumerate(["", *self._lines]):
            new = old
            for (start, end), text in sorted(self._spans.get(number, {}).items(), reverse=True):
                new = new[:start] + text + new[end:]
            added = [line + self._end for line in self._added.get(number, ())]
            if added and number and not new.endswith(("\n", "\r")):
                new += self._end
            yield old, new, added

    def _columns(self, node: ast.expr) -> tuple[int, int]:
        """Where NODE begins and ends in its line, in characters (the tree counts bytes)."""
        line = self._lines[node.lineno - 1].encode("utf-8")
        return (len(line[:node.col_offset].decode("utf-8")),
                len(line[:node.end_col_offset].decode("utf-8")))

    def _walk(self) -> Iterator[ast.AST]:
        return ast.walk(self.tree) if self.tree is not None else iter(())


def _called(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
