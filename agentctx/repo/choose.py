"""Which units of the repository go into the window: chunks by worth, then the signatures that they need. Pure.

The order: what the task is about (targets, callers, overridden methods), offers (`repo.offers`) for most of the
window, the signatures of what those refer to, then further offers while there is room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agentctx.repo.locate import MAX_GUESSED, Located
from agentctx.repo.offers import BYTES_PER_TOKEN, Offer
from agentctx.repo.rank import Ranked
from agentctx.source import Link, RepoGraph, Resolution, Role, SymbolKind

UnitKey = tuple[str, int]
Count = Callable[[Sequence[UnitKey]], list[int]]

FILE_LINE_TOKENS = 14  # estimates: the document is counted exactly afterwards
ELISION_TOKENS = 10
CHUNK_SHARE = 0.7  # of the window, before signatures
MISSES = 40  # offers in a row that fit in part at most: the room is as good as full
GUESS_SHARE = 0.25  # of the budget, for guessed targets


@dataclass(slots=True)
class Chosen:
    """What is in so far. `units` maps each file to its chosen units."""

    room: int
    units: dict[str, set[int]] = field(default_factory=dict)
    used: int = 0

    def has(self, key: UnitKey) -> bool:
        return key[1] in self.units.get(key[0], ())


class Chooser:
    """Adds groups of units while there is room. Costs are tokens; `count` gives those of units.

    A unit brings the import statements along that it needs: they are short, and without them it can't be read.
    """

    def __init__(self, graph: RepoGraph, links: Mapping[UnitKey, list[Link]], count: Count, room: int) -> None:
        self._graph = graph
        self._links = links
        self._count = count
        self._tokens: dict[UnitKey, int] = {}
        self._needs: dict[UnitKey, tuple[int, ...]] = {}
        self.chosen = Chosen(room)

    def closed(self, keys: Iterable[UnitKey], *, bare: bool = False) -> list[UnitKey]:
        """The keys with their spines and (unless `bare`) the imports of both, those that are not in yet, in order."""
        wanted: set[UnitKey] = set()
        for path, unit in keys:
            needed = (*self._graph.files[path].units[unit].spine, unit) if bare else self._needed((path, unit))
            wanted.update((path, other) for other in needed if not self.chosen.has((path, other)))
        return sorted(wanted)

    def _needed(self, key: UnitKey) -> tuple[int, ...]:
        """The unit itself, its spine, the imports that these need, and their spines."""
        found = self._needs.get(key)
        if found is None:
            path, unit = key
            units = self._graph.files[path].units
            whole = {*units[unit].spine, unit}
            via = {link.via for one in whole for link in self._links.get((path, one), ()) if link.via is not None}
            found = tuple(sorted(whole.union(via, *(units[one].spine for one in via))))
            self._needs[key] = found
        return found

    def cost(self, keys: Sequence[UnitKey]) -> int:
        """Tokens that adding `keys` (closed) takes, marks included."""
        missing = [key for key in keys if key not in self._tokens]
        self._tokens.update(zip(missing, self._count(missing), strict=True))
        total = sum(self._tokens[key] for key in keys)
        for path in sorted({path for path, _ in keys}):
            present = self.chosen.units.get(path, set())
            total += 0 if present else FILE_LINE_TOKENS
            added = {unit for other, unit in keys if other == path}
            total += ELISION_TOKENS * (_runs(present | added) - _runs(present))
        return total

    def add_bare(self, key: UnitKey) -> bool:
        """Add a unit that the task is about: without its imports (they can fill a page) where these don't fit."""
        return self.add([key]) or self.add([key], bare=True)

    def add(self, keys: Iterable[UnitKey], *, room: int | None = None, bare: bool = False) -> bool:
        """Add the keys with what they need if that fits; says whether everything is in."""
        wanted = self.closed(keys, bare=bare)
        if not wanted:
            return True
        cost = self.cost(wanted)
        if self.chosen.used + cost > (self.chosen.room if room is None else min(room, self.chosen.room)):
            return False
        for path, unit in wanted:
            self.chosen.units.setdefault(path, set()).add(unit)
        self.chosen.used += cost
        return True


