"""Prepared code under the doctor's eye: whole, and with each thing gone that was put there."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest

from desktop.doctor import engines, prepared
from desktop.engines.ascend.preparation import beside, layout, prepare
from desktop.engines.registry import entry
from desktop.settings import Values
from tests.cli.conftest import Verso, verso
from tests.doctor.test_doctor import schema
from tests.support import environments, official_code

__all__ = ["verso"]  # a fixture


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Freshly prepared code whose model is there."""
    source = tmp_path / "official"
    official_code.official(source)
    target = tmp_path / "npu"
    prepare(source, target).write()
    environments.model(tmp_path / "model")
    config = target / "config.py"
    config.write_text(config.read_text("utf-8").replace("some/model", str(tmp_path / "model")),
                      "utf-8")
    return target


def test_nothing_is_wrong_with_fresh_code(folder: Path, tmp_path: Path) -> None:
    found = prepared.look(str(folder))
    assert found is not None
    assert found.problems == ()
    assert found.warnings == ()
    assert found.well
    assert found.touched == ("config.py",)
    assert found.model == str(tmp_path / "model")
    assert found.settings == layout.NPU_CONFIG


def _cut(name: str, *lines: str) -> Callable[[Path], None]:
    """Takes the lines of the file NAME away that contain one of LINES."""
    def cut(folder: Path) -> None:
        path = folder / name
        kept = [line for line in path.read_text("utf-8").splitlines(keepends=True)
                if not any(each in line for each in lines)]
        assert "".join(kept) != path.read_text("utf-8")
        path.write_text("".join(kept), "utf-8")
    return cut


def _flash_attn(folder: Path) -> None:
    path = folder / layout.SAM
    path.write_text("from flash_attn import flash_attn_qkvpacked_func\n"
                    + path.read_text("utf-8"), "utf-8")


GONE: dict[str, tuple[Callable[[Path], object], str]] = {
    **{name: (lambda folder, name=name: (folder / name).unlink(), name)
       for name in (*beside.files(), *layout.SCRIPTS, layout.CONFIG, layout.SAM)},
    **{f"environment of {name}": (_cut(name, layout.ENVIRONMENT_MODULE),
                                  f"{name}: import {layout.ENVIRONMENT_MODULE}")
       for name in layout.SCRIPTS},
    **{f"patch of {name}": (_cut(name, layout.PATCH_MODULE),
                            f"{name}: import {layout.PATCH_MODULE}") for name in layout.SCRIPTS},
    **{f"{key} of {name}": (_cut(name, f"{key}="), f"{name}: {key}")
       for name in layout.SCRIPTS for key in layout.ENGINE_SETTINGS},
    **{f"{key} of the image script": (_cut(layout.IMAGE, f"{key}="), f"{layout.IMAGE}: {key}")
       for key in layout.IMAGE_SETTINGS},
    **{f"{key} of config.py": (_cut(layout.CONFIG, f"{key} ="), f"config.py: {key}")
       for key in layout.NPU_CONFIG},
    "flash_attn is back": (_flash_attn, layout.SAM),
    "a script that is no Python": (
        lambda folder: (folder / layout.PDF).write_text("def (:\n"), layout.PDF),
}


@pytest.mark.parametrize("name", GONE)
def test_what_is_gone_is_named(name: str, folder: Path) -> None:
    take, words = GONE[name]
    take(folder)
    found = prepared.look(str(folder))
    assert found is not None
    said, = found.problems
    assert said.code == "ascend.prepared"
    assert words in said.message
    assert "verso prepare-npu SOURCE" in said.hint
    if not name.endswith(("no Python", ".py")):
        assert len(found.missing) == 1  # that, and nothing else


@pytest.mark.parametrize("name", ["verso_npu_patch.py", "verso_npu_environment.py",
                                  "verso_npu/places.py"])
