"""The pages that are read: of files and folders, each once; requests go round them."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from desktop import paths
from desktop.benchmark.errors import FileUnusable, NothingToRead
from desktop.errors import Problem
from desktop.intake.errors import IntakeError, PasswordNeeded, WrongPassword
from desktop.intake.model import SourceInfo
from desktop.intake.rasterizer import Rasterizer
from desktop.intake.walk import walk

_BLOCK = 1 << 20


@dataclass(frozen=True)
class Page:
    """One page of a file."""

    path: str
    number: int
    name: str
    """What it is called in results, other than every other page: the file's name, with the page's
    number where it has several."""


@dataclass(frozen=True)
class Workload:
    """Distinct pages, in order. Request k reads page k modulo their number, in each round anew:
    so a file is copied, and a folder cycled."""

    sources: tuple[str, ...]
    """As named by the person."""
    pages: tuple[Page, ...]
    files: int
    digest: str
    """SHA-256 over contents and page numbers: equal pages, equal digest, wherever they lie."""
    left_out: tuple[tuple[str, Problem], ...] = ()
    """Files that cannot be read, and why."""
    passwords: Mapping[str, str] = field(default_factory=dict, repr=False)
    """File → what opens it. For drawing only: never shown, noted or kept."""

    def page(self, index: int) -> Page:
        """That of the INDEXth request of a round, from 0."""
        return self.pages[index % len(self.pages)]


def samples() -> list[Path]:
    """The documents that come with Verso."""
    return sorted(path for path in (paths.resources() / "samples").iterdir()
                  if not path.name.startswith("."))


def gather(sources: Sequence[Path], cache: Path,
           passwords: Callable[[Path], Sequence[str]] = lambda _path: ()) -> Workload:
    """Open SOURCES (files, folders with all they hold; none: the samples) and list their pages.

    PASSWORDS: those to try on a file that is protected. Blocks: a drawing process examines each
    file. A file of a folder that cannot be read is left out. Raises FileUnusable for one that was
    named, NothingToRead.
    """
    named = [path.absolute() for path in sources] or samples()
    rasterizer = Rasterizer(cache / "benchmark", processes=1)
    found: dict[Path, int] = {}
    left_out: list[tuple[str, Problem]] = []
    opened_by: dict[str, str] = {}
    digest = hashlib.sha256()
    try:
        for path in walk(named):
            try:
                info, password = _opened(rasterizer, path, passwords)
                content = _digest(path)
            except IntakeError as error:
                if path in named:
                    raise FileUnusable(path, error) from error
                left_out.append((str(path), error.problem()))
                continue
            if password is not None:
                opened_by[str(path)] = password
            found[path] = info.pages
            for number in range(1, info.pages + 1):
                digest.update(f"{content} {number}\n".encode())
    finally:
        rasterizer.close()
    if not found:
        raise NothingToRead(paths=", ".join(str(path) for path in named))
    return Workload(tuple(str(path) for path in sources), _pages(found), len(found),
                    digest.hexdigest(), tuple(left_out), opened_by)


def _opened(rasterizer: Rasterizer, path: Path, passwords: Callable[[Path], Sequence[str]],
            ) -> tuple[SourceInfo, str | None]:
    """What PATH is, and the password that was needed for it."""
    try:
        return rasterizer.open(path).result(), None
    except PasswordNeeded:
        known = passwords(path)
        for password in known:
            try:
                return rasterizer.open(path, password).result(), password
            except WrongPassword:
                continue
        if known:
            raise WrongPassword from None
        raise


def _pages(counts: Mapping[Path, int]) -> tuple[Page, ...]:
    """The pages of files, COUNTS of each."""
    names = Counter(path.name for path in counts)
    alike = [path.parent for path in counts if names[path.name] > 1]
    above = os.path.commonpath(alike) if alike else ""
    found = []
    for path, count in counts.items():
        name = path.name if names[path.name] == 1 else os.path.relpath(path, above)
        found += [Page(str(path), number, name if count == 1 else f"{name} #{number}")
                  for number in range(1, count + 1)]
    return tuple(found)


def _digest(path: Path) -> str:
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            found.update(block)
    return found.hexdigest()
