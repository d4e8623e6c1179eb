"""What can be wrong with a server, for a person; and what is over soon, for the engine."""

from __future__ import annotations

from desktop.engines.base import EngineDied
from desktop.errors import VersoError
from desktop.i18n import N_


class NoServers(VersoError):
    """The setting is empty."""

    code = "remote.no_servers"
    message = N_("No server is set.")
    hint = N_("Enter the address of a vLLM server under Servers (--servers), such as "
              "http://gpu1:8000/v1.")


class BadAddress(VersoError):
    """An address that cannot be one."""

    code = "remote.address"
    message = N_("The server address {address} cannot be used: {reason}.")
    hint = N_("An address looks like http://gpu1:8000/v1. A key is set with "
              "`verso servers key ADDRESS`, never in the address.")


class ServerError(VersoError):
    """Base of what is wrong with one server as long as nobody changes anything there or here."""


class Unreachable(ServerError):
    """Nobody answers at the address."""

    code = "remote.unreachable"
    message = N_("The server {server} cannot be reached: {reason}.")
    hint = N_("Check the address, that the server runs, and what lies between (firewall, proxy, "
              "the variable NO_PROXY).")


class Certificate(ServerError):
    """TLS says that the server is not who it says, or that its authority is not known."""

    code = "remote.certificate"
    message = N_("The certificate of the server {server} is not trusted: {reason}.")
    hint = N_("If an authority of your own signed it, name the file with the authority's "
              "certificate in the variable SSL_CERT_FILE.")


class KeyRefused(ServerError):
    """401 or 403 with a key."""

    code = "remote.key"
    message = N_("The server {server} refuses the key.")
    hint = N_("Set the right one with `verso servers key {address}` or in the variable "
              "VERSO_API_KEY.")


class KeyWanted(ServerError):
    """401 or 403 without a key."""

    code = "remote.key_wanted"
    message = N_("The server {server} wants a key.")
    hint = N_("Set it with `verso servers key {address}` or in the variable VERSO_API_KEY.")


class NoSuchModel(ServerError):
    """The server does not have the model."""

    code = "remote.model"
    message = N_("The server {server} has no model named “{model}”.")
    hint = N_("It has: {models}. Choose one under Model on the server (--remote-model), or leave "
              "that empty.")


class NotOpenAI(ServerError):
    """Something answers, but not what we ask."""

    code = "remote.not_openai"
    message = N_("What answers at {server} is no OpenAI-compatible server: {reason}.")
    hint = N_("The address of a vLLM server ends with /v1; check host, port and path.")


class ContextTooSmall(VersoError):
    """The page does not fit into the server's context."""

    code = "remote.context"
    message = N_("The page does not fit into the context of the server {server} ({context} "
                 "tokens).")
    hint = N_("Start the server with a larger --max-model-len (8192 is usual), or lower Max "
              "tokens.")


class ImageTooLarge(VersoError):
    """413, or a limit of our own."""

    code = "remote.too_large"
    message = N_("The page's image of {size:.1f} MB is larger than {whose} takes.")
    hint = N_("Set Upload format to JPEG, lower Upload limit or the resolution (dpi); or raise the "
              "limit of a proxy in front of the server (client_max_body_size in nginx).")


class OverUploadLimit(VersoError):
    """The setting forbids what the format needs."""

    code = "remote.upload_limit"
    message = N_("The page's image takes {size:.1f} MB as PNG, more than the upload limit of "
                 "{limit} MB.")
    hint = N_("Raise Upload limit, or set Upload format to auto or JPEG.")


class PageRefused(VersoError):
    """Any other 4xx about a page."""

    code = "remote.refused"
    message = N_("The server {server} refuses the page: {reason}.")
    hint = N_("`verso servers` tells what is wrong with a server; the log has its whole answer.")


class PageGivenUp(VersoError):
    """A page at which servers fail again and again."""

    code = "remote.page"
    message = N_("The page was given up after {tries} tries; at last: {reason}.")
    hint = N_("Read the page again later; if only this page fails, look into the server's log.")


class ServersGone(EngineDied):
    """None is of use now; another start may find one."""

    code = "remote.gone"
    message = N_("None of the servers can be used: {reason}")
    hint = N_("Verso tries again by itself; `verso servers` tells what is wrong with each.")


class Passing(Exception):
    """Base of what is over soon: the page is done again. REASON in words, free of secrets."""

    def __init__(self, reason: str, after: float = 0.0) -> None:
        """AFTER: seconds the server asked to be left alone; 0: it did not say."""
        super().__init__(reason)
        self.reason = reason
        self.after = after


class Busy(Passing):
    """429: it has too much to do; nothing is wrong with it."""


class Broken(Passing):
    """5xx, a connection cut, silence, junk in the stream. The page may be what breaks it."""


class Silent(Passing):
    """Nothing came before the first text: the page waited in the server's own queue, or it
    hangs."""


class Away(Passing):
    """No connection: the page has nothing to do with it."""
