"""The engine ``vllm`` in the real worker, on real vLLM: one start for all that does not kill it.

The tests that kill come last, and leave it running for the next.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from desktop.client.client import WorkerDied
from desktop.protocol.messages import PageFinished
from tests.accelerator import real
from tests.accelerator.real import CONTEXT, LARGE, SMALL, RealEngine

FOUR = 4
MANY = 50


@pytest.fixture(scope="module")
def engine(engine_python: Path, tiny_model: Path, real_home: Path) -> Iterator[RealEngine]:
    folder = real_home / "engine"
    folder.mkdir()
    engine = RealEngine(engine_python, folder, tiny_model)
    begin = time.monotonic()
    engine.start()
    try:
        engine.ready()
        real.figures.append(f"engine ready after {time.monotonic() - begin:.0f} s")
        yield engine
    finally:
        engine.close()


@pytest.fixture(autouse=True)
def noise(engine: RealEngine) -> None:
    """A test that does not say what pages get, gets noise without end."""
    engine.write()


def test_it_says_what_it_got(engine: RealEngine) -> None:
    ready = engine.ready()
    assert ready.engine == "vllm"
    assert ready.model == "tiny-ocr-2"
    assert {"vllm", "torch", "transformers"} <= set(ready.versions)
    assert ready.context == CONTEXT
    assert ready.cache_tokens >= CONTEXT
    assert ready.eager
    assert ready.device
    assert ready.capacity == 100
    assert 0 < ready.memory_used < ready.memory_total
    assert ready.memory_free > 0


def test_our_plugin_is_in_the_process_that_computes(engine: RealEngine) -> None:
    """What it does there depends on the version and the device; that it looked is in the log."""
    core = engine.core()
    for repair in ("vision mask", "head size: ", "raw pages"):
        engine.logged(lambda lines, repair=repair: any(
            f"EngineCore pid={core.pid}" in line and f"Verso: {repair}" in line
            for line in lines))


def test_a_page_streams_and_arrives_to_the_letter(engine: RealEngine) -> None:
    engine.write(real.recording())
    page = engine.submit()
    end = engine.finished(page)
    assert end.finish == "complete", end
    pieces = engine.pieces(page)
    assert len(pieces) > 100
    assert "".join(piece.text for piece in pieces) == real.recording()
    assert end.output_tokens > 500
    assert 0 < end.first_text < end.seconds


def test_visual_tokens_with_and_without_crop(engine: RealEngine) -> None:
    engine.write("x")
    small = engine.read(SMALL).prompt_tokens
    words = small - 257
    assert 0 < words < 40
    assert engine.read(LARGE).prompt_tokens == 1121 + words
    assert engine.read(LARGE, crop="off").prompt_tokens == 257 + words
    assert engine.read((1920, 1080)).prompt_tokens == 545 + words
    assert engine.read((1000, 1000)).prompt_tokens == 833 + words


def test_four_pages_at_once(engine: RealEngine) -> None:
    pages = [engine.submit() for _number in range(FOUR)]  # None ends by itself in this test.
    for page in pages:
        engine.streaming(page)
    assert not {event.page_id for event in engine.recorder.of(PageFinished)} & set(pages)
    for page in pages:
        engine.client.cancel(page)
    for page in pages:
        engine.finished(page)


def test_the_page_that_is_looked_at_goes_first(engine: RealEngine) -> None:
    engine.client.set_concurrency(1)
    try:
        first = engine.submit()  # It does not end by itself before the others are there.
        engine.started(first)
        rest = [engine.submit(max_tokens=16), engine.submit(max_tokens=16)]
        wanted = engine.submit(max_tokens=16, priority=0)
        raised = engine.submit(max_tokens=16)
        engine.client.raise_page(raised)
        engine.client.cancel(first)
        pages = [first, raised, wanted, *rest]
        for page in pages:
            engine.finished(page)
        order = [page for page in engine.recorder.started() if page in pages]
        assert order == pages
    finally:
        engine.client.set_concurrency(0)


def test_the_longest_output_is_what_the_context_leaves(engine: RealEngine) -> None:
    engine.write("A short page.")
    end = engine.read(LARGE, max_tokens=8192)
    assert end.finish == "complete"
    assert CONTEXT - 16 <= end.prompt_tokens + end.limit <= CONTEXT
    engine.write()
    end = engine.read(max_tokens=32)
    assert (end.finish, end.output_tokens, end.limit) == ("length", 32, 32)


def test_a_stop_string_ends_a_page(engine: RealEngine) -> None:
    engine.write("one two three STOP four")
    page = engine.submit(stop="|STOP|")
    assert engine.finished(page).finish == "complete"
    assert engine.text(page).strip() == "one two three"


def test_the_no_repeat_n_gram(engine: RealEngine) -> None:
    """Off it lets pass what repeats; on, vLLM's own processor forbids it."""
    repeated = "na " * 60
    engine.write(repeated)
    off = engine.submit(ngram="off")
    assert engine.finished(off).finish == "complete"
    assert engine.text(off) == repeated
    on = engine.submit(ngram="always", ngram_preset="custom", ngram_size=4, ngram_window=90,
                       max_tokens=200)
    engine.finished(on)
    text = engine.text(on)
    assert text.startswith("na na")
    assert "na " * 12 not in text


