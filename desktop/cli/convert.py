"""``verso convert``: files and folders to Markdown and more, without a window."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from desktop import paths
from desktop.cli import passwords
from desktop.cli.conversion import Conversion
from desktop.cli.flags import add_settings, engine_arguments, values_of
from desktop.cli.reporting import one_line, print_json, reporter
from desktop.cli.status import Exit
from desktop.cli.usage import WrongCall
from desktop.client.interpreter import missing_here
from desktop.engines.registry import entry
from desktop.errors import VersoError
from desktop.export import EXPORTERS, exporters
from desktop.i18n import _
from desktop.intake import ranges
from desktop.jobs.errors import JournalUnusable
from desktop.jobs.session import Session
from desktop.settings import Values, setting
from desktop.settings.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare its arguments."""
    parser.add_argument("inputs", nargs="+", metavar="INPUT", type=Path,
                        help=_("files, and folders with all they hold"))
    parser.add_argument("-o", "--output", required=True, metavar="DIR", type=Path, help=_(
        "folder for the results, one folder in it for each input; called again with the same "
        "folder, it goes on where it was"))
    parser.add_argument("--format", default="md,json", metavar="NAME,…", help=_(
        "what to write: {names} (default: md,json)").format(names=", ".join(EXPORTERS)))
    parser.add_argument("--pages", default="", metavar="RANGE", help=_(
        "pages to read of each document, like 1-3,7 or 5-"))
    passwords.add_argument(parser)
    parser.add_argument("--json", action="store_true", help=_(
        "a summary as one JSON document on stdout"))
    parser.add_argument("--engine-arg", action="append", default=[], metavar="KEY=VALUE",
                        help=_("passed on to the engine as it is; may be repeated"))
    add_settings(parser)


def run(args: argparse.Namespace) -> int:
    """Convert; the exit status."""
    loaded = Store().load()
    for problem in loaded.problems:
        _complain(problem.line())
    try:
        values = values_of(args, loaded.values)
        extra = _engine_arguments(args.engine_arg, values)
        formats = [exporter.name for exporter in exporters(
            [name.strip() for name in args.format.split(",") if name.strip()])]
        if not formats:
            raise WrongCall(command="convert", what=_("--format names no format."))
        ranges.check(args.pages)
        known = passwords.read(args.password_file, "convert")
        output = _output(args.output)
    except VersoError as error:
        _complain(error.problem().line())
        return Exit.USAGE
    # An engine that another Python may run is judged there, when it is started.
    if not setting("engine_interpreter").applies_to(values["engine"]):
        missing = missing_here(entry(values["engine"]), choosable=False)
        if missing is not None:
            _complain(missing.problem().line())
            return Exit.NO_ENGINE
    journal = output / ".verso" / "journal.db"
    begun_before = journal.exists()
    try:
        session = Session(journal, paths.cache_dir(), values,
                          engine_args=extra, resume=False)
    except JournalUnusable as error:
        _complain(error.problem().line())
        return Exit.USAGE
    report = reporter()
    try:
        if not begun_before:  # else there may be nothing left that needs the engine
            session.warm_up()
        conversion = Conversion(session, output, formats, known, report)
        status = conversion.run(args.inputs, args.pages)
    finally:
        session.close()
        report.close()
    if args.json:
        print_json({
            "version": 1, "output": str(output), "exit_status": int(status),
            "engine": {"name": values["engine"], "model": conversion.model,
                       "notes": conversion.notes},
            "documents": conversion.summary()})
    return status


def _engine_arguments(pairs: list[str], values: Values) -> dict[str, str]:
    entry(values["engine"])  # an unknown engine is said first
    try:
        return engine_arguments(pairs, values["engine"])
    except ValueError as error:
        raise WrongCall(
            command="convert", what=_("--engine-arg takes KEY=VALUE, not “{text}”.").format(
                text=error)) from error


def _output(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WrongCall(
            command="convert", what=_("The folder {folder} cannot be made: {reason}.").format(
                folder=folder, reason=error.strerror)) from error
    return folder.absolute()


def _complain(line: str) -> None:
    print(one_line(f"verso: {line}"), file=sys.stderr)
