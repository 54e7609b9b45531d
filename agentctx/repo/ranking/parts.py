"""Features of single units: which part of a chunk is meant. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np

from agentctx.repo.ranking.features import DIGITS, Table
from agentctx.repo.ranking.literals import overlap
from agentctx.repo.ranking.scales import grouped_max, ranks, scaled
from agentctx.repo.ranking.text import Floats, Ints, bm25, mask_of
from agentctx.source import RepoGraph, UnitKind

_KINDS = {kind: float(number) for number, kind in enumerate(UnitKind)}
_WORDS: Mapping[str, re.Pattern[str]] = {
    "returns": re.compile(r"\b(return|yield)\b"),
    "raises": re.compile(r"\b(raise|throw|panic|Err|error|errors|Error)\b"),
    "decides": re.compile(r"\b(if|elif|else|case|switch|match|when)\b"),
}

PARTS = (
    "part.text.all", "part.text.all.own", "part.text.changed", "part.text.changed.own", "part.text.strong",
    "part.text.rank", "part.string", "part.phrase", "part.heat", "part.heat.max", "part.kind", "part.lines",
    "part.depth", "part.place", "part.number", "part.of", "part.first", "part.last", "part.before", "part.after",
    "part.returns", "part.raises", "part.decides", "part.chunk", "part.chunk.rank", "part.chunk.kind",
    "part.chunk.size", "part.twin", "part.twin.own", "part.twin.held",
)  # fmt: skip


def part_features(graph: RepoGraph, made: Table, chosen: Ints) -> tuple[Ints, Floats]:
    """The units (numbers into `made.unit_texts`) of the candidates `chosen`, and their features but for the three
    that tell of the chunk's score (`with_chunks` puts them in), in the order of PARTS."""
    place = np.full(len(made.rows), -1, dtype=np.int64)
    place[chosen] = np.arange(len(chosen))
    units = np.flatnonzero(place[made.unit_rows] >= 0)
    of = place[made.unit_rows[units]]
    texts = [made.unit_texts[unit] for unit in units.tolist()]
    columns = [*_text(made, units, of), *_literals(made, texts), *_heat(graph, made, units)]
    columns += _shape(graph, made, units, of)
    columns += _around(columns[0], of)
    columns += [np.array([bool(word.search(text)) for text in texts], dtype=np.float64) for word in _WORDS.values()]
    columns += [np.zeros(len(units)), np.zeros(len(units))]
    columns += [made.column("shape.kind")[chosen][of], made.column("shape.size")[chosen][of]]
    columns += _twins(made, units, of)
    return units, np.round(np.stack(columns, axis=1), DIGITS) if len(units) else np.zeros((0, len(PARTS)))


def with_chunks(features: Floats, of: Ints, chunks: Floats) -> Floats:
    """The features with the probability of each unit's chunk; `of`: its place in `chunks`."""
    out = features.copy()
    p = np.clip(chunks, 1e-6, 1 - 1e-6)
    out[:, PARTS.index("part.chunk")] = np.round(np.log(p / (1 - p)), DIGITS)[of]
    out[:, PARTS.index("part.chunk.rank")] = np.round(ranks(chunks), DIGITS)[of]
    return out


def _text(made: Table, units: Ints, of: Ints) -> list[Floats]:
    documents = made.unit_counts
    idf, wanted = documents.idf(), made.queries.wanted
    scores = {}
    for name in ("all", "changed", "strong"):
        scores[name] = scaled(bm25(documents, mask_of(made.queries.terms[name], wanted), idf))[units]
    own = {name: _share(scores[name], of) for name in ("all", "changed")}
    return [scores["all"], own["all"], scores["changed"], own["changed"], scores["strong"], ranks(scores["all"])]


def _share(values: Floats, of: Ints) -> Floats:
    """Of the best unit of the same chunk."""
    n = int(of.max()) + 1 if len(of) else 0
    share: Floats = values / np.maximum(grouped_max(values, of, n), 1e-9)[of]
    return share


def _literals(made: Table, texts: list[str]) -> list[Floats]:
    same, pairs = overlap(texts, made.queries.strings, made.queries.lines)
    return [np.log1p(same), np.log1p(pairs)]


def _twins(made: Table, units: Ints, of: Ints) -> list[Floats]:
    near, held = (values[units] for values in made.twin)
    return [near, _share(near, of), np.log1p(held)]


def _heat(graph: RepoGraph, made: Table, units: Ints) -> list[Floats]:
    """What the unit refers to is near the tests: sum and maximum."""
    nodes = made.nodes
    number = {
        (nodes.chunks[int(made.rows[made.unit_rows[unit]])].path, int(made.unit_numbers[unit])): n
        for n, unit in enumerate(units.tolist())
    }
    heat = scaled(made.heat)
    total, most = np.zeros(len(units)), np.zeros(len(units))
    for link in graph.links:
        at = number.get((link.reference.path, link.reference.unit))
        if at is None:
            continue
        for target in link.targets:
            node = nodes.by_symbol.get(target)
            if node is not None:
                total[at] += heat[node] / len(link.targets)
                most[at] = max(most[at], heat[node])
    return [np.log1p(total), most]


def _shape(graph: RepoGraph, made: Table, units: Ints, of: Ints) -> list[Floats]:
    kind, lines, depth = np.zeros(len(units)), np.zeros(len(units)), np.zeros(len(units))
    for n, unit in enumerate(units.tolist()):
        path = made.nodes.chunks[int(made.rows[made.unit_rows[unit]])].path
        known = graph.files[path].units[int(made.unit_numbers[unit])]
        kind[n], lines[n], depth[n] = _KINDS[known.kind], np.log2(1 + len(known.lines)), len(known.spine)
    count = np.bincount(of) if len(of) else np.zeros(0)
    start = np.concatenate([[0], np.cumsum(count)[:-1]]) if len(of) else np.zeros(0)
    number = np.arange(len(units)) - start[of] if len(of) else np.zeros(0)
    total = count[of].astype(np.float64) if len(of) else np.zeros(0)
    first, last = (number == 0).astype(np.float64), (number == total - 1).astype(np.float64)
    return [kind, lines, depth, number / np.maximum(total, 1), np.log2(1 + number), np.log2(total + 1), first, last]


def _around(score: Floats, of: Ints) -> list[Floats]:
    """The text score of the unit before and after in the same chunk."""
    before, after = np.zeros(len(score)), np.zeros(len(score))
    same = of[1:] == of[:-1]
    before[1:][same] = score[:-1][same]
    after[:-1][same] = score[1:][same]
    return [before, after]
