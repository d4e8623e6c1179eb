"""``packaging/test --engines`` sets up an environment of its own for real vLLM, once."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.packaging.checkout import PYTHON, Checkout
from tests.support import programs

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux scripts")

INDEX = "https://download.pytorch.org/whl/cpu"


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    """With an environment for the project that is there already, and a display."""
    made = Checkout(tmp_path)
    made.tool("Xvfb", "#!/bin/sh\necho 77\nexec sleep 60\n")
    made.tool("python3.11", PYTHON.replace("esac\n", '  "-m pytest"*) exit 0 ;;\nesac\n'))
    made.run("--version")
    for name in ("ruff", "mypy", "lint-imports"):
        programs.write(made.root / ".venv/bin" / name, "#!/bin/sh\n")
    made.run(script="test")
    made.called()
    return made


def engines(checkout: Checkout) -> Path:
    """Where the environment is by default."""
    return Path(checkout.env["HOME"]) / ".cache/verso-tests/engines"


def setup(calls: list[str]) -> list[str]:
    """Of CALLS those that set something up."""
    return [call for call in calls if "-m venv" in call or "pip install" in call]


def test_it_is_made_once_and_both_suites_run(checkout: Checkout) -> None:
    first = checkout.run("--engines", script="test")
    assert first.returncode == 0, first.stderr
    calls = checkout.called()
    made, torch, rest = setup(calls)
    assert made == f"python -m venv {engines(checkout)}"
    assert torch.endswith("--no-deps torch==2.13.0+cpu")
    assert "--no-deps -r /dev/fd/" in rest
    suites = [call for call in calls if "-m pytest" in call]
    assert [("--engines" in call, "-m engines" in call) for call in suites] == [
        (False, False), (False, False), (True, True)]

    second = checkout.run("--engines", "-k", "name", script="test")
    assert second.returncode == 0
    calls = checkout.called()
    assert setup(calls) == []
    *sources, suite = calls
    assert suite == "python -m pytest --engines -k name"
    assert [call.rpartition("/")[2] for call in sources] == [
        "ascend_sources.py", "recipe_sources.py"]


@pytest.mark.parametrize(("status", "passes"), [(0, True), (3, True), (1, False)])
def test_official_code_whose_host_cannot_be_reached_is_told_of_at_the_end(
        checkout: Checkout, status: int, passes: bool) -> None:
    result = checkout.run("--engines", "-k", "name", script="test", RECIPE_STATUS=str(status))
    assert (result.returncode == 0) is passes, result.stderr
    assert ("Left out: the tests on the model's official code" in result.stdout) is (status == 3)
    assert any("-m pytest" in call for call in checkout.called()) is passes


def test_without_the_sources_of_vllm_ascend_nothing_is_tested(checkout: Checkout) -> None:
    result = checkout.run("--engines", script="test", SOURCES_STATUS="1")
    assert result.returncode == 1
    assert "The sources of vllm-ascend could not be fetched" in result.stderr
    assert not any("-m pytest" in call for call in checkout.called())


def test_without_the_option_it_is_left_alone(checkout: Checkout) -> None:
    assert checkout.run(script="test").returncode == 0
    assert setup(checkout.called()) == []
    assert not engines(checkout).exists()


def test_where_the_package_sources_have_cuda_only_pytorchs_own_is_asked(
        checkout: Checkout) -> None:
    result = checkout.run("--engines", script="test", TORCH_AT=INDEX)
    assert result.returncode == 0, result.stderr
    torch = [call for call in checkout.called() if "torch==2.13.0+cpu" in call]
    assert [INDEX in call for call in torch] == [False, True]


def test_where_none_can_be_had_it_says_what_to_do(checkout: Checkout) -> None:
    result = checkout.run("--engines", script="test", TORCH_AT="nowhere")
    assert result.returncode == 1
    assert "No torch 2.13.0 for processors" in result.stderr
    assert "VERSO_ENGINES_ENV" in result.stderr
    assert not any("-m pytest" in call for call in checkout.called())


def test_an_interrupted_set_up_goes_on(checkout: Checkout) -> None:
    failed = checkout.run("--engines", script="test", PIP_STATUS="1")
    assert failed.returncode == 1
    assert "what is already there is kept" in failed.stderr
    assert "-m venv" in "\n".join(checkout.called())
    assert checkout.run("--engines", script="test").returncode == 0
    assert [call.split()[2] for call in setup(checkout.called())] == ["pip", "pip"]


def test_another_list_makes_it_anew(checkout: Checkout) -> None:
    checkout.run("--engines", script="test")
    old = engines(checkout) / "lib/old.py"
    old.parent.mkdir()
    old.touch()
    checkout.called()
    checkout.engines_list.write_text("torch==2.14.0\n")
    assert checkout.run("--engines", script="test").returncode == 0
    assert any(call.endswith("torch==2.14.0+cpu") for call in checkout.called())
    assert not old.exists()


def test_a_folder_that_is_something_else_is_left_alone(checkout: Checkout,
                                                       tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    (mine / "lib").mkdir(parents=True)
    (mine / "lib/important").touch()
    result = checkout.run("--engines", script="test", VERSO_ENGINES_ENV=str(mine))
    assert result.returncode == 1
    assert "holds something else" in result.stderr
    assert setup(checkout.called()) == []
    assert (mine / "lib/important").exists()


@pytest.mark.parametrize("works", [True, False])
def test_an_environment_of_ones_own_is_used_as_it_is(checkout: Checkout, tmp_path: Path,
                                                     works: bool) -> None:
    programs.write(tmp_path / "own/bin/python", f"#!/bin/sh\nexit {0 if works else 1}\n")
    result = checkout.run("--engines", script="test", VERSO_ENGINES_ENV=str(tmp_path / "own"))
    assert (result.returncode == 0) is works, result.stderr
    assert works or "cannot import" in result.stderr
    assert setup(checkout.called()) == []
    assert sorted(path.name for path in (tmp_path / "own").iterdir()) == ["bin"]


def test_two_at_once_make_it_once(checkout: Checkout) -> None:
    errors = checkout.run_at_once(2, "--engines", "-k", "x", script="test")
    assert len([call for call in checkout.called() if "-m venv" in call]) == 1
    assert sum("Waiting for another set-up" in error for error in errors) == 1
