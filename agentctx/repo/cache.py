"""The syntax cache: FileSyntax by content in one SQLite file, shared by processes.

A cache may only make things faster: whatever is wrong with it (damaged, locked, read-only, full disk) is a miss
and a note. Keys hold everything that decides the value, so entries never need to be invalidated.
"""

from __future__ import annotations

import hashlib
import sqlite3
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentctx import __version__
from agentctx.errors import UsageError
from agentctx.repo.languages import extension, query_digest
from agentctx.repo.syntax_codec import SCHEMA, decode, encode
from agentctx.source import FileSyntax, SourceFile

BUSY_SECONDS = 2.0
MAX_BYTES = 512 * 1024 * 1024
KEYS_PER_QUERY = 500  # SQLite's lowest limit of variables is 999


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


INDEX_FILE = "index.sqlite3"  # in the cache folder


def key_of(file: SourceFile) -> str:
    """Names everything that parsing depends on, the path only as far as it matters."""
    rules = query_digest(file.language) if file.language is not None else extension(file.path)
    parts = (file.digest, file.language or "", rules, str(int(file.is_test)), str(SCHEMA), __version__)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class SyntaxCache:
    """One cache file. Every call opens it anew, so a cache can cross threads and forks."""

    def __init__(self, path: Path, *, busy_seconds: float = BUSY_SECONDS) -> None:
        self.path = path
        self._busy_seconds = busy_seconds

    def get(self, files: Sequence[SourceFile]) -> Found:
        """The entries of `files`; damaged ones are misses."""
        if not self.path.exists():
            return Found({})
        by_key: dict[str, bytes] = {}
        try:
            with self._open() as db:
                for batch in _batches([key_of(file) for file in files], KEYS_PER_QUERY):
                    marks = ",".join("?" * len(batch))
                    by_key.update(db.execute(f"SELECT key, value FROM syntax WHERE key IN ({marks})", batch))
        except (sqlite3.Error, OSError) as error:
            return Found({}, (self._complaint(error),))
        return self._decoded(files, by_key)

    def _decoded(self, files: Sequence[SourceFile], by_key: Mapping[str, bytes]) -> Found:
        syntax: dict[str, FileSyntax] = {}
        n_damaged = 0
        for file in files:
            value = by_key.get(key_of(file))
            try:
                if value is not None:
                    syntax[file.path] = decode(value, file)
            except (ValueError, TypeError, IndexError, zlib.error):
                n_damaged += 1
        notes = (f"{n_damaged} damaged entries of the syntax cache {self.path} were parsed anew",) if n_damaged else ()
        return Found(syntax, notes)

    def put(self, files: Sequence[SourceFile], syntax: Sequence[FileSyntax]) -> tuple[str, ...]:
        """Stores the syntax of each file; gives notes when that failed. A file that is no cache is replaced."""
        rows = [(key_of(file), encode(made)) for file, made in zip(files, syntax, strict=True)]
        try:
            try:
                self._write(rows)
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    raise
                self._remove()
                self._write(rows)
                return (f"the syntax cache {self.path} was damaged and was started anew ({error})",)
        except (sqlite3.Error, OSError) as error:
            return (self._complaint(error),)
        return ()

    def _write(self, rows: Sequence[tuple[str, bytes]]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._open() as db:
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("BEGIN IMMEDIATE")
            db.execute("CREATE TABLE IF NOT EXISTS syntax (key TEXT PRIMARY KEY, value BLOB NOT NULL)")
            db.executemany("INSERT OR REPLACE INTO syntax (key, value) VALUES (?, ?)", rows)
            (total,) = db.execute("SELECT coalesce(sum(length(value)), 0) FROM syntax").fetchone()
            if total > MAX_BYTES:  # the older half goes
                db.execute("DELETE FROM syntax WHERE rowid <= (SELECT (min(rowid) + max(rowid)) / 2 FROM syntax)")
            db.execute("COMMIT")

    def show(self) -> CacheInfo:
        """How many entries, how many bytes."""
        if not self.path.exists():
            return CacheInfo(self.path, 0, 0)
        try:
            with self._open() as db:
                (entries,) = db.execute("SELECT count(*) FROM syntax").fetchone()
        except (sqlite3.Error, OSError) as error:
            return CacheInfo(self.path, 0, self._n_bytes(), (self._complaint(error),))
        return CacheInfo(self.path, entries, self._n_bytes())

    def clear(self) -> CacheInfo:
        """Removes the cache and says what it held.

        Raises:
            UsageError: the files can't be removed.
        """
        info = self.show()
        try:
            self._remove()
        except OSError as error:
            raise UsageError(f"can't remove {self.path}: {error.strerror}", hint="check its permissions") from error
        return info

    def _files(self) -> tuple[Path, ...]:
        return tuple(self.path.with_name(self.path.name + suffix) for suffix in ("", "-wal", "-shm"))

    def _n_bytes(self) -> int:
        return sum(path.stat().st_size for path in self._files() if path.is_file())

    def _remove(self) -> None:
        for path in self._files():
            path.unlink(missing_ok=True)

    def _complaint(self, error: Exception) -> str:
        return f"the syntax cache {self.path} was not used: {error}"

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=self._busy_seconds, isolation_level=None)) as db:
            yield db


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether the file is at fault, not its surroundings (lock, permissions, disk)."""
    return error.sqlite_errorcode in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)


def _batches(keys: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(keys), size):
        yield keys[start : start + size]
