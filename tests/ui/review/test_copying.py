"""What is put on the clipboard."""

from __future__ import annotations

from PySide6.QtGui import QGuiApplication

from desktop.document.model import Block
from desktop.ui.review.clipboard import TSV
from desktop.ui.review.pane import ReviewPane
from tests.ui.review.helpers import fill, uneven


def test_copying_a_table_gives_markdown_html_and_cells(pane: ReviewPane) -> None:
    table = ("<table><tr><th colspan=\"2\">Head</th></tr><tr><td>1</td><td>a\tb</td></tr>"
             "</table>")
    fill(pane, [Block(0, "table", (), table)])
    pane.choose("b1")
    pane.copy_chosen()
    data = QGuiApplication.clipboard().mimeData()
    assert data.text() == table + "\n"
    assert bytes(data.data(TSV).data()).decode() == "Head\t\n1\ta b\n"
    assert 'colspan="2"' in data.html()


def test_copying_text_and_the_page(pane: ReviewPane) -> None:
    fill(pane, [Block(0, "title", (), "Heading"), Block(1, "text", (), "Some *text*."),
                Block(2, "footer", (), "7")])
    pane.choose("b2")
    pane.copy_chosen()
    data = QGuiApplication.clipboard().mimeData()
    assert data.text() == "Some *text*.\n"
    assert not data.hasFormat(TSV)
    pane.choose("")
    pane.copy_chosen()
    assert QGuiApplication.clipboard().text() == "# Heading\n\nSome *text*.\n"


def test_the_copy_menu_offers_what_there_is(plain_pane: ReviewPane) -> None:
    pane = plain_pane
    menu = pane.result._copy.menu()
    menu.aboutToShow.emit()
    assert [(a.text(), a.isEnabled()) for a in menu.actions()] == [
        ("Copy page", False), ("Copy block (choose one first)", False)]
    fill(pane, uneven())
    pane.choose("b2")
    menu.aboutToShow.emit()
    assert [(a.text(), a.isEnabled()) for a in menu.actions()] == [
        ("Copy page", True), ("Copy table 2", True)]
    menu.actions()[1].trigger()
    assert QGuiApplication.clipboard().mimeData().hasFormat(TSV)


def test_headers_and_footers_are_copied_when_the_setting_keeps_them(
        plain_pane: ReviewPane) -> None:
    pane = plain_pane
    fill(pane, [Block(0, "header", (), "Running head"), Block(1, "text", (), "Body")])
    result = pane.result
    result.tabs.setCurrentIndex(1)
    for keep in (False, True, False):
        pane.set_furniture(keep)
        result.copy_page()
        copied = QGuiApplication.clipboard().text().strip()
        assert copied == result.markdown.toPlainText().strip()
        assert ("Running head" in copied) is keep
    result.tabs.setCurrentIndex(0)
