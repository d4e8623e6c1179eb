"""What the page Benchmark costs while it shows a running test.

    xvfb-run -a python tests/perf/bench_tab_cost.py [--concurrency 8] [--rate 50] [--seconds 60]

The real window with the page in front, its charts live; the scripted engine keeps a pace of RATE
tokens a second for each page. Counted is the processor time of this process – window, runner,
sampling, events –, not the worker, which is the engine's; and, beside it, the window at rest in the
same run, and the measurement without a window (``bench_cost.py``, in a process of its own). Pages
are drawn before the level: drawing has processes of its own, and is real work. JSON on stdout.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--concurrency", type=int, default=8)
    parser.add_argument("--rate", type=float, default=50.0)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--tab", type=int, default=0,
                        help="the lower tab in front: 1 is Latency, 2 Devices")
    parser.add_argument("--alone", action="store_true", help="run bench_cost.py as well")
    args = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="verso-perf-"))
    for kind in ("DATA", "CONFIG", "CACHE", "LOG"):
        os.environ[f"VERSO_{kind}_DIR"] = str(home / kind)
    os.environ["VERSO_NO_WEBENGINE"] = "1"
    tokens = round(10 * args.rate)
    os.environ["VERSO_SCRIPT"] = json.dumps({"capacity": args.concurrency, "pages": [
        {"text": "abcd" * tokens, "delta": 4, "rate": args.rate, "prompt_tokens": 1000}]})

    from desktop import app as application

    application.prepare_environment()
    import qasync
    from PySide6.QtWidgets import QApplication

    from desktop.jobs.session import Session
    from desktop.settings import Values
    from desktop.settings.store import Store
    from desktop.ui.benchmark.wish import Wish
    from desktop.ui.main_window import MainWindow
    from desktop.ui.theme import Appearance

    app = QApplication([])
    app.setQuitOnLastWindowClosed(False)
    appearance = Appearance(app, "light")
    session = Session(home / "journal.sqlite", home / "cache",
                      Values({"engine": "scripted", "loop_guard": False}))
    loop = qasync.QEventLoop(app)
    asyncio.set_event_loop(loop)
    rounds = max(2, round(args.seconds / 20))
    out: dict[str, object] = {"measure": "bench_tab_cost", "seconds": args.seconds,
                              "concurrency": args.concurrency, "rate": args.rate, "tab": args.tab}

    async def share(seconds: float) -> float:
        """Percent of a core that this process takes."""
        before, begin = time.process_time(), time.monotonic()
        await asyncio.sleep(seconds)
        return 100 * (time.process_time() - before) / (time.monotonic() - begin)

    async def go() -> None:
        window = MainWindow(session, appearance, Store(), loop)
        window.resize(1440, 900)
        window.show()
        window.open()
        window.create_review()
        window.commands.show_benchmark(True)
        tab = window.commands.benchmark
        while tab.page is None:
            await asyncio.sleep(0.05)
        await asyncio.sleep(5)
        out["percent_at_rest"] = round(await share(10), 2)
        tab.page.form.set_wish(Wish(
            levels=str(args.concurrency), cold=False, warmup=1, rounds=rounds, amount=2,
            ahead=True))
        await asyncio.sleep(1)
        tab.start()
        live = 0

        def count(_news: object) -> None:
            nonlocal live
            live += 1

        tab.measuring.delivered.connect(count)
        tab.page.tabs.setCurrentIndex(args.tab)
        while not any(row.rounds or row.doing for row in tab.page.shown.rows):
            await asyncio.sleep(0.1)
        await asyncio.sleep(5)
        live = 0
        seconds = 20.0 * rounds - 2
        out["percent_of_a_core"] = round(await share(seconds), 2)
        out["deliveries_per_s"] = round(live / seconds, 2)
        out["running"] = tab.measuring.running
        window.close()
        await asyncio.to_thread(tab.measuring.wait)
        await asyncio.to_thread(session.close)

    with loop:
        loop.run_until_complete(go())
    if args.alone:
        alone = subprocess.run(
            [sys.executable, str(ROOT / "tests" / "perf" / "bench_cost.py"),
             "--concurrency", str(args.concurrency), "--rate", str(args.rate), "--seconds", "40"],
            stdout=subprocess.PIPE, text=True, cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)})
        out["without_a_window"] = json.loads(alone.stdout)["percent_of_a_core"]
    out["bars"] = {"percent_of_a_core": 5}
    out["load_average"] = os.getloadavg()[0]
    print(json.dumps(out, indent=1))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
