"""The table of first-order features: what is known of every chunk before anything was scored. Pure.

Values are rounded to thousandths: trees compare them with thresholds between, so that the last bit of a logarithm,
which differs between machines, decides nothing. NaN: not known (no history), which the trees have learned, too.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from agentctx.prompt import Evidence, Task
from agentctx.repo.locate import Located
from agentctx.repo.ranking.literals import overlap
from agentctx.repo.ranking.names import name_features
from agentctx.repo.ranking.near import Asked, walk_features
from agentctx.repo.ranking.nodes import CALL, OVERRIDE, TYPE, USE, Nodes, build_nodes
from agentctx.repo.ranking.queries import Queries, queries
from agentctx.repo.ranking.scales import grouped_max, ranks, scaled
from agentctx.repo.ranking.text import Counts, Floats, Ints, bm25, count_terms, coverage, mask_of
from agentctx.repo.ranking.twins import twins
from agentctx.source import RepoGraph, SymbolKind

_ASIDE = re.compile(r"(^|/)(docs?|examples?|benchmarks?|bench|scripts|tools)/|(^|/)(setup|noxfile|conf)\.py$")
DIGITS = 3


class History(Protocol):
    """What a repository's history says of a path. Higher is more."""

    def recency(self, path: str) -> float:
        """1 for a file of the newest commits, falling to 0."""

    def cochange(self, path: str, tests: Sequence[str]) -> float:
        """How often the path changed together with one of the test files."""


@dataclass(frozen=True, slots=True)
class Table:
    """`values[i, j]`: feature `names[j]` of the candidate `rows[i]`, a node of `nodes`.

    `unit_counts` are the query terms of the candidates' units, `unit_of` says whose they are: (candidate, unit).
    """

    nodes: Nodes
    rows: Ints
    names: tuple[str, ...]
    values: Floats
    queries: Queries
    unit_texts: tuple[str, ...]
    unit_rows: Ints
    unit_numbers: Ints
    unit_counts: Counts
    heat: Floats  # (nodes,): mass of the walk from the tests
    twin: tuple[Floats, Floats]  # of each unit: see `ranking.twins`

    def column(self, name: str) -> Floats:
        return np.asarray(self.values[:, self.names.index(name)], dtype=np.float64)


def table(
    graph: RepoGraph,
    data: Mapping[str, bytes],
    task: Task,
    evidence: Evidence,
    located: Located,
    history: History | None = None,
) -> Table:
    """Features of every chunk outside of tests, in the order of path and position."""
    nodes = build_nodes(graph, data)
    rows = np.flatnonzero(~nodes.is_test)
    asked = queries(graph, data, task, evidence, located)
    texts, unit_rows, unit_numbers = _unit_texts(graph, data, nodes, rows)
    unit_counts = count_terms(texts, asked.wanted)
    columns: dict[str, Floats] = {}
    columns |= _text(asked, unit_counts, unit_rows, len(rows))
    columns |= _literals(asked, texts, unit_rows, len(rows))
    lost = mask_of(asked.terms["removed"], asked.wanted)
    twin = twins(texts, asked.lost, bm25(unit_counts, lost, unit_counts.idf()))
    columns |= _twins(twin, unit_rows, len(rows))
    columns |= name_features(graph, nodes, rows, asked, located, task)
    walked, heat = walk_features(Asked(graph, data, task, evidence, located), nodes, rows, texts)
    columns |= walked
    columns |= _shape(graph, nodes, rows)
    columns |= _together(nodes, rows, columns)
    columns["task.tests"] = np.full(len(rows), math.log2(1 + len(located.failing_tests) + len(located.test_units)))
    columns["task.changed"] = np.full(len(rows), math.log2(1 + asked.n_changed))
    columns |= _past(graph, nodes, rows, located, task, history)
    values = np.round(np.stack(list(columns.values()), axis=1), DIGITS) if len(rows) else np.zeros((0, len(columns)))
    return Table(
        nodes, rows, tuple(columns), values, asked, tuple(texts), unit_rows, unit_numbers, unit_counts, heat, twin
    )


def _unit_texts(graph: RepoGraph, data: Mapping[str, bytes], nodes: Nodes, rows: Ints) -> tuple[list[str], Ints, Ints]:
    """The texts of all units of the candidates, the candidate of each, and its number in the file."""
    texts, owner, numbers = [], [], []
    for row, node in enumerate(rows.tolist()):
        chunk = nodes.chunks[node]
        units = graph.files[chunk.path].units
        for unit in chunk.units:
            span = units[unit].span
            texts.append(data[chunk.path][span.start : span.end].decode("utf-8", "replace"))
            owner.append(row)
            numbers.append(unit)
    return texts, np.array(owner, dtype=np.int64), np.array(numbers, dtype=np.int64)


# ---------------------------------------------------------------- text


def _text(asked: Queries, units: Counts, unit_rows: Ints, n: int) -> dict[str, Floats]:
    chunks = units.grouped(unit_rows, n)
    idf, unit_idf = chunks.idf(), units.idf()
    wanted = asked.wanted
    out: dict[str, Floats] = {}
    for name, terms in asked.terms.items():
        mask = mask_of(terms, wanted)
        score = bm25(chunks, mask, idf)
        out[f"text.{name}"] = scaled(score)
        out[f"text.{name}.rank"] = ranks(score)
        if name in ("all", "changed"):
            parts = grouped_max(bm25(units, mask, unit_idf), unit_rows, n)
            out[f"text.{name}.part"] = scaled(parts)
            out[f"text.{name}.part.rank"] = ranks(parts)
            held, rarest = coverage(chunks, mask, idf)
            out[f"text.{name}.share"] = held
            out[f"text.{name}.rarest"] = rarest
    return out


