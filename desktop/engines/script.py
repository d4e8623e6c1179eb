"""What the scripted engine plays: the format of its scripts, and reading one.

A script is a JSON object (or the same as msgpack, when the file's name ends in ``.msgpack``).
It comes, in this order, from the engine setting ``script``, else from the environment variable
``VERSO_SCRIPT``; either holds the path of a file, or the JSON itself when it begins with ``{``.
With neither, a short page of this module's own is replayed. A single page can bring its rule
along: the page setting ``script``, one entry of ``pages`` as JSON text (or as an object).

All keys are optional; an unknown one is an error. An example::

    {"capacity": 8, "seed": 1, "assign": "order",
     "load": {"seconds": 0.5, "steps": ["Reading weights", "Warming up"]},
     "pages": [
       {"recording": "page.txt", "rate": 250, "delta": [1, 40], "regions": true},
       {"match": "*-7", "text": "<|ref|>text<|/ref|><|det|>[[1, 2, 3, 4]]<|/det|>\\nHello",
        "faults": [{"kind": "kill", "at": 60, "attempts": [1]}]}]}

Top level
    ``capacity`` pages at once (default 4) · ``seed`` of every random choice (0) · ``model``,
    ``device``: names reported as what the engine got · ``memory_used``, ``memory_total`` bytes,
    ``context`` and ``cache_tokens`` (tokens), ``notes`` (sentences): likewise · ``budget``: what
    pages may cost together (0: any) · ``assign``: which of the entries without ``match`` a page
    gets: ``order`` (default: one after the other, as pages begin; a page keeps its entry while the
    process lives), ``number`` (the last number in the page's id) or ``hash`` of the id; the last
    two give a page the same entry after a restart.

``load``
    ``seconds`` it takes (0), spread over ``steps`` (words for the status bar) · ``faults``
    (``at`` and ``attempts`` mean nothing here; ``hang`` is an engine that is never ready) ·
    ``children``: this many child processes are left running in the worker's process group,
    ``detached``: this many in sessions of their own · ``commands``: commands (lists of words) that
    are started and left alone; their standard input ends when the worker does.

``pages`` – a list of entries
    ``match``: pattern (``fnmatch``) of page ids it is for; without it the entry is shared out ·
    ``recording``: a text file, or a folder, which stands for one entry for each ``*.txt`` in it;
    relative to the script's file · ``text``: the output itself (without either: a short page of
    this module's own) · ``delta``: characters a delta (12), or ``[least, most]`` for random
    sizes · ``rate``: deltas a second (100; 0: as fast as possible) · ``wait``: seconds before the
    first output (0) · ``repeat``: the text so many times (1; 0: for ever) · ``stamp``: true to
    send, instead of each delta, the time (``time.monotonic``) and a line end, to measure what the
    way costs · ``regions``: true to send all boxes first · ``clockwise``: 90, 180 or 270 ·
    ``confidence``: 0–1, sent for every block at the end · ``prompt_tokens`` (0) · ``tokens``
    counted for each delta (1) · ``finish``: the reason given at the end (``complete``) ·
    ``limit``: most tokens it could have had, reported at the end (0) · ``cost`` of the budget (0) ·
    ``parts``: the page is read in this many slices from top to bottom (0: as a whole) ·
    ``second_try``: whether it can be read in another way after its output looped (false) ·
    ``again``: a list of texts, those of the second reading of the page in the same attempt, of the
    third and so on: after a loop, or of its parts (empty: ``text`` each time) · ``faults``.

``faults`` – a list; each happens once, when the output has reached a place
    ``at``: characters of the text before it (0; -1: the end) · ``attempts``: the attempts at the
    page on which it happens (empty: all) · ``reads``: the readings within an attempt (1 is the
    first; another follows after a loop, or with the next part; empty: all) · ``once``: path of a
    file; the fault happens only while it does not exist, and makes it (also across restarts) ·
    ``kind``:

    ============== ============================================================================
    hang           waits (``seconds``; 0: for ever) as a lost reply does: can be cancelled
    gate           waits likewise until the file ``until`` exists
    block          the same, but blocks the event loop: cancelling does not help, SIGTERM does
    stuck          the same, holding Python's own lock as native code may: only SIGKILL helps
    kill segv abrt the process gets SIGKILL, SIGSEGV or SIGABRT
    exit           the process ends with ``status`` (1), without cleaning up
    raise          a VersoError with ``code``, ``message``, ``hint``, ``detail``: this page fails
    crash          an exception that nobody foresaw: this page fails
    died           EngineDied: the engine is useless from now on
    loop           the last ``span`` (200) characters again and again, ``times`` (0: for ever)
    flood          from here on as fast as possible
    print          ``lines`` (1) lines of ``text`` through Python's sys.stdout
    print-error    … through sys.stderr
    write          … straight to file descriptor 1, as native code does (bytes that are no UTF-8
                   and no line end included when ``text`` is empty)
    write-error    … to file descriptor 2
    log            ``lines`` lines of ``text`` through the logging module, as warnings
    ============== ============================================================================

Runs on Python 3.10 with msgspec alone.
"""