def test_a_page_that_loops_is_read_again_with_the_n_gram(engine: RealEngine) -> None:
    row = "<|ref|>text<|/ref|><|det|>[[100, 200, 300, 400]]<|/det|>\nThe same line again.\n\n"
    engine.write(row * 60, ngram=real.recording())
    page = engine.submit(ngram="retry", loop_guard=True)
    end = engine.finished(page)
    assert end.finish == "complete", end
    assert engine.restarts(page) == ["loop"]
    assert engine.text(page) == real.recording()


def test_one_page_is_cancelled_and_the_other_goes_on(engine: RealEngine) -> None:
    engine.write()
    stopped, other = engine.submit(), engine.submit(max_tokens=150)
    engine.streaming(stopped)
    engine.streaming(other)
    engine.client.cancel(stopped)
    assert engine.finished(stopped).finish == "cancelled"
    assert engine.finished(other).output_tokens == 150


def test_many_pages_in_flight_are_cancelled(engine: RealEngine) -> None:
    pages = [engine.submit() for _number in range(MANY)]
    engine.streaming(pages[-1], 1)
    begin = time.monotonic()
    for page in pages:
        engine.client.cancel(page)
    for page in pages:
        assert engine.finished(page).finish == "cancelled"
    cancelled = time.monotonic() - begin
    # Idle again: a page that is submitted now is not held up by those.
    page = engine.submit(max_tokens=16)
    engine.finished(page)
    after = time.monotonic() - begin
    alone = engine.read(max_tokens=16).seconds
    real.figures.append(f"cancel of {MANY} pages in flight: all ended after {cancelled:.2f} s, "
                        f"a page after them done {after:.2f} s after the cancel "
                        f"(alone it takes {alone:.2f} s)")


def test_the_computing_process_is_killed_while_it_streams(engine: RealEngine) -> None:
    """Its pages come back, the engine is started again, the pages are done again."""
    pages = [engine.submit(), engine.submit()]
    for page in pages:
        engine.streaming(page)
    old = real.snapshot(engine.processes())
    os.kill(engine.core().pid, signal.SIGKILL)
    begin = time.monotonic()
    died = engine.until(lambda: engine.recorder.of(WorkerDied))[-1]
    real.figures.append(f"engine core killed: pages back after {time.monotonic() - begin:.1f} s")
    assert set(died.pages) == set(pages)
    assert died.restart_in is not None
    assert died.problem.code == "engine.died"
    real.gone(old)
    engine.ready()
    real.figures.append(f"engine core killed: ready again after {time.monotonic() - begin:.0f} s")
    engine.write(real.recording())
    for page in pages:
        engine.submit(page_id=page)
    for page in pages:
        assert engine.finished(page).finish == "complete"
        assert engine.text(page) == real.recording()


def test_the_worker_is_killed_and_nothing_of_it_is_left(engine: RealEngine) -> None:
    engine.streaming(page := engine.submit())
    old = real.snapshot(engine.processes())
    assert len(old) >= 2
    deaths = len(engine.recorder.of(WorkerDied))
    os.kill(engine.recorder.pid(), signal.SIGKILL)
    passed = real.gone(old)
    real.figures.append(f"worker killed: its {len(old)} processes gone after {passed:.1f} s")
    engine.until(lambda: len(engine.recorder.of(WorkerDied)) > deaths)
    assert engine.recorder.of(WorkerDied)[-1].pages == (page,)


def test_closing_leaves_no_process(engine: RealEngine) -> None:
    engine.ready()  # It has been loading since the last test.
    engine.streaming(engine.submit())
    old = real.snapshot(engine.processes())
    begin = time.monotonic()
    engine.client.close(20)
    passed = time.monotonic() - begin
    assert engine.processes() == []
    real.figures.append(f"close with a page in flight: {len(old)} processes gone after "
                        f"{passed:.1f} s")
