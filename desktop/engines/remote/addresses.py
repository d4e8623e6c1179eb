"""Server addresses: read from the setting, brought into one form, never with a secret."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from desktop.engines.remote.errors import BadAddress, NoServers
from desktop.i18n import _

_ENDPOINTS = ("/chat/completions", "/completions", "/models")


def parse(servers: str) -> tuple[str, ...]:
    """The base addresses in SERVERS (separated by spaces or commas), each once, in order.

    Raises :class:`NoServers`, :class:`BadAddress`.
    """
    found = dict.fromkeys(normal(part) for part in re.split(r"[\s,]+", servers) if part)
    if not found:
        raise NoServers
    return tuple(found)


def normal(address: str) -> str:
    """ADDRESS as ``scheme://host[:port]/path``; without a path it gets ``/v1``.

    Raises :class:`BadAddress`, whose sentence never carries what could be a secret.
    """
    text = address.strip()
    if "://" not in text:
        text = "http://" + text
    shown = _shown(text)
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise BadAddress(address=shown, reason=_("it is not well formed")) from None
    if parts.scheme.lower() not in ("http", "https"):
        raise BadAddress(address=shown, reason=_("only http and https are possible"))
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise BadAddress(address=shown, reason=_("a name, key or question in it would be kept "
                                                 "with the settings"))
    if not host or re.search(r"[^\w.:%-]", host):
        raise BadAddress(address=shown, reason=_("it names no host"))
    path = parts.path.rstrip("/")
    for endpoint in _ENDPOINTS:
        path = path.removesuffix(endpoint)
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme.lower()}://{host}{f':{port}' if port else ''}{path or '/v1'}"


def place(address: str) -> str:
    """Host and port of a normal ADDRESS: its short name for people."""
    return urlsplit(address).netloc


def _shown(text: str) -> str:
    """TEXT without a user's name, a key, a query."""
    return re.sub(r"[?#].*", "", re.sub(r"//.*@", "//", text))
