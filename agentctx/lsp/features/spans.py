"""agentctx/spans: which lines of a file the prompt has, for decorations."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from pygls.workspace import PositionCodec

from agentctx.lsp.view import View
from agentctx.spans import LineSpan


def spans(view: View, path: str, codec: PositionCodec) -> list[dict[str, Any]]:
    """Maximal runs of packed lines that are alike, top down. A line with a kept unit is kept."""
    selected = view.fresh(path)
    positions = view.positions(selected, path, codec) if selected is not None else None
    if selected is None or positions is None:
        return []
    lines: dict[int, bool] = {}
    for row in selected.report.units:
        if row.path == path and row.start_line is not None and row.end_line is not None:
            for line in range(row.start_line, row.end_line + 1):
                lines[line] = lines.get(line, False) or row.kept
    runs = groupby(enumerate(sorted(lines)), key=lambda pair: (pair[1] - pair[0], lines[pair[1]]))
    found = []
    for (_, kept), run in runs:
        numbers = [line for _, line in run]
        place = positions.lines(LineSpan(numbers[0], numbers[-1]))
        found.append({"range": _plain(place.start, place.end), "kept": kept})
    return found


def _plain(start: Any, end: Any) -> dict[str, dict[str, int]]:
    return {
        "start": {"line": start.line, "character": start.character},
        "end": {"line": end.line, "character": end.character},
    }
