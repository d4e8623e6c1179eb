"""Throughput measurements that were made, as the journal keeps them."""

from __future__ import annotations

import json
import sqlite3
import time
import zlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import msgspec

_COLUMNS = ("id, started, name, engine, model, device, digest, ended, levels, concurrency, speed, "
            "unit")


@dataclass(frozen=True)
class BenchmarkRow:
    """One run in short; times in seconds since the epoch."""

    id: int
    started: float
    name: str
    """What a person calls it; "" at first."""
    engine: str
    model: str
    device: str
    digest: str
    """Of the pages: runs with equal ones can be compared."""
    ended: str
    """complete, interrupted, time cap, failed."""
    levels: int
    concurrency: int
    """Pages at once of the fastest level; 0: none has figures."""
    speed: float
    """Of that level, in UNIT: ``tok/s`` or ``pages/s``."""
    unit: str


class Benchmarks:
    """The journal's table of runs. Used on the journal's thread."""

    def __init__(self, db: sqlite3.Connection,
                 change: Callable[[], AbstractContextManager[None]]) -> None:
        """CHANGE is a transaction."""
        self._db = db
        self._change = change

    def add(self, document: Mapping[str, Any], row: BenchmarkRow) -> int:
        """Keep a run's JSON DOCUMENT; ROW says it in short (its id is not used). The new id."""
        data = zlib.compress(_encoded(document), 6)
        with self._change():
            cursor = self._db.execute(
                "INSERT INTO benchmarks (started, name, engine, model, device, digest, ended, "
                "levels, concurrency, speed, unit, document) VALUES (?,?,?,?,?,?,?,?,?,?,?,?)",
                (row.started or time.time(), row.name, row.engine, row.model, row.device,
                 row.digest, row.ended, row.levels, row.concurrency, row.speed, row.unit, data))
        return int(cursor.lastrowid or 0)

    def rows(self) -> list[BenchmarkRow]:
        """All runs, the newest first."""
        return [BenchmarkRow(*row) for row in self._db.execute(
            f"SELECT {_COLUMNS} FROM benchmarks ORDER BY started DESC, id DESC")]

    def document(self, benchmark_id: int) -> dict[str, Any] | None:
        """The JSON document of a run; None: there is no such run."""
        row = self._db.execute("SELECT document FROM benchmarks WHERE id = ?",
                               (benchmark_id,)).fetchone()
        return None if row is None else _decoded(zlib.decompress(row[0]))

    def rename(self, benchmark_id: int, name: str) -> None:
        """Call a run by a name."""
        with self._change():
            self._db.execute("UPDATE benchmarks SET name = ? WHERE id = ?",
                             (name.encode("utf-8", "replace").decode(), benchmark_id))

    def remove(self, benchmark_id: int) -> None:
        """Forget a run."""
        with self._change():
            self._db.execute("DELETE FROM benchmarks WHERE id = ?", (benchmark_id,))


_PAUSE = 0.0005
"""Seconds for which others may have Python between two levels: a run of a hundred levels is tens of
megabytes, and the window must not wait for all of them at once."""


def _encoded(document: Mapping[str, Any]) -> bytes:
    """DOCUMENT as JSON, level by level."""
    parts = []
    for key, value in document.items():
        if key == "levels":
            levels = []
            for level in value:
                levels.append(_json(level))
                time.sleep(_PAUSE)
            parts.append(b'"levels":[' + b",".join(levels) + b"]")
        else:
            parts.append(_json(key) + b":" + _json(value))
    return b"{" + b",".join(parts) + b"}"


def _json(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:  # the name of a file that is no Unicode
        return json.dumps(value).encode()


def _decoded(data: bytes) -> dict[str, Any]:
    """What :func:`_encoded` was given."""
    raw = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
    found: dict[str, Any] = {}
    for key, value in raw.items():
        if key != "levels":
            found[key] = _value(value)
            continue
        found[key] = []
        for level in msgspec.json.decode(value, type=list[msgspec.Raw]):
            found[key].append(_value(level))
            time.sleep(_PAUSE)
    return found


def _value(raw: msgspec.Raw) -> Any:
    try:
        return msgspec.json.decode(raw)
    except msgspec.DecodeError:  # as above: half of a pair of surrogates
        return json.loads(bytes(raw))
