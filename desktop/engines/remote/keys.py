"""A server's key: in the system's keyring or the environment, and nowhere else.

A key never becomes part of a message, a log line or an error: whatever a server says goes through
:meth:`Key.redact` first.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import re
from urllib.parse import quote

from desktop import keyrings
from desktop.errors import VersoError
from desktop.i18n import N_

VARIABLE = "VERSO_API_KEY"
"""Goes before the keyring, for every server."""

MARK = "[key]"
"""Stands where a key was."""

_log = logging.getLogger(__name__)


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
        value = keyrings.get(keyrings.SERVERS, server).strip()
    except keyrings.NoAnswer as error:
        _log.info("the system's keyring cannot be used: %s", error.reason)
        return Key()
    return Key(_checked(value, server), "keyring") if value else Key()


def store(server: str, value: str) -> None:
    """Keep VALUE for SERVER; raises :class:`BadKey`, :class:`NoKeyring`. Blocks."""
    secret = _checked(value.strip(), server)
    try:
        keyrings.put(keyrings.SERVERS, server, secret)
    except keyrings.NoAnswer as error:
        raise NoKeyring(reason=error.reason) from None


def delete(server: str) -> bool:
    """Forget the key for SERVER; False where there was none. Blocks; raises NoKeyring."""
    try:
        return keyrings.forget(keyrings.SERVERS, server)
    except keyrings.NoAnswer as error:
        raise NoKeyring(reason=error.reason) from None


def _checked(value: str, server: str) -> str:
    if not keyrings.sendable(value):
        raise BadKey(server=server)
    return value


def _forms(value: str) -> set[str]:
    header = f"Bearer {value}"
    encoded = {base64.b64encode(text.encode()).decode() for text in (value, header)}
    return {value, quote(value, safe=""), quote(value), json.dumps(value)[1:-1],
            repr(value)[1:-1], *encoded}
