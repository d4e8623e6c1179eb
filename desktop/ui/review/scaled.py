"""A page bitmap at any zoom without waiting: halved copies, and one scaled exactly for rest.

Scaling 24 megapixels takes longer than a frame. So a thread halves the bitmap a few times
(drawing picks the smallest copy that is still large enough) and, once the zoom rests, makes one
copy at exactly the size on the screen: it looks best, and panning only blits it. The thread works
with Pillow: PySide holds Python's lock while Qt scales, so that the window would wait after all.
"""

from __future__ import annotations

from typing import NamedTuple

from PIL import Image
from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtGui import QImage

from desktop.ui.review.background import Background, forget

_REST_MS = 70
_LARGEST_EXACT = 16_000_000
"""Pixels; beyond that the halved copies serve (about 64 MB would be held for one view)."""
_SMALLEST_LEVEL = 500

_TURNS = {90: Image.Transpose.ROTATE_270, 180: Image.Transpose.ROTATE_180,
          270: Image.Transpose.ROTATE_90}

_background = Background("verso-scaling")


class Exact(NamedTuple):
    """How a copy was asked for: its size in device pixels and the rotation it has."""

    width: int
    height: int
    rotation: int


class _Copies:
    """What the thread works with: plain values."""

    def __init__(self, image: QImage) -> None:
        self.image = image
        self.halved: list[Image.Image] = []
        self.wanted: Exact | None = None
        self.closed = False

    def halve(self) -> list[QImage]:
        """All halved copies, for Qt; kept for Pillow."""
        level, made = to_pillow(self.image), []
        while max(level.size) > 2 * _SMALLEST_LEVEL and not self.closed:
            level = level.reduce(2)
            self.halved = [*self.halved, level]
            made.append(to_qimage(level))
        return made

    def scale(self, wanted: Exact) -> QImage | None:
        """The copy of exactly this size; None when it is not wanted any more."""
        if self.closed or wanted != self.wanted:
            return None
        size = (wanted.width, wanted.height)
        if wanted.rotation % 180:
            size = (size[1], size[0])
        enough = [level for level in self.halved
                  if level.width >= size[0] and level.height >= size[1]]
        source = enough[-1] if enough else to_pillow(self.image)
        exact = source.resize(size, Image.Resampling.LANCZOS)
        if wanted.rotation:
            exact = exact.transpose(_TURNS[wanted.rotation])
        return to_qimage(exact)


class ScaledImage(QObject):
    """One bitmap and its scaled copies. Lives on the UI thread, works on another."""

    changed = Signal()
    """A better copy is there: draw again."""

    def __init__(self, image: QImage, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.image = image
        self._copies = _Copies(image)
        self._levels: list[QImage] = []
        self._exact: tuple[Exact, QImage] | None = None
        self._rest = QTimer(self, singleShot=True, interval=_REST_MS)
        self._rest.timeout.connect(self._scale)
        self._numbers = [_background.run(self, self._copies.halve, self._take_levels)]

    def close(self) -> None:
        """The bitmap is not shown any more: finish nothing."""
        self._copies.closed = True
        for number in self._numbers:
            forget(number)
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
                and wanted != self._copies.wanted:
            self._copies.wanted = wanted
            self._rest.start()
        return None

    def _scale(self) -> None:
        copies, wanted = self._copies, self._copies.wanted
        assert wanted is not None
        self._numbers = [*self._numbers[-4:], _background.run(
            self, lambda: copies.scale(wanted), lambda image: self._take_exact(wanted, image))]

    def _take_levels(self, levels: list[QImage] | None) -> None:
        self._levels = levels or []
        self.changed.emit()

    def _take_exact(self, wanted: Exact, image: QImage | None) -> None:
        if image is not None:
            self._exact = (wanted, image)
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
