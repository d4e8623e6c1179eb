"""``verso prepare-npu``: the official vLLM code, made to run on an Ascend NPU, in a copy."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

from desktop.cli.reporting import one_line
from desktop.cli.status import Exit
from desktop.client import interpreter
from desktop.engines.ascend.preparation import (
    DEFAULT_TARGET,
    Prepared,
    layout,
    official,
    packages,
    prepare,
)
from desktop.engines.ascend.preparation.errors import SourceNotFetched, UnknownLayout
from desktop.engines.ascend.preparation.target import MANIFEST
from desktop.i18n import N_, _
from desktop.settings import Values, setting
from desktop.settings.store import Store

ENTRIES = {
    layout.IMAGE: N_("an image, its text as it comes"),
    layout.PDF: N_("a PDF"),
    layout.BATCH: N_("a folder of images"),
    "benchmark.py": N_("how fast it is (--image FILE)"),
}
"""What can be run in the prepared folder."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare its arguments."""
    parser.add_argument("source", nargs="?", type=Path, default=official.DEFAULT_SOURCE,
                        metavar="SOURCE", help=_(
        "folder of the official code; fetched where it is not there (default: {source})").format(
            source=official.DEFAULT_SOURCE))
    parser.add_argument("target", nargs="?", type=Path, default=DEFAULT_TARGET, metavar="TARGET",
                        help=_("folder to make; an earlier one is replaced (default: {target})"
                               ).format(target=DEFAULT_TARGET))
    parser.add_argument("--dry-run", action="store_true", help=_(
        "show what would be done; fetch, install and write nothing"))
    parser.add_argument("--no-install", action="store_true", help=_(
        "do not install {packages}").format(packages=", ".join(packages.PACKAGES)))
    parser.add_argument("--index-url", default=packages.INDEX, metavar="URL", help=_(
        "package index to install from (default: {index})").format(
            index=packages.INDEX).replace("%", "%%"))
    declared = setting("engine_interpreter")
    parser.add_argument(declared.flag, dest="engine_interpreter", metavar="PATH", help=_(
        "the Python to install into (default: that of the settings)"))


def run(args: argparse.Namespace) -> int:
    """Do it."""
    values = Store().load().values
    if args.engine_interpreter is not None:
        values = values.with_(engine_interpreter=args.engine_interpreter)
    # Without installing, one that is not there does not matter.
    python = "python" if args.no_install else interpreter.resolve(values["engine_interpreter"])
    source = official.located(args.source)
    if source is None:
        folder = official.checkout(args.source)
        if args.dry_run:
            print(_("Would fetch {address} to {folder}; what changes in it can be said when it is "
                    "there.").format(address=layout.ADDRESS, folder=folder))
            return Exit.OK
        source = _fetched(values, folder, args.source)
    try:
        prepared = prepare(source, args.target)
    except UnknownLayout as error:
        print("verso: " + _("The code in {source} is not laid out as this version of Verso knows "
                            "it; nothing was written. Not found:").format(source=source),
              file=sys.stderr)
        for missing in error.missing:
            print(f"  {one_line(str(missing))}", file=sys.stderr)
        print(error.problem().hint, file=sys.stderr)
        return Exit.SOME_FAILED
    if args.dry_run:
        _describe(prepared, python, args)
        return Exit.OK
    if not args.no_install:
        _install(values, python, args.index_url)
    kept = prepared.write()
    if kept is not None:
        print(_("The {target} that was there had been changed; it is now {kept}.").format(
            target=prepared.place.name, kept=kept))
    _report(prepared, python)
    return Exit.OK


# --- the steps
def _fetched(values: Values, folder: Path, source: Path) -> Path:
    if values["offline"]:
        raise SourceNotFetched(address=layout.ADDRESS,
                               reason=_("Verso is set to work without the network."))
    print(_("Fetching {address} to {folder} …").format(address=layout.ADDRESS, folder=folder),
          flush=True)
    commit = official.fetch(folder, proxy=values["proxy"])
    print(_("Commit {commit}.").format(commit=commit))
    found = official.located(source)
    if found is None:
        raise SourceNotFetched(address=layout.ADDRESS,
                               reason=_("it has no folder {folder}.").format(folder=layout.INNER))
    return found


def _install(values: Values, python: str, index: str) -> None:
    if values["offline"]:
        print(_("Verso is set to work without the network: no package is installed."))
        return
    print(_("Installing into {python}:").format(python=python), flush=True)
    failed = packages.install(python, index=index, proxy=values["proxy"],
                              tell=lambda package: print(f"  {package}", flush=True))
    # What keeps all of them off is said once.
    for reason in dict.fromkeys(one.reason for one in failed):
        names = [one.package for one in failed if one.reason == reason]
        print("verso: " + one_line(_("{packages} could not be installed: {reason}").format(
            packages=", ".join(names), reason=reason)), file=sys.stderr)
        print("  " + _("To try it again: {command}").format(
            command=packages.by_hand(python, index, names)), file=sys.stderr)


def _describe(prepared: Prepared, python: str, args: argparse.Namespace) -> None:
    if not args.no_install:
        print(_("Would install into {python}: {packages}").format(
            python=python, packages=", ".join(packages.PACKAGES)))
    print(_("Would copy {source} to {target}, with these changes:").format(
        source=prepared.source, target=prepared.place))
    for change in prepared.changes:
        print(change)
    print(_("Would put beside them: {names}").format(names=_beside(prepared)))
    if prepared.lost:
        print(_("Changed by hand in the {target} that is there, which would be kept under another "
                "name: {files}").format(target=prepared.place.name,
                                        files=", ".join(prepared.lost)))


def _beside(prepared: Prepared) -> str:
    return ", ".join((*prepared.added, MANIFEST))


def _report(prepared: Prepared, python: str) -> None:
    changed = list(dict.fromkeys(change.file for change in prepared.changes))
    print(_("Prepared {target} from {source}.").format(
        target=prepared.place, source=prepared.source))
    print(_("Changed: {names}").format(names=", ".join(changed)))
    print(_("Put beside them: {names}").format(names=_beside(prepared)))
    print(_("Set MODEL_PATH, INPUT_PATH and OUTPUT_PATH in {file}, then:").format(
        file=prepared.place / layout.CONFIG))
    print(f"  cd {shlex.quote(str(prepared.place))}")
    width = max(map(len, ENTRIES))
    for name, what in ENTRIES.items():
        print(f"  {shlex.quote(python)} {name:{width}}  # {_(what)}")
    print(_("Or let Verso read with it:"))
    print(f"  verso convert FILE… -o FOLDER --engine ascend-legacy --engine-interpreter "
          f"{shlex.quote(python)} --official-code {shlex.quote(str(prepared.place))}")
