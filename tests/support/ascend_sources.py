"""The real sources of vllm-ascend and vLLM (``packaging/ascend_sources.py``), and their modules
imported over stand-ins, on a machine without CANN or an NPU.

Runs with the standard library alone, also in the environment with real vLLM.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def _fetcher() -> Any:
    spec = importlib.util.spec_from_file_location(
        "verso_ascend_sources", ROOT / "packaging" / "ascend_sources.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


FETCHER = _fetcher()
PAIRS: dict[str, str] = FETCHER.PAIRS
"""vllm-ascend → vLLM."""


def ensure() -> None:
    """Fetch what is not there yet (half a minute the first time). Raises SystemExit with a
    sentence where that fails."""
    FETCHER.fetch(FETCHER.default_folder())


def roots(version: str) -> tuple[Path, Path]:
    """What goes on sys.path for vllm-ascend VERSION and for its vLLM."""
    where = FETCHER.default_folder()
    return (FETCHER.place(where, "vllm-ascend", version),
            FETCHER.place(where, "vllm", PAIRS[version]))


class _Anything(type):
    """A class of which any attribute is another such class, and that decorates by doing nothing:
    what a module can import, subclass, call and use in annotations while it is being imported."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return anything(name)

    def __call__(cls, *args: Any, **options: Any) -> Any:
        if "stand_in" not in vars(cls):
            return super().__call__(*args, **options)
        if len(args) == 1 and not options and callable(args[0]):
            return args[0]
        return anything(cls.__name__)

    def __getitem__(cls, key: Any) -> Any:
        return anything(cls.__name__)


def anything(name: str) -> Any:
    """A stand-in for what is called NAME."""
    return _Anything(name, (), {"stand_in": True})


class _Hollow(ModuleType):
    """A module of which only the names are real: those that its source mentions."""

    source = ""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or not re.search(rf"\b{re.escape(name)}\b", self.source):
            raise AttributeError(f"module {self.__name__} has no attribute {name}")
        value = anything(name)
        setattr(self, name, value)
        return value


class _Loader(importlib.abc.Loader):
    def __init__(self, source: str) -> None:
        self.source = source

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        module = _Hollow(spec.name)
        module.source = self.source
        return module

    def exec_module(self, module: ModuleType) -> None:
        return None


class Sources(importlib.abc.MetaPathFinder):
    """Finds the modules of vllm-ascend and vLLM below ROOTS: those in REAL as they are, the
    others hollow. What has no file there is not found."""

    def __init__(self, roots: Sequence[Path], real: Sequence[str]) -> None:
        self.roots = roots
        self.real = frozenset(real)
        self.broken: dict[str, Callable[[], Exception]] = {}
        """Module → what importing it raises."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name.partition(".")[0] not in ("vllm", "vllm_ascend"):
            return None
        if name in self.broken:
            raise self.broken[name]()
        for root in self.roots:
            place = root.joinpath(*name.split("."))
            package = (place / "__init__.py").is_file()
            file = place / "__init__.py" if package else place.with_suffix(".py")
            if not file.is_file() and not place.is_dir():
                continue
            if name in self.real:
                return importlib.util.spec_from_file_location(
                    name, file, submodule_search_locations=[str(place)] if package else None)
            source = file.read_text(encoding="utf-8") if file.is_file() else ""
            if "import *" in source:
                source += "".join(
                    beside.read_text(encoding="utf-8") for beside in sorted(place.glob("*.py")))
            spec = importlib.machinery.ModuleSpec(
                name, _Loader(source), origin=str(file), is_package=place.is_dir())
            if place.is_dir():
                spec.submodule_search_locations = [str(place)]
            return spec
        return None

    def install(self) -> Sources:
        sys.meta_path.insert(0, self)
        return self
