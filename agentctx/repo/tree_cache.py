"""The stat index: what was found in each file of a tree, and how it looked to `lstat` then. One SQLite file per tree.

A row is believed only while the file looks the same and was not touched near the time when it was read: a file
written twice within one tick of the clock looks the same both times (git's "racy" entries).
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from agentctx.repo.cache import checksum
from agentctx.repo.catalog_row import NOTHING, CatalogRow
from agentctx.repo.database import BUSY_SECONDS, Database
from agentctx.repo.entry import FileEntry
from agentctx.repo.stamp import code_stamp

TREES = "trees"  # in the cache folder
LAYOUT = 1
MAX_BYTES = 1024 * 1024 * 1024  # of all trees together
RACY_NS = 2_000_000_000  # clocks of file systems tick every 10 ms (ext4) to 2 s (FAT), and may run ahead
_COLUMNS = "path, size, mtime, ctime, inode, read, reason, digest, language, is_test, terms, counts, defs, n_words, sum"
_SCHEMA = (
    f"CREATE TABLE files ({_COLUMNS.replace('path', 'path TEXT PRIMARY KEY', 1)})",
    "CREATE TABLE facts (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
)
_INSERT = f"INSERT OR REPLACE INTO files VALUES ({', '.join('?' * 15)})"


class Look(NamedTuple):
    """What `lstat` says of a file, as far as a change of its content changes it. Times in nanoseconds."""

    size: int
    mtime: int
    ctime: int
    inode: int

    @classmethod
    def of(cls, info: os.stat_result) -> Look:
        # Python's inode may exceed what SQLite holds.
        return cls(info.st_size, info.st_mtime_ns, info.st_ctime_ns, info.st_ino & (1 << 63) - 1)


class TreeRow(NamedTuple):
    """One file: how it looked, when it was read, and either why it is left out or what was found."""

    path: str
    look: Look
    read: int  # nanoseconds since the epoch: not after the reading began
    reason: str | None
    entry: FileEntry | None
    row: CatalogRow

    def is_fresh(self, look: Look) -> bool:
        return self.look == look and max(look.mtime, look.ctime) + RACY_NS < self.read


@dataclass(frozen=True, slots=True)
class TreeInfo:
    root: str
    path: Path
    n_bytes: int


class TreeCache:
    """The stat index of the tree at `root`, in the cache folder `folder`."""

    def __init__(
        self, folder: Path, root: Path, *, busy_seconds: float = BUSY_SECONDS, max_bytes: int = MAX_BYTES
    ) -> None:
        self._root = str(root)
        self._folder = folder / TREES
        self._max_bytes = max_bytes
        name = hashlib.sha256(os.fsencode(root)).hexdigest()[:32]
        self.path = self._folder / f"{name}.sqlite3"
        self._db = Database(self.path, "the stat index", layout=LAYOUT, schema=_SCHEMA, busy_seconds=busy_seconds)

    def load(self) -> tuple[dict[str, TreeRow], tuple[str, ...]]:
        """All rows by path, and notes. Damaged rows, and all of another version of the program, are left out."""
        nothing: dict[str, TreeRow] = {}
        rows, notes = self._db.read(self._rows, nothing)
        if rows:
            self._touch()
        return rows, notes

    def _rows(self, db: sqlite3.Connection) -> dict[str, TreeRow]:
        facts = dict(db.execute("SELECT name, value FROM facts"))
        if facts != self._facts():
            return {}
        made = (_row(values) for values in db.execute(f"SELECT {_COLUMNS} FROM files"))
        return {row.path: row for row in made if row is not None}

    def _facts(self) -> dict[str, str]:
        return {"root": self._root, "stamp": code_stamp()}

    def save(self, rows: Iterable[TreeRow], gone: Iterable[str] = ()) -> tuple[str, ...]:
        """Adds or replaces `rows`, forgets the paths `gone`; gives notes when that failed."""
        is_new = not self.path.exists()

        def change(db: sqlite3.Connection) -> None:
            facts = self._facts()
            if dict(db.execute("SELECT name, value FROM facts")) != facts:
                db.execute("DELETE FROM files")
                db.execute("DELETE FROM facts")
                db.executemany("INSERT INTO facts VALUES (?, ?)", sorted(facts.items()))
            db.executemany(_INSERT, (_values(row) for row in rows))
            db.executemany("DELETE FROM files WHERE path = ?", ((path,) for path in gone))

        notes = self._db.write(change)
        return (*notes, *(self._evict() if is_new else ()))

    def _touch(self) -> None:
        """Marks the tree as used now, for the eviction; a read-only cache can't be marked, nor evicted from."""
        try:
            os.utime(self.path)
        except OSError:
            return

    def _evict(self) -> tuple[str, ...]:
        """Removes the trees used longest ago until all together are small enough."""
        try:
            files = sorted(self._folder.glob("*.sqlite3"), key=lambda p: (p == self.path, p.stat().st_mtime, p.name))
            sizes = {file: _family_bytes(file) for file in files}
            total = sum(sizes.values())
            for file in files:
                if total <= self._max_bytes or file == self.path:
                    break
                total -= sizes[file]
                Database(file, "the stat index", layout=LAYOUT, schema=()).remove()
        except OSError as error:
            return (f"old stat indexes in {self._folder} could not be removed: {error.strerror}",)
        return ()


