"""The values in force: declared defaults, what a file holds, what a person changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from desktop.settings.catalog import SETTINGS, setting
from desktop.settings.declare import Value


class Values:
    """An immutable set of valid setting values, one for each declared setting."""

    def __init__(self, changed: Mapping[str, object] | None = None) -> None:
        """Defaults with CHANGED on top; raises UnknownSetting, InvalidSetting."""
        self._values: dict[str, Value] = {s.key: s.default for s in SETTINGS}
        for key, value in (changed or {}).items():
            self._values[key] = setting(key).parse(value)

    def __getitem__(self, key: str) -> Any:
        """The value of KEY, of the declared type."""
        return self._values[setting(key).key]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Values) and other._values == self._values

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._values.items())))

    def with_(self, **changed: object) -> Values:
        """A copy with CHANGED on top."""
        return Values({**self._values, **changed})

    def as_dict(self) -> dict[str, Value]:
        """All values, a copy."""
        return dict(self._values)

    def discreet(self) -> dict[str, Value]:
        """All values, without passwords: for what is kept beside results and handed on."""
        return {s.key: s.discreet(self._values[s.key]) for s in SETTINGS}

    def changed(self) -> dict[str, Value]:
        """Only the values that differ from the declared defaults (what a file keeps)."""
        return {s.key: self._values[s.key] for s in SETTINGS if self._values[s.key] != s.default}

    def fingerprint(self) -> str:
        """Hash over what shapes a page's result with the chosen engine.

        Two runs with the same fingerprint give the same pages, so a finished one is not redone.
        """
        engine = str(self._values["engine"])
        relevant = {s.key: self._values[s.key] for s in SETTINGS
                    if s.shapes_result and s.applies_to(engine)}
        text = json.dumps(relevant, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]
