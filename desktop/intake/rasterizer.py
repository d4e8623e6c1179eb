"""Files → upright RGB pages, in processes of their own.

A page that cannot be drawn (crash, time or memory limit) fails alone: its process is replaced
and the others go on. Nothing is held for a whole document.
"""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

from desktop.intake.model import RenderedPage, RenderRequest, SourceInfo


class Rasterizer:
    """A small pool of drawing processes. Thread-safe."""

    def __init__(self, out_dir: Path, *, processes: int = 2, memory_mb: int = 2048) -> None:
        """Bitmaps are written under OUT_DIR. Processes start when first needed."""
        raise NotImplementedError

    def open(self, path: Path, password: str | None = None) -> Future[SourceInfo]:
        """Examine a file. Raises (through the future) NotADocument, Unreadable, PasswordNeeded,
        WrongPassword, NoPages – all in ``desktop.intake.errors``."""
        raise NotImplementedError

    def render(self, request: RenderRequest, *, priority: int = 1) -> Future[RenderedPage]:
        """Draw one page; lower PRIORITY goes first (0: looked at, 1: to be read, 2: thumbnail).
        A future that is cancelled before its turn costs nothing."""
        raise NotImplementedError

    def close(self) -> None:
        """End the processes; what still waits is cancelled."""
        raise NotImplementedError
