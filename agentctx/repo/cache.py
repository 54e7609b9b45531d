"""The syntax cache: FileSyntax and catalog rows by content, in one SQLite file that all repositories share.

Keys hold everything that decides the value, so entries never need to be invalidated. Above the limit the entries of
the repository that was used longest ago go first.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from agentctx.repo.catalog_row import CatalogRow
from agentctx.repo.database import BUSY_SECONDS, Database, shrink, used_bytes
from agentctx.repo.entry import FileKey
from agentctx.repo.languages import extension
from agentctx.repo.stamp import language_stamp
from agentctx.repo.syntax_codec import decode
from agentctx.source import FileSyntax

INDEX_FILE = "index.sqlite3"  # in the cache folder
MAX_BYTES = 2 * 1024 * 1024 * 1024
MARK_SECONDS = 24 * 3600
KEYS_PER_QUERY = 500  # SQLite's lowest limit of variables is 999
LAYOUT = 4
_SCHEMA = (
    "CREATE TABLE syntax (key TEXT PRIMARY KEY, value BLOB NOT NULL, terms BLOB NOT NULL, counts BLOB NOT NULL, "
    "defs BLOB NOT NULL, n_words INTEGER NOT NULL, sum INTEGER NOT NULL, owner INTEGER NOT NULL)",
    "CREATE INDEX by_owner ON syntax (owner)",
    "CREATE TABLE owners (id INTEGER PRIMARY KEY, root TEXT UNIQUE NOT NULL, used REAL NOT NULL)",
)


@dataclass(frozen=True, slots=True)
class Found:
    """What the cache knows: syntax by path. `notes` say what is wrong with the cache."""

    syntax: Mapping[str, FileSyntax]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CacheInfo:
    path: Path
    entries: int
    n_bytes: int  # on disk
    notes: tuple[str, ...] = ()


class Stored(NamedTuple):
    """An entry to store: its key (`key_of`), the encoded syntax, the catalog's row."""

    key: str
    blob: bytes
    row: CatalogRow


