"""Secrets in the system's keyring: keys of servers, tokens of model hubs; never in a file, a log
or a message.

A keyring may ask a person, or hang where there is no desktop: each question is put on a thread
that cannot keep the process from ending, and is waited for only so long.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from types import ModuleType
from typing import TypeVar

from desktop.i18n import _

SERVERS = "verso-servers"
"""Under this name the keyring holds servers' keys; the user's name there is the address."""
HUBS = "verso-hubs"
"""Likewise tokens of model hubs, by the hub's host."""
PATIENCE = 15.0
"""Seconds for an answer."""

_T = TypeVar("_T")
_unanswered: list[threading.Thread] = []
"""The question that was given up, while it still waits."""


class NoAnswer(Exception):
    """The keyring cannot be used. REASON in words; never the keyring's own, which might hold what
    was to be kept."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def get(service: str, name: str) -> str:
    """What is kept for NAME; empty: nothing. Blocks; raises :class:`NoAnswer`."""
    return _ask(lambda keyring: keyring.get_password(service, name) or "")


def put(service: str, name: str, secret: str) -> None:
    """Keep SECRET for NAME. Blocks; raises :class:`NoAnswer`."""
    _ask(lambda keyring: keyring.set_password(service, name, secret))


def forget(service: str, name: str) -> bool:
    """Keep nothing for NAME; whether there was something. Blocks; raises :class:`NoAnswer`."""
    def change(keyring: ModuleType) -> bool:
        if keyring.get_password(service, name) is None:
            return False
        keyring.delete_password(service, name)
        return True

    return _ask(change)


def sendable(secret: str) -> bool:
    """Whether SECRET can stand in a request's header: one word of printable ASCII characters."""
    return re.fullmatch(r"[!-~]+", secret) is not None


def _ask(question: Callable[[ModuleType], _T]) -> _T:
    if any(thread.is_alive() for thread in _unanswered):
        # Another question would wait behind the one that it still asks a person about.
        raise NoAnswer(_("it does not answer"))
    _unanswered.clear()
    answers: list[_T] = []
    reasons: list[str] = []

    def ask() -> None:
        try:
            import keyring

            answers.append(question(keyring))
        except Exception as error:  # noqa: BLE001 - backends raise what their libraries do
            reasons.append(_reason(error))

    thread = threading.Thread(target=ask, name="keyring", daemon=True)
    thread.start()
    thread.join(PATIENCE)
    if thread.is_alive():
        _unanswered.append(thread)
        raise NoAnswer(_("it does not answer"))
    if reasons:
        raise NoAnswer(reasons[0])
    return answers[0]


def _reason(error: Exception) -> str:
    name = type(error).__name__
    return {"NoKeyringError": _("there is none"), "KeyringLocked": _("it is locked"),
            "ModuleNotFoundError": _("the package keyring is not installed"),
            "InitError": _("it is locked or its service does not run")}.get(name, name)
