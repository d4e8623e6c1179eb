"""What can go wrong with a measurement."""

from __future__ import annotations

from pathlib import Path

from desktop.errors import Problem, VersoError
from desktop.i18n import N_


class BadPlan(VersoError):
    """Something about what is to be measured that cannot be."""

    code = "benchmark.plan"
    message = N_("{what}")
    hint = N_("See verso bench --help.")


class NothingToRead(VersoError):
    """None of the files holds a page."""

    code = "benchmark.no_pages"
    message = N_("There is no page to measure with in {paths}.")
    hint = N_("Name an image, a PDF or a folder that holds some.")


class FileUnusable(VersoError):
    """A file that was named and cannot be opened."""

    code = "benchmark.file"

    def __init__(self, path: Path, cause: VersoError) -> None:
        """CAUSE says why; the problem has its code and hint."""
        self.path = path
        self.cause = cause
        super().__init__(detail=cause.detail)

    def problem(self) -> Problem:
        cause = self.cause.problem()
        return cause._replace(message=f"{self.path}: {cause.message}")


class NotMarked(VersoError):
    """A page could not be made unique."""

    code = "benchmark.not_marked"
    message = N_("The page cannot be made unique: {reason}.")
    hint = N_("Measure it as it is, without --unique.")


class EngineDiedMeasured(VersoError):
    """The worker ended in the middle of a level."""

    code = "benchmark.engine_died"
    message = N_("The engine ended while it was measured: {reason}")
    hint = N_("Try fewer pages at once, or see the log.")


class EngineSilent(VersoError):
    """Nothing was heard of a page for too long."""

    code = "benchmark.silent"
    message = N_("The engine has said nothing about a page for {seconds} s.")
    hint = N_("The level was given up. Raise “{title}” ({flag}) if a page takes that long.")


class NothingRead(VersoError):
    """A level in which no page was read to its end."""

    code = "benchmark.nothing_read"
    message = N_("No page was read to its end: {reason}")
    hint = N_("{hint}")
    """That of a page, where it has one."""


class OnlyBlank(VersoError):
    """A level in which no page was handed to the engine."""

    code = "benchmark.only_blank"
    message = N_("All pages are blank, and blank pages are not read.")
    hint = N_("Choose other pages, or have them read all the same (“{title}”, {flag} off).")


class NotWritten(VersoError):
    """A result file could not be written."""

    code = "benchmark.not_written"
    message = N_("The result could not be written to {path}: {reason}.")
    hint = N_("Check that the folder exists and can be written to.")


class NotKept(VersoError):
    """The history could not be written to."""

    code = "benchmark.not_kept"
    message = N_("The result is not in the window's history: {reason}")
    hint = N_("It is in the file of --output, and on stdout with --json.")
