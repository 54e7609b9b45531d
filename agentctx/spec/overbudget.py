"""What gives way when the pins need more than there is room for, in which order, and what is said about it. Pure.

First the log and the tests are brought down to their share, then everything to the limit. In both passes:
callers go to their core, tier 2 goes by distance (farthest first), then come frames, the log's last error lines
where they fill more than half of the share, failing tests, user pins, more of the error lines, and targets: to
their core first; whole groups are dropped only when all cores together are too large. What turned out to fit
after all comes back, and a target, test, frame or user pin that can't be whole grows as far as there is room.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

from agentctx.prompt import Finding, Pin, PinReason
from agentctx.spec.holdings import NOTHING, Holdings, Step, Undo, give_way, last_first, names
from agentctx.spec.index import PromptIndex

GROWS = (PinReason.TARGET, PinReason.USER, PinReason.FAILING_TEST, PinReason.FRAME)


def needed(index: PromptIndex, sizes: Sequence[int], groups: Iterable[tuple[int, ...]]) -> tuple[int, int]:
    """Tokens of the groups together, and those of them in the log and the tests."""
    holdings = Holdings.of(index, sizes, groups)
    return holdings.n_tokens, holdings.n_evidence


def shrink(
    holdings: Holdings, pins: Sequence[Pin], *, limit: int, cap: int, stated: int | None = None
) -> tuple[Finding, ...]:
    """Lets pins hold less (`()` = dropped) so that all fit; what is to be said of it. Tier 0 is never touched.

    limit: tokens for everything; cap: tokens for the log and the tests together; stated: the limit to name.
    """
    index, sizes, first = holdings.index, holdings.sizes, list(holdings.held)
    need, evidence = holdings.n_tokens, holdings.n_evidence
    steps = list(_steps(pins, sizes, cap))
    touching = [step for step in steps if any(index.is_evidence[unit] for unit in pins[step[0]].units)]
    undo = give_way(holdings, touching, lambda: holdings.n_evidence > cap)
    undo += give_way(holdings, steps, lambda: holdings.n_tokens > limit)
    bounds = limit, max(cap, _evidence_of_tier_0(index, sizes, pins))
    _take_back(holdings, undo, pins, bounds)
    return tuple(_findings(pins, first, holdings.held, need, evidence, limit, cap, stated or limit))


def _steps(pins: Sequence[Pin], sizes: Sequence[int], cap: int) -> Iterator[Step]:
    """Every reduction and every drop, the least painful first."""

    def cores(*reasons: PinReason) -> Iterator[Step]:
        yield from (
            (p, pins[p].core) for p in last_first(pins, *reasons) if pins[p].core not in (NOTHING, pins[p].units)
        )

    def drops(*reasons: PinReason) -> Iterator[Step]:
        yield from ((place, NOTHING) for place in last_first(pins, *reasons))

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
    return needed(index, sizes, (pin.units for pin in pins if pin.tier == 0))[1]


def _findings(
    pins: Sequence[Pin],
    first: Sequence[tuple[int, ...]],
    held: Sequence[tuple[int, ...]],
    need: int,
    evidence: int,
    limit: int,
    cap: int,
    stated: int,
) -> Iterator[Finding]:
    marks = " (which the marks for left-out lines count against, too)" if stated > limit else ""
    if need > limit:
        yield _warning(f"the pins need {need} tokens, the limit is {stated}{marks}: see what was reduced or dropped")
    if evidence > cap:
        yield _warning(f"log and tests need {evidence} tokens, their share of the limit {stated}{marks} is {cap}")
    dropped: dict[PinReason, list[Pin]] = {}
    for pin, before, units in zip(pins, first, held, strict=True):
        if units == before:
            continue
        if units:
            yield _warning(f"{pin.reason} {pin.subject}: reduced to {len(units)} of {len(pin.units)} units")
        else:
            dropped.setdefault(pin.reason, []).append(pin)
    for reason, group in dropped.items():
        yield _warning(f"{reason}: {len(group)} dropped: {names(group)}")


def _warning(message: str) -> Finding:
    return Finding("budget", "warning", message)
