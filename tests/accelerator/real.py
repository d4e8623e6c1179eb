"""Real vLLM in tests: an engine in a real worker, pages to read, measured figures."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import psutil
from PIL import Image, ImageDraw

from desktop.client.client import EngineClient, Patience, WorkerDied
from desktop.protocol.messages import (
    EngineFailed,
    EngineReady,
    Hello,
    PageFinished,
    PageRestarted,
    PageStarted,
    PageText,
    SubmitPage,
)
from desktop.settings import Values
from tests.client.recorder import Recorder
from tests.support import processes, tiny_vllm
from tests.support.data import ROOT

LOAD = 900.0
"""Seconds that the slowest machine may take to load the engine."""
READ = 600.0
"""Seconds that it may take for some pages."""

CONTEXT = 4096
SMALL = (540, 760)
"""Pixels of a page that is one view: 257 visual tokens."""
LARGE = (1240, 1754)
"""An A4 page at 150 dpi, six tiles and a view: 1121 visual tokens."""

RECORDING = Path(__file__).resolve().parents[1] / "samples" / "recordings" / "sh_cosense_p14.txt"

figures: list[str] = []
"""What was measured; shown at the end of the run."""

_drawn: dict[tuple[Path, tuple[int, int]], Path] = {}


def recording() -> str:
    """A model's output for a page, as it was."""
    with open(RECORDING, encoding="utf-8", newline="") as file:
        return file.read()


def bitmap(folder: Path, size: tuple[int, int]) -> Path:
    """A page with lines of text, of SIZE pixels, as the worker gets it."""
    key = (folder, size)
    if key not in _drawn:
        page = Image.new("RGB", size, "white")
        pen = ImageDraw.Draw(page)
        for top in range(40, size[1] - 40, 24):
            pen.text((40, top), f"line at {top}: pack my box with five dozen jugs", fill="black")
        path = folder / f"{size[0]}x{size[1]}.ppm"
        page.save(path)
        _drawn[key] = path
    return _drawn[key]



def bench(page: Path, folder: Path, environment: Mapping[str, str],
          *arguments: object) -> dict[str, Any]:
    """The JSON document of ``verso bench`` on PAGE with ARGUMENTS; its table goes to FOLDER.
    ENVIRONMENT is set on top of ours."""
    ran = subprocess.run(
        [sys.executable, "-m", "desktop", "bench", "--image", str(page), "--json",
         "--output", str(folder / "table.txt"), "--ready-seconds", str(int(2 * LOAD)),
         *map(str, arguments)],
        cwd=ROOT, capture_output=True, text=True, check=False,
        env=processes.without_qt({**os.environ, **environment}))
    assert ran.returncode == 0, ran.stderr[-4000:]
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


class Reader:
    """An engine in a worker of its own, and what it told."""

    def __init__(self, engine: str, folder: Path, settings: Values, *,
                 interpreter: Path | None = None,
                 environment: Mapping[str, str] | None = None,
                 engine_args: Mapping[str, str] | None = None) -> None:
        """FOLDER is for the pages' bitmaps; ENGINE_ARGS as of ``--engine-arg``."""
        self.folder = folder
        self.mark = uuid.uuid4().hex
        self.recorder = Recorder()
        self._start = engine, {**settings.as_dict(), "engine_args": dict(engine_args or {})}
        self.client = EngineClient(
            self.recorder, interpreter=str(interpreter) if interpreter else None,
            environment={**(environment or {}), processes.MARK: self.mark},
            patience=Patience(first_pause=0.1, longest_pause=0.2, hello=120, stop=15))
        self._pages = 0

    def start(self) -> None:
        """Begin to load; :meth:`ready` waits for the end of that."""
        self.client.start(*self._start)

    def submit(self, size: tuple[int, int] = SMALL, *, priority: int = 1,
               page_id: str = "", **settings: Any) -> str:
        """Hand over a page; its id."""
        self._pages += 1
        page_id = page_id or f"p{self._pages}"
        page = {"crop": "auto", "max_tokens": 8192, "loop_guard": False, "ngram": "retry",
                "prompt": "markdown", **settings}
        self.client.submit(SubmitPage(page_id, str(bitmap(self.folder, size)), *size,
                                      settings=page, priority=priority))
        return page_id

    def read(self, size: tuple[int, int] = SMALL, **settings: Any) -> Any:
        """Have a page read; its PageFinished."""
        return self.finished(self.submit(size, **settings))

    def finished(self, page_id: str) -> Any:
        """The end of a page, awaited with patience."""
        return self.until(lambda: next((event for event in self.recorder.of(PageFinished)
                                        if event.page_id == page_id), None))

    def refusal(self) -> EngineFailed:
        """Why it does not start, awaited."""
        refused: EngineFailed = self.until(
            lambda: next(iter(self.recorder.of(EngineFailed)), None), LOAD)
        return refused

    def started(self, page_id: str) -> Any:
        """The begin of a page, awaited."""
        return self.until(lambda: any(event.page_id == page_id
                                      for event in self.recorder.of(PageStarted)))

    def streaming(self, page_id: str, pieces: int = 3) -> Any:
        """Wait until some pieces of a page's text have come."""
        return self.until(lambda: len(self.pieces(page_id)) >= pieces)

    def text(self, page_id: str) -> str:
        """What is known of a page's text: what came before it was begun again is not."""
        text = ""
        for event in self.recorder.events:
            if isinstance(event, (PageStarted, PageRestarted)) and event.page_id == page_id:
                text = ""
            elif isinstance(event, PageText) and event.page_id == page_id:
                text += event.text
        return text

    def restarts(self, page_id: str) -> list[str]:
        """Why a page was begun again, each time."""
        return [event.reason for event in self.recorder.of(PageRestarted)
                if event.page_id == page_id]

    def pieces(self, page_id: str) -> list[PageText]:
        return [event for event in self.recorder.of(PageText) if event.page_id == page_id]

    def until(self, found: Callable[[], Any], patience: float = READ) -> Any:
        """Wait until FOUND says something true."""
        return self.recorder.until(lambda _events: found(), patience)

    def ready(self) -> EngineReady:
        """What the worker that runs now said when it was ready, awaited."""
        def found() -> EngineReady | None:
            ready = None
            for event in self.recorder.events:
                if isinstance(event, WorkerDied):
                    ready = None
                    assert event.restart_in is not None, "\n".join(map(str, event.problem))
                elif isinstance(event, EngineReady):
                    ready = event
                assert not (isinstance(event, EngineFailed) and event.fatal), "\n".join(
                    [*map(str, event.problem.problem()), *self.recorder.log()[-60:]])
            return ready
        ready: EngineReady = self.until(found, LOAD)
        return ready

    def processes(self, name: str = "") -> list[psutil.Process]:
        """Those of the engine that live now and have NAME in their command line or name."""
        workers = {event.pid for event in self.recorder.of(Hello)}
        return [process for process in of_sessions(workers, self.mark)
                if name in words(process)]

    def cores(self) -> list[psutil.Process]:
        """The processes that compute."""
        return tops(self.processes("EngineCore"))

    def logged(self, found: Callable[[list[str]], Any]) -> Any:
        """Wait until FOUND says something true of the lines of the log. What an engine's processes
        wrote before it was ready may be read after that was told."""
        return self.until(lambda: found(self.recorder.log()), 120)

    def close(self) -> None:
        """End it, whatever the tests left."""
        self.client.close(20)
        for process in self.processes():
            process.kill()


