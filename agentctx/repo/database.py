"""One SQLite file of the cache: opened per call, replaced when it is damaged or of another layout.

A cache may only make things faster: whatever is wrong with it (damaged, locked, read-only, full disk) is a miss and
a note, never an error and never a wrong answer.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from agentctx.errors import UsageError

BUSY_SECONDS = 2.0
T = TypeVar("T")


class OtherLayout(sqlite3.DatabaseError):
    """The file is a database of another version of the program."""


class Database:
    """`layout`: the number of the schema; `schema`: statements that make it. Can cross threads and forks."""

    def __init__(
        self, path: Path, what: str, *, layout: int, schema: tuple[str, ...], busy_seconds: float = BUSY_SECONDS
    ) -> None:
        self.path = path
        self._what = what
        self._layout = layout
        self._schema = schema
        self._busy_seconds = busy_seconds

    def read(self, query: Callable[[sqlite3.Connection], T], otherwise: T) -> tuple[T, tuple[str, ...]]:
        """What `query` finds; `otherwise`, and why, where the file can't be read. No file is no complaint."""
        if not self.path.exists():
            return otherwise, ()
        try:
            with self._open() as db:
                if not _layout(db) and not _has_tables(db):
                    return otherwise, ()  # a process was killed before it had written anything
                self._check(db)
                return query(db), ()
        except (sqlite3.Error, OSError) as error:
            return otherwise, (self.complaint(error),)

    def write(self, change: Callable[[sqlite3.Connection], object]) -> tuple[str, ...]:
        """Runs `change` in one transaction; gives notes when that failed. A file that is no cache is replaced."""
        try:
            try:
                self._write(change)
            except sqlite3.DatabaseError as error:
                if not _is_damage(error):
                    raise
                self.remove()
                self._write(change)
                return (f"{self._what} {self.path} {_cause(error)} and was started anew",)
        except (sqlite3.Error, OSError) as error:
            return (self.complaint(error),)
        return ()

    def _write(self, change: Callable[[sqlite3.Connection], object]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._open() as db:
            if not _layout(db):
                db.execute("PRAGMA auto_vacuum = INCREMENTAL")
                db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.execute("BEGIN IMMEDIATE")
            try:
                self._make(db)
                change(db)
                db.execute("COMMIT")
            except BaseException:
                if db.in_transaction:
                    db.execute("ROLLBACK")
                raise

    def _make(self, db: sqlite3.Connection) -> None:
        if not _layout(db) and not _has_tables(db):
            for statement in self._schema:
                db.execute(statement)
            db.execute(f"PRAGMA user_version = {self._layout}")
        self._check(db)

    def _check(self, db: sqlite3.Connection) -> None:
        found = _layout(db)
        if found != self._layout:
            raise OtherLayout(f"its layout is {found}, this program's is {self._layout}")

    def complaint(self, error: Exception) -> str:
        return f"{self._what} {self.path} was not used: {error}"

    def files(self) -> tuple[Path, ...]:
        return tuple(self.path.with_name(self.path.name + suffix) for suffix in ("", "-wal", "-shm"))

    def n_bytes(self) -> int:
        """On disk."""
        return sum(path.stat().st_size for path in self.files() if path.is_file())

    def remove(self) -> None:
        for path in self.files():
            path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Raises:
        UsageError: the files can't be removed.
        """
        try:
            self.remove()
        except OSError as error:
            raise UsageError(f"can't remove {self.path}: {error.strerror}", hint="check its permissions") from error

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=self._busy_seconds, isolation_level=None)) as db:
            yield db


def shrink(db: sqlite3.Connection, limit: int, drop: Callable[[sqlite3.Connection], bool]) -> None:
    """Calls `drop` until the pages in use are fewer than `limit` bytes, or it says that nothing is left to drop."""
    while used_bytes(db) > limit and drop(db):
        pass


def used_bytes(db: sqlite3.Connection) -> int:
    (size,), (pages,), (free,) = (
        db.execute(f"PRAGMA {name}").fetchone() for name in ("page_size", "page_count", "freelist_count")
    )
    return int(size * (pages - free))


def _layout(db: sqlite3.Connection) -> int:
    return int(db.execute("PRAGMA user_version").fetchone()[0])


def _has_tables(db: sqlite3.Connection) -> bool:
    return bool(db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0])


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether the file is at fault, not its surroundings (lock, permissions, disk)."""
    if isinstance(error, OtherLayout):
        return True
    return getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT)


def _cause(error: sqlite3.DatabaseError) -> str:
    if isinstance(error, OtherLayout):
        return f"is of another version of agentctx ({error})"
    return f"was damaged ({error})"
