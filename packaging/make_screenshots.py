"""Writes ``docs/images/window.png`` and ``window-dark.png``.

    xvfb-run -s "-screen 0 1440x900x24" python packaging/make_screenshots.py

The real window with the product's own sample read by the built-in engine. Settings and journal are
its own, in a folder that is deleted afterwards.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
OUT = ROOT / "docs" / "images"
SIZE = (1440, 900)
PATIENCE = 120.0
"""Seconds until the pages must have been read."""


async def until(what: Callable[[], bool]) -> None:
    """Wait until WHAT holds."""
    end = time.monotonic() + PATIENCE
    while not what():
        if time.monotonic() > end:
            raise SystemExit("The window did not come to the state that is to be shown.")
        await asyncio.sleep(0.1)


async def picture() -> None:
    """Read the sample, choose its table, and keep the window's picture in light and dark."""
    from PySide6.QtWidgets import QApplication

    from desktop import app as application
    from desktop import paths
    from desktop.jobs.events import PageState
    from desktop.jobs.session import Session
    from desktop.settings import Values
    from desktop.settings.store import Store
    from desktop.ui.main_window import MainWindow
    from desktop.ui.theme import Appearance

    qt = QApplication.instance()
    assert isinstance(qt, QApplication)
    session = Session(paths.data_dir() / "journal.sqlite", paths.cache_dir(), Values())
    appearance = Appearance(qt, "light")
    window = MainWindow(session, appearance, Store(), asyncio.get_running_loop())
    window.resize(*SIZE)
    window.show()
    window.open()
    await application.bring_up(window, session, asyncio.Event())
    window.commands.sample()

    def pages() -> list[PageState]:
        return [page.state for document in window.model.documents()
                for page in window.model.pages(document.id)]
    await until(lambda: bool(pages()) and all(state.final for state in pages()))
    pane = window.pane
    assert pane is not None
    document = window.model.documents()[0].id
    for page in window.model.pages(document):
        window.controller.show(page.id, by_person=True)
        await until(lambda: pane.canvas.has_image and bool(pane.result.extents))
        table = next((mark.id for mark in pane.canvas.marks if mark.label == "table"), "")
        if table:
            pane.choose(table)
            break
    window.toast.hide()
    OUT.mkdir(parents=True, exist_ok=True)
    for theme, name in (("light", "window.png"), ("dark", "window-dark.png")):
        appearance.choose(theme)
        await asyncio.sleep(2)  # thumbnails, exact scaling, Chromium's next frames
        shot = OUT / name
        # From the screen: what Chromium draws is not in the widgets' own picture.
        window.screen().grabWindow(window.winId()).save(str(shot))
        with Image.open(shot) as image:
            small = image.convert("RGB")
        small.save(shot, optimize=True)
    window.close()
    await asyncio.to_thread(session.close)


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="verso-pictures-") as home:
        for kind in ("DATA", "CONFIG", "CACHE", "LOG"):
            os.environ[f"VERSO_{kind}_DIR"] = str(Path(home) / kind.lower())
        from desktop import app as application

        application.prepare_environment()
        import qasync
        from PySide6.QtWidgets import QApplication

        qt = QApplication([])
        qt.setQuitOnLastWindowClosed(False)
        loop = qasync.QEventLoop(qt)
        asyncio.set_event_loop(loop)
        with loop:
            loop.run_until_complete(picture())


if __name__ == "__main__":
    main()
