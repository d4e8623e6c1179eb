"""``verso models``: get the model, see where it is, and whether it is whole."""

from __future__ import annotations

import argparse
import getpass
import shlex
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tqdm import tqdm

from desktop.cli.reporting import one_line, print_json
from desktop.cli.status import Exit
from desktop.cli.usage import WrongCall
from desktop.engines.model.weights import check
from desktop.errors import Problem, VersoError
from desktop.i18n import N_, _
from desktop.models import manifest, tokens
from desktop.models.disk import in_words
from desktop.models.download import (
    STEPS,
    Cancelled,
    Download,
    Event,
    Failed,
    Finished,
    Progress,
)
from desktop.models.errors import BadAddress, ModelIncomplete, ModelMissing
from desktop.models.places import MODEL, ORIGINS, Place, download_folder, find, places
from desktop.models.source import Source, source_of
from desktop.settings import Values, setting
from desktop.settings.store import Store

ACTIONS = {
    "list": N_("show every place on this machine where the model is"),
    "download": N_("download it, or go on with a download that was interrupted"),
    "check": N_("look whether it is complete, and compare checksums where they are known"),
    "token": N_("keep an access token for the model source in the system's keyring"),
}
_SETTINGS = ("hub", "hub_address", "proxy", "offline")
LINE_SECONDS = 10.0
"""Between two lines about progress where there is no terminal."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare its arguments."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.epilog = _("actions:") + "\n" + "\n".join(
        f"  {name:9} {_(text)}" for name, text in ACTIONS.items())
    parser.add_argument("action", choices=ACTIONS, metavar="|".join(ACTIONS))
    parser.add_argument("path", nargs="?", type=Path, metavar="FOLDER",
                        help=_("check: the model's folder (default: the one Verso uses)"))
    parser.add_argument("--folder", type=Path, metavar="FOLDER",
                        help=_("download: where the model is to come to"))
    parser.add_argument("--revision", default="", metavar="NAME",
                        help=_("download: branch, tag or commit (default: the published one)"))
    parser.add_argument("--verify", action="store_true", help=_(
        "download: compare the checksums of what is already there and fetch what is damaged"))
    parser.add_argument("--quick", action="store_true", help=_(
        "check: names, sizes and headers only, no checksums"))
    parser.add_argument("--forget", action="store_true", help=_(
        "token: remove the token that is kept"))
    parser.add_argument("--json", action="store_true", help=_("one JSON document on stdout"))
    for key in _SETTINGS:
        declared = setting(key)
        parser.add_argument(declared.flag, dest=f"setting_{key}", metavar="|".join(
            declared.choices) or "VALUE", help=_(declared.help).replace("%", "%%"))


def run(args: argparse.Namespace) -> int:
    """Do it; the exit status."""
    loaded = Store().load()
    for problem in loaded.problems:
        _complain(problem)
    try:
        values = _values(args, loaded.values)
        if args.path is not None and args.action != "check":
            raise WrongCall(
                command="models",
                what=_("Only `check` takes a folder here; `download` has --folder."))
        for action, option, given in (
                ("download", "--folder", args.folder), ("download", "--revision", args.revision),
                ("download", "--verify", args.verify), ("check", "--quick", args.quick),
                ("token", "--forget", args.forget)):
            if given and args.action != action:
                raise WrongCall(
                    command="models", what=_("{option} belongs to `{action}`.").format(
                        option=option, action=action))
    except VersoError as error:
        _complain(error.problem())
        return Exit.USAGE
    actions: dict[str, Callable[[argparse.Namespace, Values], int]] = {
        "list": _list, "download": _download, "check": _check, "token": _token}
    try:
        return actions[args.action](args, values)
    except (BadAddress, WrongCall) as error:
        _complain(error.problem())
        return Exit.USAGE
    except VersoError as error:
        return _failed(args, error.problem())


# --- actions
def _list(args: argparse.Namespace, values: Values) -> int:
    used = find(values)
    shown = list(places())
    if used is not None and used.folder not in [place.folder for place in shown]:
        shown.insert(0, used)
    if args.json:
        print_json({"version": 1, "model": MODEL, "used": str(used.folder) if used else None,
                    "models": [_described(place) for place in shown]})
        return Exit.OK
    if not shown:
        print(_("{model} is not on this machine. `verso models download` gets it.").format(
            model=MODEL))
    for place in shown:
        found = check(place.folder)
        mark = "*" if used is not None and place.folder == used.folder else " "
        state = in_words(found.bytes) if found.complete else _("not complete: {what}").format(
            what=found.words())
        print(f"{mark} {place.folder}\n    {_(ORIGINS[place.origin])} – {state}")
    if used is not None:
        print(_("* is what an engine on this machine loads."))
    return Exit.OK


def _download(args: argparse.Namespace, values: Values) -> int:
    source = source_of(values, revision=args.revision)
    folder = (args.folder or download_folder()).expanduser()
    show = _Show()
    download = Download(source, folder, show.event, verify=args.verify)
    if not args.json:
        print(_("{model} from {host} to {folder}").format(
            model=source.model, host=source.host, folder=download.folder))
    download.start()
    try:
        download.wait()
    except KeyboardInterrupt:
        download.cancel()
        download.wait()
    finally:
        show.close()
    match download.outcome:
        case Finished(at, size, already):
            _report_finished(args, values, at, size, already)
            return Exit.OK
        case Failed(problem):
            return _failed(args, problem)
        case Cancelled() | None:
            print("verso: " + _("Stopped. The same command goes on where it was."),
                  file=sys.stderr)
            return Exit.INTERRUPTED


def _report_finished(args: argparse.Namespace, values: Values, folder: Path, size: int,
                     already: bool) -> None:
    if args.json:
        print_json({"version": 1, "model": MODEL, "folder": str(folder), "bytes": size,
                    "already": already})
        return
    print((_("Already there and complete: {folder} ({size}).") if already
           else _("Downloaded to {folder} ({size}).")).format(folder=folder, size=in_words(size)))
    used = find(values)
    if used is None or used.folder != folder:
        print(_("To use it, choose this folder in the setting “{title}”, or give {flag}.").format(
            title=_(setting("model").title),
            flag=f"{setting('model').flag} {shlex.quote(str(folder))}"))


def _check(args: argparse.Namespace, values: Values) -> int:
    place = Place(args.path.expanduser(), "chosen") if args.path else find(values) or next(
        places(), None)
    if place is None:
        raise ModelMissing(model=MODEL)
    if not place.folder.is_dir():
        raise ModelIncomplete(folder=place.folder, what=_("there is no such folder"))
    found = check(place.folder)
    if not found.complete:
        raise ModelIncomplete(folder=place.folder, what=found.words())
    held = manifest.read(place.folder)
    compared = held is not None and not args.quick
    if held is not None and compared:
        show = _Show()
        done = 0

        def advanced(count: int) -> bool:
            nonlocal done
            done += count
            show.event(Progress("checking", done, held.bytes, files=len(held.files)))
            return True

        try:
            manifest.verify(place.folder, held, advanced)
        finally:
            show.close()
    if args.json:
        print_json({"version": 1, **_described(place), "checksums": compared})
        return Exit.OK
    what = _("complete, every checksum right") if compared else \
        _("complete by names, sizes and headers")
    print(f"{place.folder}: {what} ({found.architecture or '?'}, {in_words(found.bytes)})")
    return Exit.OK


def _token(args: argparse.Namespace, values: Values) -> int:
    source = source_of(values)
    token = ""
    if not args.forget:
        token = _typed(source).strip()
        if not token:
            raise WrongCall(command="models", what=_("No token was given."))
    tokens.store(source, token)
    if args.json:
        print_json({"version": 1, "host": source.host, "kept": bool(token)})
    else:
        print((_("The token for {host} is kept in the keyring.") if token
               else _("No token for {host} is kept.")).format(host=source.host))
    return Exit.OK


def _typed(source: Source) -> str:
    """What a person types unseen, or a line of stdin; never an argument, which others can see."""
    if sys.stdin.isatty():
        return getpass.getpass(_("Token for {host}: ").format(host=source.host))
    return sys.stdin.readline()


# --- inside
def _values(args: argparse.Namespace, base: Values) -> Values:
    given = {key: setting(key).parse(getattr(args, f"setting_{key}")) for key in _SETTINGS
             if getattr(args, f"setting_{key}") is not None}
    return base.with_(**given)


def _described(place: Place) -> dict[str, Any]:
    found = check(place.folder)
    held = manifest.read(place.folder)
    return {"folder": str(place.folder), "origin": place.origin, "complete": found.complete,
            "architecture": found.architecture, "bytes": found.bytes,
            "missing": list(found.missing),
            "damaged": [{"file": name, "reason": reason} for name, reason in found.damaged],
            "revision": held.revision if held else None}


def _failed(args: argparse.Namespace, problem: Problem) -> int:
    _complain(problem)
    if args.json:
        print_json({"version": 1, "error": {
            "code": problem.code, "message": problem.message, "hint": problem.hint}})
    return Exit.SOME_FAILED


def _complain(problem: Problem) -> None:
    print(one_line(f"verso: {problem.line()}"), file=sys.stderr)


class _Show:
    """Progress on stderr: a bar on a terminal, a line now and then otherwise."""

    def __init__(self) -> None:
        self._terminal = sys.stderr.isatty()
        self._bar: Any = None
        self._step = ""
        self._next = 0.0
        self._retry_in = 0.0

    def event(self, event: Event) -> None:
        """Show it."""
        if not isinstance(event, Progress):
            return
        if event.retry_in > self._retry_in:
            self._say(_("{reason}; trying again in {seconds:.0f} s").format(
                reason=event.trouble, seconds=event.retry_in))
        self._retry_in = event.retry_in
        if self._terminal:
            self._move(event)
        elif event.step != self._step or (
                time.monotonic() >= self._next and not event.retry_in):
            self._next = time.monotonic() + LINE_SECONDS
            text = _(STEPS[event.step])
            if event.bytes:
                text += _(": {done} of {whole}").format(
                    done=in_words(event.bytes_done), whole=in_words(event.bytes))
            self._say(text + (f", {in_words(event.speed)}/s" if event.speed else ""))
        self._step = event.step

    def close(self) -> None:
        """Nothing more comes."""
        if self._bar is not None:
            self._bar.close()

    def _move(self, event: Progress) -> None:
        if self._bar is None:
            self._bar = tqdm(total=1, file=sys.stderr, dynamic_ncols=True, leave=False,
                             bar_format="{desc}", desc=_(STEPS[event.step]))
        self._bar.set_description_str(_(STEPS[event.step]), refresh=False)
        self._bar.total, self._bar.n = event.bytes or 1, event.bytes_done
        text = f"{in_words(event.bytes_done)}/{in_words(event.bytes)}"
        if event.speed:
            minutes, seconds = divmod(round(max(0.0, event.seconds_left)), 60)
            text += f", {in_words(event.speed)}/s, " + _("{minutes}:{seconds:02} left").format(
                minutes=minutes, seconds=seconds)
        # Not as its postfix: that comes with a comma before it.
        self._bar.bar_format = "{desc} {percentage:3.0f}%|{bar}| " + text
        self._bar.refresh()

    def _say(self, line: str) -> None:
        if self._bar is not None:
            self._bar.write(line, file=sys.stderr)
        else:
            print(line, file=sys.stderr, flush=True)