class Script:
    """What the tiny model writes from now on, in every process that was started with the file."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "script.txt"

    def write(self, text: str = "", ngram: str | None = None) -> None:
        """TEXT for every page that begins after this; empty: noise without end. NGRAM: what
        those get that are read with the n-gram processor, where that is something else."""
        _replace(self.file, text)
        other = self.file.with_name(self.file.name + ".ngram")
        if ngram is None:
            other.unlink(missing_ok=True)
        else:
            _replace(other, ngram)


class RealEngine(Reader):
    """The engine ``vllm`` in a worker under the Python that has vLLM."""

    def __init__(self, python: Path, folder: Path, model: Path, *search: Path,
                 engine_args: Mapping[str, str] | None = None, **settings: object) -> None:
        """SETTINGS are on top of those for a small machine, SEARCH are more folders for its
        Python's path."""
        script = Script(folder)
        environment = tiny_vllm.environment(script.file)
        path = [*map(str, search), environment["PYTHONPATH"]]
        super().__init__("vllm", folder, values(model, **settings), interpreter=python,
                         environment={**environment, "PYTHONPATH": os.pathsep.join(path)},
                         engine_args=engine_args)
        self.write = script.write

    def core(self) -> psutil.Process:
        """The process that computes."""
        [core] = self.cores()
        return core


def values(model: Path, **more: object) -> Values:
    """Settings with which the engine runs on two cores and 4 GiB."""
    return Values({"engine": "vllm", "model": str(model), "dtype": "float32", "eager": True,
                   "max_model_len": CONTEXT, "loop_guard": False, "ready_seconds": int(2 * LOAD),
                   **more})


def of_sessions(leaders: Collection[int], mark: str) -> list[psutil.Process]:
    """Living processes of the sessions that LEADERS began, or with MARK in their environment.

    By the mark alone vLLM's processes are not found: they give themselves a title, and that is
    written over their environment.
    """
    found = []
    for process in psutil.process_iter():
        try:
            if process.status() != psutil.STATUS_ZOMBIE and process.pid != os.getpid() and (
                    os.getsid(process.pid) in leaders
                    or process.environ().get(processes.MARK) == mark):
                found.append(process)
        except (psutil.NoSuchProcess, psutil.AccessDenied, ProcessLookupError):
            continue
    return found


def tops(found: list[psutil.Process]) -> list[psutil.Process]:
    """Those of FOUND that no other of them started. A process that has just been made to run a
    program has the name of the one that made it for a moment."""
    pids = {process.pid for process in found}
    return [process for process in found if _parent(process) not in pids]


def gone(pids: Mapping[int, float]) -> float:
    """Wait until the processes PIDS (id → creation time) have ended, at most ten seconds (more
    where the machine is busy); how long it took. Fails when one lives on."""
    begin = time.monotonic()
    left: list[int] = []
    for _ in processes.looks(processes.patience(10)):
        left = [pid for pid, created in pids.items() if _lives(pid, created)]
        if not left:
            return time.monotonic() - begin
    raise AssertionError(f"still running: {left}")


def snapshot(found: list[psutil.Process]) -> dict[int, float]:
    """For :func:`gone`."""
    times = {}
    for process in found:
        with contextlib.suppress(psutil.NoSuchProcess):  # It has ended since.
            times[process.pid] = process.create_time()
    return times


def words(process: psutil.Process) -> str:
    """Name and command line; nothing where it has ended."""
    try:
        return " ".join([process.name(), *process.cmdline()])
    except psutil.NoSuchProcess:
        return ""


def _parent(process: psutil.Process) -> int:
    try:
        parent: int = process.ppid()
    except psutil.NoSuchProcess:
        return 0
    return parent


def _lives(pid: int, created: float) -> bool:
    try:
        process = psutil.Process(pid)
        return process.create_time() == created and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _replace(path: Path, text: str) -> None:
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_bytes(text.encode())
    fresh.replace(path)
