"""How rows of the queue are drawn and edited."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import QEvent, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import (
    QLineEdit,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeView,
    QWidget,
)

from desktop.i18n import _
from desktop.jobs.events import DocumentState, DocumentView, PageState, PageView
from desktop.ui import words
from desktop.ui.models.queue import FRACTION_ROLE, LIVE_ROLE, VIEW_ROLE, Index
from desktop.ui.theme import Theme, colour, pixmap
from desktop.ui.views.fitting import wrapped
from desktop.ui.views.thumbnails import Thumbnails

PAD = 8
CHEVRON = 14
TEXT_LEFT = 28
THUMB = QSize(34, 46)
SMALL_ICON = 14


def small(font: QFont) -> QFont:
    """The font of secondary text."""
    smaller = QFont(font)
    if font.pointSizeF() > 0:
        smaller.setPointSizeF(font.pointSizeF() * 0.88)
    else:
        smaller.setPixelSize(round(font.pixelSize() * 0.88))
    return smaller


def bold(font: QFont) -> QFont:
    """FONT, bold."""
    heavier = QFont(font)
    heavier.setWeight(QFont.Weight.DemiBold)
    return heavier


class QueueDelegate(QStyledItemDelegate):
    """Draws documents (name, count) and pages (thumbnail, state in words, progress line)."""

    def __init__(self, view: QTreeView, thumbnails: Thumbnails, theme: Theme) -> None:
        super().__init__(view)
        self._view = view
        self._thumbnails = thumbnails
        self._pixmaps: dict[tuple[str, str, float, int], Any] = {}
        self.theme = theme
        self.shown_page: str | None = None
        """The page beside the result: it has a mark at its left."""

    def set_theme(self, theme: Theme) -> None:
        """Draw in THEME from now on."""
        self.theme = theme
        self._pixmaps.clear()

    # --- sizes
    def _width(self) -> int:
        return int(self._view.viewport().width())

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        font = self._view.font()
        if index.internalId():
            lines = QFontMetrics(font).height() + 2 * QFontMetrics(small(font)).height()
            return QSize(0, max(THUMB.height() + 2 * 4, lines + 8))
        view = index.data(VIEW_ROLE)
        height = len(self._name_lines(view, font)) * QFontMetrics(bold(font)).height()
        height += len(self._note_lines(view, font)) * QFontMetrics(small(font)).height()
        return QSize(0, height + 12)

    def _name_lines(self, view: DocumentView, font: QFont) -> list[str]:
        status = words.document_words(view)
        # The name must not be wrapped otherwise when a page begins to be read.
        right = 2 * PAD + max(QFontMetrics(small(font)).horizontalAdvance(words.document_words(
            view, live).text) for live in (False, True))
        right += SMALL_ICON + 4 if status.icon else 0
        return wrapped(view.name, bold(font), self._width() - TEXT_LEFT - right, 3)

    def _note(self, view: DocumentView) -> tuple[str, str]:
        if view.state is DocumentState.UNREADABLE and view.problem:
            return view.problem.message, "error"
        if view.page_range:
            return _("pages {range}").format(range=view.page_range), "secondary"
        return "", ""

    def _note_lines(self, view: DocumentView, font: QFont) -> list[str]:
        text, _tone = self._note(view)
        return wrapped(text, small(font), self._width() - TEXT_LEFT - PAD, 4) if text else []

    # --- drawing
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        view = index.data(VIEW_ROLE)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        self._ground(painter, option, view)
        if isinstance(view, PageView):
            self._page(painter, option.rect, view, index)
        elif isinstance(view, DocumentView):
            self._document(painter, option.rect, view, index)
        painter.restore()

    def _ground(self, painter: QPainter, option: QStyleOptionViewItem, view: object) -> None:
        rect = option.rect
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(rect, colour(self.theme, "selection"))
        elif option.state & QStyle.StateFlag.State_MouseOver:
            painter.fillRect(rect, colour(self.theme, "hover"))
        if isinstance(view, PageView) and view.id == self.shown_page:
            painter.fillRect(QRect(rect.left(), rect.top(), 3, rect.height()),
                             colour(self.theme, "accent"))
        if option.state & QStyle.StateFlag.State_HasFocus:
            painter.setPen(QPen(colour(self.theme, "accent"), 1))
            painter.drawRect(QRectF(rect).adjusted(0.5, 0.5, -0.5, -0.5))

    def _icon(self, painter: QPainter, name: str, tone: str, x: int, y: int, size: int) -> None:
        ratio = self._view.devicePixelRatioF()
        key = (name, tone, ratio, size)
        if key not in self._pixmaps:
            self._pixmaps[key] = pixmap(name, getattr(self.theme, tone), size, ratio)
        painter.drawPixmap(x, y, self._pixmaps[key])

    def _document(self, painter: QPainter, rect: QRect, view: DocumentView,
                  index: Index) -> None:
        font = self._view.font()
        name_metrics, small_metrics = QFontMetrics(bold(font)), QFontMetrics(small(font))
        top = rect.top() + 6
        if view.pages and index.model().hasChildren(index):
            opened = self._view.isExpanded(index)
            self._icon(painter, "chevron-down" if opened else "chevron-right", "secondary",
                       rect.left() + PAD, top + (name_metrics.height() - CHEVRON) // 2, CHEVRON)
        painter.setFont(bold(font))
        painter.setPen(colour(self.theme, "text"))
        y = top
        for line in self._name_lines(view, font):
            painter.drawText(rect.left() + TEXT_LEFT, y + name_metrics.ascent(), line)
            y += name_metrics.height()
        status = words.document_words(view, index.data(LIVE_ROLE))
        width = small_metrics.horizontalAdvance(status.text)
        painter.setFont(small(bold(font)) if status.tone != "secondary" else small(font))
        width = painter.fontMetrics().horizontalAdvance(status.text)
        x = rect.right() - PAD - width
        painter.setPen(colour(self.theme, status.tone))
        painter.drawText(x, top + name_metrics.ascent(), status.text)
        if status.icon:
            self._icon(painter, status.icon, status.tone, x - SMALL_ICON - 3,
                       top + (name_metrics.height() - SMALL_ICON) // 2, SMALL_ICON)
        painter.setFont(small(font))
        text_tone = self._note(view)[1]
        for line in self._note_lines(view, font):
            painter.setPen(colour(self.theme, text_tone))
            painter.drawText(rect.left() + TEXT_LEFT, y + small_metrics.ascent(), line)
            y += small_metrics.height()

    def _page(self, painter: QPainter, rect: QRect, page: PageView, index: Index) -> None:
        font = self._view.font()
        metrics, small_metrics = QFontMetrics(font), QFontMetrics(small(font))
        box = QRect(rect.left() + TEXT_LEFT - 4, rect.top() + (rect.height() - THUMB.height()) // 2,
                    THUMB.width(), THUMB.height())
        self._thumbnail(painter, box, page)
        left = box.right() + 10
        right = rect.right() - PAD
        status = words.page_words(page)
        text_left = left + (SMALL_ICON + 4 if status.icon else 0)
        lines = wrapped(status.text, small(font), right - text_left, 2)
        height = metrics.height() + len(lines) * small_metrics.height() + 1
        y = rect.top() + (rect.height() - height) // 2
        if page.state is PageState.STREAMING:
            y -= 2
        painter.setFont(font)
        painter.setPen(colour(self.theme, "text"))
        painter.drawText(left, y + metrics.ascent(), _("Page {n}").format(n=page.number))
        if page.state.final and page.seconds > 0:
            time = words.seconds_of(page.seconds)
            painter.setFont(small(font))
            painter.setPen(colour(self.theme, "secondary"))
            painter.drawText(right - small_metrics.horizontalAdvance(time),
                             y + metrics.ascent(), time)
        y += metrics.height() + 1
        painter.setFont(small(font))
        if status.icon:
            self._icon(painter, status.icon, status.tone, left,
                       y + (small_metrics.height() - SMALL_ICON) // 2, SMALL_ICON)
        painter.setPen(colour(self.theme, status.tone))
        for line in lines:
            painter.drawText(text_left, y + small_metrics.ascent(), line)
            y += small_metrics.height()
        if page.state is PageState.STREAMING:
            self._progress(painter, QRect(left, rect.bottom() - 6, right - left, 3),
                           index.data(FRACTION_ROLE))

    def _thumbnail(self, painter: QPainter, box: QRect, page: PageView) -> None:
        picture = self._thumbnails.get(page.id, page.rotation)
        target = QRect(box)
        if picture is not None:
            size = picture.size().scaled(box.size(), Qt.AspectRatioMode.KeepAspectRatio)
            target = QRect(0, 0, size.width(), size.height())
            target.moveCenter(box.center())
            painter.drawPixmap(target, picture)
        else:
            painter.fillRect(target, QColor("#ffffff") if not self.theme.dark
                             else colour(self.theme, "hover"))
        painter.setPen(QPen(colour(self.theme, "border"), 1))
        painter.drawRect(QRectF(target).adjusted(0.5, 0.5, -0.5, -0.5))

    def _progress(self, painter: QPainter, line: QRect, fraction: float) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour(self.theme, "track"))
        painter.drawRoundedRect(line, 1.5, 1.5)
        if fraction > 0:
            painter.setBrush(colour(self.theme, "accent"))
            painter.drawRoundedRect(QRect(line.left(), line.top(),
                                          max(3, round(line.width() * fraction)), line.height()),
                                    1.5, 1.5)

    # --- editing in place: a page range, or the password a document asks for
    def createEditor(self, parent: QWidget, option: QStyleOptionViewItem,
                     index: Index) -> QWidget:
        view = index.data(VIEW_ROLE)
        editor = QLineEdit(parent)
        editor.setFrame(True)
        if isinstance(view, DocumentView) and view.state is DocumentState.PASSWORD:
            editor.setEchoMode(QLineEdit.EchoMode.Password)
            # The field covers the name, so it says whose password is asked for.
            asked = _("Password of {name}").format(name=view.name)
            editor.setPlaceholderText(editor.fontMetrics().elidedText(
                asked, Qt.TextElideMode.ElideMiddle, self._width() - TEXT_LEFT - 24))
            editor.setAccessibleName(asked)
            editor.setToolTip(asked)
        else:
            editor.setPlaceholderText(_("All pages, or 1-3,7"))
            editor.setAccessibleName(_("Page range"))
        return editor

    def setEditorData(self, editor: QWidget, index: Index) -> None:
        assert isinstance(editor, QLineEdit)
        editor.setText(index.data(Qt.ItemDataRole.EditRole) or "")

    def setModelData(self, editor: QWidget, model: Any, index: Index) -> None:
        assert isinstance(editor, QLineEdit)
        password = editor.echoMode() == QLineEdit.EchoMode.Password
        if not (password and not editor.text()):
            model.setData(index, editor.text().strip() if not password else editor.text())

    def updateEditorGeometry(self, editor: QWidget, option: QStyleOptionViewItem,  # noqa: N802
                             index: Index) -> None:
        rect = option.rect.adjusted(TEXT_LEFT - 8, 0, -4, 0)
        height = max(rect.height(), editor.sizeHint().height())
        editor.setGeometry(rect.left(), rect.top(), rect.width(), height)

    def eventFilter(self, editor: QWidget, event: QEvent) -> bool:  # type: ignore[override]
        # A password typed halfway is not tried when the focus goes elsewhere.
        if (event.type() == QEvent.Type.FocusOut and isinstance(editor, QLineEdit)
                and editor.echoMode() == QLineEdit.EchoMode.Password):
            self.closeEditor.emit(editor, QStyledItemDelegate.EndEditHint.RevertModelCache)
            return False
        return super().eventFilter(editor, event)
