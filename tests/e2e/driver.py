"""Runs the real application and does in its window what it is told on stdin.

One JSON array a line: ``["drop", FILE…]``, ``["state"]``, ``["export", FOLDER]``,
``["action", NAME]``, ``["close"]``. Each is answered by one line of JSON on stdout. The
application is ``desktop.app.run`` itself; drops go through Qt's own drop events.
"""

from __future__ import annotations

import json
import sys
import threading
from pathlib import Path

from desktop import app as application

application.prepare_environment()

from PySide6.QtCore import QCoreApplication, QObject, Qt, Signal  # noqa: E402
from PySide6.QtWidgets import QApplication  # noqa: E402

from desktop.ui.main_window import MainWindow  # noqa: E402
from tests.support.drops import drop, mime_of  # noqa: E402


class Driver(QObject):
    """Carries out one line at a time on the window's thread."""

    line = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self.line.connect(self._do, Qt.ConnectionType.QueuedConnection)

    def read(self) -> None:
        """The thread that reads stdin."""
        for line in sys.stdin:
            self.line.emit(line)

    def _window(self) -> MainWindow | None:
        for widget in QApplication.topLevelWidgets():
            if isinstance(widget, MainWindow) and widget.isVisible():
                return widget
        return None

    def _do(self, line: str) -> None:
        name, *arguments = json.loads(line)
        window = self._window()
        answer: object = None
        if window is None:
            answer = "no window"
        elif name == "drop":
            answer = drop(window, mime_of([Path(file) for file in arguments]))
        elif name == "state":
            answer = {
                "documents": [{
                    "name": document.name, "state": document.state.value,
                    "pages": [page.state.value for page in window.model.pages(document.id)],
                } for document in window.model.documents()],
                "engine": window.engine.state.value, "run": window.state.run.value,
                "problems": len(window.problems.problems),
                "shown": window.controller.page_id,
                "blocks": [] if window.pane is None or window.pane._content is None else [
                    block.markdown for block in window.pane._content.ordered],
                "toast": window.toast.text.text(),
            }
        elif name == "export":
            window.commands.exporting.start(
                [document.id for document in window.model.documents()], Path(arguments[0]),
                ["md", "json"])
        elif name == "action":
            window.actions_[arguments[0]].trigger()
        elif name == "close":
            window.close()
        print(json.dumps(answer), flush=True)


def main() -> int:
    QCoreApplication.setAttribute(Qt.ApplicationAttribute.AA_ShareOpenGLContexts)
    QApplication(sys.argv[:1])
    driver = Driver()
    threading.Thread(target=driver.read, daemon=True).start()
    return application.run([Path(file) for file in sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
