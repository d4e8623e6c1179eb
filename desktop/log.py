"""Logging: one rotating file a process role in the log folder, and nothing that fails unseen.

Log file names, page numbers and errors; never a document's text and never a password.
"""

from __future__ import annotations

import logging
import logging.handlers
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

from desktop import paths

FORMAT = "%(asctime)s %(levelname)-7s %(process)d %(threadName)s %(name)s: %(message)s"
FILE_BYTES = 2_000_000
"""A file that would grow beyond this becomes NAME.log.1, of which ``OLD_FILES`` are kept."""
OLD_FILES = 3

_log = logging.getLogger(__name__)


def start(role: str = "verso", *, debug: bool = False) -> Path:
    """Log to ROLE.log in the log folder from now on; returns the file.

    With DEBUG also what is of use to developers only. Exceptions that nobody catches, in any
    thread, go to the log. Called again, it replaces what an earlier call set up. Raises
    OwnFolderUnusable.
    """
    try:
        file = paths.log_dir() / f"{role}.log"
    except paths.OwnFolderUnusable:
        # Without any handler Python itself would write to the person's terminal.
        logging.getLogger().addHandler(logging.NullHandler())
        raise
    handler = logging.handlers.RotatingFileHandler(
        file, maxBytes=FILE_BYTES, backupCount=OLD_FILES, encoding="utf-8", delay=True,
        errors="backslashreplace")
    handler.setFormatter(logging.Formatter(FORMAT))
    handler.set_name("verso-file")
    root = logging.getLogger()
    stop()
    root.addHandler(handler)
    root.setLevel(logging.DEBUG if debug else logging.INFO)
    for chatty in ("PIL", "markdown", "MARKDOWN", "qasync", "asyncio", "rapidocr", "RapidOCR"):
        logging.getLogger(chatty).setLevel(logging.INFO if debug else logging.WARNING)
    for indiscreet in ("httpx", "httpcore"):  # log addresses, which may be signed, and headers
        logging.getLogger(indiscreet).setLevel(logging.WARNING)
    return file


def stop() -> None:
    """Close the log file; later records go wherever other handlers send them."""
    root = logging.getLogger()
    for handler in [h for h in root.handlers if h.get_name() == "verso-file"]:
        root.removeHandler(handler)
        handler.close()


def catch_unhandled(report: Callable[[BaseException], None] | None = None) -> None:
    """Log exceptions that nobody catches, in every thread, and then call REPORT with them.

    REPORT runs in the thread that failed. Without it one line on stderr points to the log.
    An interrupt by the keyboard stays what it is.
    """
    tell = report or _one_line

    def uncaught(kind: type[BaseException], error: BaseException,
                 traceback: TracebackType | None) -> Any:
        if issubclass(kind, KeyboardInterrupt):
            return sys.__excepthook__(kind, error, traceback)
        _log.critical("not caught", exc_info=(kind, error, traceback))
        return tell(error)

    def uncaught_in_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is None:
            return
        name = args.thread.name if args.thread else "?"
        _log.critical("not caught in thread %s", name,
                      exc_info=(args.exc_type, args.exc_value, args.exc_traceback))
        tell(args.exc_value)

    def unraisable(args: Any) -> None:
        # In a finaliser: the program goes on, so it is not reported.
        _log.error("not caught in %r", args.object,
                   exc_info=(args.exc_type, args.exc_value, args.exc_traceback))

    sys.excepthook = uncaught
    threading.excepthook = uncaught_in_thread
    sys.unraisablehook = unraisable


def _one_line(error: BaseException) -> None:
    print(f"verso: {type(error).__name__}: {error} (details in {paths.log_dir()})",
          file=sys.stderr)
