"""``verso bench``: how fast pages are read, at several numbers of pages at once."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from desktop import paths
from desktop.benchmark.command import OUTPUT
from desktop.benchmark.document import document
from desktop.benchmark.errors import BadPlan, NotKept, NotWritten
from desktop.benchmark.history import keep
from desktop.benchmark.plan import (
    COMPARED,
    CONTINUOUS,
    GAIN,
    LEVELS,
    MOST,
    Goodput,
    Plan,
    Requests,
    Strategy,
)
from desktop.benchmark.report import csv_text, markdown, summary, table
from desktop.benchmark.results import Ended, LevelResult, Result
from desktop.benchmark.run import Benchmark
from desktop.benchmark.workload import gather
from desktop.cli import passwords
from desktop.cli.bench_interrupts import Interrupts
from desktop.cli.bench_progress import Teller
from desktop.cli.flags import PREFIX, add_settings, engine_arguments, values_of
from desktop.cli.reporting import one_line, print_json
from desktop.cli.status import Exit
from desktop.client.interpreter import missing_here
from desktop.engines.registry import entry
from desktop.errors import VersoError
from desktop.export.atomic import write_text
from desktop.i18n import _, ngettext
from desktop.settings import Values, setting
from desktop.settings.store import Store

_NOT_HERE = ("concurrency",)
"""Settings that the levels decide."""
_PAGE_LINES = 5
"""Pages that failed which are named."""
_LOOK = 0.1
"""Seconds after which an interrupt is seen at the latest."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare its arguments: those of the CANN recipe under their names, and more."""
    parser.add_argument("--image", action="append", default=[], metavar="PATH", type=Path, help=_(
        "image, PDF or folder; a file is copied, a folder cycled; may be repeated (default: the "
        "sample that comes with Verso)"))
    passwords.add_argument(parser)
    parser.add_argument("--concurrent", metavar="N,…", help=_(
        "pages at once, one level each (default: {levels}; 1 with --raise)").format(
        levels=",".join(map(str, LEVELS))))
    parser.add_argument("--warmup", type=int, default=Plan.warmup, metavar="N", help=_(
        "rounds before those that count (default: {rounds})").format(rounds=Plan.warmup))
    parser.add_argument("--rounds", type=int, default=Plan.rounds, metavar="N", help=_(
        "rounds that count (default: {rounds})").format(rounds=Plan.rounds))
    parser.add_argument("--requests", default="1x", metavar="N|Nx", help=_(
        "pages a round: a number, or how many times the pages at once; from 4x on the steady "
        "state is reported (default: 1x)"))
    parser.add_argument("--gpu-mem", dest=PREFIX + "memory_utilization", metavar="N", help=_(
        "the same as --memory-utilization"))
    parser.add_argument("--output", type=Path, default=Path(OUTPUT), metavar="FILE", help=_(
        "where the table is written (default: {file})").format(file=OUTPUT))
    parser.add_argument("--json", action="store_true", help=_(
        "everything as one JSON document on stdout; the table goes to stderr"))
    parser.add_argument("--csv", type=Path, metavar="FILE", help=_("a row a round"))
    parser.add_argument("--markdown", type=Path, metavar="FILE", help=_("a report to pass on"))
    parser.add_argument("--strategy", default="continuous", metavar="NAME,…", help=_(
        "sequential, batch:N or continuous; several are compared, and “compare” stands for "
        "{strategies}").format(strategies=",".join(map(str, COMPARED))))
    parser.add_argument("--keep-engine", action="store_true", help=_(
        "one engine for all levels instead of a fresh one each: only the first has a cold round"))
    parser.add_argument("--no-cold", action="store_true", help=_("no cold round"))
    parser.add_argument("--unique", action="store_true", help=_(
        "change each copy of a page by a trace, so that no cache can help"))
    parser.add_argument("--draw", choices=("live", "ahead"), default="live", help=_(
        "pages are drawn beside the reading, as in a conversion (live), or once before each "
        "level"))
    parser.add_argument("--raise", dest="gain", nargs="?", type=float, const=GAIN,
                        metavar="PERCENT", help=_(
                            "double the pages at once until that gains less than PERCENT ({gain}) "
                            "more").format(gain=f"{GAIN:g}").replace("%", "%%"))
    parser.add_argument("--most", type=int, default=MOST, metavar="N", help=_(
        "most pages at once with --raise (default: {most})").format(most=MOST))
    parser.add_argument("--time-cap", type=float, default=0.0, metavar="SECONDS", help=_(
        "end after so long with what is finished"))
    parser.add_argument("--goodput", action="extend", nargs="+", default=[], metavar="KEY:MS",
                        help=_("count pages that keep these limits: ttft, tpot, e2el, in "
                               "milliseconds"))
    parser.add_argument("--engine-arg", action="append", default=[], metavar="KEY=VALUE",
                        help=_("passed on to the engine as it is; may be repeated"))
    add_settings(parser, without=_NOT_HERE)


