"""The centre of the window: the page beside what was read from it, linked block by block.

Import this package before the QApplication is made: it prepares what QtWebEngine needs from the
start (:func:`prepare`). It does not load QtWebEngine itself, which costs a noticeable moment;
that happens after the pane was first shown.
"""

from __future__ import annotations

import os
import sys

from PySide6.QtCore import QCoreApplication, Qt


def prepare() -> None:
    """Make it possible to start QtWebEngine later; without effect once there is an application."""
    if QCoreApplication.instance() is None:
        QCoreApplication.setAttribute(Qt.ApplicationAttribute.AA_ShareOpenGLContexts)
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        # Chromium refuses to start as root with its sandbox (containers, kiosks).
        _add_flag("--no-sandbox")
        # Without a sandbox the process that starts the others is of no use, and the window waits
        # for it: 200 ms on a busy machine.
        _add_flag("--no-zygote")
    if _no_graphics_device():
        # OpenGL in software makes every repaint of the window cost a frame or more; drawing
        # without OpenGL takes a twentieth of it.
        os.environ.setdefault("QT_QUICK_BACKEND", "software")
        # Looking for an OpenGL that is not there is most of what Chromium's start costs.
        os.environ.setdefault("QT_XCB_GL_INTEGRATION", "none")
        _add_flag("--disable-gpu")


def web_engine_wanted() -> bool:
    """Whether the page is to be rendered by QtWebEngine (``VERSO_NO_WEBENGINE=1``: it is not)."""
    return os.environ.get("VERSO_NO_WEBENGINE", "") in ("", "0")


def _no_graphics_device() -> bool:
    """Whether this is a Linux without any device that could draw (virtual displays)."""
    devices = ("/dev/dri", "/dev/nvidiactl", "/dev/dxg")
    return sys.platform == "linux" and not any(os.path.exists(device) for device in devices)


def _add_flag(flag: str) -> None:
    flags = os.environ.get("QTWEBENGINE_CHROMIUM_FLAGS", "").split()
    if flag not in flags:
        os.environ["QTWEBENGINE_CHROMIUM_FLAGS"] = " ".join([*flags, flag])


prepare()
