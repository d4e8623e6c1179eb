"""The official vLLM code of DeepSeek-OCR-2 and the CANN recipe (``packaging/recipe_sources.py``
fetches them); None where they are not here."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest

from desktop.engines.ascend.preparation import layout
from tests.support.data import ROOT


def _fetcher() -> Any:
    folder = str(ROOT / "packaging")
    sys.path.insert(0, folder)  # it takes the place of the sources from its neighbour
    try:
        spec = importlib.util.spec_from_file_location(
            "verso_recipe_sources", ROOT / "packaging" / "recipe_sources.py")
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(folder)
    return module


FETCHER = _fetcher()


def fetched() -> Path | None:
    """The folder of the official code, fetched where it is not there yet; None where its host
    cannot be reached. Fails the test where it can, and the code cannot be had all the same."""
    try:
        FETCHER.fetch(FETCHER.default_folder())
    except FETCHER.Unreachable:
        return official()
    except SystemExit as error:
        pytest.fail(f"packaging/recipe_sources.py: {error}", pytrace=False)
    return official()


def official() -> Path | None:
    """The folder of the official code."""
    folder: Path = FETCHER.default_folder() / FETCHER.OFFICIAL / layout.INNER
    return folder if folder.is_dir() else None


def conversion() -> Path | None:
    """The recipe's script."""
    part = FETCHER.WANTED[FETCHER.RECIPE][2]
    script: Path = FETCHER.default_folder() / FETCHER.RECIPE / part / "convert_to_npu.sh"
    return script if script.is_file() else None
