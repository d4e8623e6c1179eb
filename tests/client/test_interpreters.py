"""The worker under other Pythons: what reaches them, and what they need not have."""

from __future__ import annotations

import ast
import os
import shutil
import struct
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import desktop
from desktop.client.staging import stage
from desktop.engines.script import SAMPLE
from tests.client.recorder import Start, page
from tests.support import programs
from tests.support.data import ROOT

WORKER_MODULES = (
    "desktop", "desktop.errors", "desktop.i18n", "desktop.protocol.messages",
    "desktop.protocol.wire", "desktop.engines.base", "desktop.engines.registry",
    "desktop.engines.script", "desktop.engines.scripted", "desktop.intake.words",
    "desktop.worker.main", "desktop.worker.loop", "desktop.worker.outbox",
    "desktop.worker.stream", "desktop.worker.lines", "desktop.worker.lifetime",
    "desktop.worker.__main__",
)
NOT_IN_A_WORKER = ("PySide6", "shiboken6", "qasync", "pymupdf", "fitz", "platformdirs", "numpy",
                   "PIL", "cv2", "onnxruntime", "rapidocr", "desktop.ui", "desktop.jobs",
                   "desktop.client", "desktop.settings")


def test_the_stage_holds_nothing_but_a_link_to_our_package(verso_home: Path) -> None:
    folders = stage()
    assert [entry.name for entry in folders.path.iterdir()] == ["desktop"]
    assert (folders.path / "desktop").resolve() == Path(desktop.__file__).resolve().parent
    assert not list(folders.work.iterdir())
    assert folders.path.is_relative_to(verso_home / "cache")
    assert stage() == folders


def test_a_stage_that_points_elsewhere_is_put_right() -> None:
    link = stage().path / "desktop"
    link.unlink()
    link.symlink_to("/nowhere")
    stage()
    assert (link / "__init__.py").is_file()


@pytest.fixture
def bare_python(tmp_path: Path) -> Path:
    """This Python without its site-packages: it has msgspec and Pillow, and nothing else."""
    packages = tmp_path / "packages"
    packages.mkdir()
    for name in ("msgspec", "PIL"):
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        folder = Path(spec.origin).parent
        (packages / name).symlink_to(folder)
        if (libraries := folder.parent / "pillow.libs").is_dir() and name == "PIL":
            (packages / "pillow.libs").symlink_to(libraries)
    return programs.write(
        tmp_path / "bare-python",
        f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{packages}" exec "{sys.executable}" -S "$@"\n')


def test_a_page_is_read_by_a_python_that_has_msgspec_and_pillow_only(
    start: Start, bare_python: Path,
) -> None:
    missing = subprocess.run([bare_python, "-c", "import platformdirs"], capture_output=True,
                             text=True, check=False)
    assert "ModuleNotFoundError" in missing.stderr
    client, heard = start({"rate": 0}, client={"interpreter": str(bare_python)})
    client.submit(page("p1"))
    assert heard.finished("p1").finish == "complete"
    assert heard.text("p1") == SAMPLE


def test_every_module_of_the_worker_imports_there(bare_python: Path) -> None:
    code = "import importlib\n" + "".join(
        f"importlib.import_module({name!r})\n" for name in WORKER_MODULES)
    result = subprocess.run(
        [bare_python, "-c", code], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(stage().path)})
    assert result.returncode == 0, result.stderr


def test_a_worker_imports_nothing_of_the_window_or_the_intake(
    start: Start, tmp_path: Path,
) -> None:
    listing = tmp_path / "modules"
    path = programs.write(
        tmp_path / "listing-python",
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT)!r})\n"
        "from desktop.worker.main import main\nmain(sys.argv[-1:])\n"
        f"open({str(listing)!r}, 'w').write('\\n'.join(sorted(sys.modules)))\n")
    client, heard = start({"rate": 0}, client={"interpreter": str(path)})
    client.submit(page("p1"))
    heard.finished("p1")
    client.close(120)  # it ends in order, however slow the machine is, or nothing is listed
    modules = listing.read_text().split()
    assert "desktop.engines.scripted" in modules
    unwanted = [name for name in modules if any(
        name == base or name.startswith(base + ".") for base in NOT_IN_A_WORKER)]
    assert not unwanted


@pytest.mark.parametrize("name", WORKER_MODULES)
def test_the_worker_is_written_in_python_310(name: str) -> None:
    spec = find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    ast.parse(Path(spec.origin).read_text("utf-8"), feature_version=(3, 10))


def python_310() -> str | None:
    """A Python 3.10 that has msgspec: ``VERSO_PYTHON310``, or the one on the PATH."""
    for candidate in (os.environ.get("VERSO_PYTHON310"), shutil.which("python3.10")):
        if candidate and not subprocess.run(
                [candidate, "-c", "import sys, msgspec; assert sys.version_info[:2] == (3, 10)"],
                capture_output=True, check=False).returncode:
            return candidate
    return None


def test_a_page_is_read_by_python_310(start: Start) -> None:
    interpreter = python_310()
    if interpreter is None:
        pytest.skip("no Python 3.10 with msgspec here (set VERSO_PYTHON310)")
    client, heard = start({"rate": 200, "regions": True}, client={"interpreter": interpreter})
    client.submit(page("p1"))
    assert heard.finished("p1").finish == "complete"
    assert heard.text("p1") == SAMPLE
    assert heard.ready().versions["python"].startswith("3.10.")


def test_the_working_folder_of_a_worker_is_not_the_persons(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "msgspec.py").write_text("raise SystemExit('a file of the person was imported')")
    monkeypatch.chdir(tmp_path)
    client, heard = start({"rate": 0})
    client.submit(page("p1"))
    assert heard.finished("p1").finish == "complete"


def test_an_interpreter_may_be_named_relative_to_the_working_folder(
    start: Start, bare_python: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(bare_python.parent)
    client, heard = start({"rate": 0}, client={"interpreter": "./bare-python"})
    client.submit(page("p1"))
    assert heard.finished("p1").finish == "complete"


def catalogue(messages: dict[str, str]) -> bytes:
    """A compiled message catalogue (GNU .mo)."""
    pairs = sorted({"": "Content-Type: text/plain; charset=UTF-8\n", **messages}.items())
    tables, strings = [b"", b""], b""
    for table in (0, 1):
        for pair in pairs:
            text = pair[table].encode()
            tables[table] += struct.pack("<II", len(text), 28 + 16 * len(pairs) + len(strings))
            strings += text + b"\0"
    count = len(pairs)
    return struct.pack("<7I", 0x950412DE, 0, count, 28, 28 + 8 * count, 0, 0) + b"".join(
        tables) + strings


def test_the_worker_speaks_the_persons_language(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "translations" / "xx" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    (folder / "verso.mo").write_bytes(catalogue({
        "There is no engine named “{name}”.": "Nulla machina nomine “{name}”."}))
    monkeypatch.setattr("desktop.paths.resources", lambda: tmp_path)
    _, heard = start(engine="vapor", settings={"language": "xx"})
    assert heard.died().problem.message == "Nulla machina nomine “vapor”."


def test_variables_are_set_before_the_worker_starts(start: Start) -> None:
    client, heard = start(
        client={"environment": {"VERSO_SCRIPT": '{"model": "from the environment"}'}},
        settings={"script": ""})
    assert heard.ready().model == "from the environment"
    assert "VERSO_SCRIPT" not in os.environ
    client.close()
