"""Every error a person can meet: a stable code, one plain sentence and a way out.

A subclass names its ``code`` (never changed once released: it is what people search for and
what ``report.json`` carries), and builds its sentence from values given by keyword. Errors cross
the process boundary as a :class:`Problem`, never as a pickled exception.
"""

from __future__ import annotations

from typing import Any, ClassVar, NamedTuple

from desktop.i18n import N_, _

_ENDS = ".!?…:;。！？：；"
"""After these a new sentence may begin."""


class Problem(NamedTuple):
    """An error as data: what the journal keeps, the wire carries and the window shows."""

    code: str
    """Stable, lower case, dotted: ``intake.unreadable``."""
    message: str
    """One sentence in the user's language: what is wrong."""
    hint: str
    """One sentence in the user's language: what to do."""
    detail: str = ""
    """Technical detail for the log (library message, end of a child's stderr); may be empty."""
    fix: tuple[tuple[str, Any], ...] = ()
    """Settings (key, value) with which it would not be a problem, where the program knows them:
    what the hint advises, as data."""

    def line(self) -> str:
        """The error as one line, for a terminal. Many a message ends with what another program
        said, which may be no sentence: then the hint begins a new one all the same."""
        message = self.message.rstrip()
        if message and self.hint and message[-1] not in _ENDS:
            message += "."
        return f"{message} {self.hint}".strip()


class VersoError(Exception):
    """Base of all errors that are shown to a person.

    ``message`` and ``hint`` of a subclass are ``str.format`` templates, marked with ``N_`` so
    that they are translated when shown; the keyword arguments fill them.
    """

    code: ClassVar[str] = "internal"
    message: ClassVar[str] = N_("Something went wrong inside Verso.")
    hint: ClassVar[str] = N_("Please report this with the log (View › Log).")

    def __init__(self, *, detail: str = "", fix: tuple[tuple[str, Any], ...] = (),
                 **values: Any) -> None:
        self.values = values
        self.detail = detail
        self.fix = fix
        super().__init__(self.problem().line())

    def problem(self) -> Problem:
        """This error as data, translated now."""
        return Problem(
            self.code,
            _(self.message).format(**self.values),
            _(self.hint).format(**self.values),
            self.detail,
            self.fix,
        )


class RemoteProblem(VersoError):
    """An error that happened in another process and arrived as a :class:`Problem`."""

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        super().__init__(detail=problem.detail)

    def problem(self) -> Problem:
        return self._problem


def problem_of(error: BaseException) -> Problem:
    """Any exception as data; one that is not a :class:`VersoError` becomes ``internal``."""
    if isinstance(error, VersoError):
        return error.problem()
    return VersoError(detail=f"{type(error).__name__}: {error}").problem()
