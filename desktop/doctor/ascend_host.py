"""What of Ascend is on this machine: nodes, the driver's version, libraries, shared memory.

Where CANN, driver and ATB are is found by the engine's own search
(:mod:`desktop.engines.ascend.places`), so that what is judged is what would be used. Nothing is
started and nothing changed but for ``ldd``, which is asked what torch-npu lacks.
"""

from __future__ import annotations

import contextlib
import glob
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from desktop.client.probing import ask
from desktop.engines.ascend.environment import Environment, Stack, find_and_build
from desktop.engines.ascend.places import Search, bases
from desktop.engines.ascend.support import row

CONTROL_NODES = ("davinci_manager", "devmm_svm", "hisi_hdc")
SECONDS = 20.0
WANTED = (("libascend_hal.so", "driver"), ("libascendcl.so", "CANN"), ("libhccl.so", "CANN"),
          ("libatb.so", "NNAL"))
"""What torch-npu and vllm-ascend load, and what brings it."""


@dataclass(frozen=True)
class Nodes:
    """Device nodes."""

    folder: str
    numbers: tuple[int, ...] = ()
    """N of each /dev/davinciN."""
    missing: tuple[str, ...] = ()
    """Control nodes that are not there."""
    forbidden: tuple[str, ...] = ()
    """Nodes that this user may not read and write."""
    group: str = ""
    """Group that owns those."""

    @property
    def any(self) -> bool:
        """Whether there is any at all."""
        return bool(self.numbers) or len(self.missing) < len(CONTROL_NODES)


@dataclass(frozen=True)
class Library:
    """A library by name. Empty ``path``: the loader of an engine would not find it."""

    name: str
    part: str
    """driver, CANN, NNAL."""
    path: str = ""


@dataclass(frozen=True)
class Host:
    """What was found. Bytes."""

    nodes: Nodes
    environment: Environment
    """What an engine would be started with, and the places it is made from."""
    driver_folder: str
    driver_version: str
    """Empty: not known, as in containers that have the libraries only."""
    libraries: tuple[Library, ...]
    searched: tuple[str, ...]
    """Folders in which the loader of an engine would look."""
    torch_lacks: tuple[str, ...] = ()
    """Libraries that torch-npu links to and that are not found."""
    unset: tuple[str, ...] = ()
    """Variables that are not set here as an engine needs them."""
    shared_memory: int = -1
    """Size of /dev/shm; -1: there is none."""


@dataclass(frozen=True)
class Looker:
    """Where to look: with the variables of ``environ``, below ``root`` (empty: this machine)."""

    environ: Mapping[str, str]
    root: str = ""

    def at(self, path: str) -> Path:
        """PATH of the system, below the root."""
        return Path(self.root + path)

    @property
    def home(self) -> str:
        """The person's folder."""
        return self.environ.get("HOME") or os.path.expanduser("~")


def look(looker: Looker, stack: Stack, torch_npu: str = "") -> Host:
    """Examine; raises nothing. TORCH_NPU: folder of that package, to ask what it lacks."""
    found = row(stack.ascend)
    environment = find_and_build(stack, looker.environ, home=looker.home, root=looker.root,
                                 wanted=found.cann if found is not None else "")
    searched = tuple(dict.fromkeys([
        *_folders(environment.variables.get("LD_LIBRARY_PATH", "")
                  or looker.environ.get("LD_LIBRARY_PATH", "")), *_configured(looker)]))
    folder, version = _driver(looker, environment)
    libraries = tuple(Library(name, part, _find(name, searched)) for name, part in WANTED)
    return Host(
        nodes(looker), environment, folder, version, libraries, searched,
        _lacks(torch_npu, searched, looker.environ) if torch_npu else (),
        tuple(_unset(looker, environment, libraries)), _shared(looker))


# --- devices


def nodes(looker: Looker) -> Nodes:
    """The device nodes, and whether this user may use them."""
    folder = looker.at("/dev")
    names = _names(folder)
    devices = [name for name in names if re.fullmatch(r"v?davinci\d+", name)]
    missing = tuple(name for name in CONTROL_NODES if name not in names)
    there = [*devices, *(name for name in CONTROL_NODES if name not in missing)]
    forbidden = tuple(name for name in there
                      if not os.access(folder / name, os.R_OK | os.W_OK))
    return Nodes(str(folder), tuple(sorted(int(re.sub(r"\D", "", name)) for name in devices)),
                 missing, forbidden, _group(folder / forbidden[0]) if forbidden else "")


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def _group(path: Path) -> str:
    try:
        return path.group()
    except (OSError, KeyError):
        return "HwHiAiUser"


