"""The page Benchmark with 100 levels of 20 rounds: how long the window's thread is kept.

    xvfb-run -a python tests/perf/bench_tab_stall.py [--levels 100] [--rounds 20] [--seconds 60]

The events of such a run – figures of real form, made up – come on a thread of their own to the
real page, in SECONDS; then the whole run is shown, kept in the journal, all levels are unfolded,
the table is scrolled, the theme changes twice, and the kept run is fetched and shown again, and
compared with itself. Reported are the longest stall of each step; beside it that of an idle Qt
window in the same run, and the most processor time that the window's thread took between two beats,
which is what a stall would be on a machine with nothing else to do. JSON on stdout.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--levels", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=60.0)
    args = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="verso-perf-"))
    for kind in ("DATA", "CONFIG", "CACHE", "LOG"):
        os.environ[f"VERSO_{kind}_DIR"] = str(home / kind)
    os.environ["VERSO_NO_WEBENGINE"] = "1"

    from desktop import app as application

    application.prepare_environment()
    import qasync
    from PySide6.QtWidgets import QApplication, QMainWindow

    from desktop.benchmark import events as b
    from desktop.benchmark import metrics
    from desktop.benchmark.plan import Goodput, Level, Plan
    from desktop.benchmark.records import Round, Timing
    from desktop.benchmark.results import Ended, LevelResult, Result
    from desktop.benchmark.sampling import Reading, Sample
    from desktop.benchmark.workload import Page, Workload
    from desktop.jobs.session import Session
    from desktop.settings import Values
    from desktop.settings.store import Store
    from desktop.ui.benchmark.measuring import Phase
    from desktop.ui.main_window import MainWindow
    from desktop.ui.theme import Appearance
    from tests.support.stall import StallMeter

    app = QApplication([])
    app.setQuitOnLastWindowClosed(False)
    appearance = Appearance(app, "light")
    values = Values({"engine": "scripted"})
    session = Session(home / "journal.sqlite", home / "cache", values)
    loop = qasync.QEventLoop(app)
    asyncio.set_event_loop(loop)
    out: dict[str, object] = {"measure": "bench_tab_stall", "levels": args.levels,
                              "rounds": args.rounds, "seconds": args.seconds}
    plan = Plan(levels=tuple(range(1, args.levels + 1)), rounds=args.rounds)
    chance = random.Random(1)

    def a_round(level: Level, kind: str, number: int) -> Round:
        timings = []
        for place in range(level.requests):
            first = 0.2 + 0.01 * level.concurrency * chance.random()
            one = Timing(place + 1, f"page {place % 7}", 0.0, 0.0, first + 2 + chance.random(),
                         "complete", 1000, 400, digest="x")
            one.times.extend([first, one.ended])
            one.tokens.extend([1, 399])
            one.characters.extend([4, 1600])
            timings.append(one)
        figures, _gaps = metrics.round_of(level, kind, number, 0.0, timings, Goodput())
        return figures

    # Before anything is measured: in a run they come slowly, and where the engine is waited for.
    made = [[a_round(Level(width, requests=width), "measured", number)
             for number in range(1, args.rounds + 1)] for width in plan.levels]

    def sample(at: float) -> Sample:
        return Sample(at, tuple(Reading(f"npu:{n}", "Ascend 910B", 50 + 40 * chance.random(),
                                        20 << 30, 32 << 30, 60.0, 250.0, "") for n in range(8)))

    def play(take, done) -> None:  # type: ignore[no-untyped-def]
        """The run, on a thread of its own."""
        begin = time.monotonic()
        results = []
        take([b.RunStarted(plan, 0)])
        for index, width in enumerate(plan.levels):
            level = Level(width, requests=width)
            take([b.LevelStarted(index, level)])
            rounds, samples = [], []
            for number in range(1, args.rounds + 1):
                take([b.RoundStarted(index, level, "measured", number, width)])
                rounds.append(made[index][number - 1])
                samples.append(sample(time.monotonic()))
                take([b.RoundFinished(index, level, rounds[-1]), b.Sampled(index, samples[-1]),
                      b.Live(index, time.monotonic() - begin, 400.0 + number, 1600.0, 2.0, width,
                             index, args.levels)])
                due = begin + args.seconds * (index + number / args.rounds) / args.levels
                time.sleep(max(0.0, due - time.monotonic()))
            results.append(LevelResult(index, level, Ended.COMPLETE, rounds=tuple(rounds),
                                       samples=tuple(samples)))
            take([b.LevelFinished(results[-1])])
        work = Workload((), (Page("a", 1, "a"),), 1, "0" * 64)
        take([b.RunFinished(Result(plan, work, "scripted", values.discreet(), {}, {}, time.time(),
                                   60.0, Ended.COMPLETE, tuple(results), {}, (), "verso bench"))])
        done.set()

    steps: dict[str, dict[str, float]] = {}

    async def measured(name: str, work) -> None:  # type: ignore[no-untyped-def]
        meter = StallMeter()
        meter.start()
        begin = time.monotonic()
        await work
        await asyncio.sleep(1.0)
        stall = meter.stop()
        steps[name] = {"stall_ms": round(1000 * stall, 1),
                       "own_cpu_ms": round(1000 * meter.longest_cpu, 1),
                       "seconds": round(time.monotonic() - begin, 1)}

    async def go() -> None:
        idle = QMainWindow()
        idle.show()
        await measured("idle window", asyncio.sleep(10))
        idle.close()
        window = MainWindow(session, appearance, Store(), loop)
        window.resize(1440, 900)
        window.show()
        window.open()
        window.create_review()
        window.commands.show_benchmark(True)
        tab = window.commands.benchmark
        while tab.page is None:
            await asyncio.sleep(0.05)
        await asyncio.sleep(3)
        page = tab.page
        measuring = tab.measuring
        tab.following.begin()
        measuring.plan = plan
        measuring._set_phase(Phase.RUNNING)
        done = threading.Event()

        async def running() -> None:
            threading.Thread(target=play, args=(measuring._take, done), daemon=True).start()
            while not done.is_set():
                await asyncio.sleep(0.1)
            measuring._deliver()

        async def finished() -> None:
            measuring.finished.emit(measuring._whole)
            measuring._set_phase(Phase.IDLE)

        async def kept() -> None:
            from desktop.benchmark import history

            found = measuring._unkept
            assert found is not None
            await asyncio.wrap_future(session.keep_benchmark(found, history.row(found)))

        async def unfolded() -> None:
            page.table.expandAll()
            bar = page.table.verticalScrollBar()
            for place in range(40):
                bar.setValue(bar.maximum() * place // 40)
                await asyncio.sleep(0.05)
            page.table.collapseAll()

        async def devices() -> None:
            page.tabs.setCurrentWidget(page.devices)
            await asyncio.sleep(1)
            page.tabs.setCurrentWidget(page.table)

        async def measures() -> None:
            for place in range(page.throughput.measure.count()):
                page.throughput.measure.setCurrentIndex(place)
                page.throughput.measure.activated.emit(place)
                await asyncio.sleep(0.3)

        async def themes() -> None:
            for name in ("dark", "light"):
                page.apply_theme({"dark": DARK, "light": LIGHT}[name])
                await asyncio.sleep(0.5)

        async def fetched() -> None:
            before = page.shown
            tab.earlier.show_one(1)
            while page.shown is before:
                await asyncio.sleep(0.05)

        async def compared() -> None:
            tab.earlier.compare(1, 1)
            while page.other is None:
                await asyncio.sleep(0.05)

        from desktop.ui.theme import DARK, LIGHT

        await measured("running", running())
        out["rows"] = len(page.shown.rows)
        out["rounds_shown"] = len(page.shown.rows[-1].rounds)
        for name, work in (("finished", finished), ("kept", kept), ("unfolded, scrolled", unfolded),
                           ("devices", devices), ("other measures", measures),
                           ("other theme", themes), ("fetched and shown", fetched),
                           ("compared", compared)):
            await measured(name, work())
        window.close()
        await asyncio.to_thread(session.close)

    with loop:
        loop.run_until_complete(go())
    out["steps"] = steps
    out["stall_ms"] = max(one["stall_ms"] for name, one in steps.items() if name != "idle window")
    out["own_cpu_ms"] = max(one["own_cpu_ms"] for name, one in steps.items()
                            if name != "idle window")
    out["bars"] = {"stall_ms": 100}
    out["load_average"] = os.getloadavg()[0]
    print(json.dumps(out, indent=1))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
