"""Features of nearness: how each chunk hangs together with the failing tests, along references and imports. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt

from agentctx.prompt import Evidence, Task
from agentctx.repo.locate import Located
from agentctx.repo.ranking.nodes import CALL, IMPORT, MEMBER, NAMED, OVERRIDE, TYPE, USE, Nodes
from agentctx.repo.ranking.queries import touched_tests
from agentctx.repo.ranking.scales import ranks, scaled
from agentctx.repo.ranking.text import Floats, Ints, counted
from agentctx.repo.ranking.walks import backward, hops, mass
from agentctx.source import RepoGraph, Resolution

_STRONG = (CALL, USE, TYPE)
_WIDE = (CALL, USE, TYPE, NAMED, MEMBER, OVERRIDE)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'|`[^`\n]*`')
_NAME = re.compile(r"[^\W\d]\w{2,}")

Mask = npt.NDArray[np.bool_]
Line = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Asked:
    """The repository and the task."""

    graph: RepoGraph
    data: Mapping[str, bytes]
    task: Task
    evidence: Evidence
    located: Located

    @property
    def test_paths(self) -> frozenset[str]:
        """Files of the failing tests."""
        found = {self.graph.symbols[test].path for test in self.located.failing_tests}
        return frozenset(found | {ref.path for ref in self.task.tests} | {path for path, _ in self.located.test_units})


def walk_features(asked: Asked, nodes: Nodes, rows: Ints, texts: Sequence[str]) -> tuple[dict[str, Floats], Floats]:
    """Columns for the candidates `rows`, and the mass of the walk for all nodes. `texts`: those of code."""
    seeds = _seeds(asked, nodes)
    paths = asked.test_paths
    module = np.array([1.0 if chunk.path in paths else 0.0 for chunk in nodes.chunks]) * nodes.is_test
    lines = _changed_lines(asked)
    strong, wide, named = nodes.edges(_STRONG), nodes.edges(_WIDE), nodes.edges((*_STRONG, NAMED))
    touched = _on_lines(nodes, frozenset(lines))
    changed = named & touched
    novel = named & _on_lines(nodes, _novel_lines(lines, texts))
    from_changed = _sources(nodes, changed)
    heat = mass(nodes, seeds, strong)
    changed_heat = mass(nodes, from_changed, wide, first=changed)
    columns = {
        "walk.hops": hops(nodes, seeds, strong),
        "walk.mass": scaled(heat),
        "walk.calls": hops(nodes, seeds, nodes.edges((CALL,))),
        "walk.wide.hops": hops(nodes, seeds, wide),
        "walk.wide.mass": scaled(mass(nodes, seeds, wide)),
        "walk.changed.hops": hops(nodes, from_changed, named, first=changed),
        "walk.changed.wide": hops(nodes, from_changed, wide, first=changed),
        "walk.changed.mass": scaled(changed_heat),
        "walk.novel.mass": scaled(mass(nodes, _sources(nodes, novel), wide, most=2, first=novel)),
        "walk.module.mass": scaled(mass(nodes, module, wide, most=2)),
        "walk.back": scaled(backward(nodes, heat, strong)),
        "walk.back.first": scaled(backward(nodes, mass(nodes, seeds, named, most=1), named)),
        "walk.only": _only(nodes, seeds, named),
        "walk.reach": _reach(asked, nodes),
        "walk.import": _imported(asked, nodes),
        "walk.import.file": _imported_files(nodes, touched),
        "walk.missing": _missing(asked, nodes, seeds),
    }
    out: dict[str, Floats] = {}
    for name, values in columns.items():
        out[name] = values[rows]
        if name in ("walk.mass", "walk.wide.mass", "walk.changed.mass", "walk.module.mass"):
            out[f"{name}.rank"] = ranks(np.round(out[name], 6))
    return out, heat + changed_heat


def _seeds(asked: Asked, nodes: Nodes) -> Floats:
    seeds = np.zeros(nodes.n)
    located = asked.located
    for symbol in (*located.failing_tests, *located.fixtures):
        if symbol in nodes.by_symbol:
            seeds[nodes.by_symbol[symbol]] = 1.0
    units = set(located.test_units)
    if units:
        paths = {path for path, _ in units}
        for node, chunk in enumerate(nodes.chunks):
            if chunk.path in paths and any((chunk.path, unit) in units for unit in chunk.units):
                seeds[node] = 1.0
    return seeds


def _sources(nodes: Nodes, edges: Mask) -> Floats:
    seeds = np.zeros(nodes.n)
    seeds[nodes.source[edges]] = 1.0
    return seeds


# ---------------------------------------------------------------- lines of the tests


def _changed_lines(asked: Asked) -> dict[Line, str]:
    """The changed lines of tests, with their text; of the failing tests where nothing was changed."""
    touched = touched_tests(asked.graph, asked.task, asked.evidence, asked.located)
    spans = [(path, span) for path, change in touched.items() for span in change.lines]
    if not spans:
        symbols = [asked.graph.symbols[test] for test in asked.located.failing_tests]
        spans = [(symbol.path, symbol.lines) for symbol in symbols]
    texts = {path: asked.data[path].decode("utf-8", "replace").split("\n") for path in sorted({p for p, _ in spans})}
    return {
        (path, line): texts[path][line - 1]
        for path, span in spans
        for line in range(span.start, min(span.end, len(texts[path])) + 1)
    }


def _novel_lines(lines: Mapping[Line, str], texts: Sequence[str]) -> frozenset[Line]:
    """Lines with a name that no code has yet, such as a new keyword argument."""
    used = {line: _NAME.findall(_STRING.sub(" ", text)) for line, text in lines.items()}
    known = set(chain.from_iterable(counted(text)[0] for text in texts))
    called = {name for names in used.values() for name in names if name not in known}
    own = {text for text in called if text.startswith(("test", "Test"))}
    return frozenset(line for line, names in used.items() if any(name in called - own for name in names))


def _on_lines(nodes: Nodes, lines: frozenset[Line]) -> Mask:
    """Mask of the edges that start on one of the lines."""
    mask = np.zeros(len(nodes.source), dtype=np.bool_)
    if lines:
        paths = {path for path, _ in lines}
        in_paths = np.array([chunk.path in paths for chunk in nodes.chunks], dtype=np.bool_)
        for edge in np.flatnonzero(in_paths[nodes.source]).tolist():
            mask[edge] = (nodes.chunks[int(nodes.source[edge])].path, int(nodes.line[edge])) in lines
    return mask


# ---------------------------------------------------------------- what tests have in common


def _only(nodes: Nodes, seeds: Floats, edges: Mask) -> Floats:
    """Of the tests that refer to a chunk, the share of those that fail, by Ochiai: high where few others do."""
    from_test = edges & nodes.is_test[nodes.source]
    pairs = np.unique(nodes.source[from_test] * nodes.n + nodes.target[from_test])
    source, target = np.divmod(pairs, max(nodes.n, 1))
    failing = np.bincount(target, weights=(seeds[source] > 0).astype(np.float64), minlength=nodes.n)
    every = np.bincount(target, minlength=nodes.n)
    share: Floats = failing / np.sqrt(np.maximum(every * max(float((seeds > 0).sum()), 1.0), 1.0))
    return share


def _reach(asked: Asked, nodes: Nodes) -> Floats:
    """The same over the tests that reach a definition in some steps."""
    failing = set(asked.located.failing_tests)
    out = np.zeros(nodes.n)
    for symbol, tests in asked.graph.tests.items():
        node = nodes.by_symbol.get(symbol)
        if node is not None and failing:
            hits = sum(test in failing for test in tests)
            out[node] = max(out[node], hits / math.sqrt(len(tests) * len(failing)) if hits else 0.0)
    return out


def _imported(asked: Asked, nodes: Nodes) -> Floats:
    """1 for what the failing tests' files import by name."""
    paths = asked.test_paths
    out = np.zeros(nodes.n)
    for edge in np.flatnonzero(nodes.edges((IMPORT,))).tolist():
        if nodes.chunks[int(nodes.source[edge])].path in paths:
            out[int(nodes.target[edge])] = 1.0
    return out