def _runs(units: set[int]) -> int:
    """Number of maximal runs of consecutive numbers."""
    return sum(1 for unit in units if unit - 1 not in units)


# ---------------------------------------------------------------- the order of filling


@dataclass(frozen=True, slots=True)
class Choice:
    units: Mapping[str, frozenset[int]]
    targets: tuple[str, ...]
    guessed: bool
    scores: Mapping[UnitKey, tuple[float, str]]  # of chosen units that were offered: worth and reasons


def choose(
    graph: RepoGraph,
    links: Mapping[UnitKey, list[Link]],
    located: Located,
    ranking: Sequence[Ranked],
    offered: Sequence[Offer],
    count: Count,
    room: int,
    budget: int,
    tests: Sequence[UnitKey] = (),
) -> Choice:
    """Fill `room` tokens. `count` counts units of files with the task's tokenizer; `links` are those of each unit;
    `offered` comes best first; `budget` is what will be kept in the end; `tests`: units that have been packed."""
    chooser = Chooser(graph, links, count, room)
    targets, guessed = targets_of(located, ranking, graph, budget)
    _about(chooser, graph, links, located, targets, guessed=guessed)
    _fill(chooser, offered, int(room * CHUNK_SHARE))
    _signatures(chooser, graph, links, [*tests, *_in_order(chooser, offered)])
    _fill(chooser, offered, room)
    units = {path: frozenset(chosen) for path, chosen in sorted(chooser.chosen.units.items())}
    scores = {
        (one.path, unit): (one.score, one.why)
        for one in reversed(offered)  # the best offer of a unit counts: imports are offered twice
        for unit in one.units
        if chooser.chosen.has((one.path, unit))
    }
    return Choice(units, targets, guessed, scores)


def _about(
    chooser: Chooser,
    graph: RepoGraph,
    links: Mapping[UnitKey, list[Link]],
    located: Located,
    targets: Sequence[str],
    *,
    guessed: bool,
) -> None:
    """What the task is about: the user's pins, targets, frames, and what is around targets that aren't guesses."""
    if not chooser.add(located.pinned):
        for key in located.pinned:
            chooser.add_bare(key)
    for symbol in (*targets, *located.frames):
        _add_whole(chooser, graph, symbol)
    if not guessed:
        for symbol in _around(graph, targets):
            _add_core(chooser, graph, links, symbol, set(targets))


def targets_of(
    located: Located, ranking: Sequence[Ranked], graph: RepoGraph, room: int | None = None
) -> tuple[tuple[str, ...], bool]:
    """The definitions to edit; without focus and frames the best ranked functions, marked as guessed.

    Guesses are pinned whole, so after the first one they may take only GUESS_SHARE of `room` tokens (None: any):
    a guess must not put out what else the ranking, or a drafter, finds.
    """
    if located.targets:
        return located.targets, False
    kinds = (SymbolKind.FUNCTION, SymbolKind.METHOD)
    guesses: list[str] = []
    used = 0
    for one in ranking:
        symbol = graph.symbols.get(one.chunk.symbol or "")
        if one.score <= 0 or symbol is None or symbol.kind not in kinds:
            continue
        used += len(one.chunk.text) // BYTES_PER_TOKEN
        if guesses and (len(guesses) == MAX_GUESSED or (room is not None and used > GUESS_SHARE * room)):
            break
        guesses.append(symbol.id)
    return tuple(guesses), True


def units_of(graph: RepoGraph, symbol: str) -> list[UnitKey]:
    """All units inside a definition, nested ones included."""
    found = graph.symbols[symbol]
    units = graph.files[found.path].units
    return [(found.path, u.index) for u in units if found.span.start <= u.span.start < found.span.end]


