"""Clients that are closed after the test; no process may be left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from desktop.client.client import EngineClient
from tests.client.recorder import QUICK, Recorder, Start, script


@pytest.fixture
def start(no_process_left: Callable[[], list[str]]) -> Iterator[Start]:
    """``start(*pages, settings={}, **script)`` runs a client with the scripted engine."""
    clients: list[EngineClient] = []

    def begin(*pages: dict[str, Any], settings: dict[str, Any] | None = None,
              engine: str = "scripted", client: dict[str, Any] | None = None,
              **top: Any) -> tuple[EngineClient, Recorder]:
        recorder = Recorder()
        clients.append(EngineClient(recorder, **{"patience": QUICK, **(client or {})}))
        clients[-1].start(engine, {**script(*pages, **top), **(settings or {})})
        return clients[-1], recorder

    yield begin
    for client in clients:
        client.close()
