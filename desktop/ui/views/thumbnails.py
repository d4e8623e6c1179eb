"""Thumbnails of the rows that are seen, fetched lazily and kept for a while."""

from __future__ import annotations

from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from PySide6.QtCore import QObject, Qt, QTimer, Signal
from PySide6.QtGui import QImage, QPixmap

from desktop.intake.model import RenderedPage
from desktop.jobs.session import Session

SIDE = 96
"""Pixels of the longer side: enough for a 48-pixel picture on a 2× screen."""
KEPT = 400
AT_ONCE = 4
WAITING = 64
"""Rows asked for and not begun; the oldest (scrolled away) are forgotten first."""

Key = tuple[str, int]
"""Page id and the degrees it was turned by: a page found to be sideways is drawn anew."""


class Thumbnails(QObject):
    """A least-recently-used store in front of ``session.thumbnail``."""

    ready = Signal(str)
    """A page's thumbnail came in."""

    _loaded = Signal(object, object)

    def __init__(self, session: Session, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self._kept: OrderedDict[Key, QPixmap | None] = OrderedDict()
        self._wanted: OrderedDict[Key, None] = OrderedDict()
        self._running: dict[Key, Future[RenderedPage]] = {}
        self._loader = ThreadPoolExecutor(1, thread_name_prefix="thumbnails")
        self._loaded.connect(self._take, Qt.ConnectionType.QueuedConnection)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.timeout.connect(self._fetch)
        self._open = True

    def get(self, page_id: str, turned: int) -> QPixmap | None:
        """The thumbnail if it is here; else it is asked for and None is returned."""
        key = (page_id, turned)
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key]
        if key not in self._running and self._open:
            self._wanted[key] = None
            self._wanted.move_to_end(key)
            while len(self._wanted) > WAITING:
                self._wanted.popitem(last=False)
            if not self._timer.isActive():
                # A pause: rows that are only scrolled past are not drawn for.
                self._timer.start(60)
        return None

    def _fetch(self) -> None:
        while self._open and self._wanted and len(self._running) < AT_ONCE:
            key, _nothing = self._wanted.popitem()
            future = self._session.thumbnail(key[0], SIDE)
            self._running[key] = future
            future.add_done_callback(partial(self._arrived, key))

    def _arrived(self, key: Key, done: Future[RenderedPage]) -> None:
        """Any thread: the bitmap is in a file; read it away from the window's thread."""
        if self._open:
            self._loader.submit(self._load, key, done)

    def _load(self, key: Key, done: Future[RenderedPage]) -> None:
        image: QImage | None = None
        if not done.cancelled() and done.exception() is None:
            page = done.result()
            image = QImage(page.image)
            page.delete()
        self._loaded.emit(key, image)

    def _take(self, key: Key, image: QImage | None) -> None:
        self._running.pop(key, None)
        # A page that cannot be drawn is kept as None: it is not asked for again and again.
        self._kept[key] = (QPixmap.fromImage(image)
                           if image is not None and not image.isNull() else None)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        self.ready.emit(key[0])
        self._fetch()

    def close(self) -> None:
        """Ask for nothing more; what is under way is given up."""
        self._open = False
        self._wanted.clear()
        for future in self._running.values():
            future.cancel()
        self._loader.shutdown(wait=False, cancel_futures=True)
