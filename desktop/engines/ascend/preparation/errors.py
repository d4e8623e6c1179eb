"""What can go wrong while the official code is prepared for an NPU."""

from __future__ import annotations

from typing import Any, ClassVar

from desktop.engines.ascend.preparation.edits import Missing
from desktop.errors import VersoError
from desktop.i18n import N_, _


class PreparationError(VersoError):
    """Base of them all. Whatever is raised, SOURCE and TARGET are as they were before."""

    code: ClassVar[str] = "ascend.prepare"


class SourceMissing(PreparationError):
    """SOURCE was named and is not there."""

    code = "ascend.prepare.no_source"
    message = N_("There is no folder {source}.")
    hint = N_("Name the folder of the official code (it holds config.py and {script}), or name "
              "none: the code is then fetched.")


class SourceNotFetched(PreparationError):
    """The official code could not be fetched."""

    code = "ascend.prepare.fetch"
    message = N_("The official code could not be fetched from {address}: {reason}")
    hint = N_("Check the network, or bring it here by other means (git clone {address}) and name "
              "its folder as SOURCE.")


class UnknownLayout(PreparationError):
    """The source is not what the edits were made for."""

    code = "ascend.prepare.layout"
    message = N_("The code in {source} is not laid out as this version of Verso knows it; nothing "
                 "was written. Not found: {missing}.")
    hint = N_("Use the official DeepSeek-OCR2-vllm folder (known to fit: commit {known} of "
              "{address}), or a newer Verso.")

    def __init__(self, *, missing: tuple[Missing, ...], **values: Any) -> None:
        self.missing = missing
        """File by file, what should have been there."""
        super().__init__(missing="; ".join(map(str, missing)), **values)


class AlreadyPrepared(PreparationError):
    """SOURCE is the result of a conversion."""

    code = "ascend.prepare.already"
    message = N_("{source} has been prepared for an NPU already ({why}).")
    hint = N_("Name the official code as SOURCE, not the folder that came of it.")


class Overlapping(PreparationError):
    """SOURCE would be changed or TARGET would hold itself."""

    code = "ascend.prepare.overlap"
    message = N_("{target} and {source} lie within each other.")
    hint = N_("Choose a TARGET outside SOURCE.")


class NotOurs(PreparationError):
    """TARGET holds something that no conversion made; replacing it would lose it."""

    code = "ascend.prepare.target"
    message = N_("{target} exists and is not a folder that was prepared for an NPU, so it is not "
                 "replaced.")
    hint = N_("Choose another TARGET, or move it away.")


class CannotRead(PreparationError):
    """A file of SOURCE cannot be read."""

    code = "ascend.prepare.read"
    message = N_("{source} cannot be read: {reason}.")
    hint = N_("Check the permissions and that every link in it leads somewhere.")


class CannotWrite(PreparationError):
    """TARGET cannot be written."""

    code = "ascend.prepare.write"
    message = N_("{target} cannot be written: {reason}.")
    hint = N_("Check the permissions and the space on its disk, or choose another TARGET.")


def reason(error: OSError) -> str:
    """What the system says, without numbers where it has words."""
    return error.strerror or _("unknown error")
