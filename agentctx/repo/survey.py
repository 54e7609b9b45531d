"""A folder -> what can be indexed in it, what was left out and why. Only files that look changed are read.

What is new is examined in worker processes where that is faster, and written to the cache in batches: an interrupted
survey keeps what it did.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from agentctx.errors import RepoError
from agentctx.repo.cache import INDEX_FILE, Stored, SyntaxCache, key_of
from agentctx.repo.catalog_row import NOTHING
from agentctx.repo.contents import Contents
from agentctx.repo.entry import FileEntry
from agentctx.repo.examine import Examined, examine, judged, read_and_examine
from agentctx.repo.languages import language_of
from agentctx.repo.looks import ToRead, look
from agentctx.repo.pool import WorkerFailed, examine_in_processes, n_cores
from agentctx.repo.scan_list import list_tree
from agentctx.repo.scan_rules import by_name
from agentctx.repo.tree_cache import Look, TreeCache, TreeRow
from agentctx.source import FileSyntax, Skipped, SourceFile

PARALLEL_BYTES = 768 * 1024  # of code to parse; below that starting processes takes longer than it saves
BATCH_FILES = 64  # examined at once in this process
WRITE_FILES, WRITE_BYTES = 2000, 16 * 1024 * 1024  # a transaction of the cache
KEEP_FILES = 4000  # trees of at most so many files keep in memory what was just parsed

Made = FileSyntax | bytes  # encoded where another process made it


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
class IndexMemory:
    """What a process that lives on keeps between surveys of one root. Owned by one thread at a time."""

    root: Path | None = None
    rows: dict[str, TreeRow] = field(default_factory=dict)
    syntax: dict[str, FileSyntax] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Survey:
    """`rows`: of the files in `entries`, by path; all mappings are in order of paths, `skipped` too.

    `made`: the syntax of files that were parsed, as far as it was kept. `n_parsed`: how many those were.
    """

    root: Path
    is_git: bool
    rows: Mapping[str, TreeRow]
    entries: Mapping[str, FileEntry]
    skipped: tuple[Skipped, ...]
    data: Contents
    made: Mapping[str, Made]
    n_parsed: int
    notes: tuple[str, ...]


def survey(
    root: Path,
    *,
    overlay: Mapping[str, bytes] | None = None,
    store: IndexStore | None = None,
    memory: IndexMemory | None = None,
    processes: int | None = None,
) -> Survey:
    """What is in the tree at `root`.

    Args:
        overlay: POSIX paths relative to `root` -> contents that replace (or add) files: unsaved buffers.
        processes: For parsing; None: as many as there are cores, where there is enough to do.

    Raises:
        RepoError: `root` is no directory, it holds nothing to index, or an overlay path leaves it.
        UnavailableError: there is no git.
    """
    if not root.is_dir():
        raise RepoError(f"not a directory: {root}", hint="give the root of a repository with --repo DIR")
    root = root.resolve()
    started = time.time_ns()
    buffers = checked_buffers(overlay)
    listing = list_tree(root)
    old, notes = _old_rows(root, store, memory)
    looked = list(look(root, listing.paths, frozenset(buffers), old))
    skipped = [*listing.left_out, *(one for one in looked if isinstance(one, Skipped))]
    rows = {row.path: row for row in looked if isinstance(row, TreeRow)}
    job = _Job(root, store, started, keep=len(looked) <= KEEP_FILES)
    job.run([one for one in looked if isinstance(one, ToRead)], processes)
    hidden = {path: old[path] for path in buffers if path in old}
    on_disk = rows | job.rows | hidden
    job.finish(gone=sorted(old.keys() - on_disk.keys()))
    if memory is not None:
        memory.root, memory.rows = root, dict(on_disk)
    shown = {path: row for path, row in on_disk.items() if path not in buffers} | job.buffers(buffers)
    found = {path: shown[path] for path in sorted(shown)}
    entries = {path: row.entry for path, row in found.items() if row.entry is not None}
    skipped += [Skipped(row.path, row.reason) for row in found.values() if row.reason is not None]
    if not entries:
        raise nothing_to_index(root, len(skipped))
    return Survey(
        root=root,
        is_git=listing.is_git,
        rows={path: found[path] for path in entries},
        entries=entries,
        skipped=tuple(sorted(skipped, key=lambda one: one.path)),
        data=Contents(root, entries, {path: data for path, data in buffers.items() if path in entries}),
        made=job.made,
        n_parsed=job.n_parsed,
        notes=tuple(dict.fromkeys((*listing.notes, *notes, *job.notes))),
    )


def update(memory: IndexMemory, paths: Iterable[str], store: IndexStore | None = None) -> tuple[str, ...]:
    """Looks at files again that were written, made or removed since the last survey; the others aren't looked at.

    The tree must have been surveyed with `memory`. Paths are relative to its root. Gives notes.
    """
    root = memory.root
    if root is None:
        raise ValueError("nothing was surveyed with this memory")
    wanted = tuple(sorted({_inside(path).encode() for path in paths}))
    if any(path.decode() not in memory.rows for path in wanted):
        listed = frozenset(list_tree(root).paths)  # git knows which new files are ignored
        wanted = tuple(path for path in wanted if path in listed or path.decode() in memory.rows)
    job = _Job(root, store, time.time_ns(), keep=True)
    looked = list(look(root, wanted, frozenset(), memory.rows))
    job.run([one for one in looked if isinstance(one, ToRead)], 1)
    gone = [one.path for one in looked if isinstance(one, Skipped) and one.path in memory.rows]
    job.finish(gone)
    memory.rows.update(job.rows)
    memory.syntax.update((path, made) for path, made in job.made.items() if isinstance(made, FileSyntax))
    for path in gone:
        memory.rows.pop(path)
        memory.syntax.pop(path, None)
    return tuple(dict.fromkeys(job.notes))


def checked_buffers(overlay: Mapping[str, bytes] | None) -> dict[str, bytes]:
    """Unsaved buffers by clean path, sorted.

    Raises:
        RepoError: a path leaves the repository.
    """
    return {_inside(path): data for path, data in sorted((overlay or {}).items())}


def nothing_to_index(root: Path, n_skipped: int) -> RepoError:
    left_out = f" ({n_skipped} files were left out)" if n_skipped else ""
    return RepoError(f"empty repository: nothing to index in {root}{left_out}", hint="is this the right folder?")


def _inside(path: str) -> str:
    pure = PurePosixPath(path)
    if pure.is_absolute() or ".." in pure.parts or not pure.parts:
        raise RepoError(f"not a path inside of the repository: {path!r}", hint="give it relative to the root")
    return str(pure)


def _old_rows(
    root: Path, store: IndexStore | None, memory: IndexMemory | None
) -> tuple[Mapping[str, TreeRow], tuple[str, ...]]:
    if memory is not None and memory.root == root:
        return memory.rows, ()
    return store.tree.load() if store is not None else ({}, ())


class _Job:
    """Examines files and writes what it finds. `rows`: new rows by path."""

    def __init__(self, root: Path, store: IndexStore | None, started: int, *, keep: bool) -> None:
        self.rows: dict[str, TreeRow] = {}
        self.made: dict[str, Made] = {}
        self.n_parsed = 0
        self.notes: list[str] = []
        self._root = root
        self._store = store
        self._started = started
        self._keep = keep
        self._can_write = store is not None
        self._unsaved: list[TreeRow] = []
        self._unstored: list[Stored] = []
        self._n_bytes = 0

    def run(self, to_read: Sequence[ToRead], processes: int | None) -> None:
        looks = {one.path: one.look for one in to_read if one.reason is None}
        for one in to_read:
            if one.reason is not None:
                self._add_row(TreeRow(one.path, one.look, self._started, one.reason, None, NOTHING))
        for found in self._examined(looks, processes):
            self._add(found, looks[found.path])

    def _examined(self, looks: Mapping[str, Look], processes: int | None) -> Iterator[Examined]:
        cache = self._store.syntax if self._store is not None else None
        paths = sorted(looks)
        wanted = n_cores() if processes is None else processes
        code = sum(looks[path].size for path in paths if language_of(path) is not None)
        done: set[str] = set()
        if wanted > 1 and code > PARALLEL_BYTES:
            try:
                with closing(examine_in_processes(self._root, paths, cache.path if cache else None, wanted)) as results:
                    for found in results:
                        done.add(found.path)
                        yield found
            except WorkerFailed as error:
                self.notes.append(f"parsed in one process: {error}")
        left = [path for path in paths if path not in done]
        for at in range(0, len(left), BATCH_FILES):
            yield from read_and_examine(self._root, left[at : at + BATCH_FILES], cache)

    def _add(self, found: Examined, seen: Look) -> None:
        # The size is that of the bytes that were read: if the file grew meanwhile, it won't look the same again.
        self._add_row(TreeRow(found.path, seen, self._started, found.reason, found.entry, found.row))
        self._keep_made(found)

    def _keep_made(self, found: Examined) -> None:
        made = found.syntax or found.blob
        if made is None or found.entry is None:
            return
        self.n_parsed += 1
        if self._keep:
            self.made[found.path] = made
        blob = found.encoded() if self._can_write else None
        if blob is not None:
            self._unstored.append(Stored(key_of(found.entry), blob, found.row))
            self._n_bytes += len(blob)
        self._write_some()

    def _add_row(self, row: TreeRow) -> None:
        self.rows[row.path] = row
        self._unsaved.append(row)

    def buffers(self, buffers: Mapping[str, bytes]) -> dict[str, TreeRow]:
        """Rows of unsaved buffers; they aren't written to the stat index, nothing on disk looks like them."""
        cache = self._store.syntax if self._store is not None else None
        found: list[SourceFile | tuple[str, str]] = []
        for path, data in buffers.items():
            verdict = by_name(path) or judged(path, data)
            found.append((path, verdict) if isinstance(verdict, str) else verdict)
        rows = {}
        for one in examine(found, cache):
            self._keep_made(one)
            rows[one.path] = TreeRow(one.path, Look(0, 0, 0, 0), 0, one.reason, one.entry, one.row)
        self._write(())
        return rows

    def finish(self, gone: Sequence[str]) -> None:
        self._write(gone)

    def _write_some(self) -> None:
        if len(self._unsaved) >= WRITE_FILES or self._n_bytes >= WRITE_BYTES:
            self._write(())

    def _write(self, gone: Sequence[str]) -> None:
        """The syntax first: a row of the stat index without syntax is a miss, and so is syntax without a row."""
        if self._store is not None and self._can_write:
            notes = self._store.syntax.put(self._unstored)
            if not notes and (self._unsaved or gone):
                notes = self._store.tree.save(self._unsaved, gone)
            self.notes += notes
            self._can_write = not any("was not used" in note for note in notes)
        self._unsaved, self._unstored, self._n_bytes = [], [], 0
