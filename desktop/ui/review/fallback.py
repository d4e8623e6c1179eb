"""The rendered page without a web engine: QTextBrowser, one cell a block.

Every block is a table of one cell: it can be tinted, has a bar at its side, and Qt lays out anew
only the one that changed. For machines where QtWebEngine cannot start, and for when its process
keeps dying. Formulas show as their LaTeX text; everything else works the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from PySide6.QtCore import QByteArray, QEvent, QObject, Qt, QTimer, QUrl
from PySide6.QtGui import (
    QColor,
    QContextMenuEvent,
    QDesktopServices,
    QImage,
    QKeyEvent,
    QMouseEvent,
    QResizeEvent,
    QTextBlockFormat,
    QTextCursor,
    QTextDocument,
    QTextFrameFormat,
    QTextLength,
    QTextTable,
    QTextTableCell,
    QTextTableFormat,
)
from PySide6.QtWidgets import QFrame, QTextBrowser, QVBoxLayout, QWidget

from desktop.document.model import FURNITURE
from desktop.i18n import N_
from desktop.ui.labels import colour_of
from desktop.ui.review.crops import SCHEME, CropSource, crop_image
from desktop.ui.review.geometry import Rect
from desktop.ui.review.linking import Extent, Scroll
from desktop.ui.review.rendering import Found, RenderedBlock, Rendering
from desktop.ui.texts import say
from desktop.ui.theme import LIGHT, Theme, colour

_BAR = 3.0
_CARET = "\u258d"
_NOTHING = QImage(1, 1, QImage.Format.Format_ARGB32)
_NOTHING.fill(Qt.GlobalColor.transparent)
_FOREIGN_PICTURE = re.compile(rf'<img(?![^>]*\ssrc="{SCHEME}:)[^>]*>')


class _Browser(QTextBrowser):
    """Loads nothing but crops."""

    def __init__(self, crops: Callable[[str], CropSource | None], parent: QWidget) -> None:
        super().__init__(parent)
        self._crops = crops

    def loadResource(self, kind: int, name: QUrl | str) -> object:  # noqa: N802
        if kind != QTextDocument.ResourceType.ImageResource.value:
            return QByteArray()
        url = QUrl(name)
        source = self._crops(url.path().rsplit("/", 1)[-1]) if url.scheme() == SCHEME else None
        image = crop_image(source) if source is not None else None
        if image is None:
            # Not nothing: Qt would take the name for that of a file.
            return _NOTHING
        room = max(120, self.viewport().width() - 80)
        return image.scaledToWidth(room, Qt.TransformationMode.SmoothTransformation) \
            if image.width() > room else image


class TextRendering(Rendering):
    """Blocks as rich text."""

    def __init__(self, crops: Callable[[str], CropSource | None],
                 parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = LIGHT
        self._shown: dict[str, RenderedBlock] = {}
        self._order: list[str] = []
        self._caret = ""
        self._hover = self._choice = ""
        self._told = ""
        self._following = False
        self._programmatic = False
        self._tables: dict[str, QTextTable] = {}
        self.browser = _Browser(crops, self)
        self.browser.setFrameShape(QFrame.Shape.NoFrame)
        self.browser.setOpenLinks(False)
        say(self.browser, accessibleName=N_("Rendered page"))
        self.browser.document().setDocumentMargin(10)
        self.browser.setUndoRedoEnabled(False)
        self.browser.anchorClicked.connect(self._open)
        self.browser.verticalScrollBar().valueChanged.connect(self._moved)
        self.browser.viewport().setMouseTracking(True)
        self.browser.viewport().installEventFilter(self)
        self.browser.installEventFilter(self)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self.browser)
        self.setFocusProxy(self.browser)
        QTimer.singleShot(0, self.ready.emit)

    # --- Rendering
    def clear(self) -> None:
        self._shown.clear()
        self._order.clear()
        self._caret = self._hover = self._choice = ""
        self._tables.clear()
        self.browser.clear()
        self._thin(QTextCursor(self.browser.document()))
        self.measured.emit()

    def apply(self, blocks: Sequence[RenderedBlock], caret: str) -> None:
        top = self._at_top()
        old_caret, self._caret = self._caret, caret
        changed = {block.id: block for block in blocks if self._shown.get(block.id) != block}
        self._shown.update(changed)
        touched = dict.fromkeys(changed)
        if old_caret != caret:
            touched |= {id_: None for id_ in (old_caret, caret) if id_ in self._shown}
        self._programmatic = True
        for block_id in sorted(touched, key=lambda id_: self._shown[id_].index):
            self._fill(self._shown[block_id])
        self._restore(top)
        self._programmatic = False
        self.measured.emit()
        self.applied.emit()

    def set_marked(self, hover: str, choice: str) -> None:
        touched = {self._hover, self._choice, hover, choice}
        self._hover, self._choice = hover, choice
        for block_id in touched:
            self._dress(block_id)

    def set_following(self, following: bool) -> None:
        self._following = following
        if following:
            self._to_live_end()

    def scroll_to(self, top: float) -> None:
        was, self._programmatic = self._programmatic, True
        self.browser.verticalScrollBar().setValue(round(top))
        self._programmatic = was

    def apply_theme(self, theme: Theme) -> None:
        self._theme = theme
        self.browser.setStyleSheet(
            "QTextBrowser, QTextBrowser:focus { border: 0; border-radius: 0; }")
        self.browser.document().setDefaultStyleSheet(
            f"table {{ border-collapse: collapse; border-color: {theme.border}; }}"
            f" td, th {{ border: 1px solid {theme.border}; }}"
            f" th {{ background-color: {theme.window}; }} a {{ color: {theme.link}; }}"
            f" h1 {{ font-size: x-large; }} h2 {{ font-size: large; }}"
            f" code, pre {{ background-color: {theme.window}; }}"
            f" figcaption {{ color: {theme.secondary}; }}")
        for block_id in self._order:
            self._fill(self._shown[block_id])

    def search(self, text: str, *, backward: bool, found: Found) -> None:
        if not text:
            cursor = self.browser.textCursor()
            cursor.clearSelection()
            self.browser.setTextCursor(cursor)
            found(0, 0)
            return
        flag = QTextDocument.FindFlag.FindBackward if backward else QTextDocument.FindFlag(0)
        if not self.browser.find(text, flag):
            self.browser.moveCursor(QTextCursor.MoveOperation.End if backward
                                    else QTextCursor.MoveOperation.Start)
            if not self.browser.find(text, flag):
                found(0, 0)
                return
        whole, needle = self.browser.toPlainText().casefold(), text.casefold()
        start = self.browser.textCursor().selectionStart()
        found(whole.count(needle, 0, start) + 1, whole.count(needle))

    def set_empty_text(self, text: str) -> None:
        self.browser.setPlaceholderText(text)

    def copy_selection(self) -> None:
        self.browser.copy()

    @property
    def extents(self) -> list[Extent]:
        found = []
        layout = self.browser.document().documentLayout()
        for block_id in self._order:
            cell = self._tables[block_id].cellAt(0, 0)
            first = layout.blockBoundingRect(cell.firstCursorPosition().block())
            last = layout.blockBoundingRect(cell.lastCursorPosition().block())
            found.append(Extent(block_id, (Rect(
                0, first.top(), max(1.0, first.width()), max(first.top(), last.bottom())),)))
        return found

    @property
    def where(self) -> Scroll:
        bar = self.browser.verticalScrollBar()
        return Scroll(bar.value(), bar.pageStep(), bar.maximum() + bar.pageStep())

    # --- inside
    def _cell(self, block: RenderedBlock) -> QTextTableCell:
        """The cell of BLOCK, made where there is none."""
        if block.id not in self._tables:
            at = next((i for i, other in enumerate(self._order)
                       if self._shown[other].index > block.index), len(self._order))
            cursor = QTextCursor(self.browser.document())
            if at < len(self._order):
                following = self._tables[self._order[at]]
                cursor.setPosition(following.firstCursorPosition().position() - 1)
            else:
                cursor.movePosition(QTextCursor.MoveOperation.End)
            shape = QTextTableFormat()
            shape.setBorder(0)
            shape.setCellPadding(4)
            shape.setCellSpacing(0)
            shape.setWidth(QTextLength(QTextLength.Type.PercentageLength, 100))
            self._tables[block.id] = cursor.insertTable(1, 1, shape)
            self._order.insert(at, block.id)
            # Qt keeps a paragraph round every table.
            after = self._tables[block.id].lastCursorPosition()
            after.setPosition(after.position() + 1)
            self._thin(after)
        return self._tables[block.id].cellAt(0, 0)

    @staticmethod
    def _thin(cursor: QTextCursor) -> None:
        """Make the paragraph at CURSOR a gap of a few pixels."""
        shape = QTextBlockFormat()
        shape.setLineHeight(3, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        cursor.setBlockFormat(shape)

    def _fill(self, block: RenderedBlock) -> None:
        cell = self._cell(block)
        cursor = cell.firstCursorPosition()
        cursor.setPosition(cell.lastCursorPosition().position(), QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        cursor.setBlockFormat(QTextBlockFormat())
        inside = _FOREIGN_PICTURE.sub("", block.html).replace(
            "<table>", '<table border="1" cellspacing="0" cellpadding="4">')
        if block.label in FURNITURE:
            inside = f'<span style="color:{self._theme.secondary}">{inside}</span>'
        cursor.insertHtml(inside)
        if block.id == self._caret:
            end = cell.lastCursorPosition()
            tone = end.charFormat()
            tone.setForeground(colour(self._theme, "accent"))
            end.insertText(_CARET, tone)
        self._dress(block.id)

    def _dress(self, block_id: str) -> None:
        if block_id not in self._order:
            return
        cell = self._tables[block_id].cellAt(0, 0)
        shape = cell.format().toTableCellFormat()
        tone = QColor(colour_of(self._shown[block_id].label, self._theme.dark))
        marked = block_id in (self._hover, self._choice)
        ground = QColor(tone)
        ground.setAlpha(40 if block_id == self._choice else 20 if marked else 0)
        shape.setBackground(ground)
        shape.setLeftBorder(_BAR)
        shape.setLeftBorderStyle(QTextFrameFormat.BorderStyle.BorderStyle_Solid)
        doubt = bool(self._shown[block_id].doubt)
        bar = tone if marked else colour(self._theme, "warning" if doubt else "surface")
        shape.setLeftBorderBrush(bar)
        shape.setLeftPadding(14)
        shape.setRightPadding(14)
        shape.setTopPadding(4)
        shape.setBottomPadding(4)
        cell.setFormat(shape)

    def _at_top(self) -> tuple[str, float] | None:
        if self._following:
            return None
        top = self.browser.verticalScrollBar().value()
        return next(((e.id, e.top - top) for e in self.extents if e.bottom > top), None)

    def _restore(self, top: tuple[str, float] | None) -> None:
        if self._following:
            self._to_live_end()
        elif top is not None:
            extent = next((e for e in self.extents if e.id == top[0]), None)
            if extent is not None:
                self.browser.verticalScrollBar().setValue(round(extent.top - top[1]))

    def _to_live_end(self) -> None:
        """While text comes its end stays in sight; a page that is done is shown from its
        beginning."""
        bar = self.browser.verticalScrollBar()
        extent = next((e for e in self.extents if e.id == self._caret), None)
        if extent is None:
            self.scroll_to(0)
            return
        over = extent.bottom + 48 - (bar.value() + self.browser.viewport().height())
        if over > 0:
            self.scroll_to(bar.value() + over)

    def _block_at(self, spot: QMouseEvent | QContextMenuEvent) -> str:
        place = spot.position().toPoint() if isinstance(spot, QMouseEvent) else spot.pos()
        y = place.y() + self.browser.verticalScrollBar().value()
        return next((e.id for e in self.extents if e.top - 4 <= y <= e.bottom + 4), "")

    def _moved(self) -> None:
        if not self._programmatic:
            self.scrolled.emit()

    def _open(self, url: QUrl) -> None:
        if url.scheme() in ("http", "https", "mailto"):
            QDesktopServices.openUrl(url)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        kind = event.type()
        if kind == QEvent.Type.MouseMove and isinstance(event, QMouseEvent):
            self._tell_hover(self._block_at(event))
        elif kind == QEvent.Type.Leave:
            self._tell_hover("")
        elif kind == QEvent.Type.Wheel:
            self.touched.emit()
        elif kind == QEvent.Type.MouseButtonRelease and isinstance(event, QMouseEvent):
            if event.button() == Qt.MouseButton.LeftButton \
                    and not self.browser.textCursor().hasSelection():
                self.chosen.emit(self._block_at(event))
        elif kind == QEvent.Type.MouseButtonDblClick and isinstance(event, QMouseEvent):
            self.activated.emit(self._block_at(event))
        elif kind == QEvent.Type.ContextMenu and isinstance(event, QContextMenuEvent):
            self.menu_wanted.emit(self._block_at(event), event.globalPos(),
                                  self.browser.textCursor().hasSelection())
            return True
        elif kind == QEvent.Type.KeyPress and isinstance(event, QKeyEvent):
            return watched is self.browser and self._key(event)
        return super().eventFilter(watched, event)

    def _tell_hover(self, block_id: str) -> None:
        if block_id != self._told:
            self._told = block_id
            self.hovered.emit(block_id)

    def _key(self, event: QKeyEvent) -> bool:
        key, keys = event.key(), Qt.Key
        alt = bool(event.modifiers() & Qt.KeyboardModifier.AltModifier)
        control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        if key == keys.Key_J or (alt and key == keys.Key_Down):
            self.block_step.emit(1)
        elif key == keys.Key_K or (alt and key == keys.Key_Up):
            self.block_step.emit(-1)
        elif key == keys.Key_PageDown:
            self.page_step.emit(1)
        elif key == keys.Key_PageUp:
            self.page_step.emit(-1)
        elif key in (keys.Key_Return, keys.Key_Enter):
            self.activated.emit(self._choice)
        elif key == keys.Key_Escape:
            self.chosen.emit("")
        elif control and key == keys.Key_C and not self.browser.textCursor().hasSelection():
            self.copy_wanted.emit()
        else:
            return False
        return True

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        QTimer.singleShot(0, self.measured.emit)

    def picture(self, url: str) -> QImage | None:
        """What the browser would show for URL (for tests)."""
        found = self.browser.loadResource(QTextDocument.ResourceType.ImageResource.value, url)
        return found if isinstance(found, QImage) else None
