"""Where CANN, the NPU's driver and the ATB operators are on this machine.

Found by looking, never by running anything: what variables that are already set name, what the
installers have written down, and the usual places. What is not found is named, with every place
that was looked at.

Layouts (CANN's installation guide, "File Paths", for 8.0 and 8.5; CANN's and ATB's set_env.sh):

- toolkit: ``BASE/cann`` (from 8.5 on, beside ``BASE/cann-8.5.0``) or ``BASE/ascend-toolkit/latest``
  (beside ``BASE/ascend-toolkit/8.1.RC1``), or ``BASE/latest``; ``BASE/nnae/latest`` has what
  PyTorch needs as well. BASE is ``/usr/local/Ascend``, or ``~/Ascend`` for who is not root, or
  what ``/etc/Ascend/ascend_cann_install.info`` says.
- driver: ``BASE/driver/lib64`` with ``driver`` and ``common`` in it; ``/etc/ascend_install.info``
  says which BASE. In containers often nothing but ``lib64`` is there.
- ATB (package NNAL): ``BASE/nnal/atb/latest/atb/cxx_abi_0`` and ``…/cxx_abi_1``, built twice
  because C++ strings have two binary forms: the one that torch was built with is the right one.

Standard library only, Python 3.9: it also runs by itself in the environment of the older stack.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

TOOLKIT_VARIABLES = ("ASCEND_TOOLKIT_HOME", "ASCEND_HOME_PATH", "ASCEND_AICPU_PATH",
                     "ASCEND_TOOLKIT_LATEST_HOME")
ATB_VARIABLE = "ATB_HOME_PATH"

TOOLKIT_LIBRARY = "libascendcl.so"
DRIVER_LIBRARY = "libascend_hal.so"
ATB_LIBRARY = "libatb.so"

_RECORDS = ("/etc/Ascend/ascend_cann_install.info", "/etc/ascend_install.info")
_SYSTEM_LIBRARIES = ("/usr/lib64", "/usr/lib", "/lib64", "/usr/lib/aarch64-linux-gnu",
                     "/usr/lib/x86_64-linux-gnu")
"""Where the loader looks by itself; small boards have the driver's libraries there."""


@dataclass(frozen=True)
class Toolkit:
    """A CANN toolkit. ``version`` such as ``8.5.1`` or ``8.1.RC1``, empty where nothing says;
    ``source`` is the variable that names it, or empty."""

    path: str
    version: str = ""
    source: str = ""


@dataclass(frozen=True)
class Missing:
    """Something that is not there, or not as it must be.

    ``what``: ``toolkit``, ``toolkit_machine`` (there, for another kind of processor: ``detail``),
    ``driver``, ``driver_library`` (the folder is there, its library is not), ``atb``, ``atb_abi``
    (there, for the other form of C++ strings only: ``detail`` is the form it should have),
    ``kernels`` (the operators are not installed), ``python`` (the toolkit's Python modules),
    ``variable`` (the one in ``detail`` does not point at what it should). ``fatal``: the engine
    cannot start.
    """

    what: str
    looked: tuple[str, ...]
    fatal: bool
    detail: str = ""


@dataclass(frozen=True)
class Places:
    """What was found; paths are absolute."""

    machine: str
    """``aarch64`` or ``x86_64``."""
    toolkit: Optional[Toolkit]
    toolkits: tuple[Toolkit, ...]
    """All there are, the best first."""
    driver: tuple[str, ...]
    """Folders of the driver's libraries that the loader must be told; empty where it knows."""
    atb: str
    """``…/cxx_abi_0`` or ``…/cxx_abi_1``; empty: none."""
    abi: Optional[int]
    """The form of C++ strings that ``atb`` has."""
    missing: tuple[Missing, ...]

    @property
    def can_start(self) -> bool:
        """Whether nothing is missing without which no engine starts."""
        return not any(each.fatal for each in self.missing)


@dataclass(frozen=True)
class Search:
    """Where to look.

    ``environ``: the variables in force; ``home``: the person's folder; ``root``: stands before
    every path that the system has (for trees made by tests); ``machine``: as ``uname -m``;
    ``abi``: the form of C++ strings of the installed torch, None where it is not known;
    ``wanted``: the CANN version that goes with the installed vllm-ascend, preferred where several
    are installed and no variable decides.
    """

    environ: Mapping[str, str]
    home: str
    root: str = ""
    machine: str = ""
    abi: Optional[int] = None
    wanted: str = ""

    def at(self, path: str) -> str:
        """PATH of the system, under ``root``."""
        return self.root.rstrip("/") + path if self.root else path


