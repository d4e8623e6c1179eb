"""What a setting is: data, declared once; panel, flags, validation and docs derive from it."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Union

from desktop.errors import VersoError
from desktop.i18n import N_, _

Value = Union[bool, int, float, str]

TRUTH = {"true": True, "on": True, "yes": True, "1": True,
         "false": False, "off": False, "no": False, "0": False}
"""What a person may write for yes and no, in lower case."""


class Applies(enum.Enum):
    """When a changed value takes effect."""

    NOW = "now"
    NEXT_PAGE = "next page"
    ENGINE_RESTART = "engine restart"


class Section(enum.Enum):
    """The heading a setting stands under."""

    RUN = "run"
    ENGINE = "engine"
    INTAKE = "intake"
    OUTPUT = "output"
    APPEARANCE = "appearance"


class InvalidSetting(VersoError):
    """A value outside what the setting's declaration allows."""

    code = "settings.invalid"
    message = N_("“{value}” is not a valid value for {title}.")
    hint = N_("Use {allowed}.")


class UnknownSetting(VersoError):
    """A key that no declaration has."""

    code = "settings.unknown"
    message = N_("There is no setting named “{key}”.")
    hint = N_("`verso settings` lists all of them.")


@dataclass(frozen=True)
class Setting:
    """One declared setting.

    ``kind`` is the Python type of its values; a ``str`` with ``choices`` is a choice, with
    ``is_path`` a file or folder ("" means: none). ``minimum``/``maximum`` bound numbers.
    ``engines`` names the engines it matters to (empty: all). ``visible`` puts it among the at
    most eight shown at once, with every engine or those it names (the rest stand under
    Advanced). ``shapes_result`` is False for what
    cannot change a page's result (concurrency, theme): only the others decide whether a finished
    page is still up to date. ``panel`` is False for what belongs to Preferences and not to a run.
    """

    key: str
    kind: type[Any]
    default: Value
    title: str
    help: str
    section: Section
    applies: Applies
    minimum: float | None = None
    maximum: float | None = None
    step: float | None = None
    unit: str = ""
    choices: dict[str, str] = field(default_factory=dict)
    is_path: bool = False
    engines: frozenset[str] = frozenset()
    visible: bool | frozenset[str] = False
    panel: bool = True
    shapes_result: bool = True
    secret: bool = False
    """Whether it may hold a password: then only :meth:`discreet` is shown, noted and reported."""
    at_start: frozenset[Value] = frozenset()
    """Values that the engines ``at_start_of`` must have been started with: a change to or from
    one of them needs a restart of those, whatever ``applies`` says."""
    at_start_above: float | None = None
    """A number up to which the engines ``at_start_of`` are ready in any case: for a larger one,
    and larger than that they were started with, they must be started again."""
    at_start_of: frozenset[str] = frozenset()
    check: Callable[[Value], bool] | None = None
    words: str = ""
    """What is allowed, in words, where ``check`` decides."""
    helps: Mapping[str, str] = field(default_factory=dict)
    """Engines that it means something more exact for, and the help that says so there."""

    @property
    def flag(self) -> str:
        """The command-line flag: ``--max-tokens``."""
        return "--" + self.key.replace("_", "-")

    def applies_to(self, engine: str) -> bool:
        """Whether it matters to ENGINE (a name from the registry)."""
        return not self.engines or engine in self.engines

    def worded(self, engine: str) -> Setting:
        """As it reads while ENGINE is chosen."""
        return replace(self, help=self.helps[engine]) if engine in self.helps else self

    def discreet(self, value: Value) -> Value:
        """VALUE as others may see it."""
        return _without_secrets(value) if self.secret else value

    def restarts(self, engine: str, before: Value, after: Value) -> bool:
        """Whether ENGINE must be started again when the value changes from BEFORE to AFTER."""
        if before == after or not self.applies_to(engine):
            return False
        if self.applies is Applies.ENGINE_RESTART:
            return True
        if engine not in self.at_start_of:
            return False
        if self.at_start_above is not None and not isinstance(before, str):
            return float(after) > max(float(before), self.at_start_above)
        return (before in self.at_start) != (after in self.at_start)

    def visible_with(self, engine: str) -> bool:
        """Whether it is among those shown at once while ENGINE is chosen."""
        shown = self.visible if isinstance(self.visible, bool) else engine in self.visible
        return shown and self.applies_to(engine)

    def allowed(self) -> str:
        """The allowed values in words, for messages and the documentation table."""
        if self.words:
            return _(self.words)
        if self.choices:
            return ", ".join(self.choices)
        if self.kind is bool:
            return "true, false"
        if self.minimum is not None and self.maximum is not None:
            return f"{self.minimum:g} – {self.maximum:g}{' ' + self.unit if self.unit else ''}"
        if self.minimum is not None:
            return f"≥ {self.minimum:g}"
        return (_("a path") if self.is_path else _("any text") if self.kind is str
                else _("a number"))

    def parse(self, value: object) -> Value:
        """VALUE (typed, or text from a flag or file) as this setting's type.

        Raises :class:`InvalidSetting` when it is of another kind or out of range.
        """
        parsed = self._convert(value)
        if parsed is None or not self._in_range(parsed):
            raise InvalidSetting(value=_without_secrets(value), title=_(self.title),
                                 allowed=self.allowed())
        return parsed

    def _convert(self, value: object) -> Value | None:
        if self.kind is bool:
            if isinstance(value, bool):
                return value
            return TRUTH.get(str(value).lower())
        if isinstance(value, bool):
            return None
        if self.kind is str:
            return value if isinstance(value, str) else None
        try:
            number = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            return None
        if number != number:  # NaN compares unequal to itself and passes every range check
            return None
        if self.kind is int:
            return int(number) if number.is_integer() else None
        return number

    def _in_range(self, value: Value) -> bool:
        if self.choices and value not in self.choices:
            return False
        if not isinstance(value, (bool, str)):
            if self.minimum is not None and value < self.minimum:
                return False
            if self.maximum is not None and value > self.maximum:
                return False
        return self.check is None or self.check(value)


def _without_secrets(value: object) -> str:
    """VALUE to be shown and logged: what an address may hold of a name and a key is left out."""
    return re.sub(r"\?\S+", "?…", re.sub(r"(//|^)[^/\s]*@", r"\1…@", str(value)))
