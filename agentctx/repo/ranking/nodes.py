"""The chunks of a repository as a graph: who refers to whom, members of classes, overrides. Pure.

References that were not resolved, or to one of several, count apart and for less; by their name where that is all
that is known and few definitions have it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agentctx.repo.ranking.chunks import Chunk, chunks_of, owners
from agentctx.repo.ranking.text import Floats, Ints
from agentctx.source import RepoGraph, Resolution, Role, SymbolKind

CALL, USE, TYPE, IMPORT, NAMED, MEMBER, OVERRIDE = range(7)
_KINDS = {
    Role.CALL: CALL,
    Role.NAME: USE,
    Role.ATTRIBUTE: USE,
    Role.DECORATOR: USE,
    Role.FIXTURE: USE,
    Role.TYPE: TYPE,
    Role.BASE: TYPE,
    Role.IMPORT: IMPORT,
}
MAX_NAMESAKES = 6
NAMED_WEIGHT = 0.5


@dataclass(frozen=True, slots=True)
class Nodes:
    """All chunks, those of tests included, in the order of paths. Edges are sorted by kind, source and target.

    `line`: where the reference stands (0 for members and overrides). `group`: number of the class of each node
    (its own number space; -1: none).
    """

    chunks: tuple[Chunk, ...]
    is_test: npt.NDArray[np.bool_]
    file: Ints
    group: Ints
    by_symbol: Mapping[str, int]
    source: Ints
    target: Ints
    weight: Floats
    kind: Ints
    line: Ints

    @property
    def n(self) -> int:
        return len(self.chunks)

    def edges(self, kinds: Sequence[int]) -> npt.NDArray[np.bool_]:
        """Mask of the edges of some kinds."""
        return np.isin(self.kind, kinds)


def build_nodes(graph: RepoGraph, data: Mapping[str, bytes]) -> Nodes:
    chunks: list[Chunk] = []
    tests: list[bool] = []
    files: list[int] = []
    by_unit: dict[tuple[str, int], int] = {}
    by_symbol: dict[str, int] = {}
    for number, path in enumerate(sorted(graph.files)):
        file = graph.files[path]
        first = len(chunks)
        chunks += chunks_of(file, data[path])
        at = {chunk.id: first + n for n, chunk in enumerate(chunks[first:])}
        by_unit.update(((path, unit), first + n) for n, chunk in enumerate(chunks[first:]) for unit in chunk.units)
        headers = {symbol.id: by_unit[(path, symbol.header)] for symbol in file.symbols}
        by_symbol.update((id, at.get(owner, headers[id])) for id, owner in owners(file).items())
        tests += [file.is_test] * (len(chunks) - first)
        files += [number] * (len(chunks) - first)
    is_test = np.array(tests, dtype=np.bool_)
    edges = [
        *_references(graph, by_unit, by_symbol, is_test),
        *_members(graph, by_symbol),
        *_overrides(graph, by_symbol),
    ]
    table = np.array(_distinct(edges), dtype=np.float64).reshape(-1, 5)
    return Nodes(
        chunks=tuple(chunks),
        is_test=is_test,
        file=np.array(files, dtype=np.int64),
        group=_groups(graph, chunks, by_symbol),
        by_symbol=by_symbol,
        kind=table[:, 0].astype(np.int64),
        source=table[:, 1].astype(np.int64),
        target=table[:, 2].astype(np.int64),
        line=table[:, 3].astype(np.int64),
        weight=table[:, 4].copy(),
    )


Edge = tuple[int, int, int, int, float]  # kind, source, target, line, weight


def _distinct(edges: Sequence[Edge]) -> list[Edge]:
    """One edge per kind, ends and line: the heaviest."""
    best: dict[tuple[int, int, int, int], float] = {}
    for kind, source, target, line, weight in edges:
        if source != target:
            key = (kind, source, target, line)
            best[key] = max(best.get(key, 0.0), weight)
    return [(*key, best[key]) for key in sorted(best)]


def _references(
    graph: RepoGraph,
    by_unit: Mapping[tuple[str, int], int],
    by_symbol: Mapping[str, int],
    is_test: npt.NDArray[np.bool_],
) -> list[Edge]:
    named = _namesakes(graph, by_symbol, is_test)
    out: list[Edge] = []
    for link in graph.links:
        reference = link.reference
        source = by_unit.get((reference.path, reference.unit))
        kind = _KINDS.get(reference.role)
        if source is None or kind is None:
            continue
        targets = [by_symbol[target] for target in link.targets if target in by_symbol]
        if targets and link.state is not Resolution.RESOLVED and kind != IMPORT:
            out += [(NAMED, source, target, reference.line, NAMED_WEIGHT / len(targets)) for target in targets]
        elif targets:
            out += [(kind, source, target, reference.line, 1.0 / len(targets)) for target in targets]
        elif link.state is Resolution.UNKNOWN and kind != IMPORT:
            alike = named.get(reference.name, ())
            out += [(NAMED, source, target, reference.line, NAMED_WEIGHT / len(alike)) for target in alike]
    return out


def _namesakes(
    graph: RepoGraph, by_symbol: Mapping[str, int], is_test: npt.NDArray[np.bool_]
) -> dict[str, tuple[int, ...]]:
    """Name -> the few chunks outside of tests that define it."""
    found: dict[str, dict[int, None]] = {}
    for id, symbol in graph.symbols.items():
        node = by_symbol.get(id)
        if node is not None and len(symbol.name) > 1 and not is_test[node]:
            found.setdefault(symbol.name, {})[node] = None
    return {name: tuple(nodes) for name, nodes in found.items() if len(nodes) <= MAX_NAMESAKES}


def _members(graph: RepoGraph, by_symbol: Mapping[str, int]) -> list[Edge]:
    """Between a class and its methods, both ways; from the class shared among them."""
    members: dict[int, list[int]] = {}
    for id, node in by_symbol.items():
        parent = graph.symbols[id].parent
        owner = by_symbol.get(parent) if parent is not None else None
        if owner is not None and owner != node:
            members.setdefault(owner, []).append(node)
    down = [(MEMBER, owner, node, 0, len(set(inner)) ** -0.5) for owner, inner in members.items() for node in inner]
    return [*down, *((MEMBER, node, owner, 0, 1.0) for _, owner, node, _, _ in down)]


def _overrides(graph: RepoGraph, by_symbol: Mapping[str, int]) -> list[Edge]:
    pairs = [(a, b) for a, below in graph.overridden_by.items() for b in below if a in by_symbol and b in by_symbol]
    both = [*pairs, *((b, a) for a, b in pairs)]
    return [(OVERRIDE, by_symbol[a], by_symbol[b], 0, 1.0) for a, b in both]


def _groups(graph: RepoGraph, chunks: Sequence[Chunk], by_symbol: Mapping[str, int]) -> Ints:
    """The node of the class that each node is or belongs to, -1 outside of classes."""
    out = np.full(len(chunks), -1, dtype=np.int64)
    for node, chunk in enumerate(chunks):
        at = graph.symbols[chunk.symbol] if chunk.symbol is not None else None
        if at is not None and at.kind is SymbolKind.CLASS:
            out[node] = node
        elif at is not None and at.parent is not None and graph.symbols[at.parent].kind is SymbolKind.CLASS:
            out[node] = by_symbol.get(at.parent, -1)
    return out
