"""Which pages a test reads: what the form means by “pages”, and what the form says of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer

from desktop.benchmark import environment
from desktop.benchmark.errors import FileUnusable
from desktop.benchmark.workload import Workload
from desktop.errors import VersoError
from desktop.i18n import N_, _, ngettext
from desktop.intake.errors import PasswordNeeded, WrongPassword
from desktop.ui import words
from desktop.ui.benchmark import wish as wishes
from desktop.ui.benchmark.measuring import open_pages
from desktop.ui.frame import Frame

if TYPE_CHECKING:
    from desktop.ui.benchmark.form import Form

SETTLE_MS = 400
"""After the last key, before files are looked at or anything is kept."""


class NoPages(VersoError):
    """The form names no pages."""

    code = "window.benchmark_no_pages"
    message = N_("No pages are chosen to measure with.")
    hint = N_("Choose files or a folder, add a document to the queue, or take the sample pages.")


class Sources(QObject):
    """Files and folders of the form; they are looked at in the background."""

    def __init__(self, window: Frame, form: Form, busy: Callable[[], bool],
                 parent: QObject | None = None) -> None:
        """BUSY: whether a test runs, whose pages are settled."""
        super().__init__(parent)
        self._window = window
        self._form = form
        self._busy = busy
        self.protected = False
        """Whether a file of them has a password, as far as they were looked at."""
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(SETTLE_MS)
        self._soon.timeout.connect(self.look)
        form.sources_changed.connect(self.look_soon)
        form.unique.toggled.connect(self.look_soon)  # what is said of caches follows

    def chosen(self) -> list[Path]:
        """Those the form means; [] for the samples. Raises NoPages."""
        wish = self._form.wish()
        if wish.pages == wishes.SAMPLES:
            return []
        if wish.pages == wishes.CHOSEN:
            if not wish.paths:
                raise NoPages
            return [Path(path) for path in wish.paths]
        window = self._window
        shown = window.model.page(window.controller.page_id or "")
        document = window.model.document(shown.document_id) if shown is not None else None
        if document is None:
            document = next(iter(window.model.documents()), None)
        if document is None:
            raise NoPages
        return [Path(document.path)]

    def take(self, files: list[Path]) -> bool:
        """Measure with FILES, that were dropped; False where that cannot be now."""
        if self._busy() or not files:
            return False
        self._form.set_paths([str(path) for path in files])
        return True

    # --- what the form says of them
    def look_soon(self, *_what: object) -> None:
        """Something about them may have changed."""
        self._soon.start()

    def look(self) -> None:
        """Count their pages now."""
        if self._busy():
            return
        try:
            sources = self.chosen()
        except NoPages as error:
            self._form.set_facts(error.problem().line(), wrong=True)
            return
        self._window.tasks.spawn(self._tell(sources), "benchmark look")

    def stop(self) -> None:
        """The window closes."""
        self._soon.stop()

    async def _tell(self, sources: list[Path]) -> None:
        try:
            found = await open_pages(self._window.session, sources)
        except FileUnusable as error:
            self._form.set_facts(f"{error.path.name}: {error.cause.problem().line()}", wrong=True)
            self.protected = isinstance(error.cause, PasswordNeeded | WrongPassword)
        except VersoError as error:
            self._form.set_facts(error.problem().line(), wrong=True)
            self.protected = False
        else:
            self._form.set_facts(self._facts(found, sources))
            self.protected = bool(found.passwords)

    def _facts(self, found: Workload, sources: list[Path]) -> str:
        said = ngettext("{n} page", "{n} pages", len(found.pages)).format(
            n=words.count_of(len(found.pages)))
        parts = [said]
        if sources:
            parts.insert(0, ", ".join(path.name for path in sources[:3])
                         + (" …" if len(sources) > 3 else ""))
        if found.left_out:
            parts.append(ngettext("{n} file left out", "{n} files left out",
                                  len(found.left_out)).format(n=len(found.left_out)))
        if self._form.wish().unique:
            parts.append(_("each copy is marked, caches cannot help"))
        else:
            states = environment.caches(self._window.session.values, {}).values()
            if "on" in states:
                parts.append(_("they repeat, and a cache of the engine is on"))
            elif "unknown" in states:
                parts.append(_("they repeat, and the server may have a cache"))
        return words.DOT.join(parts)
