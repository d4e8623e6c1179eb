"""Which hub, which model, and by which way: settings and environment, joined.

The environment variables are those of the hubs' own tools, so that a machine set up for them
needs nothing more: ``HF_ENDPOINT``, ``HF_TOKEN``, ``HF_HUB_OFFLINE`` (huggingface_hub,
``constants.py``), ``MODELSCOPE_ENDPOINT``, ``MODELSCOPE_API_TOKEN`` (modelscope_hub,
``config.py``). Settings go before them.
"""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field

import httpx

from desktop import __version__
from desktop.i18n import _
from desktop.models.errors import BadAddress, BadProxy, Offline
from desktop.models.places import MODEL
from desktop.settings import Values, setting


@dataclass(frozen=True)
class HubFacts:
    """What is fixed about a hub."""

    title: str
    address: str
    revision: str
    """The revision that is asked for unless another is named."""
    address_variables: tuple[str, ...]
    token_variables: tuple[str, ...]


HUBS: Mapping[str, HubFacts] = {
    "huggingface": HubFacts(
        "Hugging Face", "https://huggingface.co",
        # The published weights; a later commit could hold other ones under the same name.
        "aaa02f3811945a91062062994c5c4a3f4c0af2b0",
        ("HF_ENDPOINT",), ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")),
    "modelscope": HubFacts(
        "ModelScope", "https://www.modelscope.cn",
        # Its API lists no commit of the whole; what is fetched is held to the listed checksums.
        "master",
        ("MODELSCOPE_ENDPOINT",), ("MODELSCOPE_API_TOKEN",)),
}
CONNECT_SECONDS = 20.0
SILENCE_SECONDS = 60.0
"""How long a server may take to be connected to, and to send something: then it is tried again."""
_OFFLINE_VARIABLES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")


@dataclass(frozen=True)
class Source:
    """Where a download comes from."""

    hub: str
    """A key of :data:`HUBS`."""
    address: str
    """Of the hub or its mirror, without a slash at the end."""
    model: str = MODEL
    revision: str = ""
    """Branch, tag or commit; empty: what :data:`HUBS` names."""
    proxy: str = field(default="", repr=False)
    """Empty: what the environment says. May hold a password: never shown."""
    token: str = field(default="", repr=False)
    """From the environment; empty: none there."""
    offline: str = ""
    """What forbids the network, in words; empty: nothing."""

    @property
    def facts(self) -> HubFacts:
        """What is fixed about the hub."""
        return HUBS[self.hub]

    @property
    def wanted_revision(self) -> str:
        """The revision to ask for."""
        return self.revision or self.facts.revision

    @property
    def host(self) -> str:
        """The host's name (and port where it is not the usual one), for messages."""
        return httpx.URL(self.address).netloc.decode("ascii")

    def may_carry_token(self) -> bool:
        """Whether a secret may be sent there: encrypted, or without leaving this machine."""
        url = httpx.URL(self.address)
        return url.scheme == "https" or _is_this_machine(url.host)

    def client(self) -> httpx.AsyncClient:
        """A new HTTP client for the way there; raises :class:`BadProxy`, :class:`Offline`.

        It follows redirects and takes credentials and cookies to no other origin.
        """
        if self.offline:
            raise Offline(why=self.offline)
        try:
            return httpx.AsyncClient(
                proxy=self.proxy or None, follow_redirects=True, max_redirects=10,
                timeout=httpx.Timeout(SILENCE_SECONDS, connect=CONNECT_SECONDS),
                # Compressed answers have neither ranges nor a length.
                headers={"User-Agent": f"verso/{__version__}", "Accept-Encoding": "identity"})
        except (ValueError, ImportError, httpx.InvalidURL) as error:
            # The message may hold the proxy's address with its password.
            raise BadProxy(reason=_reason(error)) from None


def source_of(values: Values, *, hub: str = "", revision: str = "",
              environment: Mapping[str, str] | None = None) -> Source:
    """The source that VALUES and ENVIRONMENT (default: this process's) say; raises
    :class:`BadAddress`. HUB goes before the setting."""
    env = os.environ if environment is None else environment
    name = hub or values["hub"]
    facts = HUBS[name]
    address = values["hub_address"] or _first(env, facts.address_variables) or facts.address
    offline = ""
    if values["offline"]:
        offline = _("setting “{title}”").format(title=_(setting("offline").title))
    else:
        for variable in _OFFLINE_VARIABLES:
            if env.get(variable, "").upper() in ("1", "ON", "YES", "TRUE"):
                offline = variable
    return Source(name, _address(address), revision=revision, proxy=values["proxy"],
                  token=_first(env, facts.token_variables), offline=offline)


def _address(text: str) -> str:
    given = text.strip()
    try:
        url = httpx.URL(given if "://" in given else f"https://{given}")
    except (httpx.InvalidURL, ValueError):
        raise BadAddress(address=given) from None
    if url.scheme not in ("http", "https") or not url.host or url.query or url.fragment \
            or any(char.isspace() for char in given):
        raise BadAddress(address=given)
    if url.userinfo:
        # It would be shown in messages and kept in the settings.
        raise BadAddress(address=str(url.copy_with(userinfo=b"")))
    return str(url).rstrip("/")


def _first(env: Mapping[str, str], variables: tuple[str, ...]) -> str:
    return next((env[name].strip() for name in variables if env.get(name, "").strip()), "")


def _is_this_machine(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _reason(error: Exception) -> str:
    if isinstance(error, ImportError):
        return _("SOCKS needs the package socksio")
    return _("its address is not understood")
