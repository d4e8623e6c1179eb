"""The journal: documents, pages, results, edits and the settings used, in one SQLite file.

Whatever moment the program or the machine stops at, the file tells what is done and what waits.
Write-ahead logging keeps it consistent, one process holds it at a time (the lock dies with its
holder). Not thread-safe: one thread uses a journal.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sqlite3
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from desktop.errors import Problem
from desktop.jobs.benchmarks import Benchmarks
from desktop.jobs.errors import (
    JournalBusy,
    JournalCorrupt,
    JournalTooNew,
    JournalUnusable,
)
from desktop.jobs.events import DocumentState, PageState
from desktop.jobs.records import Counts, DocumentRow, Outcome, PageKey, PageRow, ResultRow
from desktop.jobs.schema import MIGRATIONS
from desktop.protocol.messages import Region

log = logging.getLogger(__name__)

_PAGE = ("document_id, number, selected, state, problem, attempts, deaths, seconds, first_text, "
         "prompt_tokens, output_tokens, blocks, tables, width, height, rotation, fingerprint, "
         "engine, model, loops")
_DOCUMENT = ("id, path, name, state, sha256, size, mtime_ns, pages, page_range, locked, held, "
             "problem")
_REDO = (*(state.value for state in PageState if state.suspicious), "cancelled")


class Journal:
    """An open journal, locked for this process until :meth:`close`."""

    def __init__(self, path: Path) -> None:
        """Open or create the journal at PATH and bring its schema up to date.

        A damaged file is set aside under another name and a new one begun (see ``trouble``).
        Raises :class:`JournalBusy`, :class:`JournalTooNew`, :class:`JournalUnusable`.
        """
        self.path = path
        self.trouble: Problem | None = None
        """What happened while it was opened that a person should know; mostly None."""
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise JournalUnusable(path=path, detail=str(error)) from error
        try:
            self._db = _open(path)
        except sqlite3.DatabaseError as error:
            if not _is_damage(error):
                raise JournalUnusable(path=path, detail=str(error)) from error
            kept = _set_aside(path)
            log.warning("journal damaged (%s), kept as %s", error, kept)
            self.trouble = JournalCorrupt(kept=kept, detail=str(error)).problem()
            self._db = _open(path)
        self.benchmarks = Benchmarks(self._db, self._change)

    def close(self) -> None:
        """Release the file."""
        self._db.close()

    # --- documents
    def add_document(self, path: str, name: str, page_range: str = "") -> DocumentRow:
        """A new document at the end of the queue, still to be opened."""
        with self._change():
            cursor = self._db.execute(
                "INSERT INTO documents (path, name, state, page_range, added) "
                "VALUES (?, ?, ?, ?, ?)",
                (os.fsencode(path), _clean(name), DocumentState.OPENING.value, page_range,
                 time.time()))
        return self._known(int(cursor.lastrowid or 0))

    def update_document(self, document_id: int, **fields: Any) -> DocumentRow:
        """Change columns of a document (names as in :class:`DocumentRow`)."""
        values = {key: _problem_text(value) if key == "problem"
                  else value.value if isinstance(value, DocumentState) else value
                  for key, value in fields.items()}
        columns = ", ".join(f"{key} = ?" for key in values)
        with self._change():
            self._db.execute(f"UPDATE documents SET {columns} WHERE id = ?",
                             (*values.values(), document_id))
        return self._known(document_id)

    def document(self, document_id: int) -> DocumentRow | None:
        """The document with this id."""
        row = self._db.execute(f"SELECT {_DOCUMENT} FROM documents WHERE id = ?",
                               (document_id,)).fetchone()
        return None if row is None else _document_row(row)

    def documents(self) -> list[DocumentRow]:
        """All documents that are not held, in queue order."""
        return [_document_row(row) for row in self._db.execute(
            f"SELECT {_DOCUMENT} FROM documents WHERE NOT held ORDER BY id")]

    def documents_at(self, path: str) -> list[DocumentRow]:
        """The documents made from the file at PATH, held ones too, newest first."""
        return [_document_row(row) for row in self._db.execute(
            f"SELECT {_DOCUMENT} FROM documents WHERE path = ? ORDER BY id DESC",
            (os.fsencode(path),))]

    def remove_document(self, document_id: int) -> None:
        """Forget a document with its pages, results and edits."""
        with self._change():
            self._db.execute("DELETE FROM documents WHERE id = ?", (document_id,))

    def hold_all(self) -> None:
        """Set every document aside."""
        with self._change():
            self._db.execute("UPDATE documents SET held = 1")

    # --- pages
    def select_pages(self, document_id: int, numbers: Iterable[int]) -> None:
        """Make exactly the pages NUMBERS the ones to be read; results of others are kept."""
        with self._change():
            self._db.execute("UPDATE pages SET selected = 0 WHERE document_id = ?",
                             (document_id,))
            self._db.executemany(
                "INSERT INTO pages (document_id, number) VALUES (?, ?) "
                "ON CONFLICT (document_id, number) DO UPDATE SET selected = 1",
                ((document_id, number) for number in numbers))

    def page(self, key: PageKey) -> PageRow | None:
        """One page, within the range or not."""
        row = self._db.execute(
            f"SELECT {_PAGE} FROM pages WHERE document_id = ? AND number = ?", key).fetchone()
        return None if row is None else _page_row(row)

    def pages(self, document_id: int) -> Iterator[PageRow]:
        """The selected pages of a document, ascending."""
        return map(_page_row, self._db.execute(
            f"SELECT {_PAGE} FROM pages WHERE document_id = ? AND selected = 1 ORDER BY number",
            (document_id,)))

    def next_waiting(self, skip: Collection[PageKey], limit: int) -> list[PageKey]:
        """The first LIMIT waiting pages of open documents in queue order, without SKIP."""
        rows = self._db.execute(
            "SELECT p.document_id, p.number FROM documents d "
            "JOIN pages p ON p.document_id = d.id "
            "WHERE p.state = 'waiting' AND p.selected = 1 AND d.state = 'open' AND NOT d.held "
            "ORDER BY p.document_id, p.number LIMIT ?", (limit + len(skip),))
        found = [PageKey(*row) for row in rows]
        return [key for key in found if key not in skip][:limit]

    def is_waiting(self, key: PageKey) -> bool:
        """Whether the page may be read now."""
        return self._db.execute(
            "SELECT 1 FROM pages p JOIN documents d ON d.id = p.document_id "
            "WHERE p.document_id = ? AND p.number = ? AND p.state = 'waiting' "
            "AND p.selected = 1 AND d.state = 'open' AND NOT d.held", key).fetchone() is not None

    def counts(self, document_id: int) -> Counts:
        """How far a document is."""
        by_state = {PageState(state): count for state, count in self._db.execute(
            "SELECT state, count(*) FROM pages WHERE document_id = ? AND selected = 1 "
            "GROUP BY state", (document_id,))}
        return Counts(sum(by_state.values()),
                      sum(n for state, n in by_state.items() if state.final),
                      sum(n for state, n in by_state.items() if state.suspicious))

    def begun(self, key: PageKey) -> int:
        """Note that the engine has begun the page once more; which attempt it is."""
        return self._bump(key, "attempts")

    def worker_died(self, key: PageKey) -> int:
        """Note that the worker died while it read the page; how often by now."""
        return self._bump(key, "deaths")

    def reset(self, keys: Iterable[PageKey]) -> None:
        """Let pages wait again; their results and edits go."""
        keys = list(keys)
        with self._change():
            for table in ("results", "edits"):
                self._db.executemany(
                    f"DELETE FROM {table} WHERE document_id = ? AND number = ?", keys)
            self._db.executemany(
                "UPDATE pages SET state = 'waiting', problem = NULL, deaths = 0, seconds = 0, "
                "first_text = 0, prompt_tokens = 0, output_tokens = 0, blocks = 0, tables = 0, "
                "rotation = 0, fingerprint = '', engine = '', model = '', loops = 0 "
                "WHERE document_id = ? AND number = ?", keys)

    def suspicious(self, document_id: int | None = None) -> list[PageKey]:
        """Selected pages that a retry reads again, of one document or of all."""
        marks = ", ".join("?" * len(_REDO))
        return [PageKey(*row) for row in self._db.execute(
            "SELECT p.document_id, p.number FROM pages p JOIN documents d ON d.id = "
            f"p.document_id WHERE p.selected = 1 AND NOT d.held AND p.state IN ({marks}) "
            "AND (? IS NULL OR p.document_id = ?) ORDER BY p.document_id, p.number",
            (*_REDO, document_id, document_id))]

    def outdated(self, document_id: int, fingerprint: str) -> list[PageKey]:
        """Selected pages of a document that failed or were read with other settings."""
        return [PageKey(*row) for row in self._db.execute(
            "SELECT document_id, number FROM pages WHERE document_id = ? AND selected = 1 "
            "AND state <> 'waiting' AND (fingerprint <> ? OR state IN ('failed', 'cancelled')) "
            "ORDER BY number", (document_id, fingerprint))]

    def all_pages(self, document_id: int) -> list[PageKey]:
        """Every page of a document there is a row of."""
        return [PageKey(*row) for row in self._db.execute(
            "SELECT document_id, number FROM pages WHERE document_id = ? ORDER BY number",
            (document_id,))]

    # --- results
    def save(self, key: PageKey, outcome: Outcome) -> bool:
        """Save how a page ended, as a whole; False when the page is gone meanwhile."""
        with self._change():
            changed = self._db.execute(
                "UPDATE pages SET state = ?, problem = ?, seconds = ?, first_text = ?, "
                "prompt_tokens = ?, output_tokens = ?, blocks = ?, tables = ?, width = ?, "
                "height = ?, rotation = ?, fingerprint = ?, engine = ?, model = ?, loops = ?, "
                "finished_at = ? WHERE document_id = ? AND number = ?",
                (outcome.state.value, _problem_text(outcome.problem), outcome.seconds,
                 outcome.first_text, outcome.prompt_tokens, outcome.output_tokens,
                 outcome.blocks, outcome.tables, outcome.width, outcome.height,
                 outcome.rotation, outcome.fingerprint, outcome.engine, outcome.model,
                 outcome.loops, time.time(), *key)).rowcount
            if not changed:
                return False
            self._db.execute(
                "INSERT OR REPLACE INTO results (document_id, number, raw, regions, "
                "confidences, crops) VALUES (?, ?, ?, ?, ?, ?)",
                (*key, _clean(outcome.raw), msgspec.json.encode(outcome.regions).decode(),
                 json.dumps(outcome.confidences), json.dumps(outcome.crops)))
        return True

    def result(self, key: PageKey) -> ResultRow:
        """What was saved of a page; an empty one when nothing was."""
        row = self._db.execute(
            "SELECT raw, regions, confidences, crops FROM results "
            "WHERE document_id = ? AND number = ?", key).fetchone()
        if row is None:
            return ResultRow()
        edits = dict(self._db.execute(
            "SELECT block, markdown FROM edits WHERE document_id = ? AND number = ?", key))
        return ResultRow(
            row[0], tuple(msgspec.json.decode(row[1], type=list[Region])),
            {int(index): value for index, value in json.loads(row[2]).items()},
            tuple(json.loads(row[3])), edits)

    def edit(self, key: PageKey, block: int, markdown: str) -> None:
        """Keep what a person wrote in place of a block's Markdown."""
        with self._change():
            self._db.execute("INSERT OR REPLACE INTO edits VALUES (?, ?, ?, ?, ?)",
                             (*key, block, _clean(markdown), time.time()))

    # --- settings
    def note_settings(self, fingerprint: str, settings: Mapping[str, object]) -> None:
        """Keep the settings that pages with this fingerprint were read with."""
        with self._change():
            self._db.execute("INSERT OR REPLACE INTO settings_used VALUES (?, ?)",
                             (fingerprint, json.dumps(dict(settings), sort_keys=True)))

    def settings_used(self, fingerprint: str) -> dict[str, Any]:
        """The settings noted for a fingerprint; empty when there are none."""
        row = self._db.execute("SELECT settings FROM settings_used WHERE fingerprint = ?",
                               (fingerprint,)).fetchone()
        return {} if row is None else dict(json.loads(row[0]))

    # --- inside
    @contextlib.contextmanager
    def _change(self) -> Iterator[None]:
        self._db.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            # A full disk ends the transaction by itself.
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise
        self._db.execute("COMMIT")

    def _bump(self, key: PageKey, column: str) -> int:
        with self._change():
            row = self._db.execute(
                f"UPDATE pages SET {column} = {column} + 1 "
                f"WHERE document_id = ? AND number = ? RETURNING {column}", key).fetchone()
        return 0 if row is None else int(row[0])

    def _known(self, document_id: int) -> DocumentRow:
        row = self.document(document_id)
        if row is None:
            raise KeyError(document_id)
        return row