def run(args: argparse.Namespace) -> int:
    """Measure; the exit status."""
    loaded = Store().load()
    for problem in loaded.problems:
        _complain(problem.line())
    try:
        values = values_of(args, loaded.values)
        engine = entry(values["engine"])
        extra = _engine_arguments(args.engine_arg, values)
        plan = plan_of(args)
        known = passwords.read(args.password_file, "bench")
        for file in (args.output, args.csv, args.markdown):
            _check_writable(file)
    except VersoError as error:
        _complain(error.problem().line())
        return Exit.USAGE
    if not setting("engine_interpreter").applies_to(engine.name):
        missing = missing_here(engine, choosable=False)
        if missing is not None:
            _complain(missing.problem().line())
            return Exit.NO_ENGINE
    cache = paths.cache_dir()
    workload = gather(args.image, cache, lambda _path: known)
    teller = Teller(sys.stderr, plan, workload)
    benchmark = Benchmark(plan, workload, values, cache, engine_args=extra)
    benchmark.subscribe(teller.take)
    with Interrupts() as interrupts:
        result = _follow(benchmark, interrupts)
        teller.close()
        return _report(args, result)


def plan_of(args: argparse.Namespace) -> Plan:
    """What is to be measured; raises BadPlan."""
    levels = (Plan.usual_levels(raised=args.gain is not None) if args.concurrent is None
              else Plan.parse_levels(args.concurrent))
    strategies = COMPARED if args.strategy == "compare" else tuple(dict.fromkeys(
        Strategy.parse(name) for name in args.strategy.split(",")))
    if args.gain is not None and CONTINUOUS not in strategies:
        raise BadPlan(what=_("--raise needs the strategy “continuous”."))
    return Plan(
        levels=levels, strategies=strategies, cold=not args.no_cold,
        warmup=args.warmup, rounds=args.rounds, requests=Requests.parse(args.requests),
        gain=args.gain, most=args.most, time_cap=args.time_cap,
        goodput=Goodput.parse(args.goodput), keep_engine=args.keep_engine, unique=args.unique,
        ahead=args.draw == "ahead")


def _follow(benchmark: Benchmark, interrupts: Interrupts) -> Result:
    """Wait for its end; Ctrl-C ends it early, with what is finished."""
    benchmark.start()
    while (result := benchmark.wait(_LOOK)) is None:
        if interrupts.wanted:
            benchmark.cancel()
    return result


def _report(args: argparse.Namespace, result: Result) -> int:
    found = document(result)
    try:
        return _tell(args, result, found)
    finally:
        _keep(found)


