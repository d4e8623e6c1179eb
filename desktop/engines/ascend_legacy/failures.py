"""What can be wrong with the older stack and the official code, each with a way out."""

from __future__ import annotations

from desktop.errors import VersoError
from desktop.i18n import N_


class WrongVersion(VersoError):
    """What is installed is not the stack that the official code is for."""

    code = "legacy.version"
    message = N_("The engine “ascend-legacy” cannot use {found}: {reason}.")
    hint = N_("{way_out}")


class OfficialCodeMissing(VersoError):
    """Nobody said where the official code is, and it is in none of the usual places."""

    code = "legacy.no_code"
    message = N_("The model's official code, which this engine runs, is not here (looked at: "
                 "{looked}).")
    hint = N_("Get and prepare it with `verso prepare-npu`, then set “Official code” to the folder "
              "that it names (--official-code FOLDER).")


class NotOfficialCode(VersoError):
    """The folder holds something else."""

    code = "legacy.not_the_code"
    message = N_("{folder} does not hold the model's official code (not found: {missing}).")
    hint = N_("Set “Official code” to the folder DeepSeek-OCR2-vllm of the official repository, or "
              "to one that `verso prepare-npu` made of it.")


class PackageMissing(VersoError):
    """The official code imports what is not installed."""

    code = "legacy.package"
    message = N_("The official code needs the package {package}, which {python} does not have.")
    hint = N_("{way_out}")


class CodeFailed(VersoError):
    """The official code could not be imported, for a reason of its own."""

    code = "legacy.code"
    message = N_("The official code in {folder} could not be loaded: {cause}")
    hint = N_("See the log (View › Log) for all of it. Where the code was changed, get it anew "
              "with `verso prepare-npu`.")


class ExpertsCannotRun(VersoError):
    """The mixture of experts is vLLM's own, which runs on GPUs only, and stays it."""

    code = "legacy.experts"
    message = N_("The model's experts cannot run on this NPU: {reason}")
    hint = N_("`verso doctor` compares the installed versions with those that go together.")
