"""What pins hold, counted in tokens while they shrink, and the steps in which they do. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from agentctx.prompt import Pin, PinReason
from agentctx.spec.index import PromptIndex

NOTHING: tuple[int, ...] = ()
NAMED = 5  # how many tier-2 signatures a finding names
Groups = list[tuple[int, ...]]  # what each pin holds, by pin
Step = tuple[int, tuple[int, ...]]  # a pin, and what it keeps
Undo = tuple[int, tuple[int, ...], tuple[int, ...]]  # a pin, what it kept before, and after


@dataclass(slots=True)
class Holdings:
    """Tokens of the union of the pins' groups, counted while groups shrink. `held[i]`: what pin i still holds."""

    index: PromptIndex
    sizes: Sequence[int]
    held: Groups
    counts: list[int]
    n_tokens: int = 0
    n_evidence: int = 0
    n_other: int = 0  # neither a file's nor the log's: the text around

    @classmethod
    def of(cls, index: PromptIndex, sizes: Sequence[int], groups: Iterable[tuple[int, ...]]) -> Holdings:
        holdings = cls(index, sizes, [], [0] * len(sizes))
        for units in groups:
            holdings.held.append(units)
            holdings._count(units, 1)
        return holdings

    @property
    def n_code(self) -> int:
        """Tokens of files outside of the tests."""
        return self.n_tokens - self.n_evidence - self.n_other

    def change(self, pin: int, units: tuple[int, ...]) -> None:
        self._count(self.held[pin], -1)
        self._count(units, 1)
        self.held[pin] = units

    def within(self, bounds: tuple[int, int]) -> bool:
        """Whether all tokens, and those of the log and the tests, are within bounds."""
        return self.n_tokens <= bounds[0] and self.n_evidence <= bounds[1]

    def grow(self, pin: int, units: tuple[int, ...], bounds: tuple[int, int]) -> None:
        """Let a pin hold more of `units`, each with its spine, in order, as far as there is room."""
        held = set(self.held[pin])
        for unit in units:
            if self.index.is_support[unit]:
                continue  # comes with what it is for
            new = set(self.index.closure((unit,))) - held
            self._count(new, 1)
            if self.within(bounds):
                held |= new
            else:
                self._count(new, -1)
        self.held[pin] = tuple(sorted(held))

    def _count(self, units: Iterable[int], by: int) -> None:
        for unit in units:
            before = self.counts[unit]
            self.counts[unit] = before + by
            if (before > 0) != (before + by > 0):
                self.n_tokens += by * self.sizes[unit]
                self.n_evidence += by * self.sizes[unit] if self.index.is_evidence[unit] else 0
                is_other = self.index.document.units[unit].path is None and not self.index.is_evidence[unit]
                self.n_other += by * self.sizes[unit] if is_other else 0


def give_way(holdings: Holdings, steps: Iterable[Step], over: Callable[[], bool]) -> list[Undo]:
    """Take steps while it is over. A step that would add units (the group is smaller already) is left out."""
    taken: list[Undo] = []
    for place, units in steps:
        if not over():
            break
        before = holdings.held[place]
        if len(units) < len(before):
            holdings.change(place, units)
            taken.append((place, before, units))
    return taken


def names(pins: Sequence[Pin]) -> str:
    subjects = list(dict.fromkeys(pin.subject for pin in pins))
    shown = subjects if pins[0].tier == 1 else subjects[:NAMED]
    rest = len(subjects) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def last_first(pins: Sequence[Pin], *reasons: PinReason) -> list[int]:
    """The places of pins for these reasons: the farthest from a target first, then the last."""
    order = {reason: number for number, reason in enumerate(PinReason)}
    found = [place for place, pin in enumerate(pins) if pin.reason in reasons]
    return sorted(found, key=lambda p: (pins[p].distance, order[pins[p].reason], p), reverse=True)
