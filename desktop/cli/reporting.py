"""What `verso convert` says on stderr while it runs: a bar on a terminal, plain lines otherwise."""

from __future__ import annotations

import json
import os
import sys
import time
import unicodedata
from typing import Protocol, TextIO

from tqdm import tqdm

from desktop.errors import Problem
from desktop.i18n import _
from desktop.jobs.events import ProgressView

LINE_SECONDS = 10.0
"""Between two lines about progress where there is no terminal."""


class Reporter(Protocol):
    """Says how it goes."""

    def progress(self, view: ProgressView) -> None:
        """The figures now."""

    def say(self, line: str) -> None:
        """A line of its own."""

    def close(self) -> None:
        """Nothing more comes."""


class Bar:
    """For a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._bar = tqdm(total=0, unit=_("page"), file=stream, dynamic_ncols=True, leave=False,
                         bar_format="{l_bar}{bar}| {n_fmt}/{total_fmt} {postfix}")

    def progress(self, view: ProgressView) -> None:
        """Move it."""
        self._bar.total = view.total
        self._bar.n = view.finished
        self._bar.set_postfix_str(_speed(view), refresh=False)
        self._bar.refresh()

    def say(self, line: str) -> None:
        """Above the bar."""
        self._bar.write(line, file=self._stream)

    def close(self) -> None:
        """Take it away."""
        self._bar.close()


class Lines:
    """For a file or a pipe."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._next = time.monotonic() + LINE_SECONDS

    def progress(self, view: ProgressView) -> None:
        """Now and then."""
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + LINE_SECONDS
            self.say(_("{finished} of {total} pages, {speed}").format(
                finished=view.finished, total=view.total, speed=_speed(view)))

    def say(self, line: str) -> None:
        """At once."""
        print(line, file=self._stream, flush=True)

    def close(self) -> None:
        """Nothing to take away."""


def reporter() -> Reporter:
    """What fits stderr."""
    return Bar(sys.stderr) if sys.stderr.isatty() else Lines(sys.stderr)


def print_json(document: object) -> None:
    """DOCUMENT as JSON on stdout, readable where its encoding allows that."""
    text = json.dumps(document, ensure_ascii=False, indent=2)
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:  # file names need not be Unicode, terminals need not be UTF-8
        text = json.dumps(document, indent=2)
    print(text)


def problem_line(path: str, page: int, problem: Problem) -> str:
    """``report.pdf, page 3: what is wrong. What to do.`` – one line, whatever is in the name."""
    where = shown_path(path)
    if page:
        where = _("{file}, page {page}").format(file=where, page=page)
    return one_line(f"{where}: {problem.line()}")


def shown_path(path: str) -> str:
    """PATH as a person would type it here."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def one_line(text: str) -> str:
    """TEXT without control characters: a file's name must not steer the terminal."""
    return "".join(" " if unicodedata.category(char) in ("Cc", "Zl", "Zp") else char
                   for char in text)


def _speed(view: ProgressView) -> str:
    text = _("{speed:.1f} pages/min").format(speed=view.pages_per_minute)
    if view.seconds_left >= 0:
        minutes, seconds = divmod(round(view.seconds_left), 60)
        text += ", " + _("{minutes}:{seconds:02} left").format(minutes=minutes, seconds=seconds)
    return text
