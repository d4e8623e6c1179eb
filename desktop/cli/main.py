"""The ``verso`` command: which command is meant, and what becomes of its errors."""

from __future__ import annotations

import argparse
import importlib
import io
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn, Protocol, cast

from desktop import __version__
from desktop import log as logs
from desktop.cli.status import Exit
from desktop.errors import VersoError
from desktop.i18n import N_, _

log = logging.getLogger(__name__)


class Command(Protocol):
    """What a module of this package offers to be a command."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare its arguments."""

    def run(self, args: argparse.Namespace) -> int:
        """Do it; the exit status."""


COMMANDS: dict[str, str] = {
    "convert": N_("convert files and folders without a window"),
    "bench": N_("measure how fast pages are read, at several numbers of pages at once"),
    "engines": N_("list the engines, and say whether they can start here"),
    "doctor": N_("examine the machine and every engine: what is missing, what to do"),
    "servers": N_("try the vLLM servers with a page; keep their keys"),
    "models": N_("get the model, and see where it is"),
    "prepare-npu": N_("make the official code run on an Ascend NPU (older stack), in a copy"),
    "settings": N_("list the settings, their values and their flags"),
}
"""Name → what it does. Its module has the same name, with ``_`` for ``-``; to add a command, add it
here."""


class Parser(argparse.ArgumentParser):
    """Wrong calls are one line and exit status 2."""

    def error(self, message: str) -> NoReturn:
        self.exit(Exit.USAGE, _("verso: {message} (see {prog} --help)").format(
            message=message, prog=self.prog) + "\n")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line ARGV (default: the process's own); the exit status.

    No error that a person can cause shows a traceback; ``--debug`` puts it into the log.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # as stderr does
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        return _dispatch(words)
    except SystemExit as end:  # argparse: --help, --version and wrong calls
        return end.code if isinstance(end.code, int) else Exit.OK
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:
        # Who reads the output has gone; Python must not fail again when it flushes at the end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.SOME_FAILED
    except VersoError as error:
        log.warning("%s: %s", error.code, error.detail or error, exc_info="--debug" in words)
        print(f"verso: {error.problem().line()}", file=sys.stderr)
        return Exit.SOME_FAILED
    except Exception as error:
        log.exception("command failed")
        print("verso: " + _("Something went wrong inside Verso ({what}). Please report this "
                            "with the log in {folder}.").format(
            what=f"{type(error).__name__}: {error}", folder=_log_folder()), file=sys.stderr)
        return Exit.SOME_FAILED
    finally:
        signal.signal(signal.SIGTERM, before)


def _dispatch(words: list[str]) -> int:
    if words and words[0] in COMMANDS:
        name = words[0]
        command = cast("Command", importlib.import_module(
            "desktop.cli." + name.replace("-", "_")))
        what = _(COMMANDS[name])
        parser = Parser(prog=f"verso {name}", description=what[:1].upper() + what[1:] + ".",
                        allow_abbrev=False)
        parser.add_argument("--debug", action="store_true", help=_(
            "log details and tracebacks"))
        command.add_arguments(parser)
        args = parser.parse_intermixed_args(words[1:])
        logs.start(name if name in ("convert", "bench") else "verso", debug=args.debug)
        return command.run(args)
    args = _window_parser().parse_intermixed_args(words)
    # The only way to Qt from here, and by name: the command line does not depend on the window.
    app = importlib.import_module("desktop.app")
    return int(app.run(args.files, debug=args.debug))


def _window_parser() -> argparse.ArgumentParser:
    lines = "\n".join(f"  {name:12} {_(text)}" for name, text in COMMANDS.items())
    parser = Parser(
        prog="verso", allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter,
        usage=_("verso [FILE …]\n       verso COMMAND …"),
        description=_("Turns images and PDFs into structured Markdown, reviewed beside the page."),
        epilog=_("commands:") + f"\n{lines}\n\n" + _("`verso COMMAND --help` says more."))
    parser.add_argument("files", nargs="*", type=Path, metavar="FILE",
                        help=_("files and folders to queue in the window"))
    parser.add_argument("--debug", action="store_true", help=_("log details and tracebacks"))
    parser.add_argument("--version", action="version", version=f"verso {__version__}")
    return parser


def _interrupt(number: int, frame: FrameType | None) -> NoReturn:
    """TERM is Ctrl-C from elsewhere: keep what is finished, leave nothing running."""
    raise KeyboardInterrupt


def _log_folder() -> str:
    from desktop import paths

    return str(paths.log_dir())
