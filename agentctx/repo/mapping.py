"""Links -> relations: who calls whom, which tests reach what, which fixtures a test uses. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentctx.source import Link, Resolution, Role, Symbol, SymbolKind

MAX_HOPS = 3
MAX_TESTS = 20

Relation = dict[str, tuple[str, ...]]


def calls(links: Sequence[Link]) -> tuple[Relation, Relation]:
    """(callers, callees) from resolved calls. A module calls what its top level calls; its id is its path."""
    callers: dict[str, set[str]] = {}
    callees: dict[str, set[str]] = {}
    call, resolved = Role.CALL, Resolution.RESOLVED
    for link in links:
        if link.reference.role is not call or link.state is not resolved:
            continue
        caller = link.reference.scope or link.reference.path
        for target in link.targets:
            callers.setdefault(target, set()).add(caller)
            callees.setdefault(caller, set()).add(target)
    return _sorted(callers), _sorted(callees)


def fixtures(links: Sequence[Link], symbols: Mapping[str, Symbol]) -> Relation:
    """For each test the fixtures that it uses, also by way of other fixtures and of what its classes ask for."""
    direct: dict[str, set[str]] = {}
    fixture = Role.FIXTURE
    for link in links:
        if link.reference.role is fixture and link.state is Resolution.RESOLVED and link.reference.scope:
            direct.setdefault(link.reference.scope, set()).update(link.targets)
    of_classes = {id for id in direct if symbols[id].kind is SymbolKind.CLASS}
    inside = (s.id for s in symbols.values() if of_classes and s.is_test and s.parent in of_classes)
    out: dict[str, set[str]] = {}
    for test in dict.fromkeys((*direct, *inside)):
        if not symbols[test].is_test:
            continue
        found: set[str] = set()
        stack = [*direct.get(test, ()), *direct.get(symbols[test].parent or "", ())]
        while stack:
            at = stack.pop()
            if at not in found:
                found.add(at)
                stack.extend(direct.get(at, ()))
        out[test] = found
    return _sorted(out)


def tests(links: Sequence[Link], symbols: Mapping[str, Symbol]) -> Relation:
    """For each symbol the test functions that reach it in at most `MAX_HOPS` references, nearest first."""
    uses = _uses(links, symbols)
    roots = [s.id for s in symbols.values() if s.is_test and s.kind in (SymbolKind.FUNCTION, SymbolKind.METHOD)]
    by_distance: list[dict[str, list[str]]] = [{} for _ in range(MAX_HOPS)]
    for test in sorted(roots):
        seen = {test}
        level = uses.get(test, frozenset())
        for found in by_distance:
            for target in level:
                reaching = found.setdefault(target, [])
                # The tests come in order: those that don't fit are the later ones.
                if len(reaching) < MAX_TESTS:
                    reaching.append(test)
            seen |= level
            level = frozenset().union(*(uses[at] for at in level if at in uses)) - seen
    names = sorted(name for name in set().union(*by_distance) if not symbols[name].is_test)
    return {name: tuple(t for found in by_distance for t in found.get(name, ()))[:MAX_TESTS] for name in names}


def _uses(links: Sequence[Link], symbols: Mapping[str, Symbol]) -> dict[str, frozenset[str]]:
    """What each outermost function or class uses; functions nested in it count as its own text."""
    homes: dict[str, set[str]] = {}
    uses: dict[str, set[str]] = {}
    modules = {s.id for s in symbols.values() if s.kind is SymbolKind.MODULE}
    resolved, imports = Resolution.RESOLVED, Role.IMPORT
    for link in links:
        reference = link.reference
        if link.state is not resolved or reference.scope is None or reference.role is imports:
            continue
        used = homes.get(reference.scope)
        if used is None:
            used = homes[reference.scope] = uses.setdefault(_home(symbols, reference.scope), set())
        used.update(link.targets)
    return {scope: frozenset(targets - modules) for scope, targets in uses.items()}


def _home(symbols: Mapping[str, Symbol], scope: str) -> str:
    """The outermost function around a definition, or the definition itself."""
    home = scope
    at: str | None = scope
    while at is not None:
        if symbols[at].kind in (SymbolKind.FUNCTION, SymbolKind.METHOD):
            home = at
        at = symbols[at].parent
    return home


def _sorted(relation: Mapping[str, set[str]]) -> Relation:
    return {key: tuple(sorted(relation[key])) for key in sorted(relation)}
