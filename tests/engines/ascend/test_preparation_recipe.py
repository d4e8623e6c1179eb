"""The preparation beside the CANN recipe's own conversion script, both on the real official code
(``packaging/recipe_sources.py`` fetches them)."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest

from desktop.engines.ascend import preparation
from desktop.engines.ascend.preparation import layout, target
from tests.support import programs, recipe_sources


class Both(NamedTuple):
    """The official code and what the two make of it: file → bytes, without Python's caches."""

    source: dict[str, bytes]
    recipe: dict[str, bytes]
    ours: dict[str, bytes]
    folder: Path


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    official, script = recipe_sources.official(), recipe_sources.conversion()
    if official is None or script is None:
        pytest.skip("needs the official code and the recipe: run packaging/recipe_sources.py")
    if shutil.which("bash") is None or sys.platform != "linux":
        pytest.skip("the recipe's script needs bash and GNU sed")
    folder = tmp_path_factory.mktemp("both")
    source = folder / "source"
    shutil.copytree(official, source)
    tools = folder / "tools"
    # It would install into the test's Python.
    programs.write(tools / "pip", "#!/bin/sh\nexit 0\n")
    subprocess.run(["bash", script, source, folder / "recipe"], check=True, capture_output=True,
                   env={**os.environ, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}"})
    before = _read(source)
    preparation.prepare(source, folder / "ours").write()
    assert _read(source) == before
    return Both(before, _read(folder / "recipe"), _read(folder / "ours"), folder)


def _read(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes()
            for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts}


def test_the_same_files_are_changed_and_the_same_kinds_are_added(both: Both) -> None:
    changed = {name for name, data in both.source.items() if both.recipe[name] != data}
    assert {name for name, data in both.source.items() if both.ours[name] != data} == changed
    assert changed == {layout.SAM, layout.CONFIG, *layout.SCRIPTS}
    assert both.recipe.keys() - both.source.keys() == {
        "deepseek_ocr2_npu.py", "set_env.sh", "benchmark.py"}
    added = {name for name in both.ours.keys() - both.source.keys()
             if not name.startswith("verso_npu/")}
    assert added == {"verso_npu_patch.py", "set_env.sh", "benchmark.py",
                     "verso_npu_environment.py", target.MANIFEST}


@pytest.mark.parametrize("name", [layout.CONFIG, *layout.SCRIPTS])
def test_the_same_settings_hold(both: Both, name: str) -> None:
    ours = layout.settings(name, both.ours[name])
    assert ours == layout.settings(name, both.recipe[name])
    assert ours != layout.settings(name, both.source[name])
    if name == layout.IMAGE:
        assert (ours["enforce_eager"], ours["gpu_memory_utilization"], ours["swap_space"],
                ours["disable_mm_preprocessor_cache"]) == (True, 0.85, 0, True)


@pytest.mark.parametrize("name", [layout.SAM, layout.CONFIG, *layout.SCRIPTS])
def test_the_programs_are_the_same_but_for_our_modules(both: Both, name: str) -> None:
    """Statement by statement; what differs is the patch's name, and that our environment comes
    first."""
    ours = ast.parse(both.ours[name])
    if name in layout.SCRIPTS:
        assert [ast.unparse(node) for node in ours.body[:2]] == [
            "import verso_npu_environment", "verso_npu_environment.ensure()"]
        del ours.body[:2]
    renamed = ast.unparse(ours).replace("import verso_npu_patch", "import deepseek_ocr2_npu")
    assert renamed == ast.unparse(ast.parse(both.recipe[name]))


@pytest.mark.parametrize("name", [layout.SAM, layout.CONFIG, *layout.SCRIPTS])
def test_the_same_lines_are_taken_and_given(both: Both, name: str) -> None:
    def lines(files: dict[str, bytes]) -> Counter[str]:
        return Counter(files[name].decode("utf-8").split("\n"))

    source, recipe, ours = lines(both.source), lines(both.recipe), lines(both.ours)
    assert source - ours == source - recipe
    given, recipes = ours - source, recipe - source
    if name in layout.SCRIPTS:
        assert given.pop("import verso_npu_environment") == 1
        assert given.pop("verso_npu_environment.ensure()") == 1
        assert given.pop("import verso_npu_patch") == recipes.pop("import deepseek_ocr2_npu") == 1
    elif name == layout.CONFIG:
        assert given.pop(layout.TITLE) == 1
        assert recipes.pop("# ==================== NPU Configuration ====================") == 1
    assert given == recipes


def test_its_result_is_no_source(both: Both) -> None:
    with pytest.raises(preparation.AlreadyPrepared):
        preparation.prepare(both.folder / "recipe", both.folder / "again")


def test_its_result_as_an_earlier_target_is_kept(both: Both, tmp_path: Path) -> None:
    shutil.copytree(both.folder / "recipe", tmp_path / "npu")
    kept = preparation.prepare(both.folder / "source", tmp_path / "npu").write()
    assert kept is not None
    assert _read(kept) == both.recipe
    assert _read(tmp_path / "npu") == both.ours
