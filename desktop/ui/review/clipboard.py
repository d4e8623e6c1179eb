"""What Copy puts on the clipboard: Markdown, and a table also as HTML and TSV."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from PySide6.QtCore import QByteArray, QMimeData
from PySide6.QtWidgets import QMenu

from desktop.document.html import block_html
from desktop.document.markdown import block_markdown
from desktop.document.model import Block
from desktop.document.tables import tables_of
from desktop.i18n import _

TSV = "text/tab-separated-values"


def has_table(block: Block) -> bool:
    """Whether BLOCK holds a table."""
    return "<table" in block.markdown.lower()


def block_data(block: Block) -> QMimeData:
    """BLOCK for the clipboard: Markdown as text; a table also as HTML and TSV, so that it pastes
    as cells into a spreadsheet."""
    data = QMimeData()
    text = block_markdown(block)
    data.setText(text + "\n")
    if has_table(block):
        data.setHtml(block_html(block))
        rows = "\n".join(table.tsv() for table in tables_of(text))
        data.setData(TSV, QByteArray((rows + "\n").encode()))
    return data


def fill_copy_menu(menu: QMenu, blocks: Mapping[str, Block], block_id: str, *,
                   selection: Callable[[], None] | None, page: Callable[[], None],
                   block: Callable[[str], None]) -> None:
    """Offer what can be copied: the SELECTION (None: nothing is selected), the PAGE, the block
    BLOCK_ID."""
    menu.clear()
    if selection is not None:
        menu.addAction(_("Copy selection"), selection)
    menu.addAction(_("Copy page"), page).setEnabled(bool(blocks))
    found = blocks.get(block_id)
    if found is None:
        menu.addAction(_("Copy block (choose one first)")).setEnabled(False)
        return
    name = _("Copy table {number}") if has_table(found) else _("Copy block {number}")
    menu.addAction(name.format(number=found.index + 1), lambda: block(block_id))
