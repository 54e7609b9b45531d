"""One sentence for each kept unit: why it is in the prompt. Pure; for `units[].why` of the JSON and for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentctx.prompt import Pin, PinReason, Pins, PromptDocument, Selection, TokenizedPrompt, Why
from agentctx.source import Role, UnitKind
from agentctx.spec.index import PromptIndex
from agentctx.spec.pins import collect

SENTENCES: Mapping[PinReason, str] = {
    PinReason.SYSTEM: "system prompt",
    PinReason.TOOLS: "tool descriptions",
    PinReason.REQUEST: "the request",
    PinReason.TAIL: "end of the prompt",
    PinReason.LOG_EVIDENCE: "error in the log",
    PinReason.FAILING_TEST: "failing test {name}",
    PinReason.FRAME: "in the traceback: {name}",
    PinReason.TARGET: "to be edited: {name}",
    PinReason.CALLER: "calls the target {target} (caller {name})",
    PinReason.USER: "pinned by the user",
    PinReason.CALLEE: "signature of {name}, which pinned code uses",
    PinReason.TYPE: "type {name} of a pinned signature",
    PinReason.BASE: "base class {name}",
    PinReason.OVERRIDE: "{name} overrides the same method as the target, or is overridden",
    PinReason.IMPLEMENTS: "{name} must be implemented",
    PinReason.IMPORT: "import that pinned code needs",
    PinReason.CONSTANT: "constant {name}, which pinned code uses",
    PinReason.FIELD: "field {name}, which pinned code uses",
    PinReason.RE_EXPORT: "re-exports {name}",
    PinReason.CONFIG: "configuration in {name}, named in the request or the log",
}


def explain(
    tokenized: TokenizedPrompt,
    selection: Selection,
    pins: Pins | None = None,
    *,
    index: PromptIndex | None = None,
) -> Mapping[int, str]:
    """A sentence for each kept unit. `pins`: those that the selection was made with (collected anew if None)."""
    document = tokenized.document
    known = index if index is not None else PromptIndex(document)
    names = _Names(known)
    strongest = _strongest(selection, pins if pins is not None else collect(document, tokenized, index=known))
    places = _places(selection)
    spines = _spine_owners(document, selection)
    found: dict[int, str] = {}
    for kept in selection.kept:
        unit = kept.unit
        if kept.why is Why.PINNED:
            found[unit] = names.pin(strongest[unit]) + (" (reduced)" if kept.reduced else "")
        elif kept.why is Why.REPAIRED:
            found[unit] = names.repaired(unit)
        elif kept.why is Why.GAP:
            found[unit] = "between kept code, and too short to leave out"
        elif kept.why is Why.SPINE:
            found[unit] = f"belongs to {names.place(spines[unit])}" if unit in spines else "all of the window is kept"
        else:
            found[unit] = _scored(document, unit, kept.score, places)
    return found


@dataclass(frozen=True, slots=True)
class _Names:
    index: PromptIndex

    def pin(self, pin: Pin) -> str:
        return SENTENCES[pin.reason].format(name=self.short(pin.subject), target=self._called(pin))

    def repaired(self, unit: int) -> str:
        headed = self.index.headers.get(unit, ())
        found = self.index.document.units[unit]
        if found.kind is UnitKind.SIGNATURE and found.symbol is not None:
            return f"signature of {self.short(found.symbol)} as a line, which kept code uses (repaired)"
        if found.kind is UnitKind.IMPORT or not headed:  # `try: import x ...` is one unit
            return "import that kept code needs (repaired)"
        names = ", ".join(self.short(symbol) for symbol in headed)
        return f"signature of {names}, which kept code uses (repaired)"

    def place(self, unit: int) -> str:
        found = self.index.document.units[unit]
        where = found.path or str(found.section)
        return f"{where}:{found.lines.start}" if found.lines else where

    def short(self, subject: str) -> str:
        return subject.split("::", 1)[-1]

    def _called(self, pin: Pin) -> str:
        """The target that a caller calls."""
        targets = self.index.nested(self.index.document.facts.targets) if pin.reason is PinReason.CALLER else ()
        units = set(pin.units)
        for symbol in targets:
            links = self.index.incoming.get(symbol, ())
            if any(link.unit in units and link.role is Role.CALL for link in links):
                return self.short(symbol)
        return ""


def _strongest(selection: Selection, pins: Pins) -> dict[int, Pin]:
    """For each pinned unit its first pin that wasn't dropped: pins are sorted by tier and rule.

    That it stands at the end of the prompt says the least, though it is tier 0: in a short prompt all code does.
    """
    reasons = {kept.unit: kept.pins for kept in selection.kept}
    found: dict[int, Pin] = {}
    for pin in sorted(pins.pins, key=lambda pin: pin.reason is PinReason.TAIL):
        for unit in pin.units:
            if pin.reason in reasons.get(unit, ()):
                found.setdefault(unit, pin)
    return found


def _places(selection: Selection) -> dict[int, int]:
    """1-based place by score of every unit that was kept for its score; equal scores share the first place."""
    scored = sorted((kept for kept in selection.kept if kept.why is Why.SCORED), key=lambda kept: -kept.score)
    first: dict[float, int] = {}
    return {kept.unit: first.setdefault(kept.score, place) for place, kept in enumerate(scored, start=1)}


def _spine_owners(document: PromptDocument, selection: Selection) -> dict[int, int]:
    """For each spine unit the first unit that it was kept for."""
    found: dict[int, int] = {}
    for kept in selection.kept:
        if kept.why is not Why.SPINE:
            for unit in document.units[kept.unit].spine:
                found.setdefault(unit, kept.unit)
    return found


def _scored(document: PromptDocument, unit: int, score: float, places: Mapping[int, int]) -> str:
    sentence = f"score {score:.3g}, {_ordinal(places[unit])} of {len(places)} kept by score"
    rank = document.units[unit]
    return f"{sentence}: {rank.why}" if rank.why and rank.score == score else sentence


def _ordinal(number: int) -> str:
    teens = number % 100 in (11, 12, 13)
    return f"{number}{'th' if teens else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"
