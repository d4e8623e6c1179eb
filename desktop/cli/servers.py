"""``verso servers``: what the servers are like; ``verso servers key``: their keys."""

from __future__ import annotations

import argparse
import asyncio
import getpass
import sys
from typing import Any

from desktop.cli.reporting import one_line, print_json
from desktop.cli.status import Exit
from desktop.cli.usage import WrongCall
from desktop.engines.remote import addresses, keys
from desktop.engines.remote.errors import BadAddress, NoServers
from desktop.engines.remote.probe import Report, probe_all
from desktop.errors import Problem, VersoError
from desktop.i18n import _
from desktop.settings.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare its arguments."""
    parser.add_argument("words", nargs="*", metavar="ADDRESS", help=_(
        "servers to look at (none: those of the settings); or `key ADDRESS` to keep a server's "
        "key, read from the terminal or from standard input, in the system's keyring"))
    parser.add_argument("--model", default=None, help=_(
        "the name the servers know the model by (default: as in the settings)"))
    parser.add_argument("--delete", action="store_true", help=_("with `key`: forget the key"))
    parser.add_argument("--json", action="store_true", help=_("one JSON document on stdout"))


def run(args: argparse.Namespace) -> int:
    """Look at servers, or keep or forget a key."""
    try:
        if args.words[:1] == ["key"]:
            return _key(args)
        if args.delete:
            raise WrongCall(
                command="servers", what=_("--delete belongs to a key: verso servers key ADDRESS "
                                          "--delete."))
        return _probe(args)
    except (WrongCall, NoServers, BadAddress, keys.BadKey) as error:
        return _failed(args, error, Exit.USAGE)
    except VersoError as error:
        return _failed(args, error, Exit.SOME_FAILED)


def _probe(args: argparse.Namespace) -> int:
    loaded = Store().load()
    for problem in loaded.problems:
        _complain(problem)
    servers = " ".join(args.words) or loaded.values["servers"]
    model = args.model if args.model is not None else loaded.values["remote_model"]
    reports = asyncio.run(probe_all(servers, model))
    if args.json:
        print_json({"version": 1, "servers": [_document(report) for report in reports]})
    else:
        print("\n\n".join("\n".join(_lines(report)) for report in reports))
    return Exit.OK if all(report.good for report in reports) else Exit.SOME_FAILED


def _key(args: argparse.Namespace) -> int:
    if len(args.words) != 2:
        raise WrongCall(
            command="servers", what=_("One server is to be named: verso servers key ADDRESS."))
    server = addresses.normal(args.words[1])
    if args.delete:
        gone = keys.delete(server)
        if args.json:
            print_json({"version": 1, "address": server, "kept": False})
        else:
            print((_("The key for {server} is forgotten.") if gone
                   else _("There was no key for {server}.")).format(server=server))
        return Exit.OK
    # Never an argument: other users see those, and the shell keeps them.
    value = getpass.getpass(_("Key for {server}: ").format(server=server)) \
        if sys.stdin.isatty() else sys.stdin.readline()
    keys.store(server, value)
    if args.json:
        print_json({"version": 1, "address": server, "kept": True})
    else:
        print(_("The key for {server} is in the system's keyring.").format(server=server))
    return Exit.OK


def _failed(args: argparse.Namespace, error: VersoError, status: Exit) -> int:
    problem = error.problem()
    _complain(problem)
    if args.json:
        print_json({"version": 1, "error": _problem(problem)})
    return status


def _complain(problem: Problem) -> None:
    print(one_line(f"verso: {problem.line()}"), file=sys.stderr)


def _lines(report: Report) -> list[str]:
    """REPORT for a terminal."""
    lines = [report.address]
    problem = report.problem
    if problem is not None:
        return [*lines, "  ✗ " + one_line(problem.line())]
    facts = [_("model {model}").format(model=report.model)]
    if report.version:
        facts.append(f"vLLM {report.version}")
    if report.context:
        facts.append(_("context {tokens} tokens").format(tokens=report.context))
    if report.cache_tokens:
        facts.append(_("KV cache {tokens} tokens").format(tokens=report.cache_tokens))
    if report.key:
        facts.append(_("key from the {source}").format(source=report.key))
    lines.append("  " + one_line(", ".join(facts)))
    if report.page_tokens:
        lines.append("  " + _("a page costs {page} tokens, a small one {small}").format(
            page=report.page_tokens, small=report.small_tokens))
    for name, value in ((_("streams"), report.streams), (_("keeps grounding tags"), report.tags),
                        (_("n-gram processor works"), report.guard)):
        mark = {True: "✓", False: "✗", None: "?"}[value]
        lines.append(f"  {mark} {name}")
    lines += [f"  {'✗' if found.level.value == 'fault' else '!'} {one_line(found.problem.line())}"
              for found in report.findings]
    return lines


def _document(report: Report) -> dict[str, Any]:
    problem = report.problem
    return {
        "address": report.address, "good": report.good,
        "error": _problem(problem) if problem else None,
        "model": report.model, "models": list(report.models), "version": report.version,
        "context": report.context, "cache_tokens": report.cache_tokens,
        "page_tokens": report.page_tokens, "small_tokens": report.small_tokens,
        "streams": report.streams, "tags": report.tags, "ngram": report.guard,
        "key": report.key, "seconds": round(report.seconds, 3),
        "findings": [{"level": found.level.value, **_problem(found.problem)}
                     for found in report.findings],
    }


def _problem(problem: Problem) -> dict[str, str]:
    return {"code": problem.code, "message": problem.message, "hint": problem.hint}
