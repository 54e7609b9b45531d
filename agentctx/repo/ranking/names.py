"""Names that the evidence speaks of: of definitions, classes, modules. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

import numpy as np

from agentctx.prompt import Task
from agentctx.repo.locate import Located
from agentctx.repo.ranking.nodes import Nodes
from agentctx.repo.ranking.queries import Queries
from agentctx.repo.ranking.text import Floats, Ints
from agentctx.repo.terms import parts
from agentctx.source import RepoGraph, Symbol

MIN_JOINED = 5
_EMPTY = frozenset({"test", "tests", "spec", "it", "index", "init", "main"})


def name_features(
    graph: RepoGraph, nodes: Nodes, rows: Ints, asked: Queries, located: Located, task: Task
) -> dict[str, Floats]:
    """Of each candidate; all values are 0 to 1, rarer names count for more."""
    inner = _inner(graph, nodes)
    rarity = _rarity(graph)
    tests = sorted({graph.symbols[test].path for test in located.failing_tests} | {ref.path for ref in task.tests})
    names = (
        "own", "own.changed", "own.removed", "inner", "class", "class.changed", "title", "joined", "parts", "part",
        "module", "folder", "bound",
    )  # fmt: skip
    out = {f"name.{name}": np.zeros(len(rows)) for name in names}
    modules: dict[str, tuple[float, float]] = {}
    part_rarity = _part_rarity(graph)
    bound = _binders(graph, asked.bound)
    said = frozenset(part for name in asked.names for part in parts(name))
    run_together = "\n".join(sorted({_joined(name) for name in (*asked.names, *asked.titles)}))
    for row, node in enumerate(rows.tolist()):
        chunk = nodes.chunks[node]
        symbol = graph.symbols[chunk.symbol] if chunk.symbol is not None else None
        if chunk.path not in modules:
            modules[chunk.path] = _module(chunk.path, tests)
        facts = (
            _said([symbol], asked.names, rarity),
            _said([symbol], asked.changed_names, rarity),
            _said([symbol], asked.removed_names, rarity),
            _said(inner.get(node, ()), asked.names, rarity),
            _said([_parent(graph, symbol)], asked.names, rarity),
            _said([_parent(graph, symbol)], asked.changed_names, rarity),
            _title(symbol, asked.test_words),
            _is_joined(symbol, run_together, rarity),
            *_parts_said(symbol, said, part_rarity),
            *modules[chunk.path],
            bound.get(chunk.path, 0.0),
        )
        for column, value in zip(out.values(), facts, strict=True):
            column[row] = value
    return out


def _inner(graph: RepoGraph, nodes: Nodes) -> dict[int, list[Symbol]]:
    found: dict[int, list[Symbol]] = {}
    for id, node in nodes.by_symbol.items():
        if id != nodes.chunks[node].symbol:
            found.setdefault(node, []).append(graph.symbols[id])
    return found


def _rarity(graph: RepoGraph) -> dict[str, float]:
    """Name -> 1 / root of how many definitions have it."""
    counts: dict[str, int] = {}
    for symbol in graph.symbols.values():
        counts[symbol.name] = counts.get(symbol.name, 0) + 1
    return {name: count**-0.5 for name, count in counts.items()}


def _said(symbols: Sequence[Symbol | None], names: frozenset[str], rarity: Mapping[str, float]) -> float:
    found = (symbol.name for symbol in symbols if symbol is not None)
    return max((rarity[name] for name in found if len(name) > 2 and name in names), default=0.0)


def _parent(graph: RepoGraph, symbol: Symbol | None) -> Symbol | None:
    return graph.symbols[symbol.parent] if symbol is not None and symbol.parent is not None else None


def _title(symbol: Symbol | None, test_words: frozenset[str]) -> float:
    """Of the parts of the definition's name, the share that the tests' names hold."""
    own = set(parts(symbol.name)) if symbol is not None else set()
    own = {part for part in own if len(part) > 2}
    return len(own & test_words) / len(own) if own else 0.0


def _joined(name: str) -> str:
    return name.replace("_", "").lower()


def _is_joined(symbol: Symbol | None, run_together: str, rarity: Mapping[str, float]) -> float:
    """`_tempfilepager` stands in `test_tempfile_pager_closes`, when the words are run together."""
    own = _joined(symbol.name) if symbol is not None else ""
    return rarity[symbol.name] if symbol is not None and len(own) >= MIN_JOINED and own in run_together else 0.0


def _part_rarity(graph: RepoGraph) -> dict[str, float]:
    """Part of a name -> 1 / root of how many different names have it."""
    counts: dict[str, int] = {}
    for name in {symbol.name for symbol in graph.symbols.values()}:
        for part in set(parts(name)):
            counts[part] = counts.get(part, 0) + 1
    return {part: count**-0.5 for part, count in counts.items()}


def _parts_said(symbol: Symbol | None, said: frozenset[str], rarity: Mapping[str, float]) -> tuple[float, float]:
    """Of the parts of the definition's name: the weight of those that the evidence speaks of, and the rarest one.

    `do_groupby` is what `{{ x|groupby }}` in a test means.
    """
    own = sorted({part for part in parts(symbol.name) if len(part) > 2}) if symbol is not None else []
    found = [rarity[part] for part in own if part in said]
    total = sum(rarity[part] for part in own)
    return (sum(found) / total if total else 0.0), max(found, default=0.0)


def _binders(graph: RepoGraph, names: frozenset[str]) -> dict[str, float]:
    """Path -> how rare it is among the files outside of tests to use a name that the tests now import differently."""
    users: dict[str, set[str]] = {}
    for file in graph.files.values() if names else ():
        if file.is_test:
            continue
        used = {one.name for one in file.references} | {one.alias for one in file.imports}
        used |= {one.receiver.partition(".")[0] for one in file.references if one.receiver}
        for name in used & names:
            users.setdefault(name, set()).add(file.path)
    out: dict[str, float] = {}
    for paths in users.values():
        for path in paths:
            out[path] = max(out.get(path, 0.0), len(paths) ** -0.5)
    return out


def _module(path: str, tests: Sequence[str]) -> tuple[float, float]:
    """How much a file's name and its folders have in common with those of the failing tests' files."""
    own, folders = _words(path), _folders(path)
    name = max((_alike(own, _words(test)) for test in tests), default=0.0)
    return name, max((_alike(folders, _folders(test)) for test in tests), default=0.0)


def _alike(a: frozenset[str], b: frozenset[str]) -> float:
    return len(a & b) / len(a | b) if a | b else 0.0


def _words(path: str) -> frozenset[str]:
    stem = PurePosixPath(path).name.partition(".")[0]
    if stem.strip("_") in ("init", "index", "mod", "lib"):
        stem = PurePosixPath(path).parent.name
    found = re.split(r"[_\W]+|(?<=[a-z0-9])(?=[A-Z])", stem)
    return frozenset(word.lower() for word in found if word) - _EMPTY


def _folders(path: str) -> frozenset[str]:
    return frozenset(PurePosixPath(path).parts[:-1]) - {"src", "lib", "test", "tests", "main", "java"}