def _open(path: Path) -> sqlite3.Connection:
    # The session opens it on its caller's thread, to raise there, and uses it on its own.
    db = sqlite3.connect(path, timeout=0.5, isolation_level=None, check_same_thread=False)
    try:
        db.execute("PRAGMA locking_mode = EXCLUSIVE")
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute("PRAGMA foreign_keys = ON")
        db.execute("BEGIN EXCLUSIVE")
        db.execute("COMMIT")
        damage = db.execute("PRAGMA quick_check(1)").fetchone()[0]
        if damage != "ok":
            raise _Damaged(damage)
        _migrate(db, path)
    except sqlite3.OperationalError as error:
        db.close()
        if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise JournalBusy(path=path.parent) from error
        raise
    except BaseException:
        db.close()
        raise
    return db


class _Damaged(sqlite3.DatabaseError):
    """SQLite's own check found the file damaged."""


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    code = getattr(error, "sqlite_errorcode", None)
    return isinstance(error, _Damaged) or (code is not None and code & 0xFF in (
        sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB))


def _migrate(db: sqlite3.Connection, path: Path) -> None:
    version = db.execute("PRAGMA user_version").fetchone()[0]
    if version > len(MIGRATIONS):
        raise JournalTooNew(path=path)
    for number, script in enumerate(MIGRATIONS[version:], version + 1):
        # One transaction: a cut in the middle leaves the version before.
        db.executescript(f"BEGIN IMMEDIATE;\n{script}\nPRAGMA user_version = {number};\nCOMMIT;")


