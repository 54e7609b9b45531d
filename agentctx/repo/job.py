"""Examines the files of a tree that must be read, in worker processes where that is faster; writes what it finds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from agentctx.repo.cache import Stored, key_of
from agentctx.repo.catalog_row import NOTHING
from agentctx.repo.collecting import no_collection
from agentctx.repo.examine import Examined, examine, judged, read_and_examine
from agentctx.repo.languages import language_of
from agentctx.repo.looks import ToRead
from agentctx.repo.pool import WorkerFailed, examine_in_processes, n_cores
from agentctx.repo.scan_rules import by_name
from agentctx.repo.store import IndexStore, Pending, Writer
from agentctx.repo.tree_cache import Look, TreeRow
from agentctx.source import FileSyntax, SourceFile

PARALLEL_BYTES = 768 * 1024  # of code to parse; below that starting processes takes longer than it saves
BATCH_FILES = 64  # examined at once in this process

Made = FileSyntax | bytes  # encoded where another process made it


class Job:
    """Examines files once. `rows`: new rows by path; `made`: their syntax, with `keep`.

    `started`: nanoseconds since the epoch, before any file was looked at. `old`: rows of before, fresh or not.
    """

    def __init__(
        self,
        root: Path,
        store: IndexStore | None,
        started: int,
        old: Mapping[str, TreeRow],
        *,
        keep: bool,
        pending: Pending | None = None,
    ) -> None:
        self.rows: dict[str, TreeRow] = {}
        self.made: dict[str, Made] = {}
        self.n_parsed = 0
        self._root = root
        self._cache = store.syntax if store is not None else None
        self._started = started
        self._old = old
        self._keep = keep
        self._writer = Writer(store, pending)
        self._notes: list[str] = []

    @property
    def notes(self) -> list[str]:
        """What went wrong, for the report."""
        return [*self._notes, *self._writer.notes]

    def run(self, to_read: Sequence[ToRead], processes: int | None) -> None:
        """`processes`: None for one per core, where there is enough to do."""
        looks = {one.path: one.look for one in to_read if one.reason is None}
        for one in to_read:
            if one.reason is not None:
                self._add_row(TreeRow(one.path, one.look, self._started, one.reason, None, NOTHING))
        for found in self._examined(looks, processes):
            # If the file changed while it was read, it won't look like this again.
            self._add_row(TreeRow(found.path, looks[found.path], self._started, found.reason, found.entry, found.row))
            self._keep_made(found)
            self._writer.write_some()

    def _examined(self, looks: Mapping[str, Look], processes: int | None) -> Iterator[Examined]:
        paths = sorted(looks)
        wanted = n_cores() if processes is None else processes
        code = sum(looks[path].size for path in paths if language_of(path) is not None)
        done: set[str] = set()
        if wanted > 1 and code > PARALLEL_BYTES:
            where = self._cache.path if self._cache is not None else None
            try:
                with closing(examine_in_processes(self._root, paths, where, wanted)) as results:
                    for one in results:
                        done.add(one.path)
                        yield one
            except WorkerFailed as error:
                self._notes.append(f"parsed in one process: {error}")
        left = [path for path in paths if path not in done]
        for at in range(0, len(left), BATCH_FILES):
            with no_collection():
                found = read_and_examine(self._root, left[at : at + BATCH_FILES], self._cache, self._old)
            yield from found

    def _add_row(self, row: TreeRow) -> None:
        self.rows[row.path] = row
        self._writer.add_row(row)

    def _keep_made(self, found: Examined) -> None:
        made = found.syntax or found.blob
        if made is None or found.entry is None:
            return
        self.n_parsed += 1
        if self._keep:
            self.made[found.path] = made
        blob = found.encoded() if self._writer.is_on else None
        if blob is not None:
            self._writer.add_syntax(Stored(key_of(found.entry), blob, found.row))

    def buffers(self, buffers: Mapping[str, bytes]) -> dict[str, TreeRow]:
        """Rows of unsaved buffers; they aren't written to the stat index, nothing on disk looks like them."""
        found: list[SourceFile | tuple[str, str]] = []
        for path, data in buffers.items():
            verdict = by_name(path) or judged(path, data)
            found.append((path, verdict) if isinstance(verdict, str) else verdict)
        rows = {}
        for one in examine(found, self._cache):
            self._keep_made(one)
            rows[one.path] = TreeRow(one.path, Look(0, 0, 0, 0), 0, one.reason, one.entry, one.row)
        return rows

    def finish(self, gone: Sequence[str]) -> None:
        """Writes what is left, and forgets the files that are gone."""
        self._writer.finish(gone)
