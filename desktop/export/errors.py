"""What can go wrong when a result is written."""

from __future__ import annotations

from desktop.errors import VersoError
from desktop.i18n import N_


class CannotWrite(VersoError):
    """The folder cannot be written: missing rights, full disk, a name the file system refuses."""

    code = "export.write"
    message = N_("{path} cannot be written: {reason}.")
    hint = N_("Choose another folder, or make room and export again; the result is kept.")


class UnknownFormat(VersoError):
    """No exporter has this name."""

    code = "export.format"
    message = N_("There is no format called “{name}”.")
    hint = N_("Choose from: {known}.")
