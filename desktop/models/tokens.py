"""Tokens for model hubs in the system's keyring, one for each hub or mirror; never in a file, a
log or a message."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import ModuleType

from desktop.i18n import _
from desktop.models.errors import NoKeyring
from desktop.models.source import Source

log = logging.getLogger(__name__)

SERVICE = "verso-models"
PATIENCE = 20.0
"""Seconds for a keyring to answer: it may ask a person, or hang where there is no desktop."""


def stored(source: Source) -> str:
    """The token kept for SOURCE; empty: none, or no keyring that answers. Blocks."""
    try:
        return _ask(source, lambda keyring: keyring.get_password(SERVICE, source.host)) or ""
    except NoKeyring as error:
        log.info("%s", error)
        return ""


def store(source: Source, token: str) -> None:
    """Keep TOKEN for SOURCE, or none where it is empty; raises :class:`NoKeyring`. Blocks."""
    def change(keyring: ModuleType) -> None:
        if token:
            keyring.set_password(SERVICE, source.host, token)
        elif keyring.get_password(SERVICE, source.host):
            keyring.delete_password(SERVICE, source.host)

    _ask(source, change)


def _ask(source: Source, question: Callable[[ModuleType], str | None]) -> str | None:
    """QUESTION's answer, asked on a thread that cannot keep the process from ending."""
    answers: list[str | None] = []
    reasons: list[str] = []

    def ask() -> None:
        try:
            import keyring

            answers.append(question(keyring))
        except Exception as error:  # noqa: BLE001 - backends raise what their libraries do
            # Its name only: a message might hold what was to be kept.
            reasons.append(type(error).__name__)

    thread = threading.Thread(target=ask, name="keyring", daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if not answers:
        raise NoKeyring(reason=reasons[0] if reasons else _("it does not answer"),
                        variable=source.facts.token_variables[0])
    return answers[0]
