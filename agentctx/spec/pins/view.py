"""What a pin rule may look at, and the few things that rules share. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from agentctx.prompt import PackFacts, Pin, PinReason, PromptDocument, PromptLink, TokenizedPrompt
from agentctx.source import Resolution
from agentctx.spec.index import PromptIndex


class Hop(NamedTuple):
    """How near a pinned unit is: the lowest tier of its pins, and in that tier the fewest hops from a target."""

    tier: int
    distance: int


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """The prompt, and the units that the rules before this one have pinned."""

    index: PromptIndex
    tokenized: TokenizedPrompt
    pinned: Mapping[int, Hop] = field(default_factory=dict)

    @property
    def document(self) -> PromptDocument:
        return self.index.document

    @property
    def facts(self) -> PackFacts:
        return self.index.document.facts

    def uses(self, wanted: Callable[[int, Hop, PromptLink], bool]) -> Iterator[tuple[str, int]]:
        """(symbol, distance) of what resolved links of pinned units refer to, one hop from the unit."""
        for unit, hop in self.pinned.items():
            for link in self.index.links[unit]:
                if link.state is Resolution.RESOLVED and wanted(unit, hop, link):
                    yield from ((target, hop.distance + 1) for target in link.targets)

    def signatures(self, reason: PinReason, uses: Iterable[tuple[str, int]]) -> Iterator[Pin]:
        """One pin for each symbol whose header is packed and not already pinned in tier 0 or 1."""
        nearest: dict[str, int] = {}
        for symbol, distance in uses:
            nearest[symbol] = min(distance, nearest.get(symbol, distance))
        for symbol in sorted(nearest):
            units = self.index.signature(symbol)
            if units and not all(unit in self.pinned and self.pinned[unit].tier < 2 for unit in units):
                yield Pin(reason, units, symbol, distance=nearest[symbol])


@dataclass(frozen=True, slots=True)
class Rule:
    """`find` is pure and looks at nothing but the view."""

    reason: PinReason
    find: Callable[[View], Iterable[Pin]]
