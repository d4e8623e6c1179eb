"""The tabs that show text as text: the page's Markdown by block, and the engine's raw output."""

from __future__ import annotations

from collections.abc import Iterable

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import (
    QColor,
    QFontDatabase,
    QFontInfo,
    QKeyEvent,
    QMouseEvent,
    QTextBlock,
    QTextCursor,
    QTextDocument,
    QTextFormat,
)
from PySide6.QtWidgets import QFrame, QPlainTextEdit, QTextEdit, QWidget

from desktop.document.markdown import block_markdown
from desktop.document.model import FURNITURE, NOISE, Block
from desktop.i18n import N_
from desktop.ui.labels import colour_of
from desktop.ui.review.geometry import Rect
from desktop.ui.review.linking import Extent, Scroll
from desktop.ui.texts import say
from desktop.ui.theme import LIGHT, Theme

_FLUSH_MS = 50
_WIDE_FAMILIES = ("Noto Sans Mono CJK SC", "Sarasa Mono SC", "Noto Sans CJK SC",
                  "Microsoft YaHei UI", "PingFang SC", "WenQuanYi Micro Hei Mono")


class SourceView(QPlainTextEdit):
    """Read-only text in a fixed-width font."""

    touched = Signal()

    def __init__(self, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setReadOnly(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setObjectName("source")
        say(self, accessibleName=name)
        self.setUndoRedoEnabled(False)
        font = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont)
        # Its real name: a generic one loses its meaning before other families.
        font.setFamilies([QFontInfo(font).family(), *_WIDE_FAMILIES])
        font.setPointSizeF(self.font().pointSizeF())
        self.setFont(font)
        self.document().setDocumentMargin(16)
        self._theme = LIGHT
        self._programmatic = False
        self.viewport().installEventFilter(self)

    def apply_theme(self, theme: Theme) -> None:
        self._theme = theme
        # Within the pane there is no frame, also not the one that focus brings.
        self.setStyleSheet("QPlainTextEdit, QPlainTextEdit:focus { border: 0; border-radius: 0; }")

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in (QEvent.Type.Wheel, QEvent.Type.MouseButtonPress):
            self.touched.emit()
        return super().eventFilter(watched, event)

    def find_text(self, text: str, backward: bool) -> tuple[int, int]:
        """Go to the next place of TEXT, round the end; which match it is and how many there are."""
        if not text:
            cursor = self.textCursor()
            cursor.clearSelection()
            self.setTextCursor(cursor)
            return 0, 0
        flag = QTextDocument.FindFlag.FindBackward if backward else QTextDocument.FindFlag(0)
        if not self.find(text, flag):
            cursor = self.textCursor()
            cursor.movePosition(QTextCursor.MoveOperation.End if backward
                                else QTextCursor.MoveOperation.Start)
            self.setTextCursor(cursor)
            if not self.find(text, flag):
                return 0, 0
        whole, needle = self.toPlainText().casefold(), text.casefold()
        start = self.textCursor().selectionStart()
        return whole.count(needle, 0, start) + 1, whole.count(needle)

    def _insert(self, start: int, end: int, text: str) -> None:
        """Replace START–END; the scroll position and the person's selection stay."""
        bar = self.verticalScrollBar()
        top = bar.value()
        cursor = QTextCursor(self.document())
        cursor.setPosition(start)
        cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
        cursor.insertText(text)
        self._programmatic = True
        bar.setValue(top)
        self._programmatic = False


class MarkdownView(SourceView):
    """The page's Markdown; knows which lines belong to which block."""

    hovered = Signal(str)
    chosen = Signal(str)
    activated = Signal(str)
    scrolled = Signal()
    block_step = Signal(int)
    page_step = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(N_("Markdown"), parent)
        self._order: list[str] = []
        self._indices: dict[str, int] = {}
        self._texts: dict[str, str] = {}
        self._labels: dict[str, str] = {}
        self._marked = ("", "")
        self._hover = ""
        self._press = False
        self.set_furniture(False)
        self.viewport().setMouseTracking(True)
        self.verticalScrollBar().valueChanged.connect(self._moved)

    def set_furniture(self, keep: bool) -> None:
        """Whether running headers, footers and page numbers are shown from now on."""
        self._left_out = frozenset({NOISE}) if keep else FURNITURE | {NOISE}

    def clear_blocks(self) -> None:
        """Show nothing."""
        self._order, self._indices, self._texts, self._labels = [], {}, {}, {}
        self._marked = ("", "")
        self.setExtraSelections([])
        self.clear()

    def apply_blocks(self, blocks: Iterable[Block]) -> None:
        """These blocks are new or differ: only their lines are replaced."""
        for block in blocks:
            text = "" if block.label in self._left_out else block_markdown(block)
            self._labels[block.id] = block.label
            if block.id not in self._texts:
                self._add(block, text)
            elif self._texts[block.id] != text:
                self._change(block.id, text)
        self._draw_marks()

    def _add(self, block: Block, text: str) -> None:
        at = next((i for i, other in enumerate(self._order)
                   if self._indices[other] > block.index), len(self._order))
        self._order.insert(at, block.id)
        self._indices[block.id] = block.index
        self._texts[block.id] = ""
        self._change(block.id, text)

    def _change(self, block_id: str, text: str) -> None:
        start, end = self._span(block_id)
        old = self._texts[block_id]
        lead = bool(self._before(block_id))
        self._texts[block_id] = text
        if old and text:
            # While it streams mostly the end is new: keep the rest, and a selection in it.
            same = _common(old, text)
            self._insert(start + _length(old[:same]), end, text[same:])
            return
        later = any(self._texts[other] for other in self._order[self._order.index(block_id) + 1:])
        if text:
            self._insert(start, start, ("\n\n" if lead else "") + text
                         + ("\n\n" if later and not lead else ""))
        elif old:
            self._insert(max(0, start - 2) if lead else start,
                         end + (2 if later and not lead else 0), "")

    def _before(self, block_id: str) -> list[str]:
        return [self._texts[other] for other in self._order[:self._order.index(block_id)]
                if self._texts[other]]

    def _span(self, block_id: str) -> tuple[int, int]:
        """First and last position of a block's text in the document."""
        before = self._before(block_id)
        start = sum(_length(text) + 2 for text in before)
        if not self._texts[block_id]:
            start = max(0, start - 2)
        return start, start + _length(self._texts[block_id])

    @property
    def spans(self) -> dict[str, tuple[int, int]]:
        """First and last position of every block that has text."""
        found, at = {}, 0
        for block_id in self._order:
            text = self._texts[block_id]
            if text:
                found[block_id] = (at, at + _length(text))
                at += _length(text) + 2
        return found

    # --- linking
    @property
    def extents(self) -> list[Extent]:
        """Where the blocks lie, in lines as they are wrapped."""
        found = []
        for block_id, (start, end) in self.spans.items():
            first, last = self.document().findBlock(start), self.document().findBlock(end)
            found.append(Extent(block_id, (Rect(
                0, _line(first), 1, _line(last) + last.layout().lineCount()),)))
        return found

    @property
    def where(self) -> Scroll:
        """The position, in wrapped lines."""
        bar = self.verticalScrollBar()
        return Scroll(bar.value(), bar.pageStep(), bar.maximum() + bar.pageStep())

    def scroll_to(self, top: float) -> None:
        self._programmatic = True
        self.verticalScrollBar().setValue(round(top))
        self._programmatic = False

    def set_marked(self, hover: str, choice: str) -> None:
        if (hover, choice) != self._marked:
            self._marked = (hover, choice)
            self._draw_marks()

    def apply_theme(self, theme: Theme) -> None:
        super().apply_theme(theme)
        self._draw_marks()

    def _draw_marks(self) -> None:
        hover, choice = self._marked
        marks = []
        spans = self.spans
        for block_id, strength in ((hover, 22), (choice, 48)):
            if block_id not in spans:
                continue
            ground = QColor(colour_of(self._labels[block_id], self._theme.dark))
            ground.setAlpha(strength)
            start, end = spans[block_id]
            block, last = self.document().findBlock(start), self.document().findBlock(end)
            while block.isValid() and block.blockNumber() <= last.blockNumber():
                # One mark a paragraph: only a selection covers all of its wrapped lines.
                mark = QTextEdit.ExtraSelection()
                cursor = QTextCursor(block)
                cursor.movePosition(QTextCursor.MoveOperation.EndOfBlock,
                                    QTextCursor.MoveMode.KeepAnchor)
                mark.cursor = cursor
                mark.format.setBackground(ground)
                mark.format.setProperty(
                    QTextFormat.Property.FullWidthSelection, True)
                marks.append(mark)
                block = block.next()
        self.setExtraSelections(marks)

    def _block_at(self, position: int) -> str:
        return next((block_id for block_id, (start, end) in self.spans.items()
                     if start <= position <= end), "")

    def _moved(self) -> None:
        if not self._programmatic:
            self.scrolled.emit()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        found = self._block_at(self.cursorForPosition(event.position().toPoint()).position())
        if found != self._hover:
            self._hover = found
            self.hovered.emit(found)

    def leaveEvent(self, event: QEvent) -> None:
        super().leaveEvent(event)
        self._hover = ""
        self.hovered.emit("")

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        if event.button() == Qt.MouseButton.LeftButton and not self.textCursor().hasSelection():
            self.chosen.emit(self._block_at(self.textCursor().position()))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        alt = bool(event.modifiers() & Qt.KeyboardModifier.AltModifier)
        key, keys = event.key(), Qt.Key
        if key == keys.Key_J or (alt and key == keys.Key_Down):
            self.block_step.emit(1)
        elif key == keys.Key_K or (alt and key == keys.Key_Up):
            self.block_step.emit(-1)
        elif key == keys.Key_PageDown:
            self.page_step.emit(1)
        elif key == keys.Key_PageUp:
            self.page_step.emit(-1)
        elif key == keys.Key_Escape:
            self.chosen.emit("")
        else:
            super().keyPressEvent(event)


class RawView(SourceView):
    """What the engine wrote, byte for byte; appended a few times a second."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(N_("Raw output"), parent)
        self._pending: list[str] = []
        self._timer = QTimer(self, singleShot=True, interval=_FLUSH_MS)
        self._timer.timeout.connect(self._flush)

    def clear_text(self) -> None:
        """Show nothing."""
        self._pending.clear()
        self.clear()

    def append_text(self, text: str) -> None:
        """TEXT follows."""
        self._pending.append(text)
        if not self._timer.isActive():
            self._timer.start()

    def _flush(self) -> None:
        text = "".join(self._pending)
        self._pending.clear()
        end = self.document().characterCount() - 1
        bar = self.verticalScrollBar()
        at_end = bar.value() >= bar.maximum()
        self._insert(end, end, text)
        if at_end:
            bar.setValue(bar.maximum())


def _length(text: str) -> int:
    """Length in the document's own units (UTF-16)."""
    return len(text) + sum(1 for char in text if ord(char) > 0xFFFF)


def _line(block: QTextBlock) -> int:
    return block.firstLineNumber()


def _common(one: str, two: str) -> int:
    """The length of the beginning that two texts share."""
    if two.startswith(one):
        return len(one)
    return next((i for i, (a, b) in enumerate(zip(one, two, strict=False)) if a != b),
                min(len(one), len(two)))
