"""What the page remembers from one start to the next: the form, and where files were saved."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QSettings

from desktop import paths
from desktop.ui.benchmark.wish import Wish


def _kept() -> QSettings:
    kept = QSettings(str(paths.config_dir() / "window.ini"), QSettings.Format.IniFormat)
    kept.beginGroup("benchmark")
    return kept


def form() -> tuple[Wish, bool]:
    """The form as it was left, and whether “Advanced” was open."""
    kept = _kept()
    return Wish.of(kept.value("wish", "")), kept.value("advanced", "false") == "true"


def keep_form(wish: Wish, advanced: bool) -> None:
    """Remember the form."""
    kept = _kept()
    kept.setValue("wish", wish.kept())
    kept.setValue("advanced", "true" if advanced else "false")


def folder() -> str:
    """Where a run was saved last; the person's own at first."""
    return str(_kept().value("folder", str(Path.home())))


def keep_folder(path: Path) -> None:
    """Remember PATH, where a run was saved."""
    _kept().setValue("folder", str(path))