def key_of(file: FileKey) -> str:
    """Names everything that parsing depends on, the path only as far as it matters."""
    rules = "" if file.language is not None else extension(file.path)
    parts = (file.digest, file.language or "", rules, str(int(file.is_test)), language_stamp(file.language))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class SyntaxCache:
    """One cache file. Every call opens it anew, so a cache can cross threads and forks.

    `root`: the repository that entries are stored for; it decides what goes first when the cache is full.
    """

    def __init__(
        self, path: Path, *, root: str = "", busy_seconds: float = BUSY_SECONDS, max_bytes: int = MAX_BYTES
    ) -> None:
        self.path = path
        self._root = root
        self._max_bytes = max_bytes
        self._db = Database(path, "the syntax cache", layout=LAYOUT, schema=_SCHEMA, busy_seconds=busy_seconds)

    def get(self, files: Sequence[FileKey]) -> Found:
        """The entries of `files`; damaged ones are misses."""
        keys = [key_of(file) for file in files]
        nothing: dict[str, bytes] = {}
        by_key, notes = self._db.read(lambda db: dict(_select(db, "key, value", keys)), nothing)
        if notes:
            return Found({}, notes)
        self._mark_used()
        return self._decoded(files, keys, by_key)

    def _mark_used(self) -> None:
        """Once a day: a repository that is only read must not look forgotten. That it can't be marked harms nobody."""
        query = "SELECT used FROM owners WHERE root = ?"
        row, _ = self._db.read(lambda db: db.execute(query, (self._root,)).fetchone(), None)
        if row is not None and time.time() - row[0] > MARK_SECONDS:
            self._db.write(
                lambda db: db.execute("UPDATE owners SET used = ? WHERE root = ?", (time.time(), self._root))
            )

    def _decoded(self, files: Sequence[FileKey], keys: Sequence[str], by_key: Mapping[str, bytes]) -> Found:
        syntax: dict[str, FileSyntax] = {}
        n_damaged = 0
        for file, key in zip(files, keys, strict=True):
            value = by_key.get(key)
            if value is None:
                continue
            try:
                syntax[file.path] = decode(value, file)
            except (ValueError, TypeError, IndexError, zlib.error):
                n_damaged += 1
        notes = (f"{n_damaged} damaged entries of the syntax cache {self.path} were parsed anew",) if n_damaged else ()
        return Found(syntax, notes)

    def rows(self, keys: Sequence[str]) -> tuple[dict[str, CatalogRow], tuple[str, ...]]:
        """The catalog rows of the entries that are there and undamaged; their syntax isn't decoded."""
        columns = "key, terms, counts, defs, n_words, sum"

        def query(db: sqlite3.Connection) -> dict[str, CatalogRow]:
            found = {}
            for key, terms, counts, defs, n_words, total in _select(db, columns, keys):
                row = CatalogRow(terms, counts, defs, n_words)
                if _sum(key, row) == total:
                    found[key] = row
            return found

        return self._db.read(query, {})

    def put(self, entries: Sequence[Stored]) -> tuple[str, ...]:
        """Stores entries; gives notes when that failed. A file that is no cache is replaced."""
        if not entries:
            return ()

        def change(db: sqlite3.Connection) -> None:
            owner = self._owner(db)
            rows = ((e.key, e.blob, *e.row, _sum(e.key, e.row), owner) for e in entries)
            db.executemany("INSERT OR REPLACE INTO syntax VALUES (?, ?, ?, ?, ?, ?, ?, ?)", rows)
            if used_bytes(db) > self._max_bytes:
                shrink(db, self._max_bytes * 3 // 4, lambda db: _drop_oldest(db, owner))
                db.execute("PRAGMA incremental_vacuum")

        return self._db.write(change)

    def _owner(self, db: sqlite3.Connection) -> int:
        db.execute(
            "INSERT INTO owners (root, used) VALUES (?, ?) ON CONFLICT (root) DO UPDATE SET used = excluded.used",
            (self._root, time.time()),
        )
        return int(db.execute("SELECT id FROM owners WHERE root = ?", (self._root,)).fetchone()[0])

    def show(self) -> CacheInfo:
        """How many entries, how many bytes."""
        entries, notes = self._db.read(lambda db: int(db.execute("SELECT count(*) FROM syntax").fetchone()[0]), 0)
        return CacheInfo(self.path, entries, self._db.n_bytes(), notes)

    def clear(self) -> CacheInfo:
        """Removes the cache and says what it held.

        Raises:
            UsageError: the files can't be removed.
        """
        info = self.show()
        self._db.clear()
        return info


def _select(db: sqlite3.Connection, columns: str, keys: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    for start in range(0, len(keys), KEYS_PER_QUERY):
        batch = keys[start : start + KEYS_PER_QUERY]
        marks = ",".join("?" * len(batch))
        yield from db.execute(f"SELECT {columns} FROM syntax WHERE key IN ({marks})", batch)


def _drop_oldest(db: sqlite3.Connection, keep: int) -> bool:
    """Forgets the repository used longest ago; where only `keep` is left the older half of its entries."""
    oldest = db.execute("SELECT id FROM owners WHERE id != ? ORDER BY used, id LIMIT 1", (keep,)).fetchone()
    if oldest is not None:
        db.execute("DELETE FROM syntax WHERE owner = ?", oldest)
        db.execute("DELETE FROM owners WHERE id = ?", oldest)
        return True
    where = "rowid <= (SELECT (min(rowid) + max(rowid)) / 2 FROM syntax)"
    return db.execute(f"DELETE FROM syntax WHERE {where}").rowcount > 1


def _sum(key: str, row: CatalogRow) -> int:
    """SQLite notices damaged pages, not damaged bytes in them."""
    return checksum((key.encode(), *row[:3], str(row.n_words).encode()))


def checksum(parts: Iterable[bytes]) -> int:
    total = 0
    for part in parts:
        total = zlib.crc32(part, zlib.crc32(len(part).to_bytes(4, "little"), total))
    return total
