"""Earlier tests: the list of them is shown, one is shown again, two are compared."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QObject
from PySide6.QtWidgets import QDialog
from shiboken6 import isValid

from desktop.benchmark import history
from desktop.i18n import _
from desktop.ui.background import in_background
from desktop.ui.benchmark.figures import Shown, shown_of
from desktop.ui.benchmark.past import PastDialog
from desktop.ui.benchmark.preview import Known
from desktop.ui.benchmark.readings import Readings, of_document
from desktop.ui.frame import Frame

if TYPE_CHECKING:
    from desktop.ui.benchmark.page import BenchmarkPage


class EarlierTests(QObject):
    """Those of the journal. It is asked for them on its own thread."""

    def __init__(self, window: Frame, page: BenchmarkPage,
                 open_dialog: Callable[[str, QDialog], None],
                 show: Callable[[Shown, Readings], None], busy: Callable[[], bool],
                 parent: QObject | None = None) -> None:
        """SHOW puts a run on PAGE; BUSY: whether a test runs, beside which none is shown."""
        super().__init__(parent)
        self._window = window
        self._session = window.session
        self._page = page
        self._open = open_dialog
        self._show = show
        self._busy = busy
        self._dialog: PastDialog | None = None

    # --- what is known from them
    async def learn(self, engine: str) -> None:
        """Have the form estimate by the last test of ENGINE."""
        rows = await asyncio.wrap_future(self._session.benchmarks())
        known = Known()
        for row in rows:
            if row.engine == engine and row.concurrency:
                found = await asyncio.wrap_future(self._session.benchmark(row.id))
                if found is not None:
                    known = Known(history.speeds(found), history.start_seconds(found))
                break
        self._page.form.set_known(known)
        self._page.teaching.history.setVisible(bool(rows))

    # --- the list
    def open(self) -> None:
        """Open the list."""
        dialog = PastDialog(self._window)
        dialog.show_wanted.connect(self.show_one)
        dialog.compare_wanted.connect(self.compare)
        dialog.renamed.connect(self._session.rename_benchmark)
        dialog.removed.connect(self._forget)
        self._dialog = dialog
        self._open("past", dialog)
        self._fill()

    def list_changed(self) -> None:
        """There is another test; the list shows it where it is open."""
        if self._dialog is not None and isValid(self._dialog):
            self._fill()

    def _fill(self) -> None:
        async def fill() -> None:
            rows = await asyncio.wrap_future(self._session.benchmarks())
            if self._dialog is not None and isValid(self._dialog):
                self._dialog.set_rows(rows)
            self._page.teaching.history.setVisible(bool(rows))
        self._window.tasks.spawn(fill(), "benchmark list")

    def _forget(self, ids: list[int]) -> None:
        for number in ids:
            self._session.remove_benchmark(number)
        self._fill()

    # --- showing them
    def show_one(self, number: int) -> None:
        """Show the test of that NUMBER."""
        async def show() -> None:
            shown = await self._fetch(number)
            if shown is not None and not self._refused():
                self._show(shown, await in_background(lambda: of_document(shown.document)))
                self._close()
        self._window.tasks.spawn(show(), "benchmark show")

    def compare(self, number: int, other: int) -> None:
        """Show the test of that NUMBER, held against the OTHER one, which is the earlier."""
        async def show() -> None:
            one, two = await self._fetch(number), await self._fetch(other)
            if one is None or two is None or self._refused():
                return
            self._show(one, await in_background(lambda: of_document(one.document)))
            # The later one by the earlier one: what has become of it.
            self._page.compare(two, history.compare(two.document, one.document))
            self._close()
        self._window.tasks.spawn(show(), "benchmark show")

    def _close(self) -> None:
        """The list would lie above what it was opened for."""
        if self._dialog is not None and isValid(self._dialog):
            self._dialog.close()

    async def _fetch(self, number: int) -> Shown | None:
        rows = await asyncio.wrap_future(self._session.benchmarks())
        name = next((row.name for row in rows if row.id == number), "")
        found: Mapping[str, Any] | None = await asyncio.wrap_future(
            self._session.benchmark(number))
        if found is None:
            return None
        return await in_background(lambda: shown_of(found, name), "benchmark figures")

    def _refused(self) -> bool:
        if self._busy():
            self._window.toast.say(_("A test runs: another can be shown when it has ended."))
            return True
        return False
