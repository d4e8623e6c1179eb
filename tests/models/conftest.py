"""A hub on this machine, a home without caches, a keyring in memory."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import keyring
import keyring.backend
import keyring.errors
import pytest

from desktop import log as logs
from desktop import paths
from desktop.models.download import Cancelled, Download, Event, Failed, Finished, Progress
from desktop.models.source import source_of
from desktop.models.web import Pace
from desktop.settings import Values
from tests.models.hub import Hub, serving

QUICK = Pace(first=0.02, longest=0.1)
PIECE = 700_000
"""Bytes asked for at once: several for the small model's weights."""

_VARIABLES = (
    "HF_ENDPOINT", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HOME", "HF_HUB_CACHE",
    "HUGGINGFACE_HUB_CACHE", "HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "XDG_CACHE_HOME",
    "MODELSCOPE_ENDPOINT", "MODELSCOPE_API_TOKEN", "MODELSCOPE_CACHE",
    *(name for proxy in ("http", "https", "all", "no")
      for name in (f"{proxy}_proxy", f"{proxy}_proxy".upper())))


class MemoryKeyring(keyring.backend.KeyringBackend):
    """Keeps secrets while the test runs."""

    priority = 1.0

    def __init__(self) -> None:
        super().__init__()
        self.held: dict[tuple[str, str], str] = {}
        self.asked = 0
        self.broken = False

    def get_password(self, service: str, username: str) -> str | None:
        self.asked += 1
        if self.broken:
            raise keyring.errors.NoKeyringError("none")
        return self.held.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.broken:
            raise keyring.errors.NoKeyringError("none")
        self.held[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.held[service, username]


@pytest.fixture(autouse=True)
def clean_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the machine's own hub tools, caches or proxies."""
    for name in _VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


@pytest.fixture(autouse=True)
def ring(clean_environment: None) -> Iterator[MemoryKeyring]:
    """The keyring of the test."""
    before, ring = keyring.get_keyring(), MemoryKeyring()
    keyring.set_keyring(ring)
    yield ring
    keyring.set_keyring(before)


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A well-behaved hub with a small model."""
    with serving(Hub()) as running:
        yield running


@dataclass
class Ran:
    """A download that ended."""

    outcome: Finished | Failed | Cancelled
    progress: list[Progress] = field(default_factory=list)

    @property
    def code(self) -> str:
        """Of the problem it failed with."""
        assert isinstance(self.outcome, Failed), self.outcome
        return self.outcome.problem.code

    @property
    def folder(self) -> Path:
        """Where the model is."""
        assert isinstance(self.outcome, Finished), self.outcome
        return self.outcome.folder


Fetch = Callable[..., Ran]


@pytest.fixture
def begin(hub: Hub, tmp_path: Path) -> Callable[..., tuple[Download, list[Event]]]:
    """``begin(hub="huggingface", folder=…, settings…)`` starts a download from the hub."""
    def start(kind: str = "huggingface", folder: Path | None = None, revision: str = "",
              verify: bool = False, pace: Pace = QUICK, environment: dict[str, str] | None = None,
              **settings: Any) -> tuple[Download, list[Event]]:
        values = Values({"hub": kind, "hub_address": hub.address, **settings})
        source = source_of(values, revision=revision, environment=environment or {})
        events: list[Event] = []
        download = Download(source, folder or tmp_path / "models" / "DeepSeek-OCR-2",
                            events.append, verify=verify, pace=pace, piece=PIECE)
        download.start()
        return download, events
    return start


@pytest.fixture
def fetch(begin: Callable[..., tuple[Download, list[Event]]]) -> Fetch:
    """Like ``begin``, and waits for the end."""
    def run(*args: Any, **kwargs: Any) -> Ran:
        download, events = begin(*args, **kwargs)
        assert download.wait(120)
        assert download.outcome is not None
        assert events[-1] is download.outcome
        return Ran(download.outcome, [each for each in events if isinstance(each, Progress)])
    return run


class LogFile:
    """What Verso's own log holds."""

    @property
    def text(self) -> str:
        """All of it so far."""
        return "".join(path.read_text("utf-8") for path in paths.log_dir().iterdir())


@pytest.fixture
def log_file(verso_home: Path) -> Iterator[LogFile]:
    """Verso's log, with all details."""
    level = logging.getLogger().level
    logs.start("verso", debug=True)
    yield LogFile()
    logs.stop()
    logging.getLogger().setLevel(level)
