"""What is missing of the NPU's environment, in words, each with a way out."""

from __future__ import annotations

import os
from collections.abc import Mapping

from desktop.engines.ascend.places import (
    DRIVER_LIBRARY,
    TOOLKIT_LIBRARY,
    Missing,
    Places,
    Search,
    find,
)
from desktop.errors import VersoError
from desktop.i18n import N_


class NoVllmAscend(VersoError):
    """The Python that runs the engine is not one for NPUs."""

    code = "ascend.environment.vllm_ascend"
    message = N_("{path} does not have vllm-ascend: what depends on its version is left out.")
    hint = N_("Choose a Python that has it (“Engine interpreter”, --engine-interpreter).")


class NoToolkit(VersoError):
    """CANN is not installed, or in a place nobody would guess."""

    code = "ascend.environment.toolkit"
    message = N_("CANN's toolkit was not found ({library}). Looked at: {looked}.")
    hint = N_("Install the CANN toolkit, or start Verso where ASCEND_HOME_PATH names its folder "
              "(such as /usr/local/Ascend/ascend-toolkit/latest).")


class ToolkitOfOtherMachine(VersoError):
    """A toolkit for another processor architecture."""

    code = "ascend.environment.machine"
    message = N_("The CANN toolkit at {looked} is for {other}, this machine is {machine}.")
    hint = N_("Install the CANN toolkit for {machine}, or use a container image for it.")


class NoToolkitModules(VersoError):
    """An incomplete toolkit: without its Python modules."""

    code = "ascend.environment.modules"
    message = N_("The CANN toolkit lacks its Python modules ({looked}).")
    hint = N_("Install the CANN toolkit again, whole (./Ascend-cann-toolkit_….run --full).")


class NoDriver(VersoError):
    """The NPU's driver is not there; often a container that was started without it."""

    code = "ascend.environment.driver"
    message = N_("The NPU's driver was not found ({library}). Looked at: {looked}.")
    hint = N_("Install the driver; in a container, start it with "
              "-v /usr/local/Ascend/driver:/usr/local/Ascend/driver:ro.")


class NoDriverLibrary(VersoError):
    """The driver's folder without its library."""

    code = "ascend.environment.driver_library"
    message = N_("The driver's library {library} is in none of the driver's folders: {looked}.")
    hint = N_("Install the driver again; in a container, mount the whole of "
              "/usr/local/Ascend/driver/lib64 and not only a part of it.")


class NoAtb(VersoError):
    """NNAL, which brings ATB, is not installed."""

    code = "ascend.environment.atb"
    message = N_("The ATB operators (libatb.so, package NNAL) were not found. Looked at: {looked}.")
    hint = N_("Install NNAL of the toolkit's version (./Ascend-cann-nnal_….run --install); without "
              "it vllm-ascend may not start.")


class AtbOfOtherForm(VersoError):
    """ATB was installed for another build of torch only."""

    code = "ascend.environment.atb_abi"
    message = N_("The ATB operators are there for another build of torch only ({looked}); the "
                 "installed torch needs cxx_abi_{wanted}.")
    hint = N_("Install NNAL anew with both forms, or a torch that was built like the one there.")


class NoKernels(VersoError):
    """The toolkit without the package of operators."""

    code = "ascend.environment.kernels"
    message = N_("CANN's operators are not installed: there are none in {looked}.")
    hint = N_("Install the package of operators for your NPU (Ascend-cann-kernels-…, or "
              "Ascend-cann-…-ops from CANN 8.5 on) of the toolkit's version.")


class MisleadingVariable(VersoError):
    """A variable that points nowhere or at something else."""

    code = "ascend.environment.variable"
    message = N_("{name} is set to {looked}, which is not there or not what it should be.")
    hint = N_("Verso does without it; correct it or take it out of your shell's start-up files.")


_CLASSES: dict[str, type[VersoError]] = {
    "toolkit": NoToolkit, "toolkit_machine": ToolkitOfOtherMachine, "python": NoToolkitModules,
    "driver": NoDriver, "driver_library": NoDriverLibrary, "atb": NoAtb,
    "atb_abi": AtbOfOtherForm, "kernels": NoKernels, "variable": MisleadingVariable,
}


def errors(places: Places) -> tuple[VersoError, ...]:
    """What is missing in PLACES, what no engine starts without first."""
    ordered = sorted(places.missing, key=lambda each: not each.fatal)
    return tuple(_error(each, places.machine) for each in ordered)


def first_fatal(places: Places) -> VersoError | None:
    """The first without which no engine starts; None: none is missing."""
    return next((_error(each, places.machine) for each in places.missing if each.fatal), None)


def bearable(environ: Mapping[str, str]) -> tuple[VersoError, ...]:
    """What is missing on this machine that an engine may do without, seen from a worker with the
    variables ENVIRON: what none starts without was said before it began."""
    found = find(Search(environ, os.path.expanduser("~")))
    return tuple(_error(each, found.machine) for each in found.missing if not each.fatal)


def _error(missing: Missing, machine: str) -> VersoError:
    library = TOOLKIT_LIBRARY if missing.what == "toolkit" else DRIVER_LIBRARY
    return _CLASSES[missing.what](
        looked=", ".join(missing.looked), library=library, machine=machine,
        other=missing.detail, wanted=missing.detail, name=missing.detail)