from __future__ import annotations

import os
import re
import zlib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Dict, Literal, Tuple, Union

import msgspec

from desktop.errors import VersoError
from desktop.i18n import N_

VARIABLE = "VERSO_SCRIPT"

SAMPLE = """<|ref|>title<|/ref|><|det|>[[110, 80, 890, 130]]<|/det|>
# A page out of a script

<|ref|>text<|/ref|><|det|>[[110, 150, 890, 300]]<|/det|>
The scripted engine has not looked at the page. It replays text that was written before.

<|ref|>equation<|/ref|><|det|>[[300, 320, 700, 380]]<|/det|>
\\[ a^2 + b^2 = c^2 \\]

<|ref|>table<|/ref|><|det|>[[110, 400, 890, 600]]<|/det|>
<table><tr><td>one</td><td>two</td></tr><tr><td colspan="2">three</td></tr></table>
"""


class BadScript(VersoError):
    """A script that cannot be read or does not follow the format."""

    code = "scripted.script"
    message = N_("The script “{source}” cannot be played.")
    hint = N_("Correct the script, or unset VERSO_SCRIPT.")


Kind = Literal["hang", "gate", "block", "stuck", "kill", "segv", "abrt", "exit", "raise", "crash",
               "died", "loop", "flood", "print", "print-error", "write", "write-error", "log"]


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that goes wrong at a place."""

    kind: Kind
    at: int = 0
    attempts: Tuple[int, ...] = ()
    reads: Tuple[int, ...] = ()
    once: str = ""
    until: str = ""
    seconds: float = 0.0
    status: int = 1
    code: str = "scripted.fault"
    message: str = "The script says that this page cannot be read."
    hint: str = "Try it again."
    detail: str = ""
    span: int = 200
    times: int = 0
    lines: int = 1
    text: str = ""

    def happens(self, attempt: int, reading: int = 1) -> bool:
        """Whether it is due on this ATTEMPT and READING; one with ``once`` is used up by
        asking."""
        if self.attempts and attempt not in self.attempts:
            return False
        if self.reads and reading not in self.reads:
            return False
        if not self.once:
            return True
        try:
            os.close(os.open(self.once, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        except FileExistsError:
            return False
        return True


class Load(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How the engine starts."""

    seconds: float = 0.0
    steps: Tuple[str, ...] = ()
    faults: Tuple[Fault, ...] = ()
    children: int = 0
    detached: int = 0
    commands: Tuple[Tuple[str, ...], ...] = ()


