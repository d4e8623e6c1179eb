"""What can go wrong while the model is looked for or fetched."""

from __future__ import annotations

from desktop.errors import VersoError
from desktop.i18n import N_


class ModelMissing(VersoError):
    """No model is on this machine, as far as Verso looks."""

    code = "model.missing"
    message = N_("The model {model} is not on this machine.")
    hint = N_("Run `verso models download`, or choose its folder in the setting “Model” (--model).")


class ModelIncomplete(VersoError):
    """A folder that is no whole model."""

    code = "model.incomplete"
    message = N_("The model in {folder} is not complete: {what}.")
    hint = N_("Run `verso models download`, or copy the folder again.")


class ModelDamaged(VersoError):
    """Files that are not what was downloaded."""

    code = "model.damaged"
    message = N_("The model in {folder} has changed since it was downloaded: {what}.")
    hint = N_("Run `verso models download`: it fetches what is damaged anew.")


class Offline(VersoError):
    """Asked for a download with the network forbidden."""

    code = "model.offline"
    message = N_("The model cannot be downloaded while Verso is offline ({why}).")
    hint = N_("Allow the network, or copy the model's folder from another machine and choose it in "
              "the setting “Model” (--model).")


class BadAddress(VersoError):
    """A mirror's address that is none."""

    code = "model.bad_address"
    message = N_("“{address}” is not the address of a model source.")
    hint = N_("Give it as https://host or https://host/path (setting “Mirror”, --hub-address).")


class BadProxy(VersoError):
    """A proxy that cannot be used."""

    code = "model.bad_proxy"
    message = N_("The proxy cannot be used ({reason}).")
    hint = N_("Give it as http://host:port or socks5://host:port (setting “Proxy”, --proxy, or "
              "the variables HTTPS_PROXY and ALL_PROXY).")


class AccessDenied(VersoError):
    """The hub wants to know who asks, or refuses the one who does (401, 403)."""

    code = "model.access_denied"
    message = N_("{host} does not give access to {model} (HTTP {status}).")
    hint = N_("Accept the model's terms on its page if it asks for that, then give a token in the "
              "variable {variable} or with `verso models token`.")


class NoSuchModel(VersoError):
    """The hub does not know the model or the revision (404)."""

    code = "model.unknown"
    message = N_("{host} does not have {model} ({revision}).")
    hint = N_("Check the address of the mirror, choose the other model source (--hub), or name "
              "another revision (--revision main).")


class BadAnswer(VersoError):
    """The hub speaks another language than its API."""

    code = "model.bad_answer"
    message = N_("{host} did not answer as a model source does ({reason}).")
    hint = N_("Check the address of the mirror and the proxy, or choose the other model source "
              "(--hub).")


class UnsafeName(VersoError):
    """The hub lists a file that would lie outside the model's folder."""

    code = "model.unsafe_name"
    message = N_("{host} lists a file that would lie outside the model's folder ({name}).")
    hint = N_("Do not use this source; choose another (--hub, --hub-address).")


class ConnectionLost(VersoError):
    """The hub cannot be reached, or breaks off again and again."""

    code = "model.connection"
    message = N_("{host} cannot be reached, or breaks off again and again ({reason}).")
    hint = N_("Check the network, the proxy and the mirror, then download again: it goes on where "
              "it was.")


class WrongChecksum(VersoError):
    """What arrived is not what the hub says it is, twice."""

    code = "model.checksum"
    message = N_("{name} from {host} arrived damaged twice (its checksum is wrong).")
    hint = N_("Download again later, or choose another source (--hub, --hub-address).")


class DiskFull(VersoError):
    """Not enough room for the model."""

    code = "model.disk_full"
    message = N_("There is not enough room in {folder}: {needed} are needed, {free} are free.")
    hint = N_("Free some space or choose another place (--folder), then download again: it goes "
              "on where it was.")


class FileTooLarge(VersoError):
    """The file system does not take files of this size."""

    code = "model.file_too_large"
    message = N_("The file system of {folder} cannot hold {name} ({size}).")
    hint = N_("Choose a folder on another disk (--folder).")


class FolderUnusable(VersoError):
    """The folder cannot be written to."""

    code = "model.folder"
    message = N_("{folder} cannot be used for the model ({reason}).")
    hint = N_("Check who may write there, or choose another place (--folder).")


class FolderTaken(VersoError):
    """The folder holds something else."""

    code = "model.folder_taken"
    message = N_("{folder} holds other files.")
    hint = N_("Choose an empty or a new folder (--folder).")


class AlreadyLoading(VersoError):
    """Another process downloads into the same folder."""

    code = "model.busy"
    message = N_("The model is already being downloaded into {folder} by another Verso.")
    hint = N_("Wait for it, or stop it first.")


class NoKeyring(VersoError):
    """The system has no keyring that works."""

    code = "model.no_keyring"
    message = N_("The token cannot be kept: the system's keyring cannot be used ({reason}).")
    hint = N_("Give it in the variable {variable} instead.")


class BadToken(VersoError):
    """It cannot be sent in a header."""

    code = "model.token"
    message = N_("The token for {host} has characters that no token has.")
    hint = N_("Copy it again: one word of printable ASCII characters, without quotes (`verso "
              "models token`, or the variable that holds it).")


class CertificateRefused(VersoError):
    """The server's certificate is not trusted: another stands in its place, or a company's proxy
    looks into the traffic with a certificate of its own."""

    code = "model.certificate"
    message = N_("The certificate of {host} is not trusted ({reason}).")
    hint = N_("If your network has an authority of its own, name its certificate file in the "
              "variable SSL_CERT_FILE.")
