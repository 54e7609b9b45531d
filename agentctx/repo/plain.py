"""Text without a grammar -> units: sections (Markdown, TOML, INI, YAML, JSON by top-level keys) or paragraphs."""

from __future__ import annotations

import re
from collections.abc import Callable

from agentctx.repo.languages import extension
from agentctx.repo.parse_lines import Lines
from agentctx.source import Unit, UnitKind
from agentctx.spans import ByteSpan, LineSpan

MAX_LINES = 40

_HEADING = re.compile(rb"#{1,6}\s")
_FENCE = re.compile(rb"\s*(```+|~~~+)")
_TABLE = re.compile(rb"\s*\[")
_YAML_KEY = re.compile(rb"[^\s#\-\]}].*")
_JSON_KEY = re.compile(rb"(  |\t| {4})?\"[^\"]*\"\s*:")


def units(path: str, data: bytes) -> tuple[Unit, ...]:
    """TEXT units that tile `data`; none is longer than MAX_LINES lines."""
    lines = Lines(data)
    starts = _capped(lines, _STARTS.get(extension(path), _paragraphs)(lines))
    made: list[Unit] = []
    for index, first in enumerate(starts):
        end = starts[index + 1] if index + 1 < len(starts) else len(lines)
        span = ByteSpan(lines.start(first), lines.start(end))
        made.append(Unit(index, UnitKind.TEXT, span, LineSpan(first + 1, end), None, ()))
    return tuple(made)


def _capped(lines: Lines, starts: list[int]) -> list[int]:
    """The starts, with row 0, and long parts cut: at their last blank row within the cap, else at the cap."""
    out: list[int] = []
    bounds = sorted({0, *starts}) if len(lines) else []
    for first, end in zip(bounds, [*bounds[1:], len(lines)], strict=True):
        out.append(first)
        while end - out[-1] > MAX_LINES:
            limit = out[-1] + MAX_LINES
            blank = next((row for row in range(limit, out[-1] + 1, -1) if lines.is_blank(row - 1)), limit)
            out.append(blank)
    return out


def _paragraphs(lines: Lines) -> list[int]:
    """Rows after a blank row."""
    return [row for row in range(1, len(lines)) if lines.is_blank(row - 1) and not lines.is_blank(row)]


def _markdown(lines: Lines) -> list[int]:
    """Headings outside of fenced code."""
    starts: list[int] = []
    fence: bytes | None = None
    for row in range(len(lines)):
        text = lines.text(row)
        match = _FENCE.match(text)
        if match is not None and (fence is None or text.startswith(fence)):
            fence = None if fence is not None else match[1]
        elif fence is None and _HEADING.match(text) and lines.column(row) < 4:
            starts.append(row)
    return starts


def _matching(pattern: re.Pattern[bytes]) -> Callable[[Lines], list[int]]:
    """Rows that match, each with the comments directly above it."""

    def starts(lines: Lines) -> list[int]:
        out: list[int] = []
        for row in range(len(lines)):
            if pattern.match(lines.data, lines.start(row), lines.end(row)):
                first = row
                while first > 0 and lines.is_comment(first - 1):
                    first -= 1
                out.append(first)
        return out

    return starts


_STARTS: dict[str, Callable[[Lines], list[int]]] = {
    "md": _markdown,
    "markdown": _markdown,
    **dict.fromkeys(("toml", "ini", "cfg", "conf"), _matching(_TABLE)),
    **dict.fromkeys(("yaml", "yml"), _matching(_YAML_KEY)),
    **dict.fromkeys(("json", "jsonc", "json5"), _matching(_JSON_KEY)),
}
