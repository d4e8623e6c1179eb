"""A call that cannot be carried out as it was written."""

from __future__ import annotations

from desktop.errors import VersoError
from desktop.i18n import N_


class WrongCall(VersoError):
    """Arguments that cannot be used or do not go together; ``command`` is verso's."""

    code = "cli.usage"
    message = N_("{what}")
    hint = N_("See verso {command} --help.")