def _twins(twin: tuple[Floats, Floats], unit_rows: Ints, n: int) -> dict[str, Floats]:
    near, held = (grouped_max(values, unit_rows, n) for values in twin)
    return {"twin.near": near, "twin.near.rank": ranks(near), "twin.held": np.log1p(held)}


def _literals(asked: Queries, texts: Sequence[str], unit_rows: Ints, n: int) -> dict[str, Floats]:
    same, pairs = overlap(texts, asked.strings, asked.lines)
    out: dict[str, Floats] = {}
    for name, values in (("string", same), ("phrase", pairs)):
        total = np.bincount(unit_rows, weights=values, minlength=n)
        out[f"literal.{name}"] = np.log1p(total)
        out[f"literal.{name}.scaled"] = scaled(total)
    return out


# ---------------------------------------------------------------- shape

_KIND = {SymbolKind.FUNCTION: 1.0, SymbolKind.METHOD: 2.0, SymbolKind.CLASS: 3.0, SymbolKind.CONSTANT: 4.0}


def _shape(graph: RepoGraph, nodes: Nodes, rows: Ints) -> dict[str, Floats]:
    names = (
        "size",
        "units",
        "kind",
        "private",
        "depth",
        "place",
        "aside",
        "plain",
        "imports",
        "decorators",
        "siblings",
    )
    out: dict[str, Floats] = {f"shape.{name}": np.zeros(len(rows)) for name in names}
    in_file = np.bincount(nodes.file[rows], minlength=len(graph.files))
    for row, node in enumerate(rows.tolist()):
        chunk = nodes.chunks[node]
        file = graph.files[chunk.path]
        symbol = graph.symbols[chunk.symbol] if chunk.symbol is not None else None
        name = symbol.name if symbol is not None else ""
        facts = (
            math.log2(len(chunk.text) + 1),
            len(chunk.units),
            _KIND.get(symbol.kind, 5.0) if symbol is not None else 0.0,
            2.0 if name.startswith("__") else 1.0 if name.startswith("_") else 0.0,
            symbol.qualname.count(".") if symbol is not None else 0.0,
            chunk.units[0] / max(len(file.units), 1),
            bool(_ASIDE.search(chunk.path)),
            file.language is None,
            chunk.is_imports,
            len(symbol.decorators) if symbol is not None else 0.0,
            math.log2(in_file[nodes.file[node]] + 1),
        )
        for column, value in zip(out.values(), facts, strict=True):
            column[row] = value
    fan = nodes.edges((CALL, USE, TYPE))
    out["shape.fan_in"] = np.log2(1 + np.bincount(nodes.target[fan], minlength=nodes.n))[rows]
    out["shape.fan_out"] = np.log2(1 + np.bincount(nodes.source[fan], minlength=nodes.n))[rows]
    out["shape.overrides"] = np.bincount(nodes.source[nodes.edges((OVERRIDE,))], minlength=nodes.n)[rows] + 0.0
    return out


# ---------------------------------------------------------------- file and class

_SHARED = ("text.all", "text.changed", "text.strong", "walk.mass", "walk.changed.mass", "literal.string.scaled")


def _together(nodes: Nodes, rows: Ints, columns: Mapping[str, Floats]) -> dict[str, Floats]:
    """What the rest of the file and of the class says."""
    out: dict[str, Floats] = {}
    file = np.unique(nodes.file[rows], return_inverse=True)[1]
    group = nodes.group[rows]
    klass = np.unique(np.where(group < 0, -1 - np.arange(len(rows)), group), return_inverse=True)[1]
    for name in _SHARED:
        values = columns[name]
        for kind, of in (("file", file), ("class", klass)):
            n = int(of.max()) + 1 if len(of) else 0
            total = np.bincount(of, weights=values, minlength=n)
            out[f"{kind}.sum.{name}"] = scaled(total)[of]
            out[f"{kind}.max.{name}"] = grouped_max(values, of, n)[of]
            if name in ("text.all", "walk.mass") and kind == "file":
                out[f"{kind}.rank.{name}"] = ranks(total)[of]
                out[f"{kind}.part.{name}"] = values / np.where(total > 0, total, 1.0)[of]
    return out


# ---------------------------------------------------------------- history


def _past(
    graph: RepoGraph, nodes: Nodes, rows: Ints, located: Located, task: Task, history: History | None
) -> dict[str, Floats]:
    recency, cochange = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    if history is not None:
        tests = sorted({graph.symbols[test].path for test in located.failing_tests} | {r.path for r in task.tests})
        paths = {nodes.chunks[node].path for node in rows.tolist()}
        known = {path: (history.recency(path), history.cochange(path, tests)) for path in sorted(paths)}
        for row, node in enumerate(rows.tolist()):
            recency[row], cochange[row] = known[nodes.chunks[node].path]
    return {"history.recency": recency, "history.cochange": cochange}
