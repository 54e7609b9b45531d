"""Graph + evidence + text -> a score for every unit, with its reasons. Pure.

A *chunk* is what people would read as one thing: a function with what is nested in it, a class's header and
fields, one top-level statement group. Chunks are ranked; their units inherit the score, so that the packer can
show a part of a large function. Signals: BM25 against log and failing tests and against error lines and request;
a short walk along calls from the failing tests; frames; names that the evidence mentions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agentctx.prompt import Evidence, Task
from agentctx.repo.locate import Located
from agentctx.repo.terms import bag, bm25, query_terms
from agentctx.source import FileSyntax, RepoGraph, Role, SymbolKind, UnitKind


@dataclass(frozen=True, slots=True)
class RankWeights:
    """Chosen on the development cases; see docs/lab.md for the runs."""

    text: float = 1.0  # BM25 against log and failing tests
    error: float = 0.4  # BM25 against error lines, test names and request
    walk: float = 0.6
    frame: float = 2.0
    mention: float = 0.5
    module: float = 0.15  # the test file's name against the module's
    decay: float = 0.5  # of the walk, per hop
    hops: int = 3
    size_power: float = 0.2  # scores are divided by size ** this: worth per token
    aside: float = 0.2  # factor for docs, examples, benchmarks and plain text


WEIGHTS = RankWeights()
_ASIDE = re.compile(r"(^|/)(docs?|examples?|benchmarks?|bench|scripts|tools)/|(^|/)(setup|noxfile|conf)\.py$")


@dataclass(frozen=True, slots=True)
class Chunk:
    id: str  # symbol id, or `path@unit` for top-level statements
    path: str
    units: tuple[int, ...]
    symbol: str | None
    text: str


@dataclass(frozen=True, slots=True)
class Ranked:
    """A chunk with its score (higher is better) and the signals that made it, strongest first."""

    chunk: Chunk
    score: float
    reasons: tuple[tuple[str, float], ...]

    @property
    def why(self) -> str:
        return ", ".join(f"{name} {value:.2f}" for name, value in self.reasons[:3]) or "no signal"


# ---------------------------------------------------------------- chunks


def chunks_of(file: FileSyntax, data: bytes) -> list[Chunk]:
    """The chunks of one file; import statements are brought in by what uses them, not ranked."""
    owner = owners(file)
    groups: dict[str, list[int]] = {}
    for unit in file.units:
        if unit.kind is UnitKind.IMPORT and unit.symbol is None:
            continue
        key = owner[unit.symbol] if unit.symbol is not None else f"{file.path}@{unit.index}"
        groups.setdefault(key, []).append(unit.index)
    return [_chunk(file, data, key, units) for key, units in groups.items()]


def _chunk(file: FileSyntax, data: bytes, key: str, units: list[int]) -> Chunk:
    spans = [file.units[unit].span for unit in units]
    text = b"".join(data[span.start : span.end] for span in spans).decode("utf-8", "replace")
    return Chunk(key, file.path, tuple(units), None if "@" in key.removeprefix(file.path) else key, text)


def owners(file: FileSyntax) -> dict[str, str]:
    """Definition -> the definition that it is read with: nested functions belong to the outer one."""
    by_id = {symbol.id: symbol for symbol in file.symbols}
    out: dict[str, str] = {}
    for symbol in file.symbols:
        at = symbol
        while at.parent in by_id and (at.kind is not SymbolKind.CLASS or by_id[at.parent].kind is not SymbolKind.CLASS):
            parent = by_id[at.parent]
            if parent.kind is SymbolKind.CLASS and at.kind is SymbolKind.METHOD:
                break
            at = parent
        out[symbol.id] = at.id
    return out


# ---------------------------------------------------------------- signals


def rank(
    graph: RepoGraph,
    data: Mapping[str, bytes],
    task: Task,
    evidence: Evidence,
    located: Located,
    weights: RankWeights = WEIGHTS,
) -> tuple[Ranked, ...]:
    """Every chunk outside of tests, best first; ties by path and position."""
    files = [file for path, file in sorted(graph.files.items()) if not file.is_test]
    chunks = [chunk for file in files for chunk in chunks_of(file, data[file.path])]
    signals = _signals(chunks, graph, data, task, evidence, located, weights)
    ranked = []
    for number, chunk in enumerate(chunks):
        values = [(name, value) for name, column in signals.items() if (value := column[number]) > 0]
        total = sum(value for _, value in values) * (weights.aside if _aside(chunk, graph) else 1.0)
        score = total / max(len(chunk.text) / 100.0, 1.0) ** weights.size_power
        values.sort(key=lambda pair: (-pair[1], pair[0]))
        ranked.append(Ranked(chunk, score, tuple(values)))
    ranked.sort(key=lambda one: -one.score)  # stable: chunks come by path and position
    return tuple(ranked)


def _aside(chunk: Chunk, graph: RepoGraph) -> bool:
    return graph.files[chunk.path].language is None or bool(_ASIDE.search(chunk.path))


def _signals(
    chunks: Sequence[Chunk],
    graph: RepoGraph,
    data: Mapping[str, bytes],
    task: Task,
    evidence: Evidence,
    located: Located,
    weights: RankWeights,
) -> dict[str, list[float]]:
    """Name of a signal -> its weighted value for each chunk; every signal is scaled to at most 1 first."""
    tests = test_text(graph, data, located)
    names = " ".join(graph.symbols[test].name for test in located.failing_tests)
    errors = " ".join((*evidence.error_lines, names, task.request))
    query, error_query = task_query(task, evidence, tests), query_terms(errors)
    bags = [bag(chunk.text, query | error_query) for chunk in chunks]
    walked = walk(graph, located.failing_tests, located.fixtures, weights)
    return {
        "text": _scaled(bm25(bags, query), weights.text),
        "error lines": _scaled(bm25(bags, error_query), weights.error),
        "called from the test": _scaled(_by_symbol(chunks, graph, walked), weights.walk),
        "in the traceback": _scaled(_by_symbol(chunks, graph, dict.fromkeys(located.frames, 1.0)), weights.frame),
        "target": _scaled(_by_symbol(chunks, graph, dict.fromkeys(located.targets, 1.0)), 2 * weights.frame),
        "named in the evidence": _mentioned(chunks, graph, evidence, tests + "\n" + task.request, weights.mention),
        "module of the test": _module(chunks, located, weights.module),
    }


def _scaled(values: list[float], weight: float) -> list[float]:
    top = max(values, default=0.0)
    return [weight * value / top if top > 0 else 0.0 for value in values]


def task_query(task: Task, evidence: Evidence, tests: str) -> frozenset[str]:
    """What the task speaks of: log, failing tests (`test_text`) and request."""
    return query_terms("\n".join((evidence.text, tests, task.request)))


def test_text(graph: RepoGraph, data: Mapping[str, bytes], located: Located) -> str:
    """Source of the failing tests and their fixtures."""
    parts = []
    for test in (*located.failing_tests, *located.fixtures):
        symbol = graph.symbols[test]
        parts.append(data[symbol.path][symbol.span.start : symbol.span.end].decode("utf-8", "replace"))
    return "\n".join(parts)


def _by_symbol(chunks: Sequence[Chunk], graph: RepoGraph, scores: Mapping[str, float]) -> list[float]:
    """Scores of symbols, each given to the chunk that shows it."""
    shown: dict[str, float] = {}
    by_file: dict[str, dict[str, str]] = {}
    for symbol, score in sorted(scores.items()):
        path = graph.symbols[symbol].path
        owner = by_file.setdefault(path, owners(graph.files[path])).get(symbol, symbol)
        shown[owner] = max(shown.get(owner, 0.0), score)
    return [shown.get(chunk.symbol, 0.0) if chunk.symbol else 0.0 for chunk in chunks]


_WALKED = (Role.CALL, Role.NAME, Role.ATTRIBUTE, Role.BASE, Role.DECORATOR, Role.TYPE, Role.FIXTURE)


def walk(
    graph: RepoGraph, tests: Sequence[str], fixtures: Sequence[str], weights: RankWeights = WEIGHTS
) -> dict[str, float]:
    """How close each definition is to the tests along references: mass 1 per test, shared among what it uses."""
    uses: dict[str, dict[str, float]] = {}
    for link in graph.links:
        scope = link.reference.scope
        if scope is None or not link.targets or link.reference.role not in _WALKED:
            continue
        share = 1.0 / len(link.targets)
        for target in link.targets:
            known = uses.setdefault(scope, {})
            known[target] = max(known.get(target, 0.0), share)
    mass = dict.fromkeys((*tests, *fixtures), 1.0)
    total: dict[str, float] = {}
    for _ in range(weights.hops):
        spread: dict[str, float] = {}
        for source, amount in sorted(mass.items()):
            targets = uses.get(source, {})
            norm = sum(targets.values()) ** 0.5
            for target, share in sorted(targets.items()):
                spread[target] = spread.get(target, 0.0) + weights.decay * amount * share / norm
        for target, amount in spread.items():
            total[target] = total.get(target, 0.0) + amount
        mass = spread
    return {symbol: amount for symbol, amount in total.items() if symbol in graph.symbols}


def _mentioned(chunks: Sequence[Chunk], graph: RepoGraph, evidence: Evidence, text: str, weight: float) -> list[float]:
    """Definitions whose own name stands in the evidence; rarer names count for more."""
    names = set(evidence.mentions) | set(re.findall(r"[^\W\d]\w+", text))
    owners_of: dict[str, int] = {}
    for symbol in graph.symbols.values():
        owners_of[symbol.name] = owners_of.get(symbol.name, 0) + 1
    out = []
    for chunk in chunks:
        name = graph.symbols[chunk.symbol].name if chunk.symbol else ""
        out.append(weight / owners_of[name] ** 0.5 if name in names and len(name) > 2 else 0.0)
    return out


def _module(chunks: Sequence[Chunk], located: Located, weight: float) -> list[float]:
    """`test_termui.py` speaks of `_termui_impl.py` and of `termui.py`: the share of the words they have in common."""
    tests = {test.partition("::")[0] for test in located.failing_tests}
    spoken = [set(_stem_words(path)) - {"test", "tests"} for path in sorted(tests)]
    near: dict[str, float] = {}
    for path in sorted({chunk.path for chunk in chunks}):
        own = set(_stem_words(path))
        near[path] = max((len(own & words) / len(own | words) for words in spoken if own | words), default=0.0)
    return [weight * near[chunk.path] for chunk in chunks]


def _stem_words(path: str) -> list[str]:
    stem = path.rsplit("/", 1)[-1].partition(".")[0]
    return [word for word in re.split(r"[_\W]+", stem.lower()) if word]


def unit_scores(chunk: Ranked, file: FileSyntax, data: bytes, query: frozenset[str]) -> dict[int, float]:
    """The chunk's score, for each unit, moved by how much of the query the unit's own text holds.

    A part of a large function never comes without its signature: its spine brings it.
    """
    texts = [
        data[file.units[u].span.start : file.units[u].span.end].decode("utf-8", "replace") for u in chunk.chunk.units
    ]
    own = bm25([bag(text, query) for text in texts], query)
    top = max(own, default=0.0) or 1.0
    return {unit: chunk.score * (0.7 + 0.3 * value / top) for unit, value in zip(chunk.chunk.units, own, strict=True)}
