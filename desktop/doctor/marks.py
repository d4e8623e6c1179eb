"""A row of the examination and how it is judged."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass, field

from desktop.errors import Problem
from desktop.i18n import N_, _


class Mark(enum.Enum):
    """How a row is judged."""

    GOOD = "good"
    NOTE = "note"
    """Told, and nothing to judge: not needed now."""
    DOUBT = "doubt"
    """It may work."""
    WRONG = "wrong"


_WORDS = {Mark.GOOD: N_("good"), Mark.NOTE: "", Mark.DOUBT: N_("worth a look"),
          Mark.WRONG: N_("wrong")}
_ORDER = (Mark.NOTE, Mark.GOOD, Mark.DOUBT, Mark.WRONG)


@dataclass(frozen=True)
class Row:
    """One thing that was looked at."""

    title: str
    found: str
    mark: Mark = Mark.NOTE
    problems: tuple[Problem, ...] = ()
    notes: tuple[str, ...] = ()
    word: str = field(default="")
    """The verdict in a word or two, where it is another than that of the mark."""
    hint: str = ""
    """What helps, where no problem says it."""

    @property
    def verdict(self) -> str:
        """The verdict in a word or two; empty where there is nothing to judge."""
        return self.word or (_(_WORDS[self.mark]) if _WORDS[self.mark] else "")

    def lines(self) -> list[str]:
        """As plain text: what a screen reader says, and what is copied."""
        head = f"{self.title}: {self.found}"
        lines = [f"{head} [{self.verdict}]" if self.verdict else head]
        lines += [problem.line() for problem in self.problems
                  if problem.message != self.found]
        return [*lines, *([self.hint] if self.hint else []), *self.notes]


def worst(marks: Iterable[Mark]) -> Mark:
    """The worst of MARKS; NOTE where there is none."""
    return max(marks, key=_ORDER.index, default=Mark.NOTE)
