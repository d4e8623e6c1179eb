"""Whether a window can be opened here, found out before Qt tries and ends the process.

Qt aborts when it finds no display or cannot load its platform plugin; a person is told in one
sentence instead. Qt-free until the plugin's libraries are looked at.
"""

from __future__ import annotations

import ctypes
import os
import re
import socket
import sys
from pathlib import Path

from desktop.errors import VersoError
from desktop.i18n import N_

_SECONDS = 3.0
"""How long an X server on another machine may take to answer."""


class NoDisplay(VersoError):
    """No graphical session can be reached."""

    code = "window.no-display"
    message = N_("No window can be opened: there is no display here.")
    hint = N_("Use `verso convert FILES -o FOLDER`, or start Verso in a graphical session.")


class MissingLibrary(VersoError):
    """Qt's platform plugin needs a system library that is not installed."""

    code = "window.missing-library"
    message = N_("No window can be opened: the system library {library} is missing.")
    hint = N_("`./packaging/run` installs what Qt needs; or install the package that has it.")


def check() -> None:
    """Raise :class:`NoDisplay` or :class:`MissingLibrary` where Qt would abort.

    Only Linux with Qt's own choice of platform is looked at; a platform that is named in
    QT_QPA_PLATFORM is taken at its word.
    """
    if not sys.platform.startswith("linux") or os.environ.get("QT_QPA_PLATFORM"):
        return
    wayland, x11 = _wayland(), _x11()
    if not wayland and not x11:
        raise NoDisplay
    try:
        from PySide6.QtCore import QLibraryInfo
        from PySide6.QtWidgets import QApplication  # noqa: F401 - loads what every window needs
    except ImportError as error:
        raise MissingLibrary(library=_library(error), detail=str(error)) from error
    if x11 and not wayland:
        plugins = Path(QLibraryInfo.path(QLibraryInfo.LibraryPath.PluginsPath))
        plugin = plugins / "platforms" / "libqxcb.so"
        try:
            ctypes.CDLL(str(plugin))
        except OSError as error:
            raise MissingLibrary(library=_library(error), detail=str(error)) from error


def _library(error: Exception) -> str:
    """The library that the loader's message is about."""
    found = re.match(r"\s*([\w.+-]+\.so[\w.]*)", str(error))
    return found.group(1) if found else str(error)


def _wayland() -> bool:
    name = os.environ.get("WAYLAND_DISPLAY", "")
    if not name:
        return False
    path = Path(os.environ.get("XDG_RUNTIME_DIR", ""), name)
    return _connects(socket.AF_UNIX, str(path))


def _x11() -> bool:
    found = re.fullmatch(r"(?:(.*/)?unix|(.*)):(\d+)(?:\.\d+)?", os.environ.get("DISPLAY", ""))
    if not found:
        return False
    host, number = found.group(2) or "", int(found.group(3))
    if host:
        return _connects(socket.AF_INET, (host, 6000 + number))
    path = f"/tmp/.X11-unix/X{number}"
    return _connects(socket.AF_UNIX, path) or _connects(socket.AF_UNIX, "\0" + path)


def _connects(family: socket.AddressFamily, address: str | tuple[str, int]) -> bool:
    try:
        if isinstance(address, tuple):
            socket.create_connection(address, _SECONDS).close()
        else:
            with socket.socket(family) as channel:
                channel.settimeout(_SECONDS)
                channel.connect(address)
    except OSError:
        return False
    return True
