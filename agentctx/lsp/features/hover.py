"""textDocument/hover: is what stands here kept or dropped, and why."""

from __future__ import annotations

from lsprotocol import types as lsp
from pygls.workspace import PositionCodec

from agentctx.lsp.job import Selected
from agentctx.lsp.view import State, View
from agentctx.report import UnitRow


def hover(view: View, path: str, position: lsp.Position, codec: PositionCodec) -> lsp.Hover:
    """What became of the units on a line; or why nothing can be said."""
    selected = view.fresh(path)
    line = position.line + 1
    if selected is None:
        return _answer(_nothing(view))
    rows = units_on(selected, path, line)
    if not rows:
        return _answer(_not_packed(selected, path))
    positions = view.positions(selected, path, codec)
    place = positions.line(line) if positions is not None else None
    return _answer("\n\n".join(dict.fromkeys(map(describe, rows))), place)


def units_on(selected: Selected, path: str, line: int) -> list[UnitRow]:
    """The packed units with a part on the line, in file order."""
    return [row for row in selected.report.units if row.path == path and _holds(row, line)]


def _holds(row: UnitRow, line: int) -> bool:
    return row.start_line is not None and row.end_line is not None and row.start_line <= line <= row.end_line


def describe(row: UnitRow) -> str:
    """One unit in Markdown: kept or dropped, tier, pins, score, tokens, and the reason in words."""
    facts = [f"tier {row.tier}"] if row.tier is not None else []
    if row.pins:
        facts.append(f"pins {', '.join(f'`{pin}`' for pin in row.pins)}")
    facts += [f"score {row.score:.3f}", f"{row.tokens:,} tokens", f"lines {row.start_line}-{row.end_line}"]
    verdict = "kept" if row.kept else "dropped"
    reduced = " (reduced)" if row.reduced else ""
    symbol = f" `{row.symbol.partition('::')[2] or row.symbol}`" if row.symbol else ""
    return f"**{verdict}**{reduced} {row.kind}{symbol}: {', '.join(facts)}" + (f"\n\n{row.why}" if row.why else "")


def _nothing(view: View) -> str:
    if view.state is State.RUNNING:
        return "The selection is being made for the text as it is now."
    return view.message


def _not_packed(selected: Selected, path: str) -> str:
    for skipped in selected.report.skipped:
        if skipped.path == path:
            return f"Not read: {skipped.reason}"
    if path not in selected.data:
        return "This file is not one of the repository's indexed files."
    return "Not packed: this part of the file is outside of the window of the current task."


def _answer(text: str, place: lsp.Range | None = None) -> lsp.Hover:
    contents = lsp.MarkupContent(lsp.MarkupKind.Markdown, f"agentctx: {text}")
    return lsp.Hover(contents=contents, range=place)
