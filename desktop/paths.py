"""Where Verso keeps its files, and where the files that come with it are."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import platformdirs

from desktop.errors import VersoError
from desktop.i18n import N_

_PACKAGE = Path(__file__).resolve().parent

JOURNAL = "journal.sqlite"
"""The window's journal, in :func:`data_dir`."""


class OwnFolderUnusable(VersoError):
    """A folder that Verso needs for itself cannot be made, or nobody may write there."""

    code = "paths.folder"
    message = N_("Verso's own folder {folder} cannot be used: {reason}.")
    hint = N_("Check who may write there, or name another folder in the variable {variable}.")


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
    """Raises OwnFolderUnusable."""
    path = Path(os.environ[variable]) if os.environ.get(variable) else default
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not os.access(path, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise OwnFolderUnusable(folder=path, variable=variable, detail=str(error),
                                reason=error.strerror or type(error).__name__) from error
    return path
