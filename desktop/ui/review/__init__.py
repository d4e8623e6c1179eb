"""The centre of the window: the page beside what was read from it, linked block by block.

Import this package before the QApplication is made: it prepares what QtWebEngine needs from the
start (:func:`prepare`). It does not load QtWebEngine itself, which costs a noticeable moment;
that happens after the pane was first shown.
"""

from __future__ import annotations

import os

from PySide6.QtCore import QCoreApplication, Qt


def prepare() -> None:
    """Make it possible to start QtWebEngine later; without effect once there is an application."""
    if QCoreApplication.instance() is None:
        QCoreApplication.setAttribute(Qt.ApplicationAttribute.AA_ShareOpenGLContexts)
    flags = os.environ.get("QTWEBENGINE_CHROMIUM_FLAGS", "").split()
    if hasattr(os, "geteuid") and os.geteuid() == 0 and "--no-sandbox" not in flags:
        # Chromium refuses to start as root with its sandbox (containers, kiosks).
        os.environ["QTWEBENGINE_CHROMIUM_FLAGS"] = " ".join([*flags, "--no-sandbox"])


prepare()