def find(search: Search) -> Places:
    """Look everywhere; takes milliseconds, changes nothing and never fails."""
    machine = machine_name(search.machine or platform.machine())
    missing: list[Missing] = list(_misleading(search, machine))
    toolkits, seen, others = _toolkits(search, machine)
    best = _best(toolkits, search.wanted)
    ordered = tuple(([best] if best else []) + [each for each in toolkits if each is not best])
    if best is None:
        if others:
            missing.append(Missing("toolkit_machine", (others[0][0],), True, others[0][1]))
        else:
            missing.append(Missing("toolkit", tuple(seen), True))
    else:
        missing += _incomplete(best.path)
    driver, driver_missing = _driver(search)
    missing += driver_missing
    atb, abi, atb_missing = _atb(search, best)
    missing += atb_missing
    return Places(machine, best, ordered, driver, atb, abi, tuple(missing))


def machine_name(name: str) -> str:
    """How CANN spells the processor's architecture: ``aarch64``, ``x86_64``, or NAME itself."""
    return {"arm64": "aarch64", "amd64": "x86_64"}.get(name.lower(), name.lower())


def library_folders(toolkit: str, machine: str) -> tuple[str, ...]:
    """Where the toolkit's libraries are, those that exist, in the order of its own script."""
    return existing(os.path.join(toolkit, name) for name in (
        "lib64", machine + "-linux/lib64", "lib64/plugin/opskernel", "lib64/plugin/nnengine",
        "opp/built-in/op_impl/ai_core/tbe/op_tiling/lib/linux/" + machine,
        "tools/aml/lib64", "tools/aml/lib64/plugin"))


def existing(paths: Iterable[str]) -> tuple[str, ...]:
    """Those of PATHS that are folders."""
    return tuple(path for path in paths if os.path.isdir(path))


def split(value: str) -> list[str]:
    """The parts of a list of paths. An empty part means the working folder, which nobody means
    who leaves a colon at the end: it is dropped."""
    return [part for part in value.split(os.pathsep) if part]


# --- the toolkit


def _misleading(search: Search, machine: str) -> Iterator[Missing]:
    """Variables that point nowhere, or at something else."""
    for name in (*TOOLKIT_VARIABLES, "ASCEND_OPP_PATH", ATB_VARIABLE):
        value = search.environ.get(name, "")
        if name == ATB_VARIABLE:
            right = os.path.exists(os.path.join(value, "lib", ATB_LIBRARY))
        elif name == "ASCEND_OPP_PATH":
            right = os.path.isdir(os.path.join(value, "built-in"))
        else:  # One for another machine is told as such.
            right = bool(_library_in(value, machine) or _machines(value))
        if value and not right:
            yield Missing("variable", (value,), False, name)


def _toolkits(search: Search, machine: str,
              ) -> tuple[list[Toolkit], list[str], list[tuple[str, str]]]:
    """All toolkits for MACHINE, each once; every place looked at; those for other machines
    (path, machine)."""
    found: list[Toolkit] = []
    looked: list[str] = []
    others: list[tuple[str, str]] = []
    real: set[str] = set()
    for path, source in _candidates(search):
        if path not in looked:
            looked.append(path)
        library = _library_in(path, machine)
        if not library:
            others += [(path, other) for other in _machines(path) if other != machine]
        elif library not in real:
            # "latest" is a link to a version, or a folder of links into one.
            real.add(library)
            found.append(Toolkit(path, toolkit_version(path, machine), source))
    return found, looked, others


def _candidates(search: Search) -> Iterator[tuple[str, str]]:
    """Folders that may be a toolkit, with the variable that names them."""
    for name in TOOLKIT_VARIABLES:
        if search.environ.get(name):
            yield search.environ[name].rstrip("/") or "/", name
    opp = search.environ.get("ASCEND_OPP_PATH", "").rstrip("/")
    if opp.endswith("/opp"):
        yield opp[:-len("/opp")], "ASCEND_OPP_PATH"
    for base in bases(search):
        for name in ("cann", "ascend-toolkit/latest", "latest", "nnae/latest"):
            yield os.path.join(base, name), ""
        versions = [path for pattern in ("cann-*", "ascend-toolkit/[0-9]*", "nnae/[0-9]*")
                    for path in _glob(base, pattern)]
        for path in sorted(versions, key=_newest):
            yield path, ""


