"""From a PDF to Markdown through a real session, and what is left when its processes are killed.

    python tests/perf/gpu/documents.py --model DIR --out FILE --pdf FILE

The session (drawing, journal, worker, engine) runs in a child process, so that it can be killed.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))
import load
import psutil

from desktop.jobs.events import (
    DocumentUpdated,
    EngineState,
    EngineUpdated,
    PageUpdated,
    SessionEvent,
)
from desktop.jobs.session import Session
from desktop.settings import Values


def make_pdf(path: Path, pages: int) -> Path:
    """A PDF of PAGES A4 pages of words; PATH."""
    import random

    import pymupdf

    words = random.Random(7)
    with pymupdf.open() as document:
        for _ in range(pages):
            page = document.new_page(width=595, height=842)
            for top in range(50, 800, 13):
                page.insert_text((45, top), " ".join(
                    "".join(words.choices("abcdefghijklmnoprstuvw", k=words.randint(2, 9)))
                    for _ in range(15)), fontsize=9)
        document.save(path)
    return path


class Watched:
    """A session and what is heard of it."""

    def __init__(self, folder: Path, values: Values, arguments: dict[str, str],
                 interpreter: str | None) -> None:
        self.session = Session(folder / "journal.db", folder / "cache", values,
                               engine_args=arguments, interpreter=interpreter)
        self.changed = threading.Condition()
        self.engine = EngineState.OFF
        self.trouble = ""
        self.ended: list[float] = []
        self.documents: dict[int, Any] = {}
        self.session.subscribe(self._listen)

    def _listen(self, batch: Sequence[SessionEvent]) -> None:
        with self.changed:
            for event in batch:
                match event:
                    case EngineUpdated(view):
                        self.engine = view.state
                        self.trouble = str(view.problem or "")
                    case PageUpdated(page):
                        if page.state.final:
                            self.ended.append(time.perf_counter())
                    case DocumentUpdated(view):
                        self.documents[view.id] = view
            self.changed.notify_all()

    def until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait until HOLDS, for SECONDS at most."""
        deadline = time.monotonic() + seconds
        with self.changed:
            while not holds():
                rest = deadline - time.monotonic()
                if rest <= 0 or self.engine is EngineState.FAILED:
                    return False
                self.changed.wait(rest)
        return True


def child(args: argparse.Namespace) -> None:
    """The application: reads the PDF, says what it took, reads on until it is killed."""
    folder = Path(tempfile.mkdtemp(prefix="verso-gpu-"))
    values = Values({"engine": "vllm", "model": str(args.model), "loop_guard": False,
                     "max_tokens": args.length, **dict(
                         pair.split("=", 1) for pair in args.set)})
    watched = Watched(folder, values, dict(pair.split("=", 1) for pair in args.engine_arg),
                      args.interpreter)
    watched.session.warm_up()
    if not watched.until(lambda: watched.engine is EngineState.READY, 300):
        say(error=watched.trouble or str(watched.engine))
        watched.session.close()
        return
    say(ready=True)
    started = time.perf_counter()
    watched.session.add([args.pdf]).result()
    watched.session.start()
    done = watched.until(lambda: len(watched.ended) >= args.pages, 240)
    wall = time.perf_counter() - started
    say(done=done, pages=len(watched.ended), wall_s=round(wall, 2),
        pages_s=round(len(watched.ended) / wall, 3),
        first_page_s=round(watched.ended[0] - started, 2) if watched.ended else None)
    second = make_pdf(folder / "again.pdf", 200)
    watched.session.add([second]).result()
    while True:  # killed from outside
        time.sleep(1)


def say(**values: Any) -> None:
    """A line for the parent."""
    print(json.dumps(values), flush=True)


def tree(pid: int) -> list[int]:
    """PID and what it started."""
    return [pid, *(process.pid for process in psutil.Process(pid).children(recursive=True))]


def gone(pids: list[int], seconds: float) -> dict[str, Any]:
    """Until all of PIDS have ended: how long, and which live after SECONDS."""
    started = time.monotonic()
    while time.monotonic() - started < seconds:
        living = [pid for pid in pids if _lives(pid)]
        if not living:
            return {"s": round(time.monotonic() - started, 2), "left": []}
        time.sleep(0.1)
    return {"s": None, "left": [_words(pid) for pid in pids if _lives(pid)]}


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _words(pid: int) -> str:
    try:
        return " ".join(psutil.Process(pid).cmdline())[:100]
    except psutil.Error:
        return str(pid)


def main(args: argparse.Namespace) -> None:
    """Start the child, listen, kill its worker, then itself."""
    report = load.Report(args.out)
    before = load.device()
    words = [sys.executable, __file__, "--child", *sys.argv[1:]]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            try:
                said = json.loads(line)
            except ValueError:
                continue
            report.put(next(iter(said)), said)
            if "error" in said:
                return
            if "done" in said:
                break
        time.sleep(4)  # the second document is being read
        family = tree(process.pid)
        worker = next(pid for pid in family if "desktop.worker" in _words(pid))
        engines = tree(worker)
        os.kill(worker, signal.SIGKILL)
        report.put("worker_killed", gone(engines, 15))
        time.sleep(3)  # it is being started again
        family = tree(process.pid)
        process.kill()
        report.put("application_killed", gone(family[1:], 15))
    report.put("device", {"before": before, "after": load.device(),
                          "processes": load.vllm_processes()})


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--child", action="store_true")
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pdf", type=Path, required=True, help="made where it is missing")
    parser.add_argument("--pages", type=int, default=96)
    parser.add_argument("--length", type=int, default=256)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--engine-arg", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--interpreter")
    options = parser.parse_args()
    if not options.pdf.exists():
        make_pdf(options.pdf, options.pages)
    if options.child:
        child(options)
    else:
        main(options)
