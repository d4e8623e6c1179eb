"""The plugin as a folder that another interpreter is given."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from desktop.engines import plugin
from desktop.settings import BY_KEY, Values

FIND = """
import importlib.metadata, json, sys
found = [point for point in importlib.metadata.entry_points(group="vllm.general_plugins")
         if point.name == "verso"]
load = [point.load() for point in found]
[function() for function in load]
import verso_vllm_plugin
print(json.dumps([len(found), verso_vllm_plugin.done, "torch" in sys.modules]))
"""


def found_from(folder: Path, **variables: str) -> list[object]:
    """What an interpreter of its own finds with FOLDER on its path, and what the plugin did."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("VERSO_")}
    done = subprocess.run([sys.executable, "-c", FIND], capture_output=True, text=True, check=True,
                          env={**environment, **variables, "PYTHONPATH": str(folder)})
    result: list[object] = json.loads(done.stdout)
    return result


def test_it_is_found_by_its_entry_point_and_does_nothing_unasked() -> None:
    assert found_from(plugin.folder()) == [1, {}, False]


def test_it_is_found_through_the_link_that_the_worker_sees_our_package_by(tmp_path: Path) -> None:
    link = tmp_path / "desktop"
    link.symlink_to(Path(plugin.__file__).parents[2], target_is_directory=True)
    inside = plugin.folder().relative_to(Path(plugin.__file__).absolute().parents[2])
    assert found_from(link / inside)[0] == 1


@pytest.mark.skipif(importlib.util.find_spec("torch") is not None,
                    reason="torch is here: the repairs would begin")
def test_a_repair_that_cannot_be_done_says_so_and_harms_nobody() -> None:
    count, done, _ = found_from(plugin.folder(), VERSO_FAST_MASK="1", VERSO_HEAD_SIZE="1",
                                VERSO_RAW_PAGES="0")
    assert count == 1
    assert isinstance(done, dict)
    assert set(done) == {"vision mask", "head size"}
    assert all("ModuleNotFoundError" in reason for reason in done.values())


def test_each_setting_reaches_its_repair() -> None:
    values = Values({"engine": "vllm"}).as_dict()
    usual = plugin.environment(values)
    assert usual == {plugin.MASK: "1", plugin.ATTENTION: "1", plugin.HEAD_SIZE: "1",
                     plugin.PAGES: "1", plugin.GRAPHS: "4", plugin.TOKENIZER_CLASS: "1",
                     plugin.ATTENTION_TYPE: "1"}
    for key, variable in (("fast_mask", plugin.MASK), ("fast_attention", plugin.ATTENTION),
                          ("raw_pages", plugin.PAGES), ("encoder_graphs", plugin.GRAPHS)):
        assert key in BY_KEY
        assert plugin.environment({**values, key: False}) == {**usual, variable: "0"}
    assert plugin.environment({**values, "eager": True})[plugin.GRAPHS] == "0"


def test_the_plugin_asks_for_the_same_variables() -> None:
    source = (plugin.folder() / "verso_vllm_plugin" / "__init__.py").read_text(encoding="utf-8")
    for variable in plugin.environment({}):
        assert f'"{variable}"' in source


def test_it_imports_nothing_of_ours_and_runs_on_python_3_10() -> None:
    for path in sorted((plugin.folder() / "verso_vllm_plugin").glob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 10))
        names = {name.name for node in ast.walk(tree) if isinstance(node, ast.Import)
                 for name in node.names}
        names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not [name for name in names if name.split(".")[0] == "desktop"], path