def bases(search: Search) -> tuple[str, ...]:
    """Folders that CANN's packages are installed under, the person's own first."""
    home = os.path.join(search.home, "Ascend")
    recorded = [search.at(path) for record in _RECORDS for path in _paths_in(search.at(record))]
    own = _paths_in(os.path.join(home, "ascend_cann_install.info"))
    usual = [search.at("/usr/local/Ascend"), search.at("/opt/Ascend")]
    return tuple(dict.fromkeys([*own, home, *recorded, *usual]))


def _paths_in(record: str) -> list[str]:
    """Install paths in a file that an installer wrote: ``Driver_Install_Path_Param=/usr/…``."""
    return [value.rstrip("/") for key, value in _pairs(record)
            if "install_path" in key.lower() and value.startswith("/")]


def _pairs(file: str) -> list[tuple[str, str]]:
    """``key=value`` lines of FILE; none where it cannot be read."""
    try:
        text = Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    split_lines = (line.partition("=") for line in text.splitlines())
    return [(key.strip(), value.strip()) for key, sign, value in split_lines if sign]


def _library_in(path: str, machine: str) -> str:
    """The real file that makes PATH a toolkit for MACHINE; empty where it is none. Where folders
    say for which machines it is, they count: ``lib64`` is a link to one of them."""
    machines = _machines(path)
    if not machines or machine in machines:
        for folder in ("lib64", machine + "-linux/lib64"):
            library = os.path.join(path, folder, TOOLKIT_LIBRARY)
            if os.path.exists(library):
                return os.path.realpath(library)
    return ""


def _machines(path: str) -> list[str]:
    return [os.path.basename(os.path.dirname(folder))[:-len("-linux")]
            for folder in _glob(path, "*-linux/lib64")]


def _best(toolkits: Sequence[Toolkit], wanted: str) -> Optional[Toolkit]:
    """The one that a variable names, else the one of the version WANTED, else the first."""
    if not toolkits:
        return None
    if toolkits[0].source or not wanted:
        return toolkits[0]
    fitting = [each for each in toolkits if each.version.lower() == wanted.lower()]
    return (fitting or list(toolkits))[0]


def toolkit_version(path: str, machine: str = "") -> str:
    """Version of the toolkit at PATH, from what its installer wrote, else from the folder's
    name; empty where nothing says."""
    for folder in (machine + "-linux", ""):
        for name in ("ascend_toolkit_install.info", "ascend_nnae_install.info"):
            for key, value in _pairs(os.path.join(path, folder, name)):
                if key == "version" and value:
                    return value
    # toolkit_running_version=[7.7.T20.0.B210:8.1.RC1]
    for key, value in _pairs(os.path.join(path, "version.cfg")):
        if key in ("toolkit_running_version", "runtime_running_version"):
            numbers = re.search(r":\s*([^\]\s]+)", value)
            if numbers is not None:
                return numbers[1]
    named = re.fullmatch(r"(?:cann-)?(\d+\..+)", os.path.basename(os.path.realpath(path)))
    return named[1] if named is not None else ""


def _incomplete(toolkit: str) -> list[Missing]:
    """What the toolkit lacks."""
    missing = []
    modules = os.path.join(toolkit, "python/site-packages")
    if not os.path.isdir(modules):
        missing.append(Missing("python", (modules,), True))
    # The toolkit package itself brings at most a handful of its own (ops_oam); all others come
    # with the package called kernels or, later, ops.
    kernels = os.path.join(toolkit, "opp/built-in/op_impl/ai_core/tbe/kernel")
    if all(os.path.basename(path) == "ops_oam" for path in _glob(kernels, "ascend*/*")):
        missing.append(Missing("kernels", (kernels,), False))
    return missing


# --- the driver


