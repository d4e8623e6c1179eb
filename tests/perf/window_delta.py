"""How long the first text of a page takes from the engine to the eye, stage by stage.

    xvfb-run -a python tests/perf/window_delta.py [--pages 24]

Through the real worker, session and window: the scripted engine yields the time at which it does
so as the first token of each page, one page after the other. The view follows the live page, and
the token comes only after it has had time to turn to it: a page counts when it was on show with
its picture, everything given showed, and nothing had happened for a third of a second before its
token; the others are counted as ``unsettled``.

Stages, each in milliseconds since the token: ``session`` – a listener of the session is told;
``bridge`` – the window's thread has the events; ``pane`` – the review pane is given the text;
``html`` – it is HTML; ``call`` – Chromium is called; ``script`` – the page's script begins to put
it in; ``dom`` – the page's document has it, laid out; ``frame`` – Chromium begins the frame with
it; ``paint`` – the first repaint of the window's web view after that. ``bar_ms`` is held against
``dom``.

Control, in the same run and on the same settled pages, some time before the token and after the
same quiet: ``dom`` – a call that changes the document by hand, until it has changed; ``paint`` –
the same until the repaint; ``script`` – an empty call into the page's script and its answer. What
differs from it is ours; what does not is Chromium's and the machine's. JSON on stdout.
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
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

BAR_MS = 50
WAIT = 1.8
"""Seconds from the page's start to its token."""
STAGES = ("session", "bridge", "pane", "html", "call", "script", "dom", "frame", "paint")
QUIET = 0.3

# The time is the steady clock's, as Python's monotonic(), from another origin.
WATCH = """(() => {
  globalThis.watched = {};
  let entered = 0;
  const apply = Verso.apply;
  Verso.apply = (batch) => { entered = performance.now(); return apply(batch); };
  const tell = (mark) => {
    const seen = watched[mark] = { dom: performance.now() };
    requestAnimationFrame(() => { seen.frame = performance.now(); });
  };
  new MutationObserver(() => {
    const body = document.querySelector("#page .body");
    const text = body && body.textContent.match(/\\d+\\.\\d+/);
    if (text && !(text[0] in watched)) { tell(text[0]); watched[text[0]].script = entered; }
  }).observe(document.getElementById("page"), { childList: true, subtree: true });
  const probe = document.createElement("div");
  probe.style.cssText = "position:fixed;right:20px;bottom:20px;width:12px;height:12px";
  document.body.append(probe);
  globalThis.probe = (mark) => {
    probe.style.background = probe.style.background ? "" : "#888";
    tell(mark);
  };
  return performance.now();
})()"""


