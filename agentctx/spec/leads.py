"""How much the pins may hold when nobody said what is to be edited. Pure.

Without a focus the targets are guesses: the ranking's, or the deepest frame, which often stands beside the place of
the bug. What hangs on a guess must not put out what else the ranking, or a drafter, finds: callers and frames go to
their cores, signatures to the ranking and the repair (farthest first), then the callers of guesses, then all but the
core of later guesses, until the pinned code is within its share. Tests, log, frames' lines, the first target and what
the user pinned stay.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentctx.prompt import Finding, Pin, PinReason
from agentctx.spec.holdings import NOTHING, Holdings, Step, give_way, last_first, names

LEAD_SHARE = 0.2  # of the limit


def hold(holdings: Holdings, pins: Sequence[Pin], cap: int) -> tuple[Finding, ...]:
    """Lets pins hold less, so that the pinned code takes `cap` tokens if it can; what is to be said of it."""

    def over() -> bool:
        return holdings.n_code > cap

    index = holdings.index
    in_code = [any(not index.is_evidence[unit] for unit in pin.units) for pin in pins]
    taken = give_way(holdings, (step for step in _steps(pins) if in_code[step[0]]), over)
    for place, before, after in reversed(taken):
        if holdings.held[place] == after:
            holdings.change(place, before)
            if over():
                holdings.change(place, after)
    changed = [(pin, held) for pin, held in zip(pins, holdings.held, strict=True) if held != pin.units]
    return tuple(_findings(changed, cap))


def _steps(pins: Sequence[Pin]) -> Iterator[Step]:
    support = [reason for reason in PinReason if Pin(reason, (), "").tier == 2]
    guessed = any(pin.guessed for pin in pins)
    for reason in (PinReason.CALLER, PinReason.FRAME):
        yield from ((p, pins[p].core) for p in last_first(pins, reason) if pins[p].core)
    yield from ((p, NOTHING) for p in last_first(pins, *support))
    if guessed:
        yield from ((p, NOTHING) for p in last_first(pins, PinReason.CALLER))
    yield from ((p, pins[p].core) for p in last_first(pins, PinReason.TARGET) if pins[p].distance and pins[p].core)


def _findings(changed: Sequence[tuple[Pin, tuple[int, ...]]], cap: int) -> Iterator[Finding]:
    reduced = [pin for pin, held in changed if held]
    dropped: dict[PinReason, list[Pin]] = {}
    for pin, held in changed:
        if not held:
            dropped.setdefault(pin.reason, []).append(pin)
    said = [f"{pin.reason} {pin.subject} is reduced" for pin in reduced]
    said += [f"{reason}: {len(group)} left to the ranking ({names(group)})" for reason, group in dropped.items()]
    if said:
        why = f"without --focus the code pinned for targets and frames has {cap} tokens"
        yield Finding("budget", "note", f"{why}: {'; '.join(said)}")