def show_trees(folder: Path) -> tuple[TreeInfo, ...]:
    """The trees that the cache folder knows, by root; '?' for those that can't be read."""
    found = []
    for path in sorted((folder / TREES).glob("*.sqlite3")):
        db = Database(path, "the stat index", layout=LAYOUT, schema=())
        (root,), _ = db.read(_root_of, ("?",))
        found.append(TreeInfo(str(root), path, _family_bytes(path)))
    return tuple(sorted(found, key=lambda info: (info.root, info.path)))


def _root_of(db: sqlite3.Connection) -> tuple[str]:
    row: tuple[str] | None = db.execute("SELECT value FROM facts WHERE name = 'root'").fetchone()
    return row or ("?",)


def clear_trees(folder: Path) -> None:
    """Raises:
    UsageError: a file can't be removed.
    """
    for path in sorted((folder / TREES).glob("*.sqlite3")):
        Database(path, "the stat index", layout=LAYOUT, schema=()).clear()


def _family_bytes(path: Path) -> int:
    return Database(path, "the stat index", layout=LAYOUT, schema=()).n_bytes()


def _values(row: TreeRow) -> tuple[object, ...]:
    entry = row.entry
    found = (entry.digest, entry.language, int(entry.is_test)) if entry is not None else (None, None, 0)
    values = (row.path, *row.look, row.read, row.reason, *found, *row.row)
    return (*values, _sum(values))


def _row(values: tuple[object, ...]) -> TreeRow | None:
    """None where the row is damaged."""
    if _sum(values[:-1]) != values[-1]:
        return None
    path, size, mtime, ctime, inode, read, reason, digest, language, is_test, terms, counts, defs, n_words, _ = values
    look = Look(size, mtime, ctime, inode)  # type: ignore[arg-type] # the checksum vouches for the types
    if digest is None:
        return TreeRow(path, look, read, reason, None, NOTHING)  # type: ignore[arg-type]
    entry = FileEntry(path, digest, language, bool(is_test), size)  # type: ignore[arg-type]
    return TreeRow(path, look, read, None, entry, CatalogRow(terms, counts, defs, n_words))  # type: ignore[arg-type]


def _sum(values: tuple[object, ...]) -> int:
    small = repr((values[:10], values[13])).encode("utf-8", "surrogatepass")
    return checksum((small, *(bytes(value) for value in values[10:13])))  # type: ignore[call-overload]