def _set_aside(path: Path) -> Path:
    stamp = time.strftime("%Y%m%d-%H%M%S")
    kept = path.with_name(f"{path.stem}-damaged-{stamp}{path.suffix}")
    count = 1
    while kept.exists():
        count += 1
        kept = path.with_name(f"{path.stem}-damaged-{stamp}-{count}{path.suffix}")
    for ending in ("", "-wal", "-shm"):
        part = path.with_name(path.name + ending)
        if part.exists():
            part.replace(kept.with_name(kept.name + ending))
    return kept


def _clean(text: str) -> str:
    """TEXT without lone surrogates, which SQLite cannot store."""
    return text.encode("utf-8", "replace").decode()


def _problem_text(problem: Problem | None) -> str | None:
    return None if problem is None else _clean(json.dumps(problem, ensure_ascii=False))


def _problem(text: str | None) -> Problem | None:
    if text is None:
        return None
    code, message, hint, detail, *fix = json.loads(text)
    # "fix" is younger than the journal's format: older entries end before it.
    return Problem(code, message, hint, detail,
                   tuple((key, value) for key, value in (fix[0] if fix else ())))


def _document_row(row: tuple[Any, ...]) -> DocumentRow:
    (document_id, path, name, state, sha256, size, mtime_ns, pages, page_range, locked, held,
     problem) = row
    return DocumentRow(
        document_id, os.fsdecode(path), name, DocumentState(state), sha256, size, mtime_ns,
        pages, page_range, bool(locked), bool(held), _problem(problem))


def _page_row(row: tuple[Any, ...]) -> PageRow:
    document_id, number, selected, state, problem, *rest = row
    return PageRow(PageKey(document_id, number), bool(selected), PageState(state),
                   _problem(problem), *rest)
