"""Links -> relations: who calls whom, which tests reach what, which fixtures a test uses. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agentctx.repo.name_words import Named
from agentctx.source import Link, Resolution, Role, Symbol, SymbolKind

MAX_HOPS = 5
MAX_TESTS = 20
MAX_CANDIDATES = 60  # tests with one word that are compared
MAX_AMBIGUOUS = 3  # targets of an ambiguous reference that still say something

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
    """For each symbol the test functions that reach it in at most `MAX_HOPS` references, nearest first.

    A reference that may mean one of a few definitions counts as one hop more. Where there are too many equally near
    tests, those stay that share most words with the definition and its file. Last come tests that only bear its name.
    (Tests that cover a line as a coverage file says need no guess: who reads such files puts them before these.)
    """
    uses, perhaps = _uses(links, symbols)
    roots = sorted(s.id for s in symbols.values() if s.is_test and s.kind in (SymbolKind.FUNCTION, SymbolKind.METHOD))
    named = Named(symbols)
    levels = _levels(roots, uses, perhaps)
    levels.append(_by_name(roots, symbols, named))
    names = sorted(name for name in set().union(*levels) if not symbols[name].is_test)
    by_word = _by_word(roots, named)
    return {
        name: tuple(
            roots[number] for number in _nearest(name, [level.get(name, 0) for level in levels], named, by_word)
        )
        for name in names
    }


_Level = dict[str, int]  # symbol -> the tests that reach it, one bit each


def _levels(
    roots: Sequence[str], uses: Mapping[str, frozenset[str]], perhaps: Mapping[str, frozenset[str]]
) -> list[_Level]:
    """For each number of hops what is reached with so many, and not with fewer. All tests walk at once."""
    level: _Level = {}
    late: _Level = {}
    for number, test in enumerate(roots):
        for into, found in ((level, uses), (late, perhaps)):
            for target in found.get(test, ()):
                into[target] = into.get(target, 0) | 1 << number
    seen = {test: 1 << number for number, test in enumerate(roots)}
    out: list[_Level] = []
    for _ in range(MAX_HOPS):
        fresh = {target: bits for target, all_ in level.items() if (bits := all_ & ~seen.get(target, 0))}
        for target, bits in fresh.items():
            seen[target] = seen.get(target, 0) | bits
        out.append(fresh)
        level, late = late, {}
        for target, bits in fresh.items():
            for further in uses.get(target, ()):
                level[further] = level.get(further, 0) | bits
    return out


def _by_name(roots: Sequence[str], symbols: Mapping[str, Symbol], named: Named) -> _Level:
    found: _Level = {}
    for number, test in enumerate(roots):
        for target in named.about(symbols[test]):
            found[target] = found.get(target, 0) | 1 << number
    return found


def _by_word(roots: Sequence[str], named: Named) -> _Level:
    """Word -> the tests in whose name, or in the name of whose file, it is."""
    numbers: dict[str, list[int]] = {}
    for number, test in enumerate(roots):
        for word in named.around(test):
            numbers.setdefault(word, []).append(number)
    return {word: sum(1 << number for number in found) for word, found in numbers.items()}


def _nearest(target: str, levels: Sequence[int], named: Named, by_word: _Level) -> list[int]:
    """At most `MAX_TESTS` numbers of tests; `levels`: the tests of each distance, one bit each."""
    out: list[int] = []
    taken = 0
    for level in levels:
        left = MAX_TESTS - len(out)
        bits = level & ~taken
        taken |= level
        if left > 0 and bits:
            if bits.bit_count() > left:
                words = [by_word[word] for word in named.around(target) if word in by_word]
                closest = _closest(bits, words)[:left]
                out += closest
                left -= len(closest)
                bits &= ~sum(1 << number for number in closest)
            out += _bits(bits, left)
    return out


def _closest(bits: int, words: Sequence[int]) -> list[int]:
    """Those of the tests that have one of the words, with the most words first."""
    counts: dict[int, int] = {}
    for word in words:
        for number in _bits(bits & word, MAX_CANDIDATES):
            counts[number] = counts.get(number, 0) + 1
    return sorted(counts, key=lambda number: (-counts[number], number))


def _bits(bits: int, limit: int) -> list[int]:
    """The numbers of the first bits that are set, rising."""
    out: list[int] = []
    while bits and len(out) < limit:
        lowest = bits & -bits
        out.append(lowest.bit_length() - 1)
        bits ^= lowest
    return out


def _uses(
    links: Sequence[Link], symbols: Mapping[str, Symbol]
) -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
    """What each outermost function or class uses, and may use; functions nested in it count as its own text."""
    homes: dict[str, tuple[set[str], set[str]]] = {}
    uses: dict[str, tuple[set[str], set[str]]] = {}
    modules = {s.id for s in symbols.values() if s.kind is SymbolKind.MODULE}
    resolved, ambiguous, imports = Resolution.RESOLVED, Resolution.AMBIGUOUS, Role.IMPORT
    for link in links:
        reference, state = link.reference, link.state
        is_sure = state is resolved
        if not is_sure and (state is not ambiguous or len(link.targets) > MAX_AMBIGUOUS):
            continue
        if reference.scope is None or reference.role is imports:
            continue
        used = homes.get(reference.scope)
        if used is None:
            used = homes[reference.scope] = uses.setdefault(_home(symbols, reference.scope), (set(), set()))
        used[not is_sure].update(link.targets)
    sure = {scope: frozenset(found - modules) for scope, (found, _) in uses.items()}
    return sure, {scope: frozenset(found) for scope, (_, found) in uses.items() if found}


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
