"""What can be wrong with an Ascend machine, each with its way out."""

from __future__ import annotations

from desktop.errors import VersoError
from desktop.i18n import N_

# --- npu-smi


class SmiSilent(VersoError):
    """npu-smi hangs."""

    code = "ascend.smi_silent"
    message = N_("npu-smi gave no answer within {seconds} s.")
    hint = N_("The driver or an NPU is in trouble: look at `dmesg`, and restart the machine.")


class SmiFailed(VersoError):
    """npu-smi says something else than its table."""

    code = "ascend.smi"
    message = N_("npu-smi shows no NPU: {reason}")
    hint = N_("Check the driver on the host (npu-smi info there, cat "
              "/usr/local/Ascend/driver/version.info), and start the container with the driver's "
              "folder and npu-smi of the host mounted.")


class SmiLibrary(VersoError):
    """The loader does not find a library of npu-smi."""

    code = "ascend.smi_library"
    message = N_("npu-smi cannot start: the library {library} is not found.")
    hint = N_("Put the driver's libraries on the path: export LD_LIBRARY_PATH="
              "/usr/local/Ascend/driver/lib64/driver:/usr/local/Ascend/driver/lib64/common"
              ":$LD_LIBRARY_PATH; in a container mount /usr/local/Ascend/driver too.")


class SmiOccupied(VersoError):
    """Error −8020."""

    code = "ascend.occupied"
    message = N_("npu-smi cannot reach the NPUs: one of them belongs to another container "
                 "(error −8020). A container without privilege has its NPUs for itself, and one "
                 "that shares a single NPU with another sees none.")
    hint = N_("Stop the other container, or start this one with other NPUs (--device "
              "/dev/davinciN), or start it with --privileged.")


class SmiRefused(VersoError):
    """Error −8005 and other refusals of the driver."""

    code = "ascend.refused"
    message = N_("npu-smi cannot reach the driver (error {code}): an NPU is occupied by another "
                 "container, or its device nodes are not here or may not be used, or the driver "
                 "does not fit the running kernel.")
    hint = N_("In a container: pass /dev/davinci_manager, /dev/devmm_svm, /dev/hisi_hdc and free "
              "/dev/davinciN (--device), or use --privileged. On the host: join the group of the "
              "device nodes (usually HwHiAiUser), try as root; after an update of the kernel "
              "install the driver anew and restart.")


class NoSmi(VersoError):
    """There are NPUs and no npu-smi."""

    code = "ascend.no_smi"
    message = N_("npu-smi is not found (looked in PATH, {places}).")
    hint = N_("It comes with the driver; in a container mount it: -v /usr/local/bin/npu-smi:"
              "/usr/local/bin/npu-smi (or /usr/local/sbin).")


# --- devices


class NoNode(VersoError):
    """No /dev/davinciN."""

    code = "ascend.no_device"
    message = N_("There is no NPU here: no node {folder}/davinciN.")
    hint = N_("On a host install driver and firmware (lspci | grep -i d802 shows the cards of an "
              "A2); in a container pass the nodes: --device /dev/davinci0.")


class NoControlNode(VersoError):
    """A control node is missing."""

    code = "ascend.no_control_node"
    message = N_("The control nodes {nodes} are missing in {folder}.")
    hint = N_("In a container pass them: {options}; on a host load the driver again.")


class NodeForbidden(VersoError):
    """A node may not be opened."""

    code = "ascend.forbidden"
    message = N_("{user} may not use {nodes}.")
    hint = N_("Join the group that owns them ({group}): sudo usermod -aG {group} {user}, and log "
              "in again; in a container run as root.")


class NotChosenThere(VersoError):
    """The settings name an NPU that is not here."""

    code = "ascend.no_such_npu"
    message = N_("NPU {number} is chosen, and there is none of that number (there are: {there}).")
    hint = N_("Choose another one (“Devices”, --devices), or leave the choice empty.")


class Unhealthy(VersoError):
    """Its health is not OK."""

    code = "ascend.unhealthy"
    message = N_("NPU {number} ({name}) reports {health}.")
    hint = N_("Ask for the reason: npu-smi info -t health -i {card} -c {chip}; choose another NPU "
              "(“Devices”, --devices), or have it reset by the administrator when nobody uses it.")


class Full(VersoError):
    """Not enough HBM is free."""

    code = "ascend.memory"
    message = N_("NPU {number} ({name}) has {free} of {total} free; the engine would take "
                 "{needed}. Held by: {holders}.")
    hint = N_("End what holds it, or choose another NPU (“Devices”, --devices){lower}.")


class NotForThis(VersoError):
    """A chip without bfloat16."""

    code = "ascend.chip"
    message = N_("NPU {number} is a {name}: it has no bfloat16 and no Triton, which the model's "
                 "code for Ascend uses.")
    hint = N_("The engine is made for Atlas A2 (910B) and A3; use a machine with one of these, "
              "or a server (engine “remote”).")


# --- software


class WrongVersion(VersoError):
    """A verdict of the support table."""

    code = "ascend.version"
    message = "{why}"
    hint = "{way_out}"


class OtherEngine(VersoError):
    """The stack is that of the other engine for NPUs."""

    code = "ascend.engine"
    message = N_("vllm-ascend {version} runs with the engine “{right}”, not with “{engine}”.")
    hint = N_("Choose the engine “{right}” (--engine {right}), or another Python (“Engine "
              "interpreter”).")


class LibraryMissing(VersoError):
    """The loader would not find a library."""

    code = "ascend.toolkit_library"
    message = N_("The library {library} of CANN is not found; looked in {places}.")
    hint = N_("Install the CANN toolkit again, whole (./Ascend-cann-toolkit_….run --full).")


class LibraryOfTorch(VersoError):
    """What torch-npu itself links to."""

    code = "ascend.torch_library"
    message = N_("torch-npu cannot be loaded: it needs {libraries}, which the loader does not "
                 "find; looked in {places}.")
    hint = N_("The libraries come with CANN and the driver: install the versions of the table, "
              "and source set_env.sh of CANN and of NNAL.")


class NotSet(VersoError):
    """The environment is not set."""

    code = "ascend.not_set"
    message = N_("The environment of CANN is not set here ({names}).")
    hint = N_("Verso sets it for its own engine. For other programs: "
              "eval \"$({command})\", or source set_env.sh of CANN and of NNAL.")


# --- the machine


class LittleDisk(VersoError):
    """Less than 50 GB."""

    code = "ascend.disk"
    message = N_("{path} has {free} free; {needed} are asked for.")
    hint = N_("Make room, or keep the model on another disk (--model, verso models download "
              "--folder).")


class LittleMemory(VersoError):
    """Less than 32 GB."""

    code = "ascend.host_memory"
    message = N_("The machine has {total} of memory for this process; {needed} are asked for.")
    hint = N_("Loading the model may fail: give the container or machine more memory.")


class LittleShared(VersoError):
    """A small /dev/shm."""

    code = "ascend.shared_memory"
    message = N_("Shared memory ({path}) has a size of {size}; the processes of an engine exchange "
                 "pages through it.")
    hint = N_("Start the container with more: docker run --shm-size 16g")
