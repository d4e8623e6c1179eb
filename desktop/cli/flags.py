"""Command-line flags out of the declared settings."""

from __future__ import annotations

import argparse
from collections.abc import Collection

from desktop.engines.registry import entry
from desktop.errors import VersoError
from desktop.i18n import N_, _
from desktop.settings import SETTINGS, InvalidSetting, Setting, Values

PREFIX = "setting_"
"""Before the key in the names of parsed arguments."""


class NoEngineArguments(VersoError):
    """``--engine-arg`` for an engine that takes none."""

    code = "engine.no_arguments"
    message = N_("The engine “{engine}” takes no --engine-arg ({keys}).")
    hint = N_("Leave it out, or choose another engine with --engine.")


def add_settings(parser: argparse.ArgumentParser, without: Collection[str] = ()) -> None:
    """A flag for every declared setting but those WITHOUT."""
    group = parser.add_argument_group(_("settings"), _(
        "what is not given here is as in the window (see `verso settings`)"))
    for setting in SETTINGS:
        if setting.key in without:
            continue
        group.add_argument(setting.flag, dest=PREFIX + setting.key, metavar=_metavar(setting),
                           help=f"{_(setting.help)} [{setting.allowed()}]".replace("%", "%%"))


def values_of(args: argparse.Namespace, base: Values) -> Values:
    """BASE with the flags that were given on top; raises InvalidSetting."""
    given = {setting.key: getattr(args, PREFIX + setting.key) for setting in SETTINGS
             if getattr(args, PREFIX + setting.key, None) is not None}
    for setting in SETTINGS:
        if setting.key in given:
            try:
                given[setting.key] = setting.parse(given[setting.key])
            except InvalidSetting as error:
                # A person typed a flag, not a title.
                error.values["title"] = setting.flag
                raise
    return base.with_(**given)


def engine_arguments(pairs: list[str], engine: str) -> dict[str, str]:
    """KEY=VALUE pairs for ENGINE; raises ValueError for one without a "=", NoEngineArguments,
    UnknownEngine."""
    found = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise ValueError(pair)
        found[key] = value
    if found and not entry(engine).arguments:
        raise NoEngineArguments(engine=engine, keys=", ".join(found))
    return found


def _metavar(setting: Setting) -> str:
    if setting.choices:
        return "|".join(setting.choices)
    if setting.kind is bool:
        return "on|off"
    if setting.is_path:
        return "PATH"
    return "TEXT" if setting.kind is str else "N"


