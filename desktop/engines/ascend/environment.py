"""The variables an engine on an NPU must be started with, and what puts them there.

The dynamic loader reads LD_LIBRARY_PATH once, when a process starts: everything here has to be
known before. It is made for one process, our worker, from what is in force; the person's shell
and files are never touched.

Standard library only, Python 3.9: it also runs by itself in the environment of the older stack
(hence the relative imports).
"""

from __future__ import annotations

import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from . import switches, torchabi
from .places import ATB_VARIABLE, Places, Search, existing, find, library_folders, split

VISIBLE = "ASCEND_RT_VISIBLE_DEVICES"

_AGAIN = "VERSO_NPU_ENVIRONMENT"
"""Set in a process that was started again, so that it is not started a third time."""


@dataclass(frozen=True)
class Stack:
    """What the Python that runs the engine has: versions (empty: not installed) and folders of
    the packages (empty: not found)."""

    ascend: str = ""
    vllm: str = ""
    torch: str = ""
    torch_npu: str = ""
    torch_folder: str = ""
    ascend_folder: str = ""


@dataclass(frozen=True)
class Environment:
    """Variables to set and names to take out; what they were made from."""

    variables: Mapping[str, str]
    removed: tuple[str, ...]
    places: Places

    def apply(self, environ: MutableMapping[str, str]) -> None:
        """Set and take out, in ENVIRON."""
        environ.update(self.variables)
        for name in self.removed:
            environ.pop(name, None)

    def holds(self, environ: Mapping[str, str]) -> bool:
        """Whether ENVIRON is as it would be."""
        return all(environ.get(name) == value for name, value in self.variables.items()) and (
            not any(name in environ for name in self.removed))

    def shell(self) -> list[str]:
        """Lines for a POSIX shell that do the same: ``export NAME=VALUE``, ``unset NAME``."""
        lines = [f"export {name}={shlex.quote(value)}" for name, value in self.variables.items()]
        return lines + [f"unset {name}" for name in self.removed]


def build(places: Places, stack: Stack, environ: Mapping[str, str],
          devices: str = "") -> Environment:
    """The environment for PLACES and STACK, on top of ENVIRON.

    DEVICES: numbers of NPUs, separated by commas; empty: those that ENVIRON leaves, else all.
    Ours come first in lists of paths; what was there stays behind them, each once, but for what
    belongs to another toolkit or to the other form of ATB.
    """
    variables: dict[str, str] = {}
    libraries: list[str] = []
    modules: list[str] = []
    programs: list[str] = []
    if places.toolkit is not None:
        home = places.toolkit.path
        for name in ("ASCEND_TOOLKIT_HOME", "ASCEND_HOME_PATH", "ASCEND_AICPU_PATH"):
            variables[name] = home
        variables["ASCEND_OPP_PATH"] = os.path.join(home, "opp")
        if os.path.isdir(os.path.join(home, "toolkit")):
            variables["TOOLCHAIN_HOME"] = os.path.join(home, "toolkit")
    if places.atb:
        variables[ATB_VARIABLE] = places.atb
        variables.update((name, environ.get(name) or value)
                         for name, value in declared(places.atb).items())
        libraries += existing(os.path.join(places.atb, name)
                              for name in ("lib", "examples", "tests/atbopstest"))
        programs += existing([os.path.join(places.atb, "bin")])
    libraries += custom_operators(stack.ascend_folder)
    libraries += places.driver
    if places.toolkit is not None:
        home = places.toolkit.path
        libraries += library_folders(home, places.machine)
        modules += existing(os.path.join(home, name) for name in (
            "python/site-packages", "opp/built-in/op_impl/ai_core/tbe"))
        programs += existing(os.path.join(home, name) for name in (
            "bin", "compiler/ccec_compiler/bin", "tools/ccec_compiler/bin",
            "tools/bishengir/bin", "bisheng_toolkit/bishengir/bin"))
    foreign = _foreign(places)
    for name, parts in (("LD_LIBRARY_PATH", libraries), ("PYTHONPATH", modules),
                        ("PATH", programs)):
        if parts:
            kept = [part for part in split(environ.get(name, "")) if not _within(part, foreign)]
            variables[name] = os.pathsep.join(dict.fromkeys([*parts, *kept]))
    chosen, removed = switches.choose(stack.ascend, stack.vllm, environ)
    variables.update(chosen)
    numbers = ",".join(part.strip() for part in devices.split(",") if part.strip())
    if numbers or environ.get(VISIBLE):
        variables[VISIBLE] = numbers or environ[VISIBLE]
    return Environment(variables, removed, places)


