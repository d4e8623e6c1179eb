"""One window a person: a second start hands its files over, because one process keeps the journal.

A lock file decides who is first; a local socket beside it carries the paths.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path

from PySide6.QtCore import QLockFile, QObject, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from desktop import paths

PATIENCE = 5.0
"""Seconds a second start waits for the first to answer: it may be starting itself."""
_ANSWER = b"ok\n"


def _name() -> str:
    digest = hashlib.sha256(str(paths.data_dir().resolve()).encode()).hexdigest()[:16]
    return f"verso-{digest}"


class SingleInstance(QObject):
    """Claims the data folder, or hands files to the window that has it."""

    files_came = Signal(list)
    """Paths another start handed over (may be empty: the window is only wanted in front)."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._lock = QLockFile(str(paths.data_dir() / "window.lock"))
        self._lock.setStaleLockTime(0)  # stale only when the process is gone
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.newConnection.connect(self._connected)

    def claim(self) -> bool:
        """Become the one window; False when there is one already."""
        if not self._lock.tryLock(0):
            return False
        QLocalServer.removeServer(_name())
        self._server.listen(_name())
        return True

    def hand_over(self, files: Sequence[Path]) -> bool:
        """Give FILES to the window there is; False when it does not answer."""
        message = json.dumps([str(path.absolute()) for path in files]).encode() + b"\n"
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            socket = QLocalSocket()
            socket.connectToServer(_name())
            if socket.waitForConnected(500):
                socket.write(message)
                socket.flush()
                if socket.waitForReadyRead(2000) and socket.readAll().data() == _ANSWER:
                    return True
            time.sleep(0.1)
        return False

    def _connected(self) -> None:
        while self._server.hasPendingConnections():
            socket = self._server.nextPendingConnection()
            socket.readyRead.connect(lambda socket=socket: self._read(socket))
            socket.disconnected.connect(socket.deleteLater)

    def _read(self, socket: QLocalSocket) -> None:
        if not socket.canReadLine():
            return
        try:
            names = json.loads(bytes(socket.readLine().data()))
        except ValueError:
            socket.abort()
            return
        if not isinstance(names, list):
            socket.abort()
            return
        socket.write(_ANSWER)
        socket.flush()
        self.files_came.emit([Path(name) for name in names if isinstance(name, str)])

    def release(self) -> None:
        """Let the next start be the one window."""
        self._server.close()
        self._lock.unlock()
