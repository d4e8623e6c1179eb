"""Two engine cores in one worker, on real vLLM."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from desktop.client.client import WorkerDied
from desktop.protocol.messages import PageFinished, PageText
from tests.accelerator import real
from tests.accelerator.real import RealEngine

FOUR = 4


def test_they_share_pages_die_together_and_leave_nothing(
        engine_python: Path, tiny_model: Path, real_home: Path) -> None:
    folder = real_home / "cores"
    folder.mkdir()
    engine = RealEngine(engine_python, folder, tiny_model, engine_cores=2)
    begin = time.monotonic()
    engine.start()
    try:
        ready = engine.ready()
        real.figures.append(f"two engine cores ready after {time.monotonic() - begin:.0f} s")
        cores = engine.cores()
        assert len(cores) == 2
        before = [sum(core.cpu_times()[:2]) for core in cores]
        engine.write(real.recording())
        pages = [engine.submit() for _number in range(FOUR)]
        for page in pages:
            assert engine.finished(page).finish == "complete"
            assert engine.text(page) == real.recording()
        worked = [sum(core.cpu_times()[:2]) - start
                  for core, start in zip(cores, before, strict=True)]
        assert min(worked) > max(worked) / 4, worked
        assert ready.cache_tokens >= 2 * real.CONTEXT

        engine.write()
        pages = [engine.submit() for _number in range(2)]
        for page in pages:
            engine.streaming(page)
        old = real.snapshot(engine.processes())
        os.kill(cores[1].pid, signal.SIGKILL)
        died = engine.until(lambda: engine.recorder.of(WorkerDied))[-1]
        assert set(died.pages) == set(pages)
        real.gone(old)

        engine.client.close(20)
        assert engine.processes() == []
        assert not {event.page_id for event in engine.recorder.of(PageFinished)} & set(pages)
        assert engine.recorder.of(PageText)
    finally:
        engine.close()