def _imported_files(nodes: Nodes, changed: Mask) -> Floats:
    """1 for everything in files that changed lines of the tests import from."""
    files = np.unique(nodes.file[nodes.target[nodes.edges((IMPORT,)) & changed]])
    found: Floats = np.isin(nodes.file, files) * 1.0
    return found


def _missing(asked: Asked, nodes: Nodes, seeds: Floats) -> Floats:
    """1 for a class, and half for its methods, of which a failing test uses a member that nothing has yet."""
    classes: dict[str, list[int]] = {}
    for node in np.flatnonzero((nodes.group == np.arange(nodes.n)) & ~nodes.is_test).tolist():
        symbol = nodes.chunks[node].symbol
        if symbol is not None:
            classes.setdefault(asked.graph.symbols[symbol].name, []).append(node)
    names = {symbol.name for symbol in asked.graph.symbols.values()}
    scopes = {symbol for symbol, node in nodes.by_symbol.items() if seeds[node] > 0}
    out = np.zeros(nodes.n)
    for link in asked.graph.links:
        reference = link.reference
        if link.state is not Resolution.UNKNOWN or reference.scope not in scopes or reference.name in names:
            continue
        owner = (reference.receiver_type or reference.receiver or "").rpartition(".")[2]
        for node in classes.get(owner, ()):
            out[nodes.group == node] = np.maximum(out[nodes.group == node], 0.5)
            out[node] = 1.0
    return out