def _tell(args: argparse.Namespace, result: Result, found: dict[str, Any]) -> int:
    """Write and print what was found, what must not be lost first: who reads the output may have
    gone. The exit status."""
    status = _status(result)
    text = table(found) if any(level.rounds or level.cold for level in result.levels) else ""
    if text and not _write_all(args, found, text):
        status = status or Exit.SOME_FAILED
    if args.json:
        print_json({**found, "exit_status": int(status)})
    with contextlib.suppress(BrokenPipeError) if args.json else contextlib.nullcontext():
        stream = sys.stderr if args.json else sys.stdout
        print(text, end="", file=stream)
        if said := summary(found):
            print(said, file=stream)
    for line in dict.fromkeys(level.problem.line() for level in result.levels
                              if level.problem is not None):
        _complain(line)
    pages = _page_lines(result.levels)
    for line in pages[:_PAGE_LINES]:
        _complain(line)
    more = len(pages) - _PAGE_LINES
    if more > 0:
        _complain(ngettext("{count} more page failed; --json has them all.",
                           "{count} more pages failed; --json has them all.", more).format(
            count=more))
    return status


def _page_lines(levels: Sequence[LevelResult]) -> list[str]:
    """Why pages failed, each page once for each reason; not where the level says it already."""
    found = {}
    for level in levels:
        said = level.problem.message if level.problem is not None else ""
        for one in (request for each in level.every_round for request in each.requests):
            if one.problem is not None and one.problem.message not in said:
                found[one.page, one.problem.code] = f"{one.page}: {one.problem.line()}"
    return list(found.values())


def _write_all(args: argparse.Namespace, found: dict[str, Any], text: str) -> bool:
    """Every file that was asked for, TEXT the table; whether all of them could be written."""
    files = [(args.output, text)]
    if args.csv is not None:
        files.append((args.csv, csv_text(found)))
    if args.markdown is not None:
        files.append((args.markdown, markdown(found)))
    written = [_write(file, content) for file, content in files]
    return all(written)


def _keep(found: dict[str, Any]) -> None:
    try:
        note = keep(found, paths.data_dir())
    except OSError as error:
        note = NotKept(reason=error.strerror or error).problem()
    except VersoError as error:  # there is no folder for it
        note = NotKept(reason=error.problem().message).problem()
    if note is not None:
        _complain(note.line())


def _write(file: Path, content: str) -> bool:
    """Whether it could be written; says why not."""
    try:
        if file.exists() and not file.is_file():  # /dev/stdout, a pipe: never replaced
            file.write_text(content, "utf-8")
        else:
            write_text(file, content)
    except OSError as error:
        _complain(NotWritten(path=file, reason=error.strerror or error).problem().line())
        return False
    return True


def _status(result: Result) -> int:
    if result.ended is Ended.INTERRUPTED:
        return Exit.INTERRUPTED
    if result.problem is not None and all(level.ready is None for level in result.levels):
        return Exit.NO_ENGINE
    flawed = any(level.flawed for level in result.levels)
    nothing = not any(level.rounds for level in result.levels)
    return Exit.SOME_FAILED if flawed or nothing else Exit.OK


def _engine_arguments(pairs: list[str], values: Values) -> dict[str, str]:
    try:
        return engine_arguments(pairs, values["engine"])
    except ValueError as error:
        raise BadPlan(what=_("--engine-arg takes KEY=VALUE, not “{text}”.").format(
            text=error)) from error


def _check_writable(file: Path | None) -> None:
    """Better now than after an hour."""
    if file is None:
        return
    try:
        if file.is_dir():
            raise NotWritten(path=file, reason=_("it is a folder"))
        if not file.absolute().parent.is_dir():
            raise NotWritten(path=file, reason=_("there is no such folder"))
        if file.exists() and not file.is_file():
            if not os.access(file, os.W_OK):
                raise NotWritten(path=file, reason=_("it cannot be written to"))
        else:  # it will be written beside its place
            tempfile.TemporaryFile(dir=file.absolute().parent).close()
    except OSError as error:
        raise NotWritten(path=file, reason=error.strerror or error) from error


def _complain(line: str) -> None:
    with contextlib.suppress(BrokenPipeError):  # who reads it has gone; the result has not
        print(one_line(f"verso: {line}"), file=sys.stderr)
