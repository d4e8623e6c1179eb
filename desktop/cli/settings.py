"""``verso settings``: every setting, its value now, and its flag."""

from __future__ import annotations

import argparse
import sys
import textwrap

from desktop.cli.reporting import print_json
from desktop.cli.status import Exit
from desktop.i18n import _
from desktop.settings import SETTINGS, Value
from desktop.settings.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare its arguments."""
    parser.add_argument("--json", action="store_true", help=_("one JSON document on stdout"))


def run(args: argparse.Namespace) -> int:
    """List them."""
    store = Store()
    loaded = store.load()
    for problem in loaded.problems:
        print(f"verso: {problem.line()}", file=sys.stderr)
    if args.json:
        print_json({"version": 1, "file": str(store.path), "settings": [
            {"key": s.key, "flag": s.flag, "value": s.discreet(loaded.values[s.key]),
             "default": s.default, "allowed": s.allowed(), "title": _(s.title),
             "help": _(s.help), "section": s.section.value, "applies": s.applies.value,
             "engines": sorted(s.engines)} for s in SETTINGS]})
        return Exit.OK
    print(_("Kept in {path}; a flag of `verso convert` goes before it.").format(path=store.path))
    for s in SETTINGS:
        value = s.discreet(loaded.values[s.key])
        mark = "" if value == s.default else _(" (default: {value})").format(
            value=_plain(s.default))
        engines = _(" Only for: {names}.").format(names=", ".join(sorted(s.engines))) \
            if s.engines else ""
        print(f"\n{s.flag} {_plain(value)}{mark}")
        print(textwrap.fill(f"{_(s.title)}: {_(s.help)}{engines}", 96,
                            initial_indent="    ", subsequent_indent="    "))
        print("    " + _("Allowed: {allowed}. Applies: {applies}.").format(
            allowed=s.allowed(), applies=s.applies.value))
    return Exit.OK


def _plain(value: Value) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value) if value != "" else '""'
