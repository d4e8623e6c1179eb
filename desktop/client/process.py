"""The worker as a process: start it, signal it and everything it started, wait for its end."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Mapping
from multiprocessing.connection import Pipe
from pathlib import Path

from desktop import paths
from desktop.client.endings import NoInterpreter
from desktop.client.staging import environment as environment_of
from desktop.client.staging import stage
from desktop.protocol.messages import AnyEvent
from desktop.protocol.wire import Channel
from desktop.worker.main import TRANSLATIONS

_log = logging.getLogger(__name__)

MARK = "VERSO_WORKER"
"""Environment variable by which a worker's descendants are known, wherever they went."""

# Reads until the application is gone, gives the worker three seconds to end by itself, then
# kills its process group and whatever else carries its mark. A shell, because it is small and
# does not share a fate with any Python.
_GUARD = r"""
read -r _
i=0
while [ $i -lt 30 ] && kill -0 "-$1" 2>/dev/null; do sleep 0.1; i=$((i + 1)); done
kill -s KILL -- "-$1" 2>/dev/null
for f in $(grep -lsa "VERSO_WORKER=$2" /proc/[0-9]*/environ); do
  p=${f#/proc/}; kill -s KILL "${p%/environ}" 2>/dev/null
done
"""


class WorkerProcess:
    """One worker in a session and process group of its own.

    Must be made on a thread that lives as long as the worker shall: Linux ties the worker's
    parent-death signal to the thread that started it.
    """

    def __init__(self, interpreter: str | None,
                 environment: Mapping[str, str | None]) -> None:
        """Start it under INTERPRETER (None: ours) with ENVIRONMENT on top of our own (None: not
        set).

        Raises :class:`NoInterpreter` when it cannot be run, OSError when the system has no room
        for another process or file.
        """
        self._mark = uuid.uuid4().hex
        self._lock = threading.Lock()
        self._reaped = False
        folders = stage()
        ours, theirs = Pipe(duplex=True)
        try:
            self._popen = subprocess.Popen(
                [interpreter or sys.executable, "-m", "desktop.worker", str(theirs.fileno())],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                pass_fds=[theirs.fileno()], cwd=folders.work, start_new_session=True,
                env=self._environment(interpreter or sys.executable, folders.path, environment),
            )
        except OSError as error:
            ours.close()
            if isinstance(error, (FileNotFoundError, PermissionError)) or (
                    error.errno in (errno.ENOEXEC, errno.ENOTDIR, errno.ELOOP)):
                raise NoInterpreter(
                    interpreter=interpreter or sys.executable, detail=str(error)) from error
            raise
        finally:
            theirs.close()
        self.pid = self._popen.pid
        self.channel: Channel[AnyEvent] = Channel.of_application(ours)
        assert self._popen.stdout is not None
        assert self._popen.stderr is not None
        self.stdout = self._popen.stdout
        self.stderr = self._popen.stderr
        self._pidfd = os.pidfd_open(self.pid) if hasattr(os, "pidfd_open") else None
        try:
            self._guard = self._start_guard()
        except OSError:
            self._kill_group()
            raise

    @property
    def sentinel(self) -> int | None:
        """A descriptor that becomes readable when the worker ends; None: ask :meth:`ended`."""
        return self._pidfd

    def ended(self) -> bool:
        """Whether the worker has ended. It is not reaped by this: until :meth:`reap` its process
        and group ids belong to nobody else."""
        with self._lock:
            if self._reaped:
                return True
            try:
                return os.waitid(
                    os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
            except ChildProcessError:  # The application leaves its children to the kernel.
                return True

    def settle(self, patience: float) -> None:
        """Once the worker has ended: let what it started end by itself, for PATIENCE seconds.
        Python's resource tracker, for one, releases shared memory then."""
        deadline = time.monotonic() + patience
        while self._living() and time.monotonic() < deadline:
            time.sleep(0.02)

    def terminate(self) -> None:
        """SIGTERM to the worker alone: it sees to the others."""
        with self._lock:
            if not self._reaped:
                os.kill(self.pid, signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL to the worker, its group and every process that carries its mark."""
        with self._lock:
            if self._reaped:
                return
            self._kill_group()
        for pid in self._strays():
            _kill_if(pid, self._sign)

    def reap(self, patience: float = 5.0) -> int:
        """Kill what is left of the group, wait for the end, release everything; the exit status
        as of ``subprocess``. Blocks for at most PATIENCE seconds once the worker is dead."""
        self.kill()
        status = 0
        deadline = time.monotonic() + patience
        while not self.ended() or self._living():
            if time.monotonic() > deadline:
                break
            time.sleep(0.02)
            self.kill()
        with self._lock:
            # The last moment at which the group's id is certainly ours.
            self._guard.kill()
            try:
                status = self._popen.wait(0.5)
            except subprocess.TimeoutExpired:  # Stuck inside the kernel: nothing helps.
                _log.error("process %d does not end, not even after SIGKILL", self.pid)
            self._reaped = True
        self._guard.wait()
        for stream in (self.stdout, self.stderr, self._guard.stdin):
            if stream is not None:
                stream.close()
        self.channel.close()
        if self._pidfd is not None:
            os.close(self._pidfd)
            self._pidfd = None
        return status

    def _environment(self, interpreter: str, path: Path,
                     extra: Mapping[str, str | None]) -> dict[str, str]:
        return {
            **environment_of(interpreter, path, extra),
            "PYTHONFAULTHANDLER": "1",
            TRANSLATIONS: str(paths.resources() / "translations"),
            MARK: self._mark,
        }

    def _start_guard(self) -> subprocess.Popen[bytes]:
        """A process that notices our death by the end of its input, which nobody else holds."""
        environment = {key: value for key, value in os.environ.items() if key != MARK}
        return subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "verso-guard", str(self.pid), self._mark],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, cwd="/", env=environment)

    def _kill_group(self) -> None:
        # Nobody left, or (macOS) nobody but a zombie.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    @property
    def _sign(self) -> bytes:
        return f"{MARK}={self._mark}".encode()

    def _strays(self) -> list[int]:
        """Living processes with the worker's mark; none where there is no /proc."""
        return [int(folder.name) for folder in Path("/proc").glob("[0-9]*")
                if _has(folder.name, self._sign)]

    def _living(self) -> bool:
        """Whether a process of the group or with the mark lives (zombies do not)."""
        if self._strays():
            return True
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue  # It has ended since.
            if fields[0] not in (b"Z", b"X") and int(fields[2]) == self.pid:
                return True
        return False


def _has(pid: str, sign: bytes) -> bool:
    try:
        return sign in Path("/proc", pid, "environ").read_bytes()
    except OSError:  # Ended, or somebody else's.
        return False


def _kill_if(pid: int, sign: bytes) -> None:
    """SIGKILL to PID if it still is the process that carries SIGN in its environment."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        descriptor = os.pidfd_open(pid)
        try:
            if _has(str(pid), sign):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        finally:
            os.close(descriptor)
