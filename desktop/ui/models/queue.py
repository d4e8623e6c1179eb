"""The queue as a Qt model: documents, and under each its pages.

The model adapts the session's frozen views; it owns no documents and asks nothing. A change of
one page costs one dictionary look-up, whatever the size of the document.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from PySide6.QtCore import (
    QAbstractItemModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    Qt,
    Signal,
)

from desktop.i18n import _
from desktop.jobs import events as e
from desktop.jobs.events import DocumentState, DocumentView, PageState, PageView
from desktop.ui import words

VIEW_ROLE = int(Qt.ItemDataRole.UserRole)
"""The DocumentView or PageView of a row."""
FRACTION_ROLE = VIEW_ROLE + 1
"""How far a streaming page is, 0–1; -1 where it cannot be told."""
LIVE_ROLE = VIEW_ROLE + 2
"""Of a document: whether a page of it is being read."""

Index = QModelIndex | QPersistentModelIndex


class Totals(NamedTuple):
    """What there is of the queue as a whole."""

    documents: int = 0
    pages: int = 0
    """Within the ranges."""
    suspicious: int = 0


@dataclass
class _Node:
    view: DocumentView
    pages: list[PageView] = field(default_factory=list)
    rows: dict[str, int] = field(default_factory=dict)
    live: set[str] = field(default_factory=set)
    """Pages that are being read."""

    def set_pages(self, pages: Sequence[PageView]) -> None:
        self.pages = list(pages)
        self.rows = {page.id: row for row, page in enumerate(self.pages)}
        self.live = {page.id for page in pages if page.state is PageState.STREAMING}


class QueueModel(QAbstractItemModel):
    """Documents → pages. Column 0 only; a delegate draws the rows."""

    edited = Signal(int, str)
    """A person typed into a document's row: its id and a page range, or a password where the
    document asks for one."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._nodes: list[_Node] = []
        self._row_of: dict[int, int] = {}
        self._document_of: dict[str, int] = {}
        self._regions: dict[str, int] = {}
        self._mean_tokens = 0.0
        self.totals = Totals()
        """Kept as it changes: thousands of documents are not gone over for one page."""
        self.locked: dict[int, str] = {}
        """Documents that wait for a password: id → name."""

    # --- what the session says
    def apply(self, event: e.SessionEvent) -> None:
        """Take over what EVENT says about the queue; other events are left alone."""
        if isinstance(event, e.PageUpdated):
            self._page(event.page)
        elif isinstance(event, e.PageRegionsFound):
            self._regions[event.page_id] = len(event.regions)
        elif isinstance(event, e.DocumentAdded):
            self._added(event.document, event.pages)
        elif isinstance(event, e.DocumentUpdated):
            self._updated(event.document, event.pages)
        elif isinstance(event, e.DocumentRemoved):
            self._removed(event.document_id)

    def _added(self, view: DocumentView, pages: Sequence[PageView]) -> None:
        if view.id in self._row_of:
            self._updated(view, pages)
            return
        row = len(self._nodes)
        self._count(view, 1)
        self.beginInsertRows(QModelIndex(), row, row)
        node = _Node(view)
        node.set_pages(pages)
        self._nodes.append(node)
        self._row_of[view.id] = row
        self._document_of.update((page.id, view.id) for page in pages)
        self.endInsertRows()

    def _updated(self, view: DocumentView, pages: Sequence[PageView] | None) -> None:
        row = self._row_of.get(view.id)
        if row is None:
            return
        node = self._nodes[row]
        self._count(node.view, -1)
        self._count(view, 1)
        node.view = view
        index = self.index(row, 0)
        if pages is not None:
            if [page.id for page in pages] == [page.id for page in node.pages]:
                node.set_pages(pages)
                if pages:
                    self.dataChanged.emit(self.index(0, 0, index),
                                          self.index(len(pages) - 1, 0, index))
            else:
                self._replace_pages(index, node, pages)
        self.dataChanged.emit(index, index)

    def _replace_pages(self, index: QModelIndex, node: _Node, pages: Sequence[PageView]) -> None:
        if node.pages:
            self.beginRemoveRows(index, 0, len(node.pages) - 1)
            for page in node.pages:
                self._document_of.pop(page.id, None)
            node.set_pages(())
            self.endRemoveRows()
        if pages:
            self.beginInsertRows(index, 0, len(pages) - 1)
            node.set_pages(pages)
            self._document_of.update((page.id, node.view.id) for page in pages)
            self.endInsertRows()

    def _removed(self, document_id: int) -> None:
        row = self._row_of.get(document_id)
        if row is None:
            return
        self._count(self._nodes[row].view, -1)
        self.beginRemoveRows(QModelIndex(), row, row)
        for page in self._nodes[row].pages:
            self._document_of.pop(page.id, None)
            self._regions.pop(page.id, None)
        del self._nodes[row]
        self._row_of = {node.view.id: i for i, node in enumerate(self._nodes)}
        self.endRemoveRows()

    def _count(self, view: DocumentView, sign: int) -> None:
        """VIEW comes (SIGN 1) or goes (-1)."""
        documents, pages, suspicious = self.totals
        self.totals = Totals(documents + sign, pages + sign * view.selected,
                             suspicious + sign * view.suspicious)
        if sign > 0 and view.state is DocumentState.PASSWORD:
            self.locked[view.id] = view.name
        else:
            self.locked.pop(view.id, None)

    def _page(self, page: PageView) -> None:
        index = self.page_index(page.id)
        if not index.isValid():
            return
        node = self._nodes[self._row_of[page.document_id]]
        node.pages[index.row()] = page
        was_live = bool(node.live)
        (node.live.add if page.state is PageState.STREAMING else node.live.discard)(page.id)
        if was_live != bool(node.live):
            self.dataChanged.emit(index.parent(), index.parent())
        if page.state is PageState.COMPLETE and page.output_tokens:
            self._mean_tokens += (page.output_tokens - self._mean_tokens) / (
                10 if self._mean_tokens else 1)
        if page.state.final:
            self._regions.pop(page.id, None)
        self.dataChanged.emit(index, index)

    # --- looking things up
    def documents(self) -> list[DocumentView]:
        """All documents, in order."""
        return [node.view for node in self._nodes]

    def document(self, document_id: int) -> DocumentView | None:
        """The document with this id."""
        row = self._row_of.get(document_id)
        return None if row is None else self._nodes[row].view

    def pages(self, document_id: int) -> Sequence[PageView]:
        """The pages of a document, in order."""
        row = self._row_of.get(document_id)
        return () if row is None else self._nodes[row].pages

    def page(self, page_id: str) -> PageView | None:
        """The page with this id."""
        document = self._document_of.get(page_id)
        if document is None:
            return None
        node = self._nodes[self._row_of[document]]
        return node.pages[node.rows[page_id]]

    def page_index(self, page_id: str) -> QModelIndex:
        """The index of a page; invalid when there is none."""
        document = self._document_of.get(page_id)
        if document is None:
            return QModelIndex()
        row = self._nodes[self._row_of[document]].rows[page_id]
        return self.createIndex(row, 0, document)

    def document_index(self, document_id: int) -> QModelIndex:
        """The index of a document; invalid when there is none."""
        row = self._row_of.get(document_id)
        return QModelIndex() if row is None else self.index(row, 0)

    def step(self, page_id: str | None, by: int,
             wanted: Callable[[PageView], bool] | None = None) -> str | None:
        """The page BY (+1, -1) after PAGE_ID across documents, the first that is WANTED."""
        document = self._document_of.get(page_id or "")
        if document is None:
            row, page = (0, -1) if by > 0 else (len(self._nodes) - 1, 0)
            if by < 0 and self._nodes:
                page = len(self._nodes[row].pages)
        else:
            row = self._row_of[document]
            page = self._nodes[row].rows[page_id or ""]
        while 0 <= row < len(self._nodes):
            pages = self._nodes[row].pages
            page += by
            while 0 <= page < len(pages):
                if wanted is None or wanted(pages[page]):
                    return pages[page].id
                page += by
            row += by
            if 0 <= row < len(self._nodes):
                page = -1 if by > 0 else len(self._nodes[row].pages)
        return None

    # --- QAbstractItemModel
    def index(self, row: int, column: int = 0, parent: Index = QModelIndex()) -> QModelIndex:  # noqa: B008
        if column != 0 or row < 0:
            return QModelIndex()
        if not parent.isValid():
            return self.createIndex(row, 0, 0) if row < len(self._nodes) else QModelIndex()
        if parent.internalId() or parent.row() >= len(self._nodes):
            return QModelIndex()
        node = self._nodes[parent.row()]
        if row >= len(node.pages):
            return QModelIndex()
        return self.createIndex(row, 0, node.view.id)

    def parent(self, index: Index = QModelIndex()) -> Any:  # noqa: B008
        document = index.internalId() if index.isValid() else 0
        row = self._row_of.get(document) if document else None
        return QModelIndex() if row is None else self.createIndex(row, 0, 0)

    def rowCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        if not parent.isValid():
            return len(self._nodes)
        if parent.internalId() or parent.row() >= len(self._nodes):
            return 0
        return len(self._nodes[parent.row()].pages)

    def columnCount(self, parent: Index = QModelIndex()) -> int:  # noqa: B008
        return 1

    def hasChildren(self, parent: Index = QModelIndex()) -> bool:  # noqa: B008
        return self.rowCount(parent) > 0

    def flags(self, index: Index) -> Qt.ItemFlag:
        if not index.isValid():
            return Qt.ItemFlag.NoItemFlags
        flags = Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable
        if index.internalId():
            return flags | Qt.ItemFlag.ItemNeverHasChildren
        return flags | Qt.ItemFlag.ItemIsEditable

    def view_of(self, index: Index) -> DocumentView | PageView | None:
        """The session's view behind a row."""
        if not index.isValid():
            return None
        document = index.internalId()
        if not document:
            return self._nodes[index.row()].view
        row = self._row_of.get(document)
        return None if row is None else self._nodes[row].pages[index.row()]

    def live(self, document_id: int) -> bool:
        """Whether a page of the document is being read."""
        row = self._row_of.get(document_id)
        return row is not None and bool(self._nodes[row].live)

    def fraction(self, page: PageView) -> float:
        """How far a page is: blocks of those whose boxes are known, or tokens of the mean."""
        regions = self._regions.get(page.id, 0)
        if regions:
            return min(1.0, page.blocks / regions)
        if self._mean_tokens and page.output_tokens:
            return min(0.95, page.output_tokens / self._mean_tokens)
        return -1.0

    def data(self, index: Index, role: int = int(Qt.ItemDataRole.DisplayRole)) -> Any:
        view = self.view_of(index)
        if view is None:
            return None
        if role == VIEW_ROLE:
            return view
        if isinstance(view, PageView):
            return self._page_data(view, role)
        return self._document_data(view, role)

    def _page_data(self, page: PageView, role: int) -> Any:
        if role == FRACTION_ROLE:
            return self.fraction(page) if page.state is PageState.STREAMING else -1.0
        if role == Qt.ItemDataRole.DisplayRole:
            return _("Page {n}").format(n=page.number)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{_('Page {n}').format(n=page.number)}, {words.page_words(page).text}"
        if role == Qt.ItemDataRole.ToolTipRole:
            return page.problem.line() if page.problem else words.page_words(page).text
        return None

    def _document_data(self, view: DocumentView, role: int) -> Any:
        if role == Qt.ItemDataRole.DisplayRole:
            return view.name
        if role == LIVE_ROLE:
            return self.live(view.id)
        if role == Qt.ItemDataRole.EditRole:
            return "" if view.state is DocumentState.PASSWORD else view.page_range
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{view.name}, {words.document_words(view, self.live(view.id)).text}"
        if role == Qt.ItemDataRole.ToolTipRole:
            return f"{view.path}\n{view.problem.line()}" if view.problem else view.path
        return None

    def setData(self, index: Index, value: Any, role: int = int(Qt.ItemDataRole.EditRole)) -> bool:
        view = self.view_of(index)
        if role != Qt.ItemDataRole.EditRole or not isinstance(view, DocumentView):
            return False
        self.edited.emit(view.id, str(value))
        return True
