"""What Verso is, and the licences of what it is made of."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QDialog,
    QDialogButtonBox,
    QHBoxLayout,
    QLabel,
    QTabWidget,
    QTextBrowser,
    QVBoxLayout,
    QWidget,
)

import desktop
from desktop import paths
from desktop.i18n import _
from desktop.ui.theme import icon
from desktop.ui.tokens import Theme


def licence_file(name: str) -> Path | None:
    """A licence file that came with the program: from a checkout, or from the installed wheel."""
    beside = paths.resources().parent / name
    if beside.is_file():
        return beside
    try:
        files = metadata.files("verso-ocr") or []
    except metadata.PackageNotFoundError:
        return None
    for file in files:
        if file.name == name:
            found = Path(str(file.locate()))
            return found if found.is_file() else None
    return None


def _reader(name: str, title: str) -> QTextBrowser:
    browser = QTextBrowser()
    browser.setAccessibleName(title)
    browser.setOpenExternalLinks(True)
    path = licence_file(name)
    text = path.read_text(encoding="utf-8") if path else _("{name} is not installed.").format(
        name=name)
    if name.endswith(".md"):
        browser.setMarkdown(text)
    else:
        browser.setPlainText(text)
    return browser


class AboutDialog(QDialog):
    """Name, version, licence, third parties."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(_("About Verso"))
        self.resize(680, 520)
        column = QVBoxLayout(self)
        column.setSpacing(12)
        head = QHBoxLayout()
        head.setSpacing(16)
        picture = QLabel()
        picture.setPixmap(icon("verso", theme).pixmap(48, 48))
        head.addWidget(picture)
        text = QLabel(f"<b>Verso {desktop.__version__}</b><br>" + _(
            "Turns images and PDFs into structured Markdown, reviewed beside the page.") + "<br>"
            + _("Free software under the GNU Affero General Public License, version 3 or later."))
        text.setWordWrap(True)
        head.addWidget(text, 1)
        column.addLayout(head)
        tabs = QTabWidget()
        tabs.addTab(_reader("THIRD_PARTY.md", _("Third-party licences")),
                    _("Third-party licences"))
        tabs.addTab(_reader("LICENSE", _("Licence")), _("Licence"))
        column.addWidget(tabs, 1)
        buttons = QDialogButtonBox()
        buttons.addButton(_("Close"), QDialogButtonBox.ButtonRole.RejectRole)
        buttons.rejected.connect(self.reject)
        column.addWidget(buttons)
