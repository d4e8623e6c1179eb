"""Tokens for model hubs in the system's keyring, one for each hub or mirror; never in a file, a
log or a message."""

from __future__ import annotations

import logging

import keyring
import keyring.errors

from desktop.models.errors import NoKeyring
from desktop.models.source import Source

log = logging.getLogger(__name__)

SERVICE = "verso-models"


def stored(source: Source) -> str:
    """The token kept for SOURCE; empty: none. Blocks: a keyring may ask to be opened."""
    try:
        return keyring.get_password(SERVICE, source.host) or ""
    except keyring.errors.KeyringError as error:
        log.info("no keyring: %s", type(error).__name__)
        return ""


def store(source: Source, token: str) -> None:
    """Keep TOKEN for SOURCE, or none where it is empty; raises :class:`NoKeyring`. Blocks."""
    try:
        if token:
            keyring.set_password(SERVICE, source.host, token)
        elif keyring.get_password(SERVICE, source.host):
            keyring.delete_password(SERVICE, source.host)
    except keyring.errors.KeyringError as error:
        raise NoKeyring(reason=type(error).__name__,
                        variable=source.facts.token_variables[0]) from error
