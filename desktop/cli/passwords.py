"""``--password-file``: what opens protected documents, never a word of the command line."""

from __future__ import annotations

import argparse
from pathlib import Path

from desktop.cli.usage import WrongCall
from desktop.i18n import _


def add_argument(parser: argparse.ArgumentParser) -> None:
    """Declare it."""
    parser.add_argument("--password-file", metavar="FILE", type=Path, help=_(
        "passwords for protected documents, one a line; each is tried"))


def read(file: Path | None, command: str) -> list[str]:
    """The lines of FILE. Raises WrongCall, of verso's COMMAND, where it cannot be read."""
    if file is None:
        return []
    try:
        text = file.read_text("utf-8-sig", errors="surrogateescape")
    except OSError as error:
        raise WrongCall(
            command=command, what=_("The password file {file} cannot be read: {reason}.").format(
                file=file, reason=error.strerror)) from error
    return [line for line in text.splitlines() if line]
