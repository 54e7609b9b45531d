"""The index in the cache folder, what a process that lives on keeps of it, and what waits to be written. IO."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from agentctx.repo.cache import INDEX_FILE, Stored, SyntaxCache
from agentctx.repo.tree_cache import TreeCache, TreeRow
from agentctx.source import FileSyntax

WRITE_FILES, WRITE_BYTES = 2000, 16 * 1024 * 1024  # a transaction of the cache
HELD_FILES = 64  # what a process that lives on may lose: files that the next one reads again


@dataclass(frozen=True, slots=True)
class IndexStore:
    """The two halves of the index in the cache folder: syntax by content, and the stat index of one tree."""

    syntax: SyntaxCache
    tree: TreeCache

    @classmethod
    def of(cls, folder: Path, root: Path) -> IndexStore:
        root = root.resolve()
        return cls(SyntaxCache(folder / INDEX_FILE, root=str(root)), TreeCache(folder, root))


@dataclass(slots=True)
class Pending:
    """What isn't written yet. `rows`: None for a file that is gone."""

    rows: dict[str, TreeRow | None] = field(default_factory=dict)
    syntax: dict[str, Stored] = field(default_factory=dict)  # by key


@dataclass(slots=True)
class IndexMemory:
    """What a process that lives on keeps between surveys of one root. Owned by one thread at a time."""

    root: Path | None = None
    rows: dict[str, TreeRow] = field(default_factory=dict)
    syntax: dict[str, FileSyntax] = field(default_factory=dict)
    pending: Pending = field(default_factory=Pending)


class Writer:
    """Writes in batches, and nothing more once that has failed. `notes` say why.

    Writing takes longer than parsing a file: with `pending` of a process that lives on, a few files wait for more.
    """

    def __init__(self, store: IndexStore | None, pending: Pending | None = None) -> None:
        self.notes: list[str] = []
        self._store = store
        self._pending = pending if pending is not None else Pending()
        self._may_wait = pending is not None
        self._n_bytes = 0

    @property
    def is_on(self) -> bool:
        """Whether what is added gets anywhere."""
        return self._store is not None

    def add_row(self, row: TreeRow) -> None:
        self._pending.rows[row.path] = row

    def add_syntax(self, stored: Stored) -> None:
        self._pending.syntax[stored.key] = stored
        self._n_bytes += len(stored.blob)

    def write_some(self) -> None:
        """Writes when it is enough for a transaction."""
        if len(self._pending.rows) >= WRITE_FILES or self._n_bytes >= WRITE_BYTES:
            self._write()

    def finish(self, gone: Iterable[str]) -> None:
        """Forgets what is gone, and writes what doesn't wait."""
        self._pending.rows.update(dict.fromkeys(gone))
        if not self._may_wait or len(self._pending.rows) + len(self._pending.syntax) > HELD_FILES:
            self._write()

    def _write(self) -> None:
        """The syntax first: a row of the stat index without syntax is a miss, and so is syntax without a row."""
        pending, self._n_bytes = self._pending, 0
        if self._store is not None:
            notes = self._store.syntax.put(list(pending.syntax.values()))
            if not notes and pending.rows:
                rows = [row for row in pending.rows.values() if row is not None]
                notes = self._store.tree.save(rows, [path for path, row in pending.rows.items() if row is None])
            self.notes += notes
            if any("was not used" in note for note in notes):
                self._store = None
        pending.rows.clear()
        pending.syntax.clear()
