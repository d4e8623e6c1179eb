"""Where no window can be opened, one sentence says so instead of Qt ending the process."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from desktop.ui import display


def _start(**environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items()
            if name not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")}
    return subprocess.run([sys.executable, "-m", "desktop", "report.pdf"], check=False,
                          env={**kept, **environment}, capture_output=True, text=True)


@pytest.mark.parametrize("environment", [
    {}, {"DISPLAY": ":4711"}, {"DISPLAY": "nonsense"},
    {"WAYLAND_DISPLAY": "wayland-9", "XDG_RUNTIME_DIR": "/nowhere"}])
def test_without_a_display_the_command_says_what_to_do(environment: dict[str, str]) -> None:
    ended = _start(**environment)
    assert ended.returncode == 1
    assert ended.stderr.strip() == "verso: " + display.NoDisplay().problem().line()


def test_a_display_that_answers_is_enough(monkeypatch: pytest.MonkeyPatch,
                                          socket_folder: Path) -> None:
    monkeypatch.delenv("QT_QPA_PLATFORM", raising=False)
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(socket_folder))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(socket_folder / "wayland-0"))
        server.listen()
        display.check()


def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(_path: str) -> None:
        raise OSError("libxcb-cursor.so.0: cannot open shared object file: No such file")

    monkeypatch.delenv("QT_QPA_PLATFORM", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr(display, "_x11", lambda: True)
    monkeypatch.setattr(display.ctypes, "CDLL", load)
    with pytest.raises(display.MissingLibrary, match=r"libxcb-cursor\.so\.0"):
        display.check()
