"""PromptDocument -> Pins: what selection must not lose. Pure; one small function per rule, in `RULES`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agentctx.prompt import Finding, PackFacts, Pin, Pins, PromptDocument, TokenizedPrompt
from agentctx.spec.index import PromptIndex
from agentctx.spec.pins import always, interfaces, required
from agentctx.spec.pins.view import Hop, Rule, View

__all__ = ["RULES", "Rule", "View", "collect"]

RULES: tuple[Rule, ...] = (*always.RULES, *required.RULES, *interfaces.RULES)


def collect(
    document: PromptDocument,
    tokenized: TokenizedPrompt,
    *,
    index: PromptIndex | None = None,
    rules: Sequence[Rule] = RULES,
) -> Pins:
    """Every pin, sorted by (tier, rule order, first unit); and findings on what should be pinned but isn't packed."""
    known = index if index is not None else PromptIndex(document)
    pinned: dict[int, Hop] = {}
    found: list[tuple[int, int, tuple[int, ...], Pin]] = []
    for place, rule in enumerate(rules):
        pins = sorted(rule.find(View(known, tokenized, dict(sorted(pinned.items())))), key=_order)
        found += [(pin.tier, place, pin.units, pin) for pin in pins]
        for pin in pins:
            hop = Hop(pin.tier, pin.distance)
            pinned.update({unit: min(hop, pinned.get(unit, hop)) for unit in pin.units})
    found.sort(key=lambda item: item[:3])
    return Pins(tuple(pin for *_, pin in found), tuple(_not_packed(known, document.facts)))


def _order(pin: Pin) -> tuple[tuple[int, ...], str]:
    return pin.units, pin.subject


def _not_packed(index: PromptIndex, facts: PackFacts) -> Iterator[Finding]:
    wanted = [("target", facts.targets), ("failing test", facts.failing_tests), ("frame", facts.frames)]
    for what, symbols in wanted:
        missing = [symbol for symbol in symbols if not _is_packed(index, symbol)]
        if len(missing) == 1:
            yield Finding("not-packed", "warning", f"the {what} {missing[0]} is not in the window; it can't be kept")
        elif missing:
            said = f"{len(missing)} {what}s are not in the window; they can't be kept: {', '.join(missing)}"
            yield Finding("not-packed", "warning", said)


def _is_packed(index: PromptIndex, symbol: str) -> bool:
    definition = index.definition(symbol)
    return definition is not None and bool(definition.units)
