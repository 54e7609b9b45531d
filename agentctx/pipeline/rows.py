"""Units of the prompt -> rows of the report. Pure."""

from __future__ import annotations

from agentctx.prompt import KeptUnit, Pins, PromptUnit, Selection, TokenizedPrompt
from agentctx.report import UnitRow
from agentctx.source import MARKS, UnitKind
from agentctx.spec.index import PromptIndex
from agentctx.spec.why import explain


def unit_rows(tokenized: TokenizedPrompt, selection: Selection, pins: Pins, index: PromptIndex) -> tuple[UnitRow, ...]:
    """A row for each unit of the packed prompt but the lines that name files and mark gaps, and for each signature line
    that is kept."""
    kept = {one.unit: one for one in selection.kept}
    reasons = explain(tokenized, selection, pins, index=index)
    return tuple(
        _row(tokenized, unit, kept.get(unit.index), reasons.get(unit.index, ""))
        for unit in tokenized.document.units
        if unit.kind not in (*MARKS, UnitKind.HEADING)
        if unit.index in kept or unit.kind is not UnitKind.SIGNATURE
    )


def _row(tokenized: TokenizedPrompt, unit: PromptUnit, kept: KeptUnit | None, reason: str) -> UnitRow:
    return UnitRow(
        path=unit.path,
        start_line=unit.lines.start if unit.lines else None,
        end_line=unit.lines.end if unit.lines else None,
        kind=unit.kind.value,
        symbol=unit.symbol,
        section=unit.section.value,
        tokens=len(tokenized.unit_tokens(unit.index)),
        kept=kept is not None,
        tier=kept.tier if kept else None,
        pins=tuple(pin.value for pin in kept.pins) if kept else (),
        score=kept.score if kept else unit.score,
        why=reason or unit.why,
        reduced=kept.reduced if kept else False,
    )