# --- software


def search(looker: Looker) -> Search:
    """The engine's own search, for LOOKER."""
    return Search(looker.environ, looker.home, looker.root)


def _driver(looker: Looker, environment: Environment) -> tuple[str, str]:
    """The driver's folder and version: in its version.info, of which newer ones tell the
    package's version besides."""
    libraries = environment.places.driver
    named = [folder.partition("/lib64")[0] for folder in libraries]
    for folder in dict.fromkeys([*named, *(f"{base}/driver" for base in bases(search(looker)))]):
        said: dict[str, str] = {}
        with contextlib.suppress(OSError):
            text = Path(folder, "version.info").read_text("utf-8", "replace")
            said = dict(_pair(line) for line in text.splitlines() if "=" in line)
        if said or folder in named:
            return folder, said.get("package_version") or said.get("Version", "")
    return "", ""


def _pair(line: str) -> tuple[str, str]:
    name, _equals, value = line.partition("=")
    return name.strip(), value.strip()


# --- libraries


def _folders(value: str) -> list[str]:
    return [os.path.normpath(part) for part in value.split(os.pathsep) if part]


def _configured(looker: Looker) -> Iterator[str]:
    """Folders that the system's loader has been told of, and its own."""
    for path in (looker.at("/etc/ld.so.conf"),
                 *sorted(looker.at("/etc/ld.so.conf.d").glob("*.conf"))):
        with contextlib.suppress(OSError):
            yield from (looker.root + line.strip() for line
                        in path.read_text("utf-8", "replace").splitlines()
                        if line.startswith("/"))
    for folder in ("/lib64", "/usr/lib64", "/usr/lib"):
        if looker.at(folder).is_dir():
            yield str(looker.at(folder))


def _find(name: str, folders: tuple[str, ...]) -> str:
    return next((f"{folder}/{name}" for folder in folders
                 if os.path.exists(f"{folder}/{name}")), "")


def _lacks(torch_npu: str, searched: tuple[str, ...],
           environ: Mapping[str, str]) -> tuple[str, ...]:
    """Names that ldd does not find for torch-npu's library; empty where it cannot be asked."""
    tool = shutil.which("ldd")
    library = os.path.join(torch_npu, "lib", "libtorch_npu.so")
    if tool is None or not os.path.exists(library):
        return ()
    variables = {**environ, "LD_LIBRARY_PATH": ":".join(searched)}
    try:
        answer = ask([tool, library], seconds=SECONDS, environment=variables)
    except OSError:
        return ()
    return parse_ldd(answer.out)


def parse_ldd(text: str) -> tuple[str, ...]:
    """Names of the libraries that ldd does not find, but for torch's and Python's own, which are
    loaded before."""
    names = re.findall(r"^\s*(\S+) => not found", text, re.MULTILINE)
    return tuple(dict.fromkeys(
        name for name in names if not re.match(r"lib(torch|c10|python|shm\.|gomp)", name)))


def package_folder(prefix: str, package: str) -> str:
    """The folder of PACKAGE in the Python environment PREFIX; empty: not found."""
    for place in sorted(glob.glob(os.path.join(
            glob.escape(prefix), "lib*", "python3*", "*-packages", package))):
        return place
    return ""


# --- the rest


def _unset(looker: Looker, environment: Environment,
           libraries: tuple[Library, ...]) -> Iterator[str]:
    """What set_env.sh of CANN and NNAL would have set, and is not."""
    for name in ("ASCEND_HOME_PATH", "ASCEND_OPP_PATH", "ATB_HOME_PATH"):
        if name in environment.variables and not looker.environ.get(name):
            yield name
    # The loader may know the folders by itself.
    here = (*_folders(looker.environ.get("LD_LIBRARY_PATH", "")), *_configured(looker))
    if any(each.path and not _find(each.name, here) for each in libraries):
        yield "LD_LIBRARY_PATH"


def _shared(looker: Looker) -> int:
    try:
        found = os.statvfs(looker.at("/dev/shm"))
    except OSError:
        return -1
    return found.f_frsize * found.f_blocks
