"""The queue: a tree of documents and pages, driven by mouse and keyboard alike."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QItemSelectionModel, QModelIndex, QPoint, Qt, Signal
from PySide6.QtGui import (
    QContextMenuEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QResizeEvent,
)
from PySide6.QtWidgets import QAbstractItemView, QFrame, QMenu, QTreeView, QWidget

from desktop.i18n import N_, _
from desktop.jobs.events import DocumentState, DocumentView, PageView
from desktop.ui.models.queue import Index, QueueModel
from desktop.ui.texts import say
from desktop.ui.theme import Theme, colour
from desktop.ui.views.delegate import TEXT_LEFT, QueueDelegate
from desktop.ui.views.thumbnails import Thumbnails


class QueueView(QTreeView):
    """What a person can do with documents and pages, as signals."""

    page_chosen = Signal(str)
    retry_wanted = Signal(list)
    """Page ids to read again."""
    remove_wanted = Signal(list)
    """Document ids."""
    folder_wanted = Signal(int)

    def __init__(self, model: QueueModel, thumbnails: Thumbnails, theme: Theme,
                 parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("queue")
        say(self, accessibleName=N_("Queue of documents and pages"))
        self._model = model
        self.setModel(model)
        self.delegate = QueueDelegate(self, thumbnails, theme)
        self.setItemDelegate(self.delegate)
        self.setHeaderHidden(True)
        self.setRootIsDecorated(False)
        self.setIndentation(0)
        self.setMouseTracking(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setExpandsOnDoubleClick(False)
        self.setSelectionMode(QAbstractItemView.SelectionMode.ExtendedSelection)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.setTextElideMode(Qt.TextElideMode.ElideNone)
        thumbnails.ready.connect(self._thumbnail_came)
        self.doubleClicked.connect(self._double_clicked)

    def apply_theme(self, theme: Theme) -> None:
        """Draw in THEME from now on."""
        self.delegate.set_theme(theme)
        self.viewport().update()

    # --- what is chosen
    def chosen_pages(self) -> list[PageView]:
        """The selected pages, in order."""
        return [view for view in self._chosen() if isinstance(view, PageView)]

    def chosen_documents(self) -> list[DocumentView]:
        """The selected documents, and those of selected pages."""
        found: dict[int, DocumentView] = {}
        for view in self._chosen():
            number = view.document_id if isinstance(view, PageView) else view.id
            document = self._model.document(number)
            if document is not None:
                found[number] = document
        return list(found.values())

    def _chosen(self) -> list[DocumentView | PageView]:
        indexes = sorted(self.selectionModel().selectedIndexes(),
                         key=lambda i: (i.parent().row(), i.row()))
        views = (self._model.view_of(index) for index in indexes)
        return [view for view in views if view is not None]

    def show_page(self, page_id: str | None, *, select: bool) -> None:
        """Mark the page that is beside the result; bring it into view, SELECT it too."""
        self.delegate.shown_page = page_id
        index = self._model.page_index(page_id) if page_id else QModelIndex()
        if index.isValid():
            if not self.isExpanded(index.parent()):
                self.expand(index.parent())
            if select:
                self.selectionModel().setCurrentIndex(
                    index, QItemSelectionModel.SelectionFlag.ClearAndSelect)
            self.scrollTo(index, QAbstractItemView.ScrollHint.EnsureVisible)
        self.viewport().update()

    def ask_password(self, document_id: int) -> None:
        """Open the field for a document's password in its row."""
        index = self._model.document_index(document_id)
        if index.isValid():
            self.scrollTo(index)
            self._edit_row(index)

    def edit_range(self, document_id: int) -> None:
        """Open the field for a document's page range in its row."""
        index = self._model.document_index(document_id)
        if index.isValid():
            self.scrollTo(index)
            self._edit_row(index)

    def _edit_row(self, index: QModelIndex) -> None:
        if self.state() is not QAbstractItemView.State.EditingState:
            self.edit(index)

    # --- events
    def _thumbnail_came(self, page_id: str) -> None:
        index = self._model.page_index(page_id)
        if index.isValid():
            self.viewport().update(self.visualRect(index))

    def currentChanged(self, current: Index, previous: Index) -> None:  # noqa: N802
        super().currentChanged(current, previous)
        view = self._model.view_of(current)
        if isinstance(view, PageView) and self.hasFocus():
            self.page_chosen.emit(view.id)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        index = self.indexAt(event.position().toPoint())
        view = self._model.view_of(index)
        super().mousePressEvent(event)
        if event.button() != Qt.MouseButton.LeftButton or view is None:
            return
        if isinstance(view, DocumentView):
            if view.state is DocumentState.PASSWORD:
                self._edit_row(index)
            elif event.position().x() < TEXT_LEFT:
                self.setExpanded(index, not self.isExpanded(index))
        elif not event.modifiers():
            self.page_chosen.emit(view.id)

    def _double_clicked(self, index: QModelIndex) -> None:
        if isinstance(self._model.view_of(index), DocumentView):
            self.setExpanded(index, not self.isExpanded(index))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        view = self._model.view_of(self.currentIndex())
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter) and view is not None:
            if isinstance(view, PageView):
                self.page_chosen.emit(view.id)
            elif view.state is DocumentState.PASSWORD:
                self._edit_row(self.currentIndex())
            else:
                self.setExpanded(self.currentIndex(), not self.isExpanded(self.currentIndex()))
            return
        if event.key() == Qt.Key.Key_F2 and isinstance(view, PageView):
            self.edit_range(view.document_id)  # a page's range is its document's
            return
        if event.key() == Qt.Key.Key_Delete:
            self._remove()
            return
        super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        if self._model.rowCount() == 0:
            painter = QPainter(self.viewport())
            painter.setPen(colour(self.delegate.theme, "secondary"))
            area = self.viewport().rect().adjusted(12, 12, -12, -12)
            painter.drawText(area, Qt.AlignmentFlag.AlignTop | Qt.TextFlag.TextWordWrap,
                             _("Documents and their pages are listed here."))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if event.size().width() != event.oldSize().width():
            self.scheduleDelayedItemsLayout()  # names wrap: heights follow the width

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self.scheduleDelayedItemsLayout()

    def _remove(self) -> None:
        documents = [document.id for document in self.chosen_documents()]
        if documents:
            self.remove_wanted.emit(documents)

    # --- the menu of a row
    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        index = self.indexAt(event.pos())
        if not index.isValid():
            index = self.currentIndex()
        if index.isValid():
            self.menu_for(index).popup(self.viewport().mapToGlobal(
                event.pos() if self.indexAt(event.pos()).isValid() else QPoint(20, 20)))

    def menu_for(self, index: QModelIndex) -> QMenu:
        """The context menu for a row and the selection it belongs to."""
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        view = self._model.view_of(index)
        pages = self._pages_meant()
        suspicious = [page.id for page in pages if page.state.suspicious]
        menu.addAction(_("Read again"), lambda: self.retry_wanted.emit([p.id for p in pages])
                       ).setEnabled(bool(pages))
        menu.addAction(_("Retry what failed"), lambda: self.retry_wanted.emit(suspicious)
                       ).setEnabled(bool(suspicious))
        menu.addSeparator()
        if isinstance(view, DocumentView):
            number = view.id
            if view.state is DocumentState.PASSWORD:
                menu.addAction(_("Enter password…"), lambda: self.ask_password(number))
            if view.state is DocumentState.OPEN:
                menu.addAction(_("Page range…"), lambda: self.edit_range(number))
        documents = self.chosen_documents()
        if documents:
            menu.addAction(_("Open containing folder"),
                           lambda: self.folder_wanted.emit(documents[0].id))
        menu.addSeparator()
        menu.addAction(_("Remove document from queue"), self._remove).setEnabled(bool(documents))
        return menu

    def _pages_meant(self) -> Sequence[PageView]:
        pages = self.chosen_pages()
        if pages:
            return pages
        return [page for document in self.chosen_documents()
                for page in self._model.pages(document.id)]