def _driver(search: Search) -> tuple[tuple[str, ...], list[Missing]]:
    folders = [os.path.join(base, "driver") for base in bases(search)]
    for folder in folders:
        parts = [os.path.join(folder, name)
                 for name in ("lib64/driver", "lib64/common", "lib64")]
        if any(os.path.exists(os.path.join(part, DRIVER_LIBRARY)) for part in parts):
            return existing(parts), []
    # Where a container's runtime or a small board put it: the loader finds it already. The
    # toolkit's own copy, to link against, does nothing (folders devlib and stub).
    told = [part for part in split(search.environ.get("LD_LIBRARY_PATH", ""))
            if not re.search(r"/(devlib|stub)(/|$)", part)]
    known = [*told, *(search.at(path) for path in _SYSTEM_LIBRARIES)]
    if any(os.path.exists(os.path.join(folder, DRIVER_LIBRARY)) for folder in known):
        return (), []
    there = [os.path.join(folder, "lib64") for folder in folders
             if os.path.isdir(os.path.join(folder, "lib64"))]
    if there:
        return (), [Missing("driver_library", tuple(there), True)]
    return (), [Missing("driver", tuple(folders), True)]


# --- ATB


def _atb(search: Search, toolkit: Optional[Toolkit],
         ) -> tuple[str, Optional[int], list[Missing]]:
    """The folder of the right form, that form, and what is missing."""
    told = search.environ.get(ATB_VARIABLE, "").rstrip("/")
    roots = list(_atb_roots(search, toolkit, told))
    unfit: list[str] = []
    real: set[str] = set()
    for root in roots:
        if os.path.realpath(root) in real:  # the version that "latest" is
            continue
        real.add(os.path.realpath(root))
        forms = {form: folder for form in (0, 1)
                 if os.path.exists(os.path.join(
                     folder := os.path.join(root, "cxx_abi_" + str(form)), "lib", ATB_LIBRARY))}
        if search.abi in forms:
            return forms[search.abi], search.abi, []
        if forms and search.abi is None:
            named = _form_of(told) if os.path.dirname(told) == root else None
            chosen = named if named in forms else max(forms)
            return forms[chosen], chosen, []
        unfit += forms.values()
    if unfit:
        return "", None, [Missing("atb_abi", tuple(unfit), False, str(search.abi))]
    return "", None, [Missing("atb", tuple(roots), False)]


def _atb_roots(search: Search, toolkit: Optional[Toolkit], told: str) -> Iterator[str]:
    """Folders that may have ``cxx_abi_0`` and ``cxx_abi_1`` in them, each once."""
    near: list[str] = []
    if _form_of(told) is not None:
        near.append(os.path.dirname(told))
    around = []
    if toolkit is not None:
        # BASE/cann, BASE/ascend-toolkit/latest; a link may lead to another place.
        for path in (toolkit.path, os.path.realpath(toolkit.path)):
            around += [path, os.path.dirname(path), os.path.dirname(os.path.dirname(path))]
    for base in dict.fromkeys([*around, *bases(search)]):
        if base == search.at("/") or not base.strip("/"):
            continue
        home = os.path.join(base, "nnal/atb")
        named = [os.path.join(home, "latest/atb")]
        if os.path.isdir(home):
            named += [os.path.join(path, "atb")
                      for path in sorted(_glob(home, "[0-9]*"), key=_newest)]
        # Around the toolkit it is only named as a place where it is.
        near += named if base in bases(search) or os.path.isdir(home) else []
    yield from dict.fromkeys(near)


def _form_of(path: str) -> Optional[int]:
    found = re.search(r"cxx_abi_([01])$", path)
    return int(found[1]) if found is not None else None


# --- helpers


def _glob(folder: str, pattern: str) -> list[str]:
    """Paths below FOLDER that fit PATTERN; none where it cannot be read."""
    try:
        return [str(path) for path in Path(folder).glob(pattern)]
    except OSError:
        return []


def _newest(path: str) -> tuple[list[int], str]:
    """A key that sorts paths with versions in their names: the newest first, a candidate
    (8.2.RC1) behind its release (8.2.0)."""
    name = os.path.basename(path).lower()
    numbers = [int(number) for number in re.findall(r"\d+", name)]
    if "rc" in name or "alpha" in name or "beta" in name:
        numbers.insert(2, -1)
    return [-number for number in numbers], name