def test_a_module_that_was_emptied_or_cut_off_is_named(name: str, folder: Path) -> None:
    """The scripts would import it and run without what it does."""
    whole = (folder / name).read_bytes()
    for content in (b"", whole[:len(whole) // 2]):
        (folder / name).write_bytes(content)
        found = prepared.look(str(folder))
        assert found is not None
        said, = found.warnings
        assert said.code == "ascend.prepared_other"
        assert said.message.endswith(f": {name}.")
    (folder / name).write_bytes(whole)
    found = prepared.look(str(folder))
    assert found is not None
    assert found.warnings == ()


def test_what_was_never_prepared(tmp_path: Path, folder: Path) -> None:
    none = prepared.look(str(tmp_path / "gone"))
    official = prepared.look(str(tmp_path / "official"))
    for found, code in ((none, "ascend.prepared_missing"), (official, "ascend.not_prepared")):
        assert found is not None
        assert [each.code for each in found.problems] == [code]
    # As the recipe's own script leaves it.
    recipe = tmp_path / "official"
    (recipe / f"{layout.FOREIGN_PATCH_MODULE}.py").write_text("")
    for name in layout.SCRIPTS:
        text = (recipe / name).read_text("utf-8")
        (recipe / name).write_text(text.replace(
            "import torch\n", f"import torch\nimport {layout.FOREIGN_PATCH_MODULE}\n", 1), "utf-8")
    found = prepared.look(str(recipe))
    assert found is not None
    assert [each.code for each in found.problems] == ["ascend.prepared_elsewhere"]


def test_the_model_that_its_settings_name(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "model/tokenizer.json").unlink()
    found = prepared.look(str(folder))
    assert found is not None
    assert found.well
    said, = found.warnings
    assert said.code == "ascend.prepared_model"
    assert "tokenizer.json is missing" in said.message
    # the name on a hub is fetched by the script
    config = folder / "config.py"
    config.write_text(config.read_text("utf-8").replace(
        str(tmp_path / "model"), "deepseek-ai/DeepSeek-OCR-2"), "utf-8")
    found = prepared.look(str(folder))
    assert found is not None
    assert found.warnings == ()


def test_the_code_of_the_engine_that_runs_it(folder: Path, tmp_path: Path,
                                             monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert prepared.look_around(Values()) is None
    values = Values({"official_code": str(folder)})
    found = prepared.look_around(values)
    assert found is not None
    assert found.folder == str(folder)
    assert not found.asked
    # Without its patch neither the code nor the engine is well.
    (folder / "verso_npu_patch.py").unlink()
    examined = engines.examine(entry("ascend-legacy"), values, thorough=False)
    assert "ascend.prepared" in [each.code for each in examined.problems]
    # The official code as it came is prepared when the engine starts: no fault, and not judged.
    values = Values({"official_code": str(tmp_path / "official")})
    assert prepared.look_around(values) is None
    examined = engines.examine(entry("ascend-legacy"), values, thorough=False)
    assert not [each.code for each in examined.problems
                if each.code.startswith(("legacy.", "ascend."))]
    gone = engines.examine(entry("ascend-legacy"), Values({"official_code": "/nowhere"}),
                           thorough=False)
    assert "legacy.no_code" in [each.code for each in gone.problems]


def test_the_command(verso: Verso, verso_home: Path, folder: Path, tmp_path: Path,
                     monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = verso("doctor", "--json", "--prepared", folder)
    assert ran.status == 0, ran.out
    jsonschema.validate(ran.summary, schema())
    assert ran.summary["prepared"]["folder"] == str(folder)
    shown = verso("doctor", "--prepared", folder)
    assert "PREPARED CODE" in shown.out
    assert "in place, with the lines that call it" in shown.out
    assert shown.out.endswith("The prepared code can run.\n")
    (folder / "verso_npu_patch.py").unlink()
    ran = verso("doctor", "--json", "--prepared", folder)
    assert ran.status == 1
    assert verso("doctor", "--prepared", folder).out.endswith("The prepared code cannot run.\n")
    assert ran.summary["can_start"] is True
    assert ran.summary["well"] is False
    assert ran.summary["prepared"]["missing"] == [{"file": "verso_npu_patch.py", "what": ""}]
    # One that only lies there does not decide; and where there is none nothing is said.
    folder.rename(tmp_path / "deepseek_ocr2_npu")
    ran = verso("doctor", "--json")
    assert ran.status == 0
    assert ran.summary["prepared"]["well"] is False
    (tmp_path / "deepseek_ocr2_npu").rename(tmp_path / "other")
    assert json.loads(verso("doctor", "--json").out)["prepared"] is None
