"""Tier 0: what every prompt keeps. One small pure function per rule."""

from __future__ import annotations

from collections.abc import Iterator

from agentctx.prompt import Pin, PinReason, Section
from agentctx.source import UnitKind
from agentctx.spec.pins.view import Rule, View

TAIL_TOKENS = 64
# How chat templates introduce tools: Qwen and Hermes, Llama 3, Mistral, GPT-OSS and Phi.
TOOL_MARKS = (
    b"<tools>",
    b"# Tools",
    b"[AVAILABLE_TOOLS]",
    b"Environment: ipython",
    b"<|tool|>",
    b"namespace functions",
)


def _pin(view: View, reason: PinReason, units: list[int], subject: str) -> Iterator[Pin]:
    if units:
        yield Pin(reason, view.index.closure(units), subject)


def system(view: View) -> Iterator[Pin]:
    """The system prompt."""
    units = [unit.index for unit in view.document.units if unit.section is Section.SYSTEM]
    return _pin(view, PinReason.SYSTEM, units, Section.SYSTEM)


def tools(view: View) -> Iterator[Pin]:
    """Tool descriptions: without them an agent's calls break."""
    units = [
        unit.index
        for unit in view.document.units
        if unit.kind is UnitKind.SCAFFOLD and any(mark in view.document.unit_text(unit.index) for mark in TOOL_MARKS)
    ]
    return _pin(view, PinReason.TOOLS, units, "tools")


def request(view: View) -> Iterator[Pin]:
    """What the user asks for."""
    units = [unit.index for unit in view.document.units if unit.section is Section.REQUEST]
    return _pin(view, PinReason.REQUEST, units, Section.REQUEST)


def tail(view: View) -> Iterator[Pin]:
    """The chat scaffolding, and the units that hold the last 64 tokens: generation continues from them."""
    left, units = TAIL_TOKENS, []
    for unit in reversed(view.document.units):
        if unit.section is Section.SIGNATURES:
            continue  # not there unless it is needed
        if unit.section is Section.TAIL or unit.kind is UnitKind.SCAFFOLD or left > 0:
            units.append(unit.index)
        left -= len(view.tokenized.unit_tokens(unit.index))
    return _pin(view, PinReason.TAIL, units, Section.TAIL)


RULES = (
    Rule(PinReason.SYSTEM, system),
    Rule(PinReason.TOOLS, tools),
    Rule(PinReason.REQUEST, request),
    Rule(PinReason.TAIL, tail),
)
