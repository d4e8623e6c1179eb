"""The built-in engine's text arrives while the page is still being read, and a worker that is
killed in between loses nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from desktop.jobs.events import (
    BlocksChanged,
    PageCleared,
    PageRegionsFound,
    PageState,
    PageUpdated,
    RawText,
)
from desktop.jobs.session import Session
from desktop.settings import Values
from tests.jobs.conftest import PATIENCE, Heard
from tests.support import processes

HELD = """
import os, sys, time

if "desktop.worker" in getattr(sys, "orig_argv", ()):
    from desktop.engines.embedded import recognize
    whole, begun = recognize.recognize, []

    def held(*arguments):
        begun.append(arguments)
        while len(begun) > 1 and not os.path.exists({gate!r}):
            time.sleep(0.01)
        return whole(*arguments)

    recognize.recognize = held
"""
"""Start-up code with which a worker recognises one block, and the next when a file is there."""


@pytest.fixture
def gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file without which workers recognise one block only."""
    site = tmp_path / "site"
    site.mkdir()
    path = tmp_path / "gate"
    (site / "sitecustomize.py").write_text(HELD.format(gate=str(path)))
    search = [str(site), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, search)))
    return path


@pytest.fixture
def session(tmp_path: Path, gate: Path, no_process_left: object) -> Iterator[tuple[Session, Heard]]:
    heard = Heard()
    session = Session(tmp_path / "journal.db", tmp_path / "cache",
                      Values({"text_layer": "never", "threads": 1}))
    session.subscribe(heard)
    yield session, heard
    session.close()


def test_the_first_block_is_seen_before_the_last_line_is_recognised(
        session: tuple[Session, Heard], gate: Path, sample_pdf: Path) -> None:
    reading, heard = session
    reading.add([sample_pdf], page_range="1").result(PATIENCE)
    reading.start()
    heard.until(lambda: heard.of(BlocksChanged), "no block came")
    # Dead at the first block: whatever is recognised later cannot have been part of it.
    processes.worker_of(os.getpid()).kill()
    gate.touch()
    assert reading.wait(PATIENCE)

    events = heard.events
    cleared = events.index(PageCleared("1-1"))
    assert not any(isinstance(event, PageUpdated) and event.page.state.final
                   for event in events[:cleared])
    kinds = [type(event) for event in events]
    assert kinds.index(PageRegionsFound) < kinds.index(RawText)
    early = "".join(event.text for event in events[:cleared] if isinstance(event, RawText))

    result = reading.page_result("1-1").result(PATIENCE)
    assert (result.view.state, result.view.attempts) == (PageState.COMPLETE, 2)
    assert early.strip()
    assert result.raw.startswith(early)
    assert result.blocks[-1].markdown.strip()
    assert result.blocks[-1].markdown.strip() not in early
