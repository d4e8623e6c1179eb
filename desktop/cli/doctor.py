"""``verso doctor``: what the machine and the engines are like, what is missing, what to do."""

from __future__ import annotations

import argparse
import sys

from desktop.cli import print_env
from desktop.cli.flags import add_settings, values_of
from desktop.cli.reporting import print_json
from desktop.cli.status import Exit
from desktop.doctor import diagnosis, text
from desktop.engines.ascend import preparation
from desktop.engines.registry import entry
from desktop.errors import VersoError
from desktop.i18n import _
from desktop.settings import SETTINGS, Applies
from desktop.settings.store import Store

_LATER = frozenset(each.key for each in SETTINGS if each.applies is not Applies.ENGINE_RESTART)
"""Settings that have nothing to do with whether an engine can start."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare its arguments."""
    parser.add_argument("--prepared", metavar="FOLDER", default="", help=_(
        "judge this folder that `verso prepare-npu` made (otherwise {folder}, where there is one)"
        ).format(folder=preparation.DEFAULT_TARGET))
    parser.add_argument("--json", action="store_true", help=_("one JSON document on stdout"))
    parser.add_argument("--print-env", action="store_true", help=_(
        "print the variables that an engine on an Ascend NPU is started with, for a shell to take "
        "in, and nothing else"))
    parser.epilog = _("Exit status: 0 the chosen engine can start (and the code named with "
                      "--prepared can run), 1 not, 2 the call itself is wrong.")
    add_settings(parser, without=_LATER)


def run(args: argparse.Namespace) -> int:
    """Examine everything."""
    loaded = Store().load()
    try:
        values = values_of(args, loaded.values)
        entry(values["engine"])
    except VersoError as error:
        print(f"verso: {error.problem().line()}", file=sys.stderr)
        return Exit.USAGE
    if args.print_env:
        return print_env.run(values, as_json=args.json)
    on_terminal = sys.stderr.isatty()

    def tell(what: str) -> None:
        if on_terminal:
            print("\r\x1b[K" + _("Looking at {what} …").format(what=what), end="",
                  file=sys.stderr, flush=True)

    try:
        found = diagnosis.examine(values, loaded.problems, tell, folder=args.prepared)
    finally:
        if on_terminal:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
    if args.json:
        print_json(found.as_dict())
    else:
        for line in text.lines(found):
            print(line)
    return Exit.OK if found.well else Exit.SOME_FAILED
