"""The set-up scripts, run for real in a scratch checkout with stand-ins for Python and apt."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from desktop.cli.main import COMMANDS
from tests.packaging.checkout import PYTHON, Checkout, installs
from tests.support import programs
from tests.support.data import ROOT

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux scripts")

@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


def test_first_start_sets_up_and_the_second_only_starts(checkout: Checkout) -> None:
    first = checkout.run("a b.pdf", DISPLAY=":9")
    assert first.returncode == 0, first.stderr
    venv = checkout.root / ".venv"
    made, installed, started = checkout.called()
    assert made == f"python -m venv {venv}"
    assert installed.endswith(f"--editable {checkout.root}")
    assert started == "python -P -m desktop a b.pdf"

    second = checkout.run("a b.pdf", DISPLAY=":9")
    assert second.returncode == 0
    assert second.stderr == ""
    assert checkout.called() == ["python -P -m desktop a b.pdf"]


def test_every_command_is_taken_for_one_and_not_for_a_file(checkout: Checkout) -> None:
    for command in COMMANDS:
        ran = checkout.run(command, "-x")  # without a display files would be converted
        assert ran.returncode == 0, ran.stderr
        assert checkout.called()[-1] == f"python -P -m desktop {command} -x"


@pytest.mark.parametrize("changed", ["pyproject.toml", "desktop/__init__.py"])
def test_a_changed_project_is_installed_again(checkout: Checkout, changed: str) -> None:
    checkout.run("--version")
    checkout.called()
    with open(checkout.root / changed, "a") as file:
        file.write("# changed\n")
    checkout.run("--version")
    calls = checkout.called()
    assert len(installs(calls)) == 1
    assert not any("-m venv" in call for call in calls)


def test_a_moved_checkout_is_installed_again(checkout: Checkout) -> None:
    checkout.run("--version")
    checkout.root = checkout.root.rename(checkout.root.with_name("moved"))
    checkout.called()
    checkout.run("--version")
    assert installs(checkout.called())[0].endswith(str(checkout.root))


def test_an_environment_whose_interpreter_is_gone_is_made_anew(checkout: Checkout) -> None:
    checkout.run("--version")
    checkout.called()
    python = checkout.root / ".venv/bin/python"
    python.unlink()
    python.symlink_to("/no/such/python")
    assert checkout.run("--version").returncode == 0
    assert any("-m venv" in call for call in checkout.called())


def test_packages_that_clash_are_put_right_by_a_new_environment(checkout: Checkout) -> None:
    checkout.run("--version")
    checkout.called()
    (checkout.root / "pyproject.toml").write_text("[project] # needs something else\n")
    checkout.clash.touch()
    result = checkout.run("--version")
    assert result.returncode == 0
    assert "do not fit together" in result.stderr
    calls = checkout.called()
    assert [call.split()[2] for call in calls[:-1]] == ["pip", "venv", "pip"]
    assert calls[-1] == "python -P -m desktop --version"


def test_another_place_for_the_environment(checkout: Checkout, tmp_path: Path) -> None:
    elsewhere = tmp_path / "else where"
    checkout.run("--version", VERSO_VENV=str(elsewhere))
    assert (elsewhere / "bin/python").exists()
    assert not (checkout.root / ".venv").exists()


@pytest.mark.parametrize("content", ["bin/python", "lib/important", "notes.txt"])
def test_a_folder_that_is_something_else_is_left_alone(
    checkout: Checkout, tmp_path: Path, content: str,
) -> None:
    file = programs.write(tmp_path / "mine" / content, PYTHON)
    result = checkout.run("--version", VERSO_VENV=str(tmp_path / "mine"))
    assert result.returncode == 1
    assert "no virtual environment" in result.stderr
    assert checkout.called() == []
    assert [p for p in (tmp_path / "mine").rglob("*") if p.is_file()] == [file]


def test_two_starts_at_once_install_once(checkout: Checkout) -> None:
    errors = checkout.run_at_once(3, "--version", script="run")
    calls = checkout.called()
    assert len(installs(calls)) == 1
    assert calls.count("python -P -m desktop --version") == 3
    assert sum("Waiting for another" in error for error in errors) == 2


def test_a_failed_installation_says_so_and_is_tried_again(checkout: Checkout) -> None:
    failed = checkout.run("--version", PIP_STATUS="1")
    assert failed.returncode == 1
    assert "installation failed" in failed.stderr
    assert not any("-m desktop" in call for call in checkout.called())
    assert checkout.run("--version").returncode == 0
    assert len(installs(checkout.called())) == 1


def test_without_a_display_files_are_converted_in_the_terminal(checkout: Checkout) -> None:
    checkout.libraries(False)  # which that does not need
    result = checkout.run("a.pdf", "b.png")
    assert result.returncode == 0
    assert "no display" in result.stderr
    assert checkout.called()[-1] == "python -P -m desktop convert a.pdf b.png -o ./verso-output"


def test_without_display_and_files_it_explains_itself(checkout: Checkout) -> None:
    result = checkout.run()
    assert result.returncode == 2
    assert "no display" in result.stderr
    assert "FILE …" in result.stderr
    assert not any("-m desktop" in call for call in checkout.called())


@pytest.mark.parametrize("command", ["convert", "engines", "settings", "--help", "--version"])
def test_commands_need_no_display(checkout: Checkout, command: str) -> None:
    checkout.libraries(False)
    result = checkout.run(command, "x")
    assert result.returncode == 0
    assert checkout.called()[-1] == f"python -P -m desktop {command} x"


def test_missing_libraries_are_listed_once_with_the_line_to_type(checkout: Checkout) -> None:
    checkout.libraries(False)
    checkout.tool("fc-list", "#!/bin/sh\n")
    checkout.tool("apt-get", '#!/bin/sh\necho "apt-get $*" >> "$CALLS"\n')
    checkout.tool("apt-cache", "#!/bin/sh\nexit 100\n")
    result = checkout.run(DISPLAY=":9")
    assert result.returncode == 1
    [line] = [x for x in result.stderr.splitlines() if "apt-get install" in x]
    for package in ("libegl1", "libxcb-cursor0", "libnss3", "libasound2", "fonts-noto-cjk"):
        assert f" {package}" in line
    calls = checkout.called()
    assert not any(call.startswith("apt-get") for call in calls), "it may not install"
    assert not any("-m desktop" in call for call in calls)

    checkout.libraries(True)
    checkout.tool("fc-list", "#!/bin/sh\necho 'Noto Sans CJK'\n")
    assert checkout.run(DISPLAY=":9").returncode == 0
    checkout.libraries(False)  # remembered: not looked for again
    assert checkout.run(DISPLAY=":9").returncode == 0


def test_missing_fonts_are_named_but_stop_nothing(checkout: Checkout) -> None:
    checkout.tool("fc-list", "#!/bin/sh\n")
    checkout.tool("apt-get", "#!/bin/sh\nexit 1\n")
    checkout.tool("apt-cache", "#!/bin/sh\nexit 1\n")
    result = checkout.run("a.pdf", DISPLAY=":9")
    assert result.returncode == 0
    assert "apt-get install --no-install-recommends fonts-noto-cjk" in result.stderr
    assert checkout.called()[-1] == "python -P -m desktop a.pdf"
    assert checkout.run("a.pdf", DISPLAY=":9").stderr == "", "said once"


@pytest.mark.parametrize("by", ["root", "sudo"])
def test_missing_libraries_are_installed_where_that_is_allowed(
    checkout: Checkout, by: str,
) -> None:
    checkout.libraries(False)
    checkout.tool("apt-get", '#!/bin/sh\necho "apt-get $*" >> "$CALLS"\n')
    # A release that renamed libasound2 and knows no libglib2.0-0t64.
    checkout.tool("apt-cache", '#!/bin/sh\n[ "$2" = libasound2t64 ]\n')
    if by == "root":
        checkout.tool("id", "#!/bin/sh\necho 0\n")
    else:
        checkout.tool("sudo", '#!/bin/sh\n[ "$1" = -n ] && shift && exec "$@"\n')
        checkout.tool("true", "#!/bin/sh\n")
    result = checkout.run(DISPLAY=":9")
    assert result.returncode == 0, result.stderr
    calls = checkout.called()
    [line] = [call for call in calls if "apt-get" in call and " install " in call]
    assert " libasound2t64 " in f"{line} "
    assert " libglib2.0-0 " in f"{line} "
    assert calls[-1] == "python -P -m desktop"


def test_an_installation_by_apt_that_fails_ends_with_the_line_to_type(checkout: Checkout) -> None:
    checkout.libraries(False)
    checkout.tool("id", "#!/bin/sh\necho 0\n")
    checkout.tool("apt-get", "#!/bin/sh\nexit 100\n")
    checkout.tool("apt-cache", "#!/bin/sh\nexit 100\n")
    result = checkout.run(DISPLAY=":9")
    assert result.returncode == 1
    assert "sudo apt-get update && sudo apt-get install" in result.stderr


def test_no_suitable_python_is_one_clear_message(checkout: Checkout) -> None:
    checkout.tool("python3.11", "#!/bin/sh\nexit 1\n")
    result = checkout.run("--version")
    assert result.returncode == 1
    assert "Python 3.11 or newer" in result.stderr
    given = checkout.run("--version", VERSO_PYTHON="/no/python")
    assert given.returncode == 1
    assert "VERSO_PYTHON=/no/python" in given.stderr


def test_a_python_without_venv_names_the_package(checkout: Checkout) -> None:
    checkout.tool("apt-get", "#!/bin/sh\nexit 1\n")
    checkout.tool("apt-cache", "#!/bin/sh\nexit 1\n")
    result = checkout.run("--version", NO_VENV="1")
    assert result.returncode == 1
    assert "python3.11-venv" in result.stderr


def test_the_test_script_installs_the_test_extra_and_needs_its_display(
    checkout: Checkout,
) -> None:
    result = checkout.run(script="test")
    assert installs(checkout.called())[0].endswith(f"--editable {checkout.root}[test]")
    assert result.returncode == 1
    assert "xvfb" in result.stderr


def test_the_test_script_runs_every_check_and_fails_with_any(checkout: Checkout) -> None:
    checkout.tool("python3.11", PYTHON.replace("esac", """\
  "-m pytest"*) echo "display $DISPLAY" >> "$CALLS"; [ pytest != "$BROKEN" ] ;;
