"""Tokens for model hubs in the system's keyring, one for each hub or mirror."""

from __future__ import annotations

import logging

from desktop import keyrings
from desktop.models.errors import BadToken, NoKeyring
from desktop.models.source import Source

log = logging.getLogger(__name__)


def stored(source: Source) -> str:
    """The token kept for SOURCE; empty: none, or no keyring that answers. Blocks."""
    try:
        return keyrings.get(keyrings.HUBS, source.host)
    except keyrings.NoAnswer as error:
        log.info("the system's keyring cannot be used: %s", error.reason)
        return ""


def store(source: Source, token: str) -> None:
    """Keep TOKEN for SOURCE, or none where it is empty; raises :class:`BadToken`,
    :class:`NoKeyring`. Blocks."""
    if token and not keyrings.sendable(token):
        raise BadToken(host=source.host)
    try:
        if token:
            keyrings.put(keyrings.HUBS, source.host, token)
        else:
            keyrings.forget(keyrings.HUBS, source.host)
    except keyrings.NoAnswer as error:
        raise NoKeyring(reason=error.reason, variable=source.facts.token_variables[0]) from None
