"""``verso engines``: which engines there are and whether they can start here."""

from __future__ import annotations

import argparse

from desktop.cli.reporting import print_json
from desktop.cli.status import Exit
from desktop.engines.registry import ENGINES
from desktop.i18n import _
from desktop.settings import setting


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare its arguments."""
    parser.add_argument("--json", action="store_true", help=_("one JSON document on stdout"))


def run(args: argparse.Namespace) -> int:
    """List them."""
    shown = [engine for engine in ENGINES if not engine.hidden]
    if args.json:
        print_json({"version": 1, "engines": [
            {"name": engine.name, "title": _(engine.title), "summary": _(engine.summary),
             "default": engine.name == setting("engine").default,
             "available": not engine.missing(), "missing": list(engine.missing())}
            for engine in shown]})
        return Exit.OK
    width = max(len(engine.name) for engine in shown)
    for engine in shown:
        missing = engine.missing()
        state = _("missing: {modules}").format(modules=", ".join(missing)) if missing \
            else _("available")
        print(f"{engine.name:{width}}  {_(engine.title)} – {state}\n"
              f"{'':{width}}  {_(engine.summary)}")
    return Exit.OK
