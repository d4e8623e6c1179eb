"""The application as a process, driven from a test."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.support.data import ROOT

LONG = 240.0
"""Seconds the slowest machine may take for a page."""


class Application:
    """The application as a process, with the driver inside it."""

    def __init__(self, *files: Path, environment: Mapping[str, str] | None = None) -> None:
        """ENVIRONMENT: variables on top of our own."""
        environment = {**os.environ, **(environment or {})}
        search = [str(ROOT), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(entry for entry in search if entry)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.driver", *map(str, files)], cwd=ROOT,
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, start_new_session=True)

    def ask(self, *words: str) -> Any:
        """Do something in the window; the answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        assert line, f"the application ended with {self.process.wait()}"
        return json.loads(line)

    def wait(self, what: Callable[[Any], bool], patience: float = LONG) -> Any:
        """Wait until the window's state is such, at most PATIENCE seconds; the state."""
        deadline = time.monotonic() + patience
        state: Any = None
        while time.monotonic() < deadline:
            state = self.ask("state")
            if isinstance(state, dict) and what(state):
                return state
            time.sleep(0.1)
        raise AssertionError(f"never came: {state}")

    def end(self) -> int:
        """Close the window; the exit status."""
        self.ask("close")
        return self.process.wait(120)


def finished(state: Any) -> bool:
    """Whether every page in the window's STATE has come to its end."""
    pages = [page for document in state["documents"] for page in document["pages"]]
    return bool(pages) and not {"waiting", "rendering", "ready", "streaming"} & set(pages)
