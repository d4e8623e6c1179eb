"""The window under load: 8 scripted streams, 2,000 deltas a second in all.

    python tests/perf/ui_load.py [--seconds 30] [--rate 2000] [--queued 1000] > ui_load.json

Through the real session, worker and window. Reports the longest time the window's thread was
kept from its events (and the most processor's time it took at a stretch, which no other program's
load adds to), the median time between two repaints (of any part of the window), and the
growth of the process's memory from the 5th second on, and what the main window itself takes to take
over what the session says; beside it the stall of an idle Qt window in the same run. With
``--queued`` so many other documents wait meanwhile. JSON on stdout.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

BLOCK = """<|ref|>text<|/ref|><|det|>[[80, {y}, 920, {z}]]<|/det|>
Revenue grew in every segment. Services, which now carries most of the margin, rose by fifteen
per cent; devices held their level in a market that shrank by a tenth, line {n} of this page.

"""


def script(rate: float) -> str:
    """What each of the eight streams plays: a page of 60 paragraphs, then the next page."""
    text = "".join(BLOCK.format(y=20 + 15 * n, z=33 + 15 * n, n=n) for n in range(60))
    return json.dumps({"capacity": 8, "assign": "hash", "pages": [
        {"text": text, "delta": 6, "rate": rate / 8}]})


def rss() -> float:
    """Resident memory of this process in MB, without its children."""
    import psutil

    return float(psutil.Process().memory_info().rss) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--rate", type=float, default=2000)
    parser.add_argument("--queued", type=int, default=0, help="documents that wait besides")
    args = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="verso-perf-"))
    for kind in ("DATA", "CONFIG", "CACHE", "LOG"):
        os.environ[f"VERSO_{kind}_DIR"] = str(home / kind)
    os.environ["VERSO_SCRIPT"] = script(args.rate)

    from desktop import app as application

    application.prepare_environment()
    import qasync
    from PySide6.QtCore import QCoreApplication, Qt
    from PySide6.QtWidgets import QApplication, QMainWindow, QWidget

    from desktop.jobs.events import PageState, SessionEvent
    from desktop.jobs.session import Session
    from desktop.settings import Values
    from desktop.settings.store import Store
    from desktop.ui.main_window import MainWindow
    from desktop.ui.theme import Appearance
    from tests.support.stall import PaintMeter, StallMeter

    QCoreApplication.setAttribute(Qt.ApplicationAttribute.AA_ShareOpenGLContexts)
    app = QApplication([])
    app.setQuitOnLastWindowClosed(False)
    appearance = Appearance(app, "light")
    session = Session(home / "journal.sqlite", home / "cache",
                      Values({"engine": "scripted", "concurrency": 8, "skip_blank": False}))
    loop = qasync.QEventLoop(app)
    asyncio.set_event_loop(loop)
    out: dict[str, object] = {"measure": "ui_load", "seconds": args.seconds, "rate": args.rate}

    async def control() -> None:
        idle = QMainWindow()
        idle.show()
        meter = StallMeter()
        meter.start()
        await asyncio.sleep(min(10.0, args.seconds))
        out["control_stall_ms"] = meter.stop() * 1000
        idle.close()

    async def queue(window: MainWindow) -> None:
        """More documents of a page each, all opened."""
        one = (ROOT / "tests" / "samples" / "chinese.pdf").read_bytes()
        folder = home / "queued"
        folder.mkdir()
        for number in range(args.queued):
            (folder / f"{number:05}.pdf").write_bytes(one + b"\n%" + str(number).encode())
        before = len(window.model.documents())
        window.add([folder])
        while len(window.model.documents()) < before + args.queued or not all(
                document.selected for document in window.model.documents()):
            await asyncio.sleep(0.5)

    taken: list[float] = []

    class Measured(MainWindow):
        """Notes the processor's time that each delivery takes."""

        def _delivered(self, events: Sequence[SessionEvent]) -> None:
            began = time.thread_time()
            super()._delivered(events)
            taken.append(time.thread_time() - began)

    async def go() -> None:
        await control()
        window = Measured(session, appearance, Store(), loop)
        window.resize(1440, 900)
        window.show()
        window.open()
        window.create_review()
        await asyncio.sleep(3)
        # A page lasts nine seconds: enough of them for the whole measurement.
        pages = (ROOT / "tests" / "samples" / "twenty_pages.pdf").read_bytes()
        for number in range(1 + round(args.seconds / 15)):
            (home / f"pages {number}.pdf").write_bytes(pages + b"\n%" + str(number).encode())
        window.add(sorted(home.glob("pages *.pdf")))
        while window.state.in_flight < 8:
            await asyncio.sleep(0.05)
        if args.queued:
            await queue(window)
        await asyncio.sleep(5)
        counted = 0

        def count(events: object) -> None:
            nonlocal counted
            counted += 1

        window.bridge.delivered.connect(count)
        pane = window.pane
        assert pane is not None
        view = pane.result.rendering  # type: ignore[attr-defined]
        # Chromium's picture is a child widget too; what one update paints counts once.
        paints = PaintMeter(*(w for w in window.findChildren(QWidget) if w.isVisible()))
        meter = StallMeter()
        before = rss()
        taken.clear()
        began = time.perf_counter()
        meter.start()
        memory = []
        while time.perf_counter() - began < args.seconds:
            await asyncio.sleep(1)
            memory.append(rss())
        out["stall_ms"] = meter.stop() * 1000
        out["stall_processor_ms"] = meter.longest_cpu * 1000
        out["stalls_over_50_ms"] = sum(late > 0.05 for _when, late in meter.gaps)
        out["median_repaint_ms"] = paints.median_interval() * 1000
        out["deliveries_per_s"] = counted / args.seconds
        out["taking_over_ms"] = {"median": statistics.median(taken) * 1000,
                                 "longest": max(taken) * 1000,
                                 "per_s": sum(taken) * 1000 / args.seconds}
        out["documents"] = len(window.model.documents())
        out["rss_growth_mb"] = max(memory) - before
        out["rss_mb"] = before
        out["tokens_per_s"] = window.state.tokens_per_second
        out["streaming"] = sum(page.state is PageState.STREAMING
                               for document in window.model.documents()
                               for page in window.model.pages(document.id))
        out["rendering"] = type(view).__name__
        window.close()
        await asyncio.to_thread(session.close)

    with loop:
        loop.run_until_complete(go())
    out["bars"] = {"stall_ms": 100, "median_repaint_ms": 60, "rss_growth_mb": 50}
    out["load_average"] = os.getloadavg()[0]
    print(json.dumps(out, indent=1))
    sys.stdout.flush()
    os._exit(0)  # Chromium's own threads need no farewell here


if __name__ == "__main__":
    main()
