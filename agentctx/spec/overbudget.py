"""What gives way when the pins need more than there is room for, in which order, and what is said about it. Pure.

First the log and the tests are brought down to their share, then everything to the limit. In both passes:
callers go to their core, tier 2 goes by distance (farthest first), then come frames, the log's last error lines
where they fill more than half of the share, failing tests, user pins, more of the error lines, and targets: to
their core first; whole groups are dropped only when all cores together are too large. What turned out to fit
after all comes back, and a target, test, frame or user pin that can't be whole grows as far as there is room.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from agentctx.prompt import Finding, Pin, PinReason
from agentctx.spec.index import PromptIndex

NOTHING: tuple[int, ...] = ()
GROWS = (PinReason.TARGET, PinReason.USER, PinReason.FAILING_TEST, PinReason.FRAME)
NAMED = 5  # how many tier-2 signatures a finding names


@dataclass(slots=True)
class Holdings:
    """Tokens of the union of the pins' groups, counted while groups shrink. `held[i]`: what pin i still holds."""

    index: PromptIndex
    sizes: Sequence[int]
    held: list[tuple[int, ...]]
    counts: list[int]
    n_tokens: int = 0
    n_evidence: int = 0

    @classmethod
    def of(cls, index: PromptIndex, sizes: Sequence[int], pins: Iterable[Pin]) -> Holdings:
        holdings = cls(index, sizes, [], [0] * len(sizes))
        for pin in pins:
            holdings.held.append(pin.units)
            holdings._count(pin.units, 1)
        return holdings

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


def needed(index: PromptIndex, sizes: Sequence[int], pins: Iterable[Pin]) -> tuple[int, int]:
    """Tokens of the pins' groups together, and those of them in the log and the tests."""
    holdings = Holdings.of(index, sizes, pins)
    return holdings.n_tokens, holdings.n_evidence


def shrink(
    index: PromptIndex, sizes: Sequence[int], pins: Sequence[Pin], *, limit: int, cap: int, stated: int | None = None
) -> tuple[list[tuple[int, ...]], tuple[Finding, ...]]:
    """What each pin keeps (`()` = dropped) so that all fit, and findings. Tier 0 is never touched.

    limit: tokens for everything; cap: tokens for the log and the tests together; stated: the limit to name.
    """
    holdings = Holdings.of(index, sizes, pins)
    need, evidence = holdings.n_tokens, holdings.n_evidence
    steps = list(_steps(pins, sizes, cap))
    touching = [step for step in steps if any(index.is_evidence[unit] for unit in pins[step[0]].units)]
    undo = _give_way(holdings, touching, lambda: holdings.n_evidence > cap)
    undo += _give_way(holdings, steps, lambda: holdings.n_tokens > limit)
    bounds = limit, max(cap, _evidence_of_tier_0(index, sizes, pins))
    _take_back(holdings, undo, pins, bounds)
    return holdings.held, tuple(_findings(pins, holdings.held, need, evidence, limit, cap, stated or limit))


Step = tuple[int, tuple[int, ...]]  # a pin, and what it keeps
Undo = tuple[int, tuple[int, ...], tuple[int, ...]]  # a pin, what it kept before, and after


def _steps(pins: Sequence[Pin], sizes: Sequence[int], cap: int) -> Iterator[Step]:
    """Every reduction and every drop, the least painful first."""

    order = {reason: number for number, reason in enumerate(PinReason)}

    def last_first(*reasons: PinReason) -> list[int]:
        found = [place for place, pin in enumerate(pins) if pin.reason in reasons]
        return sorted(found, key=lambda p: (pins[p].distance, order[pins[p].reason], p), reverse=True)

    def cores(*reasons: PinReason) -> Iterator[Step]:
        yield from ((p, pins[p].core) for p in last_first(*reasons) if pins[p].core not in (NOTHING, pins[p].units))

    def drops(*reasons: PinReason) -> Iterator[Step]:
        yield from ((place, NOTHING) for place in last_first(*reasons))

    yield from cores(PinReason.CALLER)
    yield from drops(*(reason for reason in PinReason if _tier_2(reason)))
    yield from cores(PinReason.FRAME)
    yield from ((place, NOTHING) for place in reversed(_late_lines(pins, sizes, cap // 2)))
    yield from cores(PinReason.FAILING_TEST)
    yield from cores(PinReason.USER)
    yield from ((place, NOTHING) for place in reversed(_late_lines(pins, sizes, cap // 8)))
    yield from cores(PinReason.TARGET)
    for reason in (PinReason.CALLER, PinReason.FRAME, PinReason.FAILING_TEST, PinReason.LOG_EVIDENCE):
        yield from drops(reason)
    yield from drops(PinReason.USER)
    yield from drops(PinReason.TARGET)


def _tier_2(reason: PinReason) -> bool:
    return Pin(reason, (), "").tier == 2


def _late_lines(pins: Sequence[Pin], sizes: Sequence[int], room: int) -> list[int]:
    """The log's pins but the first, in order, that come after those that fill `room` tokens."""
    lines = [place for place, pin in enumerate(pins) if pin.reason is PinReason.LOG_EVIDENCE]
    ends = accumulate(sum(sizes[unit] for unit in pins[place].units) for place in lines)
    return [place for place, end in zip(lines, ends, strict=True) if end > room and place != lines[0]]


def _give_way(holdings: Holdings, steps: Iterable[Step], over: Callable[[], bool]) -> list[Undo]:
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


def _take_back(holdings: Holdings, taken: Sequence[Undo], pins: Sequence[Pin], bounds: tuple[int, int]) -> None:
    """Undo steps, the most painful first, as long as the result is within `bounds`."""
    for place, before, after in reversed(taken):
        if holdings.held[place] != after:
            continue
        holdings.change(place, before)
        if not holdings.within(bounds):
            holdings.change(place, after)
            if pins[place].reason in GROWS:
                holdings.grow(place, (*before, *pins[place].units), bounds)  # the core first


def _evidence_of_tier_0(index: PromptIndex, sizes: Sequence[int], pins: Iterable[Pin]) -> int:
    return needed(index, sizes, (pin for pin in pins if pin.tier == 0))[1]


def _findings(
    pins: Sequence[Pin], held: Sequence[tuple[int, ...]], need: int, evidence: int, limit: int, cap: int, stated: int
) -> Iterator[Finding]:
    marks = " (which the marks for left-out lines count against, too)" if stated > limit else ""
    if need > limit:
        yield _warning(f"the pins need {need} tokens, the limit is {stated}{marks}: see what was reduced or dropped")
    if evidence > cap:
        yield _warning(f"log and tests need {evidence} tokens, their share of the limit {stated}{marks} is {cap}")
    dropped: dict[PinReason, list[Pin]] = {}
    for pin, units in zip(pins, held, strict=True):
        if units == pin.units:
            continue
        if units:
            yield _warning(f"{pin.reason} {pin.subject}: reduced to {len(units)} of {len(pin.units)} units")
        else:
            dropped.setdefault(pin.reason, []).append(pin)
    for reason, group in dropped.items():
        yield _warning(f"{reason}: {len(group)} dropped: {_names(group)}")


def _names(pins: Sequence[Pin]) -> str:
    subjects = list(dict.fromkeys(pin.subject for pin in pins))
    shown = subjects if pins[0].tier == 1 else subjects[:NAMED]
    rest = len(subjects) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest else "")


def _warning(message: str) -> Finding:
    return Finding("budget", "warning", message)