esac"""))
    checkout.run(script="test")
    checkout.called()
    checkout.tool("Xvfb", "#!/bin/sh\necho 77\nexec sleep 60\n")
    for name in ("ruff", "mypy", "lint-imports"):
        programs.write(checkout.root / ".venv/bin" / name,
                       f'#!/bin/sh\necho "{name} $*" >> "$CALLS"\n[ {name} != "$BROKEN" ]\n')

    good = checkout.run("-k", "name", script="test", BROKEN="")
    assert good.returncode == 0, good.stdout + good.stderr
    calls = checkout.called()
    assert calls == ["ruff check .", "mypy", "lint-imports", "python -m pytest -k name",
                     "display :77"]
    for broken, name in [("ruff", "ruff"), ("mypy", "mypy"), ("lint-imports", "import layers"),
                         ("pytest", "pytest")]:
        bad = checkout.run("-k", "name", script="test", BROKEN=broken)
        assert bad.returncode == 1
        assert f"FAILED: {name} " in bad.stderr
        assert len(checkout.called()) == 5, "the others run all the same"

    assert checkout.run(script="test", BROKEN="").returncode == 0
    calls = [call for call in checkout.called() if "pytest" in call]
    assert calls == ["python -m pytest -p no:pytest-qt --without-qt",
                     "python -m pytest tests/ui tests/e2e"]


def test_ci_calls_the_test_script() -> None:
    text = (ROOT / ".ci/run").read_text()
    assert "packaging/test" in text
    assert '--engines "$@"' in text
    assert os.access(ROOT / ".ci/run", os.X_OK)


def test_shellcheck_finds_nothing() -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    result = subprocess.run(
        ["shellcheck", "-x", "packaging/run", "packaging/test", "packaging/setup.sh",
         "packaging/engines.sh", ".ci/run"],
        cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert result.returncode == 0, result.stdout
