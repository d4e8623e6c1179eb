"""How a worker ended, in words: exit status and signals turned into problems."""

from __future__ import annotations

import signal
from pathlib import Path

from desktop.errors import VersoError
from desktop.i18n import N_

_RESTART = N_("Verso starts it again by itself; if this repeats, see the log (View › Log).")


class WorkerOutOfMemory(VersoError):
    """The kernel killed it for want of memory."""

    code = "worker.memory"
    message = N_("The engine process was killed because the machine ran out of memory.")
    hint = N_("Close other programs, or lower “Pages in flight” and “Resolution”.")


class WorkerKilled(VersoError):
    """SIGKILL from somewhere."""

    code = "worker.killed"
    message = N_("The engine process was killed (SIGKILL).")
    hint = N_("Usually the system does this for want of memory: close other programs, or lower "
              "“Pages in flight”.")


class WorkerTerminated(VersoError):
    """A signal that asks a process to end."""

    code = "worker.terminated"
    message = N_("The engine process was ended from outside ({signal}).")
    hint = _RESTART


class WorkerCrashed(VersoError):
    """A signal that the processor's or a library's failure causes."""

    code = "worker.crashed"
    message = N_("The engine process crashed ({signal}).")
    hint = _RESTART


class IllegalInstruction(VersoError):
    """A library built for another processor."""

    code = "worker.instruction"
    message = N_("The engine uses an instruction that this processor does not have ({signal}).")
    hint = N_("Choose another engine, or install a build of it for this processor.")


class WorkerExited(VersoError):
    """It ended by itself, without having been asked."""

    code = "worker.exited"
    message = N_("The engine process ended by itself (exit status {status}).")
    hint = _RESTART


class WorkerNotStarted(VersoError):
    """It ended before it said a word."""

    code = "worker.start"
    message = N_("The engine process could not start with {interpreter} (exit status {status}).")
    hint = N_("That Python needs to be 3.10 or later and to have the packages msgspec and Pillow; "
              "the log (View › Log) has its own words.")


class NoInterpreter(VersoError):
    """There is no such program, or it may not be run."""

    code = "worker.interpreter"
    message = N_("The Python interpreter {interpreter} cannot be run.")
    hint = N_("Check the path of the engine's interpreter in the settings.")


class WorkerNotLaunched(VersoError):
    """The system did not let us start a process (too many of them, no room, no memory)."""

    code = "worker.launch"
    message = N_("The engine process could not be started: {reason}.")
    hint = N_("Close other programs and see that the disk is not full.")


class WorkerSilent(VersoError):
    """It runs and says nothing."""

    code = "worker.silent"
    message = N_("The engine process, started with {interpreter}, said nothing for {seconds} s.")
    hint = N_("Check the path of the engine's interpreter in the settings: it must be a Python.")


class ReadyTimeout(VersoError):
    """Loading took longer than allowed."""

    code = "engine.ready_timeout"
    message = N_("The engine “{engine}” was not ready after {seconds} s. The last it said: "
                 "{step}.")
    hint = N_("Raise “{title}” ({flag}) in the settings if it only needs longer, or choose "
              "another engine.")


class CancelIgnored(VersoError):
    """A page that was to stop did not, for far too long."""

    code = "worker.hung"
    message = N_("The engine did not stop a page within {seconds} s and was ended.")
    hint = _RESTART


class ChannelLost(VersoError):
    """The connection ended, the process did not."""

    code = "worker.lost"
    message = N_("The engine process broke off its connection and was ended.")
    hint = _RESTART


class KeepsDying(VersoError):
    """Too many deaths in a row."""

    code = "worker.keeps_dying"
    message = N_("The engine stopped {count} times in a row; Verso has given up on it. The last "
                 "time: {last}")
    hint = N_("Choose another engine or other settings, then start again; the log (View › Log) "
              "has the cause.")


class WorkerRestarted(VersoError):
    """It was ended on purpose, for other settings."""

    code = "worker.restarted"
    message = N_("The engine was started anew with other settings.")
    hint = N_("Its pages are read again.")


class NotRunning(VersoError):
    """A page came while there is no engine and none is going to be started."""

    code = "worker.down"
    message = N_("The engine is not running.")
    hint = N_("Start it again.")


_CRASHES = {"SIGSEGV", "SIGBUS", "SIGFPE", "SIGABRT", "SIGTRAP", "SIGSYS"}
_IN_WORDS = {
    "SIGSEGV": N_("segmentation fault"),
    "SIGBUS": N_("bus error"),
    "SIGFPE": N_("arithmetic error"),
    "SIGABRT": N_("aborted by a library"),
    "SIGILL": N_("illegal instruction"),
}


def ending(returncode: int, *, out_of_memory: bool, detail: str) -> VersoError:
    """RETURNCODE (as of ``subprocess``: minus a signal's number) as an error.

    OUT_OF_MEMORY: the kernel has killed something for want of memory in the meantime. DETAIL:
    the end of what the process wrote to its standard error.
    """
    if returncode > 128 and returncode - 128 in set(signal.Signals):
        returncode = 128 - returncode  # A shell between us and the interpreter says it this way.
    if returncode >= 0:
        return WorkerExited(status=returncode, detail=detail)
    try:
        name = signal.Signals(-returncode).name
    except ValueError:
        name = str(-returncode)
    words = f"{name}, {_IN_WORDS[name]}" if name in _IN_WORDS else name
    if name == "SIGKILL":
        return WorkerOutOfMemory(detail=detail) if out_of_memory else WorkerKilled(detail=detail)
    if name == "SIGILL":
        return IllegalInstruction(signal=words, detail=detail)
    if name in _CRASHES:
        return WorkerCrashed(signal=words, detail=detail)
    return WorkerTerminated(signal=words, detail=detail)


def memory_kills() -> int:
    """How often the kernel has killed a process for want of memory, since it started; 0 where it
    does not tell. A figure that has grown explains a SIGKILL."""
    total = 0
    for path in (Path("/proc/vmstat"), *_cgroup_events()):
        try:
            lines = path.read_text("ascii", "replace").splitlines()
        except OSError:
            continue
        total += sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
    return total


def _cgroup_events() -> list[Path]:
    try:
        groups = Path("/proc/self/cgroup").read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    return [Path("/sys/fs/cgroup") / line.removeprefix("0::/") / "memory.events"
            for line in groups if line.startswith("0::/")]
