"""What Copy puts on the clipboard: Markdown, and a table also as HTML and TSV."""

from __future__ import annotations

from PySide6.QtCore import QByteArray, QMimeData

from desktop.document.html import block_html
from desktop.document.markdown import block_markdown
from desktop.document.model import Block
from desktop.document.tables import tables_of

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
