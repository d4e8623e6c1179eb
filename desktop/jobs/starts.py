"""What each engine got when it last started, kept on disk for who asks without starting it."""

from __future__ import annotations

import logging
import os
import tempfile
import threading
from datetime import datetime, timezone
from pathlib import Path

import msgspec

from desktop import paths
from desktop.protocol.messages import EngineReady

_log = logging.getLogger(__name__)
_lock = threading.Lock()


class Start(msgspec.Struct, frozen=True):
    """One start."""

    when: datetime
    """With its time zone."""
    got: EngineReady


class _File(msgspec.Struct):
    version: int = 1
    engines: dict[str, Start] = {}
    """Engine's name → its last start."""


def note(ready: EngineReady) -> None:
    """Keep READY as what its engine got now. Blocks for a small file; raises nothing."""
    with _lock:
        file = _read()
        file.engines[ready.engine] = Start(datetime.now(timezone.utc), ready)
        try:
            _write(msgspec.json.format(msgspec.json.encode(file)))
        except OSError as error:
            _log.warning("what the engine got is not kept: %s", error)


def last(engine: str) -> Start | None:
    """The last start of ENGINE; None: it never started here, or nothing of it is kept."""
    return _read().engines.get(engine)


def path() -> Path:
    """Where it is kept."""
    return paths.data_dir() / "engine-starts.json"


def _read() -> _File:
    try:
        return msgspec.json.decode(path().read_bytes(), type=_File)
    except FileNotFoundError:
        return _File()
    except (OSError, ValueError) as error:  # Of a later version, or damaged: the next start counts.
        _log.info("%s is not read: %s", path(), error)
        return _File()


def _write(data: bytes) -> None:
    """Whole or not at all: several programs may write."""
    descriptor, name = tempfile.mkstemp(dir=path().parent, prefix=".engine-starts-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        os.replace(name, path())
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
