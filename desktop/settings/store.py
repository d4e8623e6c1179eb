"""Keeps the changed settings in ``settings.json``: reads leniently, writes whole.

The file holds only what differs from the declared defaults::

    {"version": 1, "settings": {"dpi": 200}}

Reading never fails for what a person or another version did to the file. A value that is not
allowed gives way to the default, a key that nobody declares is kept and written back (a newer
Verso may know it), a file that is no such document counts as absent; each is reported as a
:class:`~desktop.errors.Problem`, and whatever a later save would drop is set aside first, in
``settings.aside-HASH.json`` beside the file.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from desktop import paths
from desktop.errors import Problem, VersoError
from desktop.i18n import N_
from desktop.settings.catalog import BY_KEY
from desktop.settings.declare import InvalidSetting, UnknownSetting
from desktop.settings.values import Values

VERSION = 1
"""Of the file's form. Add a function to ``MIGRATIONS`` when a key is renamed or its values are."""

MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {}
"""Version → function from that version's ``settings`` to those of the next one."""


class SettingsBroken(VersoError):
    """The file is no settings document."""

    code = "settings.broken"
    message = N_("The settings file {path} cannot be understood, so the defaults are used.")
    hint = N_("It was set aside as {aside}.")


class SettingsUnreadable(VersoError):
    """The operating system refuses to read the file."""

    code = "settings.unreadable"
    message = N_("The settings file {path} cannot be read ({reason}), so the defaults are used.")
    hint = N_("Check who may read it.")


class SettingsUnwritable(VersoError):
    """The operating system refuses to write the file."""

    code = "settings.unwritable"
    message = N_("The settings cannot be saved to {path} ({reason}).")
    hint = N_("Check who may write there and that the disk is not full.")


class SettingsNewer(VersoError):
    """A later version of Verso wrote the file."""

    code = "settings.newer"
    message = N_("The settings file {path} was written by a newer Verso.")
    hint = N_("What this version knows is used; a copy was kept as {aside}.")


class Loaded(NamedTuple):
    """What a file gave."""

    values: Values
    problems: tuple[Problem, ...]
    """What was not as it should be, in words for the user; the values are valid all the same."""


class Store:
    """The settings file at ``path`` (default: ``settings.json`` in the configuration folder)."""

    def __init__(self, path: Path | None = None) -> None:
        self.path = path or paths.config_dir() / "settings.json"

    def load(self) -> Loaded:
        """The values in force; never raises for what the file holds."""
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return Loaded(Values(), ())
        except OSError as error:
            problem = SettingsUnreadable(path=self.path, reason=error.strerror).problem()
            return Loaded(Values(), (problem,))
        try:
            version, stored = _parse(raw)
        except ValueError as error:
            aside = self._set_aside(raw)
            # Gone from its place, so that the next start is quiet.
            with contextlib.suppress(OSError):
                self.path.unlink()
            broken = SettingsBroken(path=self.path, aside=aside, detail=str(error))
            return Loaded(Values(), (broken.problem(),))

        problems: list[Problem] = []
        for old in range(version, VERSION):
            stored = MIGRATIONS[old](stored)
        known: dict[str, object] = {}
        lost = version > VERSION
        for key, value in stored.items():
            if key not in BY_KEY:
                problems.append(UnknownSetting(key=key).problem())
                continue
            try:
                known[key] = BY_KEY[key].parse(value)
            except InvalidSetting as error:
                problems.append(error.problem())
                lost = True
        if lost:
            aside = self._set_aside(raw)
            if version > VERSION:
                problems.insert(0, SettingsNewer(path=self.path, aside=aside).problem())
        return Loaded(Values(known), tuple(problems))

    def save(self, values: Values) -> None:
        """Keep what VALUES change; raises :class:`SettingsUnwritable`.

        The file appears whole or not at all; undeclared keys already in it stay.
        """
        content = {"version": VERSION, "settings": {**self._undeclared(), **values.changed()}}
        text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
        try:
            _write_whole(self.path, text.encode())
        except OSError as error:
            raise SettingsUnwritable(path=self.path, reason=error.strerror) from error

    def _undeclared(self) -> dict[str, Any]:
        try:
            _, stored = _parse(self.path.read_bytes())
        except (OSError, ValueError):
            return {}
        return {key: value for key, value in stored.items() if key not in BY_KEY}

    def _set_aside(self, raw: bytes) -> str:
        """Write RAW beside the file, once for each content; returns the copy's name."""
        digest = hashlib.sha256(raw).hexdigest()[:8]
        copy = self.path.with_name(f"{self.path.stem}.aside-{digest}{self.path.suffix}")
        if not copy.exists():
            # A folder that cannot be written cannot lose the original either.
            with contextlib.suppress(OSError):
                _write_whole(copy, raw)
        return copy.name


def _parse(raw: bytes) -> tuple[int, dict[str, Any]]:
    """Version and settings of a file's content; raises ValueError when it is something else."""
    try:
        document = json.loads(raw)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(document, dict):
        raise ValueError("not an object")
    version, stored = document.get("version"), document.get("settings")
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValueError("no version number")
    if not isinstance(stored, dict):
        raise ValueError("no settings")
    return version, stored


def _write_whole(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=path.name, suffix=".part")
    temporary = Path(name)
    try:
        with open(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
