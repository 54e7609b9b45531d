"""Repository -> files, syntax and graph. The first stages of every run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agentctx import vcs
from agentctx.pipeline.services import Clock, IndexServices
from agentctx.repo.catalog import Catalog
from agentctx.repo.collecting import no_collection
from agentctx.repo.graph import build_graph
from agentctx.repo.loading import Loader
from agentctx.repo.partial import partial_graph
from agentctx.repo.pin_comments import MARK
from agentctx.repo.resolvers.families import config_names
from agentctx.repo.store import IndexMemory, IndexStore
from agentctx.repo.survey import Survey, survey
from agentctx.repo.working_set import WHOLE, Wanted, working_set
from agentctx.report import RepoRow
from agentctx.source import FileSyntax, RepoGraph, Skipped


@dataclass(frozen=True, slots=True)
class Tree:
    """What is in the repository, before anything is linked. `changed`: files that differ from HEAD."""

    row: RepoRow
    changed: frozenset[str]
    survey: Survey
    loader: Loader
    memory: IndexMemory | None
    has_cache: bool

    @property
    def data(self) -> Mapping[str, bytes]:
        return self.survey.data

    @property
    def is_small(self) -> bool:
        """Whether all of it is loaded for every request."""
        entries = self.survey.entries
        return len(entries) <= WHOLE.files and sum(entry.n_bytes for entry in entries.values()) <= WHOLE.n_bytes

    def without(self, reason_of: Callable[[str], str | None]) -> Tree:
        """The tree without the files for which there is a reason; each is among the skipped with it."""
        reasons = {path: reason for path in self.survey.entries if (reason := reason_of(path)) is not None}
        if not reasons:
            return self
        left = tuple(Skipped(path, reason) for path, reason in reasons.items())
        skipped = tuple(sorted((*self.survey.skipped, *left), key=lambda one: one.path))
        entries = {path: entry for path, entry in self.survey.entries.items() if path not in reasons}
        rows = {path: row for path, row in self.survey.rows.items() if path not in reasons}
        data = self.survey.data.only(entries)
        found = replace(self.survey, entries=entries, rows=rows, skipped=skipped, data=data)
        return replace(self, survey=found, changed=self.changed - reasons.keys())

    def text_of(self, path: str) -> bytes:
        return self.data[path]

    def size_of(self, path: str) -> int:
        return self.survey.entries[path].n_bytes


@dataclass(frozen=True, slots=True)
class Index:
    """`changed`: files that differ from HEAD, untracked ones included, deleted ones left out."""

    row: RepoRow
    graph: RepoGraph
    data: Mapping[str, bytes]
    skipped: tuple[Skipped, ...]
    changed: frozenset[str]
    cache: Mapping[str, object]
    notes: tuple[str, ...]


def read_tree(
    root: Path,
    services: IndexServices,
    clock: Clock,
    overlay: Mapping[str, bytes] | None = None,
    *,
    cached: bool = True,
) -> Tree:
    """What is in the repository; files that look as they did are not read. `cached`: use the cache, and fill it.

    Raises:
        RepoError: not a directory, or nothing in it to index.
    """
    services.progress("scanning")
    folder = services.cache_dir if cached else None
    store = IndexStore.of(folder, root) if folder is not None else None
    memory = services.memory if cached else None
    with clock.stage("scan"):
        found = survey(root, overlay=overlay, store=store, memory=memory)
        row, changed = _state(root, found.is_git)
    return Tree(row, changed, found, Loader(found, store, memory), memory, has_cache=store is not None)


def build_index(
    root: Path,
    services: IndexServices,
    clock: Clock,
    overlay: Mapping[str, bytes] | None = None,
    *,
    cached: bool = True,
) -> Index:
    """`read_tree` and `link` for what speaks of the changed files, or of a repository small enough to load whole."""
    tree = read_tree(root, services, clock, overlay, cached=cached)
    changed = tuple(sorted(tree.changed | frozenset(overlay or ())))
    return link(tree, services, clock, Wanted(paths=changed, mention_share=1.0))  # all callers, if they fit


def link(tree: Tree, services: IndexServices, clock: Clock, wanted: Wanted) -> Index:
    """The graph of the repository; of a large one that of the files that `wanted` leads to, and a note says so.

    Raises:
        ConflictError: a file was changed since the tree was read.
    """
    entries, loader = tree.survey.entries, tree.loader
    services.progress(f"indexing {len(entries)} files")
    with clock.stage("index"), no_collection():
        configs = {path: tree.data[path] for path in entries if path.rpartition("/")[2] in config_names()}
        if tree.is_small:
            files: Sequence[FileSyntax] = loader.load(entries)
            graph = build_graph(files, configs)
        else:
            catalog = Catalog({path: row.row for path, row in tree.survey.rows.items()})
            files = working_set(catalog, wanted, loader.load, tree)
            chosen = {file.path for file in files}
            others = {path: entry for path, entry in entries.items() if path not in chosen}
            graph = partial_graph(files, others, catalog, configs)
    if tree.memory is not None:
        tree.memory.syntax = dict(loader.loaded)
    return Index(
        row=tree.row,
        graph=graph,
        data=tree.data,
        skipped=tree.survey.skipped,
        changed=tree.changed,
        cache=_cache_row(tree),
        notes=tuple(dict.fromkeys((*tree.survey.notes, *loader.notes, *_partly(len(files), len(entries))))),
    )


def marked_files(root: Path, tree: Tree) -> tuple[str, ...]:
    """Files with comments that pin, which a part of a large repository must hold; () where all of it is loaded."""
    if tree.is_small:
        return ()
    known = tree.survey.entries
    if not tree.survey.is_git:
        return tuple(path for path in sorted(known) if MARK in tree.text_of(path))
    found = vcs.matching_files(root, MARK.decode())
    return tuple(path for path in found if path in known)


def _partly(n_loaded: int, n_files: int) -> tuple[str, ...]:
    if n_loaded == n_files:
        return ()
    return (
        f"ranked {n_loaded} of {n_files} files: those that the evidence names, whose words match it best, that mention "
        "what it is about, and what they import; name a file with --focus or --test to have it among them",
    )


def _cache_row(tree: Tree) -> dict[str, object]:
    misses = tree.survey.n_parsed + tree.loader.n_parsed
    hits = max(0, len(tree.survey.entries) - misses)
    state = "off" if not tree.has_cache else "warm" if not misses else "cold" if not hits else "partial"
    return {"index": state, "index_hits": hits, "index_misses": misses}


def _state(root: Path, is_git: bool) -> tuple[RepoRow, frozenset[str]]:
    if not is_git:
        return RepoRow(str(root), None, dirty=False), frozenset()
    status = vcs.status(root)
    return RepoRow(str(root), status.head, dirty=bool(status.changed or status.deleted)), frozenset(status.changed)
