"""A server's key: in the system's keyring or the environment, and nowhere else.

A key never becomes part of a message, a log line or an error: whatever a server says goes through
:meth:`Key.redact` first.
"""

from __future__ import annotations

import base64
import json
import os
import re
import threading
from urllib.parse import quote

from desktop.errors import VersoError
from desktop.i18n import N_

SERVICE = "verso"
"""Under this name the keyring holds keys; the user's name there is the server's address."""
VARIABLE = "VERSO_API_KEY"
"""Goes before the keyring, for every server."""

MARK = "[key]"
"""Stands where a key was."""

_PATIENCE = 15.0
"""Seconds for a keyring to answer: it may ask a person, or hang where there is no desktop."""


class NoKeyring(VersoError):
    """The system has none that works."""

    code = "remote.keyring"
    message = N_("The system's keyring cannot be used: {reason}.")
    hint = N_("Put the key into the variable VERSO_API_KEY instead.")


class BadKey(VersoError):
    """It cannot be sent in a header."""

    code = "remote.key_format"
    message = N_("The key for {server} has characters that no key has, or is empty.")
    hint = N_("Copy it again: one word of printable ASCII characters, without quotes.")


class Key:
    """A key that does not show itself."""

    def __init__(self, value: str = "", source: str = "") -> None:
        """SOURCE in words for people: environment, keyring, or "" where there is no key."""
        self._value = value
        self.source = source
        self._forms = sorted(_forms(value), key=len, reverse=True) if value else []

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return f"Key(source={self.source!r})"

    def headers(self) -> dict[str, str]:
        """The request headers that carry it; none where there is none."""
        return {"Authorization": f"Bearer {self._value}"} if self._value else {}

    def redact(self, text: str) -> str:
        """TEXT without the key in any form a server may give it back, whole or cut."""
        for form in self._forms:
            text = text.replace(form, MARK)
        if len(self._value) >= 12:
            # A server that cuts or breaks what it echoes: the beginning, and all that follows it.
            text = re.sub(re.escape(self._value[:8]) + r"[^\s\"'<>]*", MARK, text)
        # What we ourselves cut in the middle.
        for length in range(min(len(self._value) - 1, len(text)), 3, -1):
            if text.endswith(self._value[:length]):
                return text[:-length] + MARK
        return text


def lookup(server: str) -> Key:
    """The key for SERVER (a normal address); one that is empty where there is none.

    Blocks; raises :class:`BadKey`. A keyring that fails or does not answer counts as empty.
    """
    value = os.environ.get(VARIABLE, "").strip()
    if value:
        return Key(_checked(value, server), "environment")
    try:
        value = (_ask("get_password", server) or "").strip()
    except NoKeyring:
        return Key()
    return Key(_checked(value, server), "keyring") if value else Key()


def store(server: str, value: str) -> None:
    """Keep VALUE for SERVER; raises :class:`BadKey`, :class:`NoKeyring`. Blocks."""
    _ask("set_password", server, _checked(value.strip(), server))


def delete(server: str) -> bool:
    """Forget the key for SERVER; False where there was none. Blocks; raises NoKeyring."""
    if _ask("get_password", server) is None:
        return False
    _ask("delete_password", server)
    return True


def _ask(function: str, server: str, *values: str) -> str | None:
    """Call the keyring in a thread of its own, which cannot keep the process from ending."""
    answer: list[str | None] = []
    trouble: list[str] = []

    def call() -> None:
        try:
            import keyring

            answer.append(getattr(keyring, function)(SERVICE, server, *values))
        except Exception as error:  # noqa: BLE001 - backends raise what they like
            # Its name only: a message might hold what was to be kept.
            trouble.append(_reason(error))

    thread = threading.Thread(target=call, name="keyring", daemon=True)
    thread.start()
    thread.join(_PATIENCE)
    if thread.is_alive():
        raise NoKeyring(reason=N_("it does not answer"))
    if trouble:
        raise NoKeyring(reason=trouble[0])
    return answer[0]


def _reason(error: Exception) -> str:
    name = type(error).__name__
    return {"NoKeyringError": N_("there is none"), "KeyringLocked": N_("it is locked"),
            "ModuleNotFoundError": N_("the package keyring is not installed"),
            "InitError": N_("it is locked or its service does not run")}.get(name, name)


def _checked(value: str, server: str) -> str:
    if not re.fullmatch(r"[!-~]+", value):
        raise BadKey(server=server)
    return value


def _forms(value: str) -> set[str]:
    header = f"Bearer {value}"
    encoded = {base64.b64encode(text.encode()).decode() for text in (value, header)}
    return {value, quote(value, safe=""), quote(value), json.dumps(value)[1:-1],
            repr(value)[1:-1], *encoded}
