"""``verso engines``: which engines there are, whether they can start here, and why not."""

from __future__ import annotations

import argparse
import textwrap

from desktop.cli.reporting import one_line, print_json
from desktop.cli.status import Exit
from desktop.doctor.diagnosis import problem_of
from desktop.doctor.engines import Examination, examine, shown
from desktop.i18n import _
from desktop.settings import Values, setting
from desktop.settings.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare its arguments."""
    parser.add_argument("--json", action="store_true", help=_("one JSON document on stdout"))


def run(args: argparse.Namespace) -> int:
    """List them. What takes longer than a moment to find out, `verso doctor` tells."""
    values = Store().load().values
    found = [examine(entry, values, thorough=False) for entry in shown(values)
             if not entry.hidden]
    if args.json:
        print_json({"version": 1, "engines": [_document(each, values) for each in found]})
        return Exit.OK
    width = max(len(each.entry.name) for each in found)
    for each in found:
        state = _("can start") if each.can_start else _("cannot start")
        chosen = _(" (the chosen one)") if each.entry.name == values["engine"] else ""
        print(f"{each.entry.name:{width}}  {_(each.entry.title)} – {state}{chosen}")
        for line in (_(each.entry.summary), *(problem.line() for problem in each.problems)):
            print(textwrap.fill(one_line(line), 96, initial_indent=f"{'':{width}}  ",
                                subsequent_indent=f"{'':{width}}  ",
                                break_long_words=False, break_on_hyphens=False))
    return Exit.OK


def _document(found: Examination, values: Values) -> dict[str, object]:
    entry = found.entry
    return {
        "name": entry.name, "title": _(entry.title), "summary": _(entry.summary),
        "default": entry.name == setting("engine").default,
        "chosen": entry.name == values["engine"], "available": found.can_start,
        "problems": [problem_of(problem) for problem in found.problems]}
