"""A folder -> what can be indexed in it, what was left out and why. Only files that look changed are read.

What is new is written to the cache in batches: an interrupted survey keeps what it did.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from agentctx.errors import RepoError
from agentctx.repo.contents import Contents
from agentctx.repo.entry import FileEntry
from agentctx.repo.job import Job, Made
from agentctx.repo.looks import ToRead, look
from agentctx.repo.scan_list import list_tree
from agentctx.repo.store import IndexMemory, IndexStore, Pending
from agentctx.repo.tree_cache import TreeRow
from agentctx.source import FileSyntax, Skipped

KEEP_FILES = 4000  # trees of at most so many files keep in memory what was just parsed


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
    if memory is not None and memory.root != root:
        memory.pending = Pending()
    # All of a tree is written at once; only what comes later may wait.
    pending = memory.pending if memory is not None and memory.root == root else None
    job = Job(root, store, started, old, keep=len(looked) <= KEEP_FILES, pending=pending)
    job.run([one for one in looked if isinstance(one, ToRead)], processes)
    hidden = {path: old[path] for path in buffers if path in old}
    on_disk = rows | job.rows | hidden
    over = job.buffers(buffers)
    job.finish(gone=sorted(old.keys() - on_disk.keys()))
    if memory is not None:
        memory.root, memory.rows = root, dict(on_disk)
    shown = {path: row for path, row in on_disk.items() if path not in buffers} | over
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
    job = Job(root, store, time.time_ns(), memory.rows, keep=True, pending=memory.pending)
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