def _around(graph: RepoGraph, targets: Sequence[str]) -> list[str]:
    """Callers, overridden and overriding methods of the targets, nearest relation first, tests left out."""
    found: dict[str, None] = {}
    for relation in (graph.callers, graph.overrides, graph.overridden_by):
        for target in targets:
            found.update(dict.fromkeys(relation.get(target, ())))
    for target in targets:
        for base in graph.overrides.get(target, ()):
            found.update(dict.fromkeys(graph.overridden_by.get(base, ())))
    return [s for s in found if s not in targets and not graph.files[graph.symbols[s].path].is_test]


def _add_whole(chooser: Chooser, graph: RepoGraph, symbol: str) -> None:
    """The definition, or as much of it as fits: its header at least."""
    keys = units_of(graph, symbol)
    if chooser.add(keys):
        return
    found = graph.symbols[symbol]
    for key in ((found.path, found.header), *keys):
        chooser.add_bare(key)


def _add_core(
    chooser: Chooser, graph: RepoGraph, links: Mapping[UnitKey, list[Link]], symbol: str, targets: set[str]
) -> None:
    """Header and the units that use a target; the whole definition when it is small."""
    keys = units_of(graph, symbol)
    found = graph.symbols[symbol]
    if chooser.cost(chooser.closed(keys)) <= chooser.chosen.room // 10 and chooser.add(keys):
        return
    used = [key for key in keys if any(targets.intersection(link.targets) for link in links.get(key, ()))]
    for key in ((found.path, found.header), *used):
        chooser.add_bare(key)


def _fill(chooser: Chooser, offered: Sequence[Offer], limit: int) -> None:
    """Offers until `limit`; of what doesn't fit as a whole, the units that do."""
    misses = 0
    for one in offered:
        if misses > MISSES or chooser.chosen.used >= limit - FILE_LINE_TOKENS:
            return
        keys = [(one.path, unit) for unit in one.units]
        if chooser.add(keys, room=limit):
            misses = 0
            continue
        misses += 1
        if len(keys) > 1:
            for key in keys:
                chooser.add([key], room=limit)


def links_by_unit(graph: RepoGraph) -> dict[UnitKey, list[Link]]:
    found: dict[UnitKey, list[Link]] = {}
    for link in graph.links:
        found.setdefault((link.reference.path, link.reference.unit), []).append(link)
    return found


_SIGNED = (Role.CALL, Role.BASE, Role.TYPE, Role.DECORATOR, Role.NAME, Role.ATTRIBUTE)


def _signatures(
    chooser: Chooser, graph: RepoGraph, links: Mapping[UnitKey, list[Link]], todo: Sequence[UnitKey]
) -> None:
    """Headers of what the units `todo` refer to, then of what those headers refer to; tests have their own place."""
    seen = set(todo)
    while todo:
        wanted: dict[UnitKey, None] = {}
        for key in todo:
            for link in links.get(key, ()):
                if link.state is Resolution.RESOLVED and link.reference.role in _SIGNED:
                    wanted.update(dict.fromkeys(_header(graph, target) for target in link.targets))
        todo = []
        for key in wanted:
            if key not in seen and not graph.files[key[0]].is_test:
                seen.add(key)
                if not chooser.chosen.has(key) and chooser.add([key]):
                    todo.append(key)


def _header(graph: RepoGraph, symbol: str) -> UnitKey:
    found = graph.symbols[symbol]
    return (found.path, found.header)


def _in_order(chooser: Chooser, offered: Sequence[Offer]) -> list[UnitKey]:
    """The chosen units: what the task is about, then offers, the best first."""
    offers = {(one.path, unit): None for one in offered for unit in one.units if chooser.chosen.has((one.path, unit))}
    whole = [(path, unit) for path, units in sorted(chooser.chosen.units.items()) for unit in sorted(units)]
    return [*(key for key in whole if key not in offers), *offers]
