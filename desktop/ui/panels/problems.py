"""Problems: what went wrong where and what to do, a click away from the place."""

from __future__ import annotations

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QPersistentModelIndex,
    QPoint,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QFontMetrics,
    QGuiApplication,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QPainter,
    QPen,
    QResizeEvent,
)
from PySide6.QtWidgets import (
    QAbstractItemView,
    QFrame,
    QListView,
    QMenu,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)

from desktop.i18n import N_, _
from desktop.jobs.events import ProblemView
from desktop.ui.remedies import remedy
from desktop.ui.texts import say
from desktop.ui.theme import Theme, colour, pixmap
from desktop.ui.views.delegate import bold, small
from desktop.ui.views.fitting import wrapped
from desktop.ui.words import DOT

Index = QModelIndex | QPersistentModelIndex
VIEW_ROLE = int(Qt.ItemDataRole.UserRole)
ICON = 16
PAD = 8


def place_of(problem: ProblemView) -> str:
    """Where it happened: ``report.pdf · page 12``; "" for the engine's own."""
    page = _("page {n}").format(n=problem.page) if problem.page else ""
    return DOT.join(part for part in (problem.document, page) if part)


def line_of(problem: ProblemView) -> str:
    """The problem as one line of text, for the clipboard."""
    place = place_of(problem)
    return f"{place}: {problem.problem.line()}" if place else problem.problem.line()