def summary(values: Sequence[float]) -> dict[str, float]:
    """Median, ninetieth percentile and most of SECONDS, in ms."""
    ordered = sorted(values)
    return {"median_ms": round(statistics.median(ordered) * 1e3, 1),
            "p90_ms": round(ordered[round(0.9 * (len(ordered) - 1))] * 1e3, 1),
            "most_ms": round(ordered[-1] * 1e3, 1)} if ordered else {}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pages", type=int, default=24)
    args = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="verso-perf-"))
    for kind in ("DATA", "CONFIG", "CACHE", "LOG"):
        os.environ[f"VERSO_{kind}_DIR"] = str(home / kind)
    os.environ["VERSO_SCRIPT"] = json.dumps({"capacity": 1, "pages": [
        {"text": "x" * 3, "delta": 1, "stamp": True, "rate": 8, "wait": WAIT}]})

    from desktop import app as application

    application.prepare_environment()
    import qasync
    from PySide6.QtCore import QCoreApplication, QEvent, QObject, Qt
    from PySide6.QtWidgets import QApplication, QWidget

    from desktop.jobs.events import BlocksChanged, RawText
    from desktop.jobs.session import Session
    from desktop.settings import Values
    from desktop.settings.store import Store
    from desktop.ui.main_window import MainWindow
    from desktop.ui.review.web import WebRendering
    from desktop.ui.theme import Appearance
    from tests.support.stall import StallMeter

    class Paints(QObject):
        """When the web view was painted."""

        def __init__(self, view: QWidget) -> None:
            super().__init__(view)
            self.times: list[float] = []
            for widget in (view, *view.findChildren(QWidget)):
                widget.installEventFilter(self)

        def eventFilter(self, watched: QObject, event: QEvent) -> bool:
            if event.type() == QEvent.Type.Paint:
                self.times.append(time.monotonic())
            return False

        def after(self, when: float) -> float | None:
            return next((at for at in self.times if at >= when), None)

    QCoreApplication.setAttribute(Qt.ApplicationAttribute.AA_ShareOpenGLContexts)
    app = QApplication([])
    app.setQuitOnLastWindowClosed(False)
    session = Session(home / "journal.sqlite", home / "cache",
                      Values({"engine": "scripted", "concurrency": 1, "skip_blank": False}))
    loop = qasync.QEventLoop(app)
    asyncio.set_event_loop(loop)
    out: dict[str, Any] = {"measure": "window_delta"}

    async def go() -> None:
        window = MainWindow(session, Appearance(app, "light"), Store(), loop)
        window.resize(1440, 900)
        window.show()
        window.open()
        window.create_review()
        window.load_rendering()
        pane: Any = window.pane
        until = time.monotonic() + 60
        while time.monotonic() < until and (
                pane.result.rendering is None or pane.result.rendering._waiting is not None):
            await asyncio.sleep(0.1)
        await asyncio.sleep(2)
        view = pane.result.rendering
        assert isinstance(view, WebRendering), "no web engine here"
        paints = Paints(view)

        async def script(code: str) -> Any:
            done: asyncio.Future[Any] = loop.create_future()
            view.run_script(code, lambda value: done.done() or done.set_result(value))
            return await asyncio.wait_for(done, 30)

        await script(WATCH)
        # Where the page's clock stands: the call that took the least time knows it best.
        clock = []
        for _round in range(40):
            before = time.monotonic()
            there = await script("performance.now()") / 1e3
            after = time.monotonic()
            clock.append((after - before, (before + after) / 2 - there))
        shift = min(clock)[1]

        stages: dict[str, dict[str, float]] = {}
        busy_at = 0.0
        ready: dict[str, float] = {}
        tokens: dict[str, str] = {}
        probes: list[tuple[float, float, str]] = []

        def note(stage: str, page_id: str, now: float) -> None:
            stages.setdefault(page_id, {}).setdefault(stage, now)

        def heard(events: Sequence[object]) -> None:
            now = time.monotonic()
            for event in events:
                if isinstance(event, RawText):
                    note("session", event.page_id, now)

        def wrapped(owner: Any, name: str, notice: Callable[..., None]) -> None:
            inner = getattr(owner, name)

            def outer(*given: Any, **named: Any) -> Any:
                notice(*given)
                return inner(*given, **named)
            setattr(owner, name, outer)

        def begun(events: Sequence[object]) -> None:
            nonlocal busy_at
            now = time.monotonic()
            for event in events:
                if isinstance(event, BlocksChanged):
                    note("bridge", event.page_id, now)
                elif isinstance(event, RawText):
                    tokens.setdefault(event.page_id, event.text.split()[0])
            busy_at = now

        def given(page_id: str, blocks: Sequence[Any]) -> None:
            if any(block.markdown for block in blocks):
                note("pane", page_id, time.monotonic())

        def converted(blocks: Sequence[Any], *_more: Any) -> None:
            if pane.page_id and any(block.html for block in blocks):
                note("html", pane.page_id, time.monotonic())

        def called(code: str, *_more: Any) -> None:
            if pane.page_id and code.startswith("Verso.apply") and '"html"' in code:
                note("call", pane.page_id, time.monotonic())

        # What the window does with the events comes after this; the wrapper is called instead.
        window.bridge.delivered.disconnect(window._delivered)
        wrapped(window, "_delivered", begun)
        window.bridge.delivered.connect(window._delivered)
        wrapped(pane, "apply_blocks", given)
        wrapped(view, "apply", converted)
        wrapped(view, "_run", called)
        session.subscribe(heard)
        idle = StallMeter()
        idle.start()

        pages = (ROOT / "tests" / "samples" / "twenty_pages.pdf").read_bytes()
        for number in range(1 + args.pages // 10):
            (home / f"pages {number}.pdf").write_bytes(pages + b"\n%" + str(number).encode())
        window.add(sorted(home.glob("pages *.pdf")))
        until = time.monotonic() + 60 + 5 * args.pages
        load = []
        probed = ""
        while len(ready.keys() & tokens.keys()) < args.pages and time.monotonic() < until:
            await asyncio.sleep(0.05)
            page_id = pane.page_id
            if page_id is None or page_id in tokens:
                continue
            shown_for = time.monotonic() - window.controller._shown_at
            settled = pane.canvas._source is not None and pane.result.idle
            quiet = time.monotonic() - busy_at > QUIET
            if probed != page_id and settled and shown_for > 0.5 and quiet:
                probed = page_id
                load.append(os.getloadavg()[0])
                mark = f"probe {len(probes)}"
                began = time.monotonic()
                await script(f"probe({json.dumps(mark)})")
                await asyncio.sleep(0.1)
                before = time.monotonic()
                await script("0")
                busy_at = time.monotonic()
                probes.append((busy_at - before, began, mark))
            elif probed == page_id and settled and quiet:
                ready.setdefault(page_id, time.monotonic())
        await asyncio.sleep(1)
        stall = idle.stop()
        watched = json.loads(await script("JSON.stringify(watched)"))

        def in_page(mark: str) -> dict[str, float]:
            found = {key: at / 1e3 + shift for key, at in watched.get(mark, {}).items()}
            if "frame" in found:
                painted = paints.after(found["frame"])
                if painted is not None:
                    found["paint"] = painted
            return found

        late: dict[str, list[float]] = {stage: [] for stage in STAGES}
        unsettled = 0
        for page_id, token in tokens.items():
            seen = stages[page_id] | in_page(token)
            if page_id not in ready or ready[page_id] > float(token) or "dom" not in seen:
                unsettled += 1
                continue
            for stage in STAGES:
                if stage in seen:
                    late[stage].append(seen[stage] - float(token))
        control: dict[str, list[float]] = {"script": [], "dom": [], "paint": []}
        for empty, began, mark in probes:
            seen = in_page(mark)
            control["script"].append(empty)
            for stage in ("dom", "paint"):
                if stage in seen:
                    control[stage].append(seen[stage] - began)
        out.update({
            "pages": len(late["dom"]), "unsettled": unsettled,
            "since_token": {stage: summary(late[stage]) for stage in STAGES},
            "control": {kind: summary(values) for kind, values in control.items()},
            "clock_error_ms": round(min(clock)[0] * 500, 2),
            "longest_stall_ms": round(stall * 1e3, 1), "bar_ms": BAR_MS,
            "niceness": os.nice(0),
            "load_average": [round(min(load, default=0), 1), round(max(load, default=0), 1)]})
        window.close()
        await asyncio.to_thread(session.close)

    with loop:
        loop.run_until_complete(go())
    print(json.dumps(out, indent=1))
    sys.stdout.flush()
    median = out["since_token"]["dom"].get("median_ms", float("inf"))
    # Chromium's own threads need no farewell here.
    os._exit(0 if out["pages"] >= min(20, args.pages) and median <= BAR_MS else 1)


if __name__ == "__main__":
    main()
