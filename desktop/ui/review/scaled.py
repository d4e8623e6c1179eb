"""A page bitmap at any zoom without waiting: halved copies, and one scaled exactly for rest.

Scaling 24 megapixels takes longer than a frame. So a thread halves the bitmap a few times
(drawing picks the smallest copy that is still large enough) and, once the zoom rests, makes one
copy at exactly the size on the screen: it looks best, and panning only blits it. The thread works
with Pillow: PySide holds Python's lock while Qt scales, so that the window would wait after all.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from PIL import Image
from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QImage

_REST_MS = 70
_LARGEST_EXACT = 16_000_000
"""Pixels; beyond that the halved copies serve (about 64 MB would be held for one view)."""
_SMALLEST_LEVEL = 500

_TURNS = {90: Image.Transpose.ROTATE_270, 180: Image.Transpose.ROTATE_180,
          270: Image.Transpose.ROTATE_90}

_threads = ThreadPoolExecutor(1, "verso-scaling")


class Exact(NamedTuple):
    """How a copy was asked for: its size in device pixels and the rotation it has."""

    width: int
    height: int
    rotation: int


class ScaledImage(QObject):
    """One bitmap and its scaled copies. Lives on the UI thread, works on another."""

    changed = Signal()
    """A better copy is there: draw again."""
    _made = Signal(object, object, object)

    def __init__(self, image: QImage, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.image = image
        self._levels: list[QImage] = []
        self._sources: list[Image.Image] = []
        self._exact: tuple[Exact, QImage] | None = None
        self._wanted: Exact | None = None
        self._closed = False
        self._rest = QTimer(self, singleShot=True, interval=_REST_MS)
        self._rest.timeout.connect(self._start_exact)
        self._made.connect(self._take)
        if not image.isNull():
            _threads.submit(self._work, None)

    def close(self) -> None:
        """The bitmap is not shown any more: finish nothing."""
        self._closed = True
        self._rest.stop()
        self.deleteLater()

    def level_for(self, scale: float) -> QImage:
        """The smallest copy with at least SCALE device pixels per bitmap pixel."""
        best = self.image
        for level in self._levels:
            if level.width() < self.image.width() * scale:
                break
            best = level
        return best

    def exact(self, wanted: Exact) -> QImage | None:
        """The copy of exactly this size, or None while there is none (it is then made)."""
        if self._exact is not None and self._exact[0] == wanted:
            return self._exact[1]
        source = self.image.width() * self.image.height()
        enlarged = wanted.width * wanted.height >= source and not wanted.rotation
        if not enlarged and wanted.width * wanted.height <= _LARGEST_EXACT \
                and wanted != self._wanted:
            self._wanted = wanted
            self._rest.start()
        return None

    def _start_exact(self) -> None:
        if self._wanted is not None and not self.image.isNull():
            _threads.submit(self._work, self._wanted)

    def _work(self, wanted: Exact | None) -> None:
        """On the thread. QImage is shared copy-on-write and only read here."""
        if self._closed or (wanted is not None and wanted != self._wanted):
            return
        made: object
        if wanted is None:
            level, levels = to_pillow(self.image), []
            while max(level.size) > 2 * _SMALLEST_LEVEL:
                if self._closed:
                    return
                level = level.reduce(2)
                self._sources = [*self._sources, level]
                levels.append(to_qimage(level))
            made = levels
        else:
            size = (wanted.width, wanted.height)
            if wanted.rotation % 180:
                size = (size[1], size[0])
            enough = [source for source in self._sources
                      if source.width >= size[0] and source.height >= size[1]]
            source = enough[-1] if enough else to_pillow(self.image)
            exact = source.resize(size, Image.Resampling.LANCZOS)
            if wanted.rotation:
                exact = exact.transpose(_TURNS[wanted.rotation])
            made = to_qimage(exact)
        try:
            self._made.emit(self, wanted, made)
        except RuntimeError:
            # The page was changed meanwhile and Qt has deleted this object.
            return

    def _take(self, _self: object, wanted: Exact | None, made: object) -> None:
        if self._closed:
            return
        if wanted is None:
            assert isinstance(made, list)
            self._levels = made
        else:
            assert isinstance(made, QImage)
            self._exact = (wanted, made)
        self.changed.emit()


def to_pillow(image: QImage) -> Image.Image:
    """IMAGE for Pillow (``RGB``); quick for 24- and 32-bit bitmaps without alpha."""
    modes = {QImage.Format.Format_RGB888: "RGB", QImage.Format.Format_RGB32: "BGRX"}
    if image.format() not in modes:
        image = image.convertToFormat(QImage.Format.Format_RGB888)
    return Image.frombuffer("RGB", (image.width(), image.height()),
                            image.constBits(), "raw",  # type: ignore[arg-type]
                            modes[image.format()], image.bytesPerLine(), 1)


def to_qimage(picture: Image.Image) -> QImage:
    """PICTURE (``RGB``) for Qt, in the format that is drawn quickest."""
    data = picture.tobytes("raw", "BGRX")
    # Qt does not copy the bytes; PySide keeps them for as long as this object lives.
    return QImage(data, picture.width, picture.height, 4 * picture.width,
                  QImage.Format.Format_RGB32)
