"""Where Verso keeps its files, and where the files that come with it are."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

_PACKAGE = Path(__file__).resolve().parent

JOURNAL = "journal.sqlite"
"""The window's journal, in :func:`data_dir`."""


def resources() -> Path:
    """The folder of icons, page template, schema and other shipped files.

    In an installed wheel it lies inside the package, in a checkout beside it.
    """
    installed = _PACKAGE / "_resources"
    return installed if installed.is_dir() else _PACKAGE.parent / "resources"


def data_dir() -> Path:
    """The journal and the crops of figures. ``VERSO_DATA_DIR`` overrides it (tests, kiosks)."""
    return _made("VERSO_DATA_DIR", platformdirs.user_data_path("verso"))


def config_dir() -> Path:
    """The settings file. ``VERSO_CONFIG_DIR`` overrides it."""
    return _made("VERSO_CONFIG_DIR", platformdirs.user_config_path("verso"))


def cache_dir() -> Path:
    """Rendered pages, thumbnails; may be deleted at any time. ``VERSO_CACHE_DIR`` overrides it."""
    return _made("VERSO_CACHE_DIR", platformdirs.user_cache_path("verso"))


def log_dir() -> Path:
    """Log files. ``VERSO_LOG_DIR`` overrides it."""
    return _made("VERSO_LOG_DIR", platformdirs.user_log_path("verso"))


def _made(variable: str, default: Path) -> Path:
    path = Path(os.environ[variable]) if os.environ.get(variable) else default
    path.mkdir(parents=True, exist_ok=True)
    return path
