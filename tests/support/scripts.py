"""Load scripts that lie outside any package (``packaging/``, ``tests/samples/``)."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

from tests.support.data import ROOT


def load(path: str) -> ModuleType:
    """The script at PATH (relative to the checkout) as a module; its main part does not run."""
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