class PageScript(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How one page is read."""

    match: str = ""
    recording: str = ""
    text: Union[str, None] = None
    delta: Union[int, Tuple[int, int]] = 12
    rate: float = 100.0
    wait: float = 0.0
    repeat: int = 1
    stamp: bool = False
    regions: bool = False
    clockwise: int = 0
    confidence: Union[float, None] = None
    prompt_tokens: int = 0
    tokens: int = 1
    finish: str = "complete"
    limit: int = 0
    cost: int = 0
    parts: int = 0
    second_try: bool = False
    again: Tuple[str, ...] = ()
    faults: Tuple[Fault, ...] = ()


class Script(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A whole script, recordings read in."""

    capacity: int = 4
    seed: int = 0
    model: str = "script"
    device: str = "none"
    memory_used: int = 0
    memory_total: int = 0
    context: int = 0
    cache_tokens: int = 0
    notes: Tuple[str, ...] = ()
    budget: int = 0
    assign: Literal["order", "number", "hash"] = "order"
    load: Load = Load()
    pages: Tuple[PageScript, ...] = (PageScript(text=SAMPLE),)


class Cast:
    """Shares the entries of a script out among pages."""

    def __init__(self, script: Script) -> None:
        self._assign = script.assign
        self._matched = [page for page in script.pages if page.match]
        self._shared = [page for page in script.pages if not page.match] or [
            PageScript(text=SAMPLE)]
        self._given: Dict[str, PageScript] = {}

    def entry(self, page_id: str, settings: Dict[str, Any]) -> PageScript:
        """The entry that PAGE_ID plays; raises :class:`BadScript` for a bad one in SETTINGS."""
        own = settings.get("script")
        if own:
            return _convert_page(own)
        for page in self._matched:
            if fnmatchcase(page_id, page.match):
                return page
        if page_id not in self._given:
            self._given[page_id] = self._shared[self._turn(page_id) % len(self._shared)]
        return self._given[page_id]

    def _turn(self, page_id: str) -> int:
        if self._assign == "hash":
            return zlib.crc32(page_id.encode("utf-8", "replace"))
        numbers = re.findall(r"\d+", page_id)
        if self._assign == "number" and numbers:
            return int(numbers[-1]) - 1
        return len(self._given)


def find(settings: Dict[str, Any]) -> Script:
    """The script in force; raises :class:`BadScript`."""
    source = str(settings.get("script") or os.environ.get(VARIABLE, ""))
    if not source:
        return Script()
    if source.lstrip().startswith("{"):
        return _decode(source.encode(), Path.cwd(), "VERSO_SCRIPT", msgspec.json.decode)
    path = Path(source).absolute()
    decode = msgspec.msgpack.decode if path.suffix == ".msgpack" else msgspec.json.decode
    try:
        return _decode(path.read_bytes(), path.parent, str(path), decode)
    except OSError as error:
        raise BadScript(source=path, detail=str(error)) from error


def _decode(data: bytes, folder: Path, source: str, decode: Any) -> Script:
    try:
        script: Script = decode(data, type=Script)
        pages = tuple(entry for page in script.pages for entry in _with_text(page, folder))
    except (msgspec.MsgspecError, OSError) as error:
        raise BadScript(source=source, detail=str(error)) from error
    return msgspec.structs.replace(script, pages=pages)


def _convert_page(own: object) -> PageScript:
    try:
        page = (msgspec.json.decode(own, type=PageScript) if isinstance(own, (str, bytes))
                else msgspec.convert(own, PageScript))
        return _with_text(page, Path.cwd())[0]
    except (msgspec.MsgspecError, OSError) as error:
        raise BadScript(source="page", detail=str(error)) from error


def _with_text(page: PageScript, folder: Path) -> Tuple[PageScript, ...]:
    if not page.recording:
        text = SAMPLE if page.text is None else page.text
        return (msgspec.structs.replace(page, text=text),)
    path = folder / page.recording
    files = sorted(path.glob("*.txt")) if path.is_dir() else [path]
    if not files:
        raise FileNotFoundError(f"no *.txt in {path}")
    return tuple(
        msgspec.structs.replace(
            page, text=file.read_text("utf-8", "replace"), recording=str(file))
        for file in files)
