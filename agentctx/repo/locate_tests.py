"""Which tests a path means: those that the change touches, else all of them, the best match first. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agentctx.prompt import ChangeSource, Evidence, FileChange
from agentctx.source import FileSyntax, RepoGraph, Symbol, SymbolKind, Unit, UnitKind
from agentctx.spans import LineSpan

UnitKey = tuple[str, int]

_BODIES = (SymbolKind.FUNCTION, SymbolKind.METHOD, SymbolKind.CLASS)


@dataclass(frozen=True, slots=True)
class Touched:
    """Lines of a file that a change added or edited, with their text; lines after which it took something away."""

    lines: tuple[LineSpan, ...] = ()
    cuts: tuple[int, ...] = ()
    text: str = ""

    def __bool__(self) -> bool:
        return bool(self.lines or self.cuts)

    def weight(self, span: LineSpan) -> int:
        """How many of the touched lines lie in `span`; a cut between two of its lines counts as one."""
        added = sum(max(0, min(a.end, span.end) - max(a.start, span.start) + 1) for a in self.lines)
        return added + sum(1 for cut in self.cuts if span.start <= cut < span.end)


@dataclass(frozen=True, slots=True)
class PathTests:
    """What a test file stands for: test ids, and units where no definition holds them; `weight` is their match.

    `tests` are best first. `changed`: whether they are what the change touches (else all that the file has).
    """

    path: str
    tests: tuple[tuple[str, int], ...] = ()  # (symbol id, weight)
    units: tuple[int, ...] = ()
    changed: bool = False


def touched_by(changes: Iterable[FileChange]) -> dict[str, Touched]:
    """Per path: the staged lines where it has some, else those changed in the work tree or since the revision."""
    by_path: dict[str, list[FileChange]] = {}
    for change in changes:
        if change.lines or change.cuts:
            by_path.setdefault(change.path, []).append(change)
    out = {}
    for path, all_of_it in by_path.items():
        staged = [change for change in all_of_it if change.source is ChangeSource.STAGED] or all_of_it
        lines = sorted({span for change in staged for span in change.lines})
        cuts = tuple(sorted({cut for change in staged for cut in change.cuts}))
        out[path] = Touched(tuple(lines), cuts, "\n".join(change.added for change in staged))
    return out


def tests_of_path(path: str, graph: RepoGraph, touched: Touched, evidence: Evidence, request: str) -> PathTests:
    """The tests that the change touches or whose helpers it touches; where it touches none, all of the file's.

    A file without test definitions stands for the definitions that the change touches, and for its top-level
    statements.
    """
    file = graph.files[path]
    tests = leaves(file)
    if not tests:
        return _scripted(file, touched)
    hit = _weighed(tests, touched)
    if not hit and touched:
        users = _users(file, graph, touched)
        hit = [(test.id, 1) for test in tests if test.id in users]
    if hit:
        return PathTests(path, tuple(hit), changed=True)
    return PathTests(path, tuple(_matched(file, tests, evidence, request)))


def leaves(file: FileSyntax) -> list[Symbol]:
    """Test definitions that hold no other test, in order of position."""
    around = {symbol.parent for symbol in file.symbols if symbol.is_test}
    found = [s for s in file.symbols if s.is_test and s.id not in around and s.kind in _BODIES]
    return sorted(found, key=lambda symbol: symbol.span)


def _weighed(symbols: Sequence[Symbol], touched: Touched) -> list[tuple[str, int]]:
    """Symbols with touched lines, most of them first."""
    found = [(touched.weight(symbol.lines), symbol) for symbol in symbols]
    found.sort(key=lambda pair: (-pair[0], pair[1].span))
    return [(symbol.id, weight) for weight, symbol in found if weight]


def _users(file: FileSyntax, graph: RepoGraph, touched: Touched) -> frozenset[str]:
    """Definitions of the file that use one that the change touches: a helper, a fixture, a table of cases, an import.

    What stands in a test class speaks for the tests of that class.
    """
    inner = {s.id for s in file.symbols if touched.weight(s.lines) and s.kind is not SymbolKind.CLASS}
    shells = {s.id for s in file.symbols if touched.weight(s.lines) and s.kind is SymbolKind.CLASS and s.is_test}
    parents = {symbol.id: symbol.parent for symbol in file.symbols}
    users = set(_importing(file, touched, parents))
    inner |= users
    if inner:
        for link in graph.links:
            if link.reference.path == file.path and inner.intersection(link.targets):
                users.update(_upwards(link.reference.scope, parents))
        for test, fixtures in graph.fixtures.items():
            if inner.intersection(fixtures):
                users.add(test)
    return frozenset(users) or frozenset(id for id in parents if shells.intersection(_upwards(parents[id], parents)))


def touched_imports(file: FileSyntax, touched: Touched) -> frozenset[str]:
    """Names that touched imports bind: those that stand in touched lines, else all of the statement."""
    hit = [one for one in file.imports if one.alias and touched.weight(file.units[one.unit].lines)]
    words = frozenset(re.findall(r"\w+", touched.text))
    written = [one for one in hit if one.alias in words or one.module in touched.text]
    return frozenset(one.alias for one in written or hit)


def _importing(file: FileSyntax, touched: Touched, parents: Mapping[str, str | None]) -> Iterable[str]:
    """Definitions that use what a touched import statement brings in, by the name that it binds."""
    names = touched_imports(file, touched)
    for reference in file.references if names else ():
        receiver = reference.receiver or ""
        if (receiver.partition(".")[0] if receiver not in ("", "?") else reference.name) in names:
            yield from _upwards(reference.scope, parents)


def _upwards(symbol: str | None, parents: Mapping[str, str | None]) -> Iterable[str]:
    while symbol is not None:
        yield symbol
        symbol = parents.get(symbol)


# ---------------------------------------------------------------- nothing changed: how well a test matches


def _matched(file: FileSyntax, tests: Sequence[Symbol], evidence: Evidence, request: str) -> list[tuple[str, int]]:
    """All tests: those first that the log names, then by how many of the names in log and request they use."""
    failing = {(ref.path, ".".join(ref.names)) for ref in evidence.failing}
    spoken = set(evidence.mentions) | set(re.findall(r"[^\W\d]\w+", request))
    parents = {symbol.id: symbol.parent for symbol in file.symbols}
    used: dict[str, set[str]] = {symbol.id: {symbol.name} for symbol in tests}
    for reference in file.references:
        if reference.name in spoken:
            for symbol in _upwards(reference.scope, parents):
                if symbol in used:
                    used[symbol].add(reference.name)
    weights = {s.id: len(used[s.id] & spoken) + 1000 * ((s.path, s.qualname) in failing) for s in tests}
    order = sorted(tests, key=lambda symbol: (-weights[symbol.id], symbol.span))
    return [(symbol.id, weights[symbol.id]) for symbol in order]


# ---------------------------------------------------------------- files without test definitions


def _scripted(file: FileSyntax, touched: Touched) -> PathTests:
    """A test script: the definitions that the change touches and the top-level statements that it touches."""
    inner = [s for s in file.symbols if s.kind in (SymbolKind.FUNCTION, SymbolKind.METHOD)]
    outer = {s.parent for s in inner}
    wanted = touched or Touched((LineSpan(1, file.units[-1].lines.end),) if file.units else ())
    hit = _weighed([symbol for symbol in inner if symbol.id not in outer], wanted) if touched else []
    units = tuple(unit.index for unit in file.units if _is_statement(unit) and wanted.weight(unit.lines))
    return PathTests(file.path, tuple(hit), units, changed=bool(touched))


def _is_statement(unit: Unit) -> bool:
    return unit.symbol is None and unit.kind is not UnitKind.IMPORT