class ProblemsModel(QAbstractListModel):
    """Problems in the order they came; a key is there once."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.problems: list[ProblemView] = []

    def put(self, problem: ProblemView) -> None:
        """Add it, or replace the one with its key."""
        for row, known in enumerate(self.problems):
            if known.key == problem.key:
                self.problems[row] = problem
                self.dataChanged.emit(self.index(row), self.index(row))
                return
        self.beginInsertRows(QModelIndex(), len(self.problems), len(self.problems))
        self.problems.append(problem)
        self.endInsertRows()

    def take(self, key: str) -> None:
        """Remove the one with KEY, if it is there."""
        for row, known in enumerate(self.problems):
            if known.key == key:
                self.beginRemoveRows(QModelIndex(), row, row)
                del self.problems[row]
                self.endRemoveRows()
                return

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex = QModelIndex()) -> int:  # noqa: B008
        return 0 if parent.isValid() else len(self.problems)

    def data(self, index: QModelIndex | QPersistentModelIndex,
             role: int = int(Qt.ItemDataRole.DisplayRole)) -> object:
        if not index.isValid() or index.row() >= len(self.problems):
            return None
        problem = self.problems[index.row()]
        if role == VIEW_ROLE:
            return problem
        if role in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.AccessibleTextRole):
            return line_of(problem)
        if role == Qt.ItemDataRole.ToolTipRole:
            return problem.problem.detail or problem.problem.code
        return None


class _Delegate(QStyledItemDelegate):
    """Place and sentence, then the way out, wrapped to the width there is; below them what the
    window can do about it, as a button."""

    def __init__(self, view: QListView, theme: Theme) -> None:
        super().__init__(view)
        self._view = view
        self.theme = theme
        self.over = ""
        """Key of the problem whose button the pointer is over."""

    def _lines(self, problem: ProblemView) -> tuple[list[str], list[str], list[str]]:
        width = self._view.viewport().width() - 3 * PAD - ICON
        font = self._view.font()
        place = place_of(problem)
        return (wrapped(place, bold(font), width, 3) if place else [],
                wrapped(problem.problem.message, font, width, 6),
                wrapped(problem.problem.hint, small(font), width, 6)
                if problem.problem.hint else [])

    def sizeHint(self, option: QStyleOptionViewItem, index: Index) -> QSize:
        place, message, hint = self._lines(index.data(VIEW_ROLE))
        font = self._view.font()
        button = self._button_height() + 6 if remedy(index.data(VIEW_ROLE).problem) else 0
        return QSize(0, len(place) * QFontMetrics(bold(font)).height()
                     + len(message) * QFontMetrics(font).height()
                     + len(hint) * QFontMetrics(small(font)).height() + 2 * PAD - 4 + button)

    def _button_height(self) -> int:
        return QFontMetrics(small(self._view.font())).height() + 8

    def button_area(self, rect: QRect, problem: ProblemView) -> QRect:
        """Where in the row RECT the button of PROBLEM is; empty where it has none."""
        offer = remedy(problem.problem)
        if offer is None:
            return QRect()
        width = QFontMetrics(small(self._view.font())).horizontalAdvance(offer.text) + 24
        height = self._button_height()
        return QRect(rect.left() + 2 * PAD + ICON, rect.bottom() - height - PAD + 3, width,
                     height)

    def _paint_button(self, painter: QPainter, rect: QRect, problem: ProblemView) -> None:
        area = self.button_area(rect, problem)
        offer = remedy(problem.problem)
        if offer is None:
            return
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setBrush(colour(self.theme, "hover" if self.over == problem.key else "surface"))
        painter.setPen(QPen(colour(self.theme, "border_strong"), 1))
        painter.drawRoundedRect(QRectF(area).adjusted(0.5, 0.5, -0.5, -0.5), 6, 6)
        painter.setFont(small(self._view.font()))
        painter.setPen(colour(self.theme, "text"))
        painter.drawText(area, Qt.AlignmentFlag.AlignCenter, offer.text)

    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: Index) -> None:
        painter.save()
        rect = option.rect
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(rect, colour(self.theme, "selection"))
        elif option.state & QStyle.StateFlag.State_MouseOver:
            painter.fillRect(rect, colour(self.theme, "hover"))
        font = self._view.font()
        y = rect.top() + PAD - 2
        picture = pixmap("triangle-alert", self.theme.warning, ICON,
                         self._view.devicePixelRatioF())
        painter.drawPixmap(rect.left() + PAD, y + 1, picture)
        for lines, style, token in zip(
                self._lines(index.data(VIEW_ROLE)), (bold(font), font, small(font)),
                ("text", "text", "secondary"), strict=True):
            painter.setFont(style)
            painter.setPen(colour(self.theme, token))
            metrics = QFontMetrics(style)
            for line in lines:
                painter.drawText(rect.left() + 2 * PAD + ICON, y + metrics.ascent(), line)
                y += metrics.height()
        self._paint_button(painter, rect, index.data(VIEW_ROLE))
        painter.restore()


class ProblemsPanel(QListView):
    """The list; a double click or Enter goes to the place."""

    go_to = Signal(object)
    """A ProblemView."""
    remedy_wanted = Signal(object)
    """The Remedy whose button was pressed."""

    def __init__(self, model: ProblemsModel, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        say(self, accessibleName=N_("Problems"))
        self.setModel(model)
        self._delegate = _Delegate(self, theme)
        self.setItemDelegate(self._delegate)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setMouseTracking(True)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setResizeMode(QListView.ResizeMode.Adjust)
        self.activated.connect(lambda index: self.go_to.emit(index.data(VIEW_ROLE)))
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
        self.customContextMenuRequested.connect(self._menu)

    def apply_theme(self, theme: Theme) -> None:
        """Draw in THEME from now on."""
        self._delegate.theme = theme
        self.viewport().update()

    def copy(self) -> None:
        """Put the selected problems (all, when none is selected) on the clipboard as lines."""
        model = self.model()
        rows = sorted(index.row() for index in self.selectedIndexes())
        rows = rows or list(range(model.rowCount()))
        QGuiApplication.clipboard().setText(
            "\n".join(line_of(model.index(row, 0).data(VIEW_ROLE)) for row in rows))

    def _menu(self, position: QPoint) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        index = self.currentIndex()
        menu.addAction(_("Go there"), lambda: self.go_to.emit(index.data(VIEW_ROLE))
                       ).setEnabled(index.isValid())
        offer = remedy(index.data(VIEW_ROLE).problem) if index.isValid() else None
        if offer is not None:
            menu.addAction(offer.text, lambda: self.remedy_wanted.emit(offer))
        menu.addAction(_("Copy"), self.copy).setEnabled(self.model().rowCount() > 0)
        menu.popup(self.viewport().mapToGlobal(position))

    def _button_at(self, position: QPoint) -> ProblemView | None:
        """The problem whose button is at POSITION."""
        index = self.indexAt(position)
        if not index.isValid():
            return None
        problem: ProblemView = index.data(VIEW_ROLE)
        area = self._delegate.button_area(self.visualRect(index), problem)
        return problem if area.contains(position) else None

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        super().mouseMoveEvent(event)
        over = self._button_at(event.position().toPoint())
        if (over.key if over else "") != self._delegate.over:
            self._delegate.over = over.key if over else ""
            self.viewport().setCursor(Qt.CursorShape.PointingHandCursor if over
                                      else Qt.CursorShape.ArrowCursor)
            self.viewport().update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        super().mouseReleaseEvent(event)
        pressed = self._button_at(event.position().toPoint())
        offer = remedy(pressed.problem) if pressed else None
        if offer is not None and event.button() == Qt.MouseButton.LeftButton:
            self.remedy_wanted.emit(offer)

    def mouseDoubleClickEvent(self, event: QMouseEvent) -> None:
        # The second click on a button is no wish to go anywhere.
        if self._button_at(event.position().toPoint()) is None:
            super().mouseDoubleClickEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.matches(QKeySequence.StandardKey.Copy):
            self.copy()
            return
        super().keyPressEvent(event)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.scheduleDelayedItemsLayout()
