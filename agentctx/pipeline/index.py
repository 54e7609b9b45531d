"""Repository -> files, syntax and graph. The first stages of every run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from agentctx import vcs
from agentctx.pipeline.services import Clock, Services
from agentctx.repo.cache import INDEX_FILE, SyntaxCache
from agentctx.repo.graph import build_graph
from agentctx.repo.index import index
from agentctx.repo.scan import scan
from agentctx.report import RepoRow
from agentctx.source import RepoGraph, Skipped


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


def build_index(
    root: Path, services: Services, clock: Clock, overlay: Mapping[str, bytes] | None = None, *, cached: bool = True
) -> Index:
    """Scan, parse (from the cache where possible and wanted) and resolve.

    Raises:
        RepoError: not a directory, or nothing in it to index.
    """
    services.progress("scanning")
    with clock.stage("scan"):
        found = scan(root, overlay=overlay)
        row, changed = _state(root, found.is_git)
    services.progress(f"indexing {len(found.files)} files")
    with clock.stage("index"):
        folder = services.cache_dir if cached else None
        cache = SyntaxCache(folder / INDEX_FILE) if folder is not None else None
        indexed = index(found.files, cache, services.syntax if cached else None)
        graph = build_graph(indexed.syntax)
    state = "off" if cache is None else "warm" if not indexed.misses else "cold" if not indexed.hits else "partial"
    return Index(
        row=row,
        graph=graph,
        data={file.path: file.data for file in found.files},
        skipped=found.skipped,
        changed=changed,
        cache={"index": state, "index_hits": indexed.hits, "index_misses": indexed.misses},
        notes=(*found.notes, *indexed.notes),
    )


def _state(root: Path, is_git: bool) -> tuple[RepoRow, frozenset[str]]:
    if not is_git:
        return RepoRow(str(root), None, dirty=False), frozenset()
    status = vcs.status(root)
    return RepoRow(str(root), status.head, dirty=bool(status.changed or status.deleted)), frozenset(status.changed)
