"""Which command is meant, and how calls end that are no conversion."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from desktop import __version__
from desktop.cli.main import COMMANDS
from desktop.engines.registry import ENGINES
from desktop.settings import SETTINGS
from tests.cli.conftest import Verso, command, start
from tests.support import processes
from tests.support.data import ROOT


def test_version_and_help(verso: Verso) -> None:
    ran = verso("--version")
    assert (ran.status, ran.out) == (0, f"verso {__version__}\n")
    ran = verso("--help")
    assert ran.status == 0
    for name in COMMANDS:
        assert name in ran.out


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_explains_itself(verso: Verso, name: str) -> None:
    ran = verso(name, "--help")
    assert ran.status == 0
    assert f"verso {name}" in ran.out
    assert ran.err == ""


@pytest.mark.parametrize("words", [
    ("--nonsense",), ("convert",), ("convert", "a.pdf"), ("engines", "extra"),
    ("convert", "a.pdf", "-o", "out", "--nonsense")])
def test_wrong_calls_are_one_line_and_status_2(verso: Verso, words: tuple[str, ...]) -> None:
    ran = verso(*words)
    assert ran.status == 2
    assert ran.out == ""
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith("verso: ")


@pytest.mark.parametrize(("variable", "words"), [
    ("VERSO_LOG_DIR", ("engines",)), ("VERSO_CONFIG_DIR", ("settings",)),
    ("VERSO_LOG_DIR", ())])
def test_a_folder_of_versos_own_that_cannot_be_used_is_said(
        variable: str, words: tuple[str, ...], tmp_path: Path, verso: Verso,
        monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody's file is there, say; or a home that nobody may write."""
    (tmp_path / "file").write_text("")
    monkeypatch.setenv(variable, str(tmp_path / "file" / "verso"))
    ran = verso(*words)
    assert ran.status == 1
    [line] = ran.err.splitlines()
    assert str(tmp_path / "file" / "verso") in line
    assert variable in line


def test_engines(verso: Verso) -> None:
    ran = verso("engines")
    assert ran.status == 0
    assert "embedded" in ran.out
    assert "scripted" not in ran.out  # hidden from users
    listed = verso("engines", "--json").summary["engines"]
    assert [engine["name"] for engine in listed] == [
        engine.name for engine in ENGINES if not engine.hidden]
    assert [engine["default"] for engine in listed].count(True) == 1


def test_settings_lists_every_setting_with_its_value(verso: Verso, verso_home: Path) -> None:
    (verso_home / "config").mkdir(parents=True)
    (verso_home / "config" / "settings.json").write_text(
        '{"version": 1, "settings": {"dpi": 200, "proxy": "http://me:hunter2@proxy"}}')
    ran = verso("settings")
    assert ran.status == 0
    for setting in SETTINGS:
        assert f"\n{setting.flag} " in ran.out
        assert setting.help.split(".")[0][:30] in ran.out.replace("\n    ", " ")
    assert "--dpi 200 (default: 144)" in ran.out
    assert "--proxy http://…@proxy" in ran.out
    listed = verso("settings", "--json").summary["settings"]
    assert "hunter2" not in str(listed)
    assert [entry["key"] for entry in listed] == [setting.key for setting in SETTINGS]
    assert next(entry for entry in listed if entry["key"] == "dpi")["value"] == 200


def test_a_broken_settings_file_is_said_and_does_not_matter(
        verso: Verso, verso_home: Path) -> None:
    (verso_home / "config").mkdir(parents=True)
    (verso_home / "config" / "settings.json").write_text("{ no json")
    ran = verso("settings")
    assert ran.status == 0
    assert len(ran.complaints) == 1


def test_a_reader_that_goes_away_is_no_error(no_process_left: object) -> None:
    process = start("settings")
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(60) in (0, 1)


def test_nothing_on_these_paths_imports_qt(tmp_path: Path) -> None:
    code = ("import sys; from desktop.cli.main import main\n"
            "for words in (['--version'], ['engines', '--json'], ['settings', '--json'],"
            " ['convert', '--help'], ['convert', '/no/such', '-o', sys.argv[1]]):\n"
            "    main(words)\n"
            "assert not [m for m in sys.modules if m.startswith(('PySide6', 'qasync'))]\n")
    done = processes.run_without_qt(code, str(tmp_path / "out"))
    assert done.returncode == 0, done.stderr
    assert "no/such" in done.stderr


@pytest.mark.logs_errors
def test_what_nobody_foresaw_is_one_line_and_in_the_log(
        verso: Verso, verso_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(args: object) -> int:
        raise ZeroDivisionError("out of the test")

    monkeypatch.setattr("desktop.cli.engines.run", fail)
    ran = verso("engines")
    assert ran.status == 1
    assert len(ran.err.splitlines()) == 1
    assert "out of the test" in ran.err
    assert "Traceback" in (verso_home / "log" / "verso.log").read_text()


def test_files_without_a_command_are_for_the_window(tmp_path: Path) -> None:
    code = ("import sys, types\n"
            "app = types.ModuleType('desktop.app')\n"
            "app.run = lambda files, debug=False: print([str(f) for f in files], debug) or 7\n"
            "sys.modules['desktop.app'] = app\n"
            "from desktop.cli.main import main\n"
            "sys.exit(main(['a.pdf', '--debug', 'b c.png']))")
    done = processes.run_without_qt(code)
    assert (done.returncode, done.stdout) == (7, "['a.pdf', 'b c.png'] True\n")


def test_the_module_is_the_command() -> None:
    done = subprocess.run(command("engines", "--json"), cwd=ROOT, env=processes.without_qt(),
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["version"] == 1
    assert sys.executable
