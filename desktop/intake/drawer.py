"""The drawing process: takes requests on stdin, draws pages, answers on stdout.

Started by :class:`desktop.intake.process.DrawingProcess`, never by hand. What libraries print
goes to stderr and cannot disturb the answers.
"""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
from typing import TYPE_CHECKING, BinaryIO

from desktop.intake import limits, wire
from desktop.intake.errors import (
    Failure,
    IntakeError,
    NoSpace,
    PageFailed,
    PageTooLarge,
    Unreadable,
    to_failure,
)

if TYPE_CHECKING:
    from desktop.intake.drawing import Drawing

_NOT_NEEDED = ("pymupdf.layout", "pymupdf4llm")
"""Extras that PyMuPDF loads where it finds them, ONNX models among them: four times the start
and three times the memory of drawing alone."""
_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.ENOENT,
                   errno.ENOTDIR, errno.EFBIG})


def main(parent: int, memory_mb: int) -> None:
    """Serve until the request pipe ends."""
    limits.die_with_parent(parent)
    # Ctrl+C in a terminal is the application's business.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    requests, replies = _take_pipes()
    for name in _NOT_NEEDED:
        # None makes importing it fail, which PyMuPDF is prepared for.
        sys.modules[name] = None  # type: ignore[assignment]
    # Loading takes a while: after the parent is watched.
    from desktop.intake.drawing import Drawing

    drawing = Drawing(memory_mb)
    # A page's words are tens of thousands of short-lived objects without cycles: collecting
    # whenever many were made doubles what they cost. Drawing collects now and then instead.
    gc.collect()
    gc.freeze()
    gc.disable()
    limits.memory_limit(memory_mb)
    wire.send(replies, wire.Started())
    while True:
        try:
            request = wire.receive_request(requests)
        except EOFError:
            limits.leave()
        limits.time_limit(request.seconds + 10)
        reply = _answer(drawing, request)
        limits.time_limit(0)
        try:
            wire.send(replies, reply)
        except BrokenPipeError:
            limits.leave()


def _answer(drawing: Drawing, request: wire.Request) -> wire.Reply:
    opening = isinstance(request, wire.OpenFile)
    try:
        if isinstance(request, wire.OpenFile):
            return drawing.open(request)
        return drawing.draw(request)
    except IntakeError as error:
        return to_failure(error)
    except MemoryError as error:
        drawing.forget()
        return to_failure(Unreadable(detail=f"out of memory: {error}") if opening
                          else PageTooLarge(detail=str(error)))
    except OSError as error:
        if not opening and error.errno in _ROOM:
            return to_failure(NoSpace(detail=str(error)))
        return _odd(error, opening)
    except Exception as error:  # noqa: BLE001 - the process boundary: becomes a typed failure
        return _odd(error, opening)


def _odd(error: Exception, opening: bool) -> Failure:
    detail = f"{type(error).__name__}: {error}"
    return to_failure(Unreadable(detail=detail) if opening else PageFailed(detail=detail))


def _take_pipes() -> tuple[BinaryIO, BinaryIO]:
    """stdin and stdout for ourselves alone: anyone else reads nothing and prints to stderr."""
    requests = os.fdopen(os.dup(0), "rb")
    replies = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return requests, replies


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
