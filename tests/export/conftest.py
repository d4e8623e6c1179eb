from __future__ import annotations

from pathlib import Path

import pytest

from tests.export.results import Bitmaps


@pytest.fixture
def bitmaps(tmp_path: Path) -> Bitmaps:
    """Where exporters get page bitmaps from."""
    folder = tmp_path / "bitmaps"
    folder.mkdir()
    return Bitmaps(folder)


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """The folder a person chose."""
    return tmp_path / "out"
