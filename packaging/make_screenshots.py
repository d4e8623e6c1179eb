"""Writes ``docs/images/window.png``, ``benchmark.png``, and both in dark.

    xvfb-run -s "-screen 0 1440x900x24" python packaging/make_screenshots.py [window] [benchmark]

The real window with the product's own sample, read and measured by the built-in engine: every
figure that is seen was measured while the picture was made (a few minutes, on a machine that does
nothing else). Settings and journal are its own, in a folder that is deleted afterwards.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PIL import Image

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
OUT = ROOT / "docs" / "images"
SIZE = (1440, 900)
PATIENCE = 120.0
"""Seconds until the pages must have been read."""
LONG = 1_200.0
"""Seconds until a test must have ended."""


if TYPE_CHECKING:
    from desktop.ui.main_window import MainWindow


async def until(what: Callable[[], bool], patience: float = PATIENCE) -> None:
    """Wait until WHAT holds."""
    end = time.monotonic() + patience
    while not what():
        if time.monotonic() > end:
            raise SystemExit("The window did not come to the state that is to be shown.")
        await asyncio.sleep(0.1)


async def keep(window: MainWindow, name: str) -> None:
    """Write the window's picture as NAME.png in light, and as NAME-dark.png."""
    OUT.mkdir(parents=True, exist_ok=True)
    for theme, suffix in (("light", ""), ("dark", "-dark")):
        window.appearance.choose(theme)
        await asyncio.sleep(2)  # thumbnails, exact scaling, Chromium's next frames
        shot = OUT / f"{name}{suffix}.png"
        # From the screen: what Chromium draws is not in the widgets' own picture.
        window.screen().grabWindow(window.winId()).save(str(shot))
        with Image.open(shot) as image:
            small = image.convert("RGB")
        small.save(shot, optimize=True)
    window.appearance.choose("light")


async def read(window: MainWindow) -> None:
    """Read the sample, and choose its table."""
    from desktop.jobs.events import PageState

    def pages() -> list[PageState]:
        return [page.state for document in window.model.documents()
                for page in window.model.pages(document.id)]

    window.commands.sample()
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


async def measure(window: MainWindow) -> None:
    """Measure the built-in engine on the sample pages."""
    from desktop.ui.benchmark.wish import Wish

    window.commands.show_benchmark(True)
    tab = window.commands.benchmark
    await until(lambda: tab.page is not None)
    page = tab.page
    assert page is not None
    page.form.set_wish(Wish(levels="1, 2, 3, 4, 6, 8", warmup=1, rounds=3, amount=2))
    await asyncio.sleep(1)
    tab.start()
    await until(lambda: tab.measuring.running)
    await until(lambda: not tab.measuring.running, LONG)
    page.draw_now()
    window.toast.hide()


async def pictures(wanted: Sequence[str]) -> None:
    """Bring the window to each state that is WANTED, and keep it."""
    from PySide6.QtWidgets import QApplication

    from desktop import app as application
    from desktop import paths
    from desktop.jobs.session import Session
    from desktop.settings import Values
    from desktop.settings.store import Store
    from desktop.ui.main_window import MainWindow
    from desktop.ui.theme import Appearance

    qt = QApplication.instance()
    assert isinstance(qt, QApplication)
    session = Session(paths.data_dir() / "journal.sqlite", paths.cache_dir(), Values())
    window = MainWindow(session, Appearance(qt, "light"), Store(), asyncio.get_running_loop())
    window.resize(*SIZE)
    window.show()
    window.open()
    await application.bring_up(window, session, asyncio.Event())
    for name, bring in (("window", read), ("benchmark", measure)):
        if name in wanted:
            await bring(window)
            await keep(window, name)
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
            loop.run_until_complete(pictures(sys.argv[1:] or ("window", "benchmark")))


if __name__ == "__main__":
    main()
