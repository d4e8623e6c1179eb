"""The journal's tables. To change them, append a migration: released ones are never edited."""

from __future__ import annotations

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE documents (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        path BLOB NOT NULL,  -- as the file system has it, which need not be UTF-8
        name TEXT NOT NULL,
        state TEXT NOT NULL,
        sha256 TEXT NOT NULL DEFAULT '',
        size INTEGER NOT NULL DEFAULT 0,
        mtime_ns INTEGER NOT NULL DEFAULT 0,
        pages INTEGER NOT NULL DEFAULT 0,
        page_range TEXT NOT NULL DEFAULT '',
        locked INTEGER NOT NULL DEFAULT 0,
        held INTEGER NOT NULL DEFAULT 0,
        problem TEXT,
        added REAL NOT NULL
    );
    CREATE INDEX documents_by_path ON documents (path);

    CREATE TABLE pages (
        document_id INTEGER NOT NULL REFERENCES documents (id) ON DELETE CASCADE,
        number INTEGER NOT NULL,
        selected INTEGER NOT NULL DEFAULT 1,
        state TEXT NOT NULL DEFAULT 'waiting',
        problem TEXT,
        attempts INTEGER NOT NULL DEFAULT 0,
        deaths INTEGER NOT NULL DEFAULT 0,
        seconds REAL NOT NULL DEFAULT 0,
        first_text REAL NOT NULL DEFAULT 0,
        prompt_tokens INTEGER NOT NULL DEFAULT 0,
        output_tokens INTEGER NOT NULL DEFAULT 0,
        blocks INTEGER NOT NULL DEFAULT 0,
        tables INTEGER NOT NULL DEFAULT 0,
        width INTEGER NOT NULL DEFAULT 0,
        height INTEGER NOT NULL DEFAULT 0,
        rotation INTEGER NOT NULL DEFAULT 0,
        fingerprint TEXT NOT NULL DEFAULT '',
        engine TEXT NOT NULL DEFAULT '',
        model TEXT NOT NULL DEFAULT '',
        finished_at REAL NOT NULL DEFAULT 0,
        PRIMARY KEY (document_id, number)
    ) WITHOUT ROWID;
    CREATE INDEX pages_waiting ON pages (document_id, number)
        WHERE state = 'waiting' AND selected = 1;
    CREATE INDEX pages_by_state ON pages (document_id, selected, state);

    CREATE TABLE results (
        document_id INTEGER NOT NULL,
        number INTEGER NOT NULL,
        raw TEXT NOT NULL,
        regions TEXT NOT NULL DEFAULT '[]',
        confidences TEXT NOT NULL DEFAULT '{}',
        crops TEXT NOT NULL DEFAULT '[]',
        PRIMARY KEY (document_id, number),
        FOREIGN KEY (document_id, number) REFERENCES pages (document_id, number)
            ON DELETE CASCADE
    );

    CREATE TABLE edits (
        document_id INTEGER NOT NULL,
        number INTEGER NOT NULL,
        block INTEGER NOT NULL,
        markdown TEXT NOT NULL,
        edited_at REAL NOT NULL,
        PRIMARY KEY (document_id, number, block),
        FOREIGN KEY (document_id, number) REFERENCES pages (document_id, number)
            ON DELETE CASCADE
    ) WITHOUT ROWID;

    CREATE TABLE settings_used (
        fingerprint TEXT PRIMARY KEY,
        settings TEXT NOT NULL
    ) WITHOUT ROWID;
    """,
    """
    ALTER TABLE pages ADD COLUMN loops INTEGER NOT NULL DEFAULT 0;
    """,
    """
    CREATE TABLE benchmarks (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        started REAL NOT NULL,
        name TEXT NOT NULL,
        engine TEXT NOT NULL,
        model TEXT NOT NULL,
        device TEXT NOT NULL,
        digest TEXT NOT NULL,  -- of the pages
        ended TEXT NOT NULL,
        levels INTEGER NOT NULL,
        concurrency INTEGER NOT NULL,  -- of the fastest level
        speed REAL NOT NULL,
        unit TEXT NOT NULL,
        document BLOB NOT NULL  -- JSON, deflated
    );
    """,
)
