"""How soon the window is visible, and the longest stall while window and engine come up.

    python tests/perf/ui_start.py [--rounds 5] [--engine embedded] > ui_start.json

Each round starts the application anew, as a process of its own. ``visible_s`` is the time from
the start of the process to the first painted window (warm disk: the first round is not counted);
the control is an empty Qt window. ``stall_ms`` is the longest time the window's thread was kept
from its events from then until the engine is ready and the review pane is there, brought up as the
application does it. ``visible_cpu_s`` and ``stall_cpu_ms`` are the same in processor time: where
other programs keep the processors busy, the first two count their time too. JSON on stdout.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

CHILD = '''
import sys, time
t0 = float(sys.argv[1])
from desktop import app as application
application.prepare_environment()
from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication
from tests.support.stall import StallMeter
app = QApplication([])
app.setQuitOnLastWindowClosed(False)
import asyncio, json, os
import qasync
from desktop import paths
from desktop.jobs.events import EngineState
from desktop.jobs.session import Session
from desktop.settings import Values
from desktop.settings.store import Store
from desktop.ui.main_window import MainWindow
from desktop.ui.theme import Appearance
appearance = Appearance(app, "light")
session = Session(paths.data_dir() / "journal.sqlite", paths.cache_dir(),
                  Values({"engine": sys.argv[2]}))
loop = qasync.QEventLoop(app)
asyncio.set_event_loop(loop)
out = {}

class Seen(QObject):
    def eventFilter(self, watched, event):
        if event.type() == QEvent.Type.Paint and "visible_s" not in out:
            out["visible_s"] = time.time() - t0
            out["visible_cpu_s"] = time.process_time()
        return False

async def go():
    window = MainWindow(session, appearance, Store(), loop)
    seen = Seen()
    window.empty.installEventFilter(seen)
    window.show()
    window.open()
    while "visible_s" not in out:
        await asyncio.sleep(0.005)
    meter = StallMeter()
    meter.start()
    began = time.perf_counter()
    await application.bring_up(window, session, asyncio.Event())
    out["review_s"] = time.perf_counter() - began
    while window.engine.state is not EngineState.READY and time.perf_counter() - began < 60:
        await asyncio.sleep(0.02)
    await asyncio.sleep(0.5)
    out["engine_s"] = time.perf_counter() - began
    out["stall_ms"] = meter.stop() * 1000
    out["stall_cpu_ms"] = meter.longest_cpu * 1000
    out["gaps"] = [(round(when - began, 2), round(late * 1000)) for when, late in meter.gaps]
    heavy = ("numpy", "pymupdf", "cv2", "onnxruntime", "rapidocr", "torch")
    out["heavy_modules"] = [name for name in heavy if name in sys.modules]
    window.close()
    await asyncio.to_thread(session.close)

with loop:
    loop.run_until_complete(go())
print(json.dumps(out))
sys.stdout.flush()
os._exit(0)
'''

CONTROL = '''
import sys, time, json
t0 = float(sys.argv[1])
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication, QMainWindow
app = QApplication([])
class Window(QMainWindow):
    def paintEvent(self, event):
        print(json.dumps({"visible_s": time.time() - t0}))
        QApplication.quit()
window = Window()
window.show()
app.exec()
'''


def run(code: str, *args: str) -> dict[str, object]:
    with tempfile.TemporaryDirectory() as home:
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        for kind in ("DATA", "CONFIG", "CACHE", "LOG"):
            env[f"VERSO_{kind}_DIR"] = str(Path(home) / kind)
        done = subprocess.run([sys.executable, "-c", code, str(time.time()), *args], env=env,
                              capture_output=True, text=True, timeout=180, check=False)
        lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
        if not lines:
            raise SystemExit(done.stderr)
        found: dict[str, object] = json.loads(lines[-1])
        return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--engine", default="embedded")
    args = parser.parse_args()
    run(CHILD, args.engine)
    rounds, control = [], []
    for _ in range(args.rounds):
        control.append(run(CONTROL)["visible_s"])
        rounds.append(run(CHILD, args.engine))
    best = {key: min(float(r[key]) for r in rounds)  # type: ignore[arg-type]
            for key in ("visible_s", "visible_cpu_s", "review_s", "stall_ms", "stall_cpu_ms",
                        "engine_s")}
    median = {key: statistics.median(float(r[key]) for r in rounds)  # type: ignore[arg-type]
              for key in best}
    print(json.dumps({
        "measure": "ui_start", "rounds": rounds, "best": best, "median": median,
        "control_visible_s": {"best": min(control), "median": statistics.median(control)},  # type: ignore[type-var]
        "bars": {"visible_s": 1.5, "stall_ms": 100}, "load_average": os.getloadavg()[0],
    }, indent=1))


if __name__ == "__main__":
    main()