def find_and_build(stack: Stack, environ: Optional[Mapping[str, str]] = None, *,
                   devices: str = "", wanted: str = "", home: str = "", root: str = "",
                   machine: str = "") -> Environment:
    """Look for everything and build (see :class:`places.Search` for HOME, ROOT, MACHINE, WANTED).

    The form of C++ strings is read off the torch of STACK.
    """
    given = dict(os.environ if environ is None else environ)
    abi = torchabi.of(stack.torch_folder) if stack.torch_folder else None
    search = Search(given, home or os.path.expanduser("~"), root, machine, abi, wanted)
    return build(find(search), stack, given, devices)


def restart(environment: Environment) -> None:
    """Start this very script again under ENVIRONMENT; does not return. Where that is not needed,
    or has been done, it does nothing. For scripts that are run by hand."""
    if os.environ.get(_AGAIN) == "1" or environment.holds(os.environ):
        return
    variables = dict(os.environ)
    environment.apply(variables)
    variables[_AGAIN] = "1"
    sys.stdout.flush()
    sys.stderr.flush()
    # From Python 3.10 on with the switches that Python itself was given.
    arguments = getattr(sys, "orig_argv", ["", *sys.argv])[1:]
    os.execve(sys.executable, [sys.executable, *arguments], variables)


def declared(atb: str) -> dict[str, str]:
    """What the script beside ATB (``…/atb/set_env.sh``) would set of ATB's own switches: its
    lines ``export NAME=value`` with a plain value. They differ from version to version; the
    script is read, not run."""
    variables: dict[str, str] = {}
    folder = Path(atb).parent
    for file in (folder / "set_env.sh", folder.parent.parent / "set_env.sh"):
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        for name, value in _EXPORT.findall(text):
            variables.setdefault(name, value)
    return variables


_EXPORT = re.compile(
    r"""^[ \t]*export[ \t]+((?:ATB|LCCL|LCAL|ASDOPS)_(?!HOME_PATH\b)[A-Z0-9_]+)="?([\w.,/:-]+)"?"""
    r"""[ \t]*(?:\#.*)?$""", re.MULTILINE)


def custom_operators(folder: str) -> list[str]:
    """Libraries of the operators that the vllm-ascend in FOLDER brings. It adds them to
    LD_LIBRARY_PATH itself where it notices that they are missing, which is too late for
    the process it runs in."""
    if not folder:
        return []
    return sorted(str(path) for path in
                  Path(folder).glob("_cann_ops_custom/vendors/*/op_api/lib") if path.is_dir())


def _foreign(places: Places) -> tuple[str, ...]:
    """Folders whose libraries must not mix with ours: other toolkits, the other form of ATB."""
    folders = [each.path for each in places.toolkits if each is not places.toolkit]
    if places.atb:
        folders += [os.path.join(os.path.dirname(places.atb), name)
                    for name in ("cxx_abi_0", "cxx_abi_1") if not places.atb.endswith(name)]
    return tuple(os.path.realpath(folder) for folder in folders)


def _within(path: str, folders: Iterable[str]) -> bool:
    real = os.path.realpath(path)
    return any(real == folder or real.startswith(folder + os.sep) for folder in folders)
