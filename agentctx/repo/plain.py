"""Text without a grammar -> units: sections (Markdown, TOML, INI, YAML, JSON by top-level keys) or paragraphs."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise

from agentctx.repo.languages import extension
from agentctx.repo.parse_lines import Lines
from agentctx.source import Unit, UnitKind
from agentctx.spans import ByteSpan, LineSpan

MAX_LINES = 40
GROUP_LINES = 8  # keys of YAML and JSON share a unit up to here

_HEADING = re.compile(rb"#{1,6}\s")
_FENCE = re.compile(rb"\s*(```+|~~~+)")
_TABLE = re.compile(rb"\s*\[")
_YAML_KEY = re.compile(rb"[^\s#\-\]}].*")
_JSON_KEY = re.compile(rb"\"[^\"]*\"\s*:")


def units(path: str, data: bytes) -> tuple[Unit, ...]:
    """TEXT units that tile `data`; none is longer than MAX_LINES lines."""
    lines = Lines(data)
    starts = _STARTS.get(extension(path), _paragraphs)(lines)
    starts = _capped(lines, _grouped(lines, starts) if extension(path) in _KEYED else starts)
    made: list[Unit] = []
    for index, first in enumerate(starts):
        end = starts[index + 1] if index + 1 < len(starts) else len(lines)
        span = ByteSpan(lines.start(first), lines.start(end))
        made.append(Unit(index, UnitKind.TEXT, span, LineSpan(first + 1, end), None, ()))
    return tuple(made)


def _parts(lines: Lines, starts: list[int]) -> list[tuple[int, int]]:
    """(first row, row after the last) of what begins at row 0 and at each start."""
    bounds = [*sorted({0, *starts}), len(lines)] if len(lines) else []
    return list(pairwise(bounds))


def _capped(lines: Lines, starts: list[int]) -> list[int]:
    """The starts, with row 0, and long parts cut: at their last blank row within the cap, else at the cap."""
    out: list[int] = []
    for first, end in _parts(lines, starts):
        out.append(first)
        while end - out[-1] > MAX_LINES:
            limit = out[-1] + MAX_LINES
            blank = next((row for row in range(limit, out[-1] + 1, -1) if lines.is_blank(row - 1)), limit)
            out.append(blank)
    return out


def _grouped(lines: Lines, starts: list[int]) -> list[int]:
    """The starts, with row 0, without those of keys that fit into one short unit with the keys before them."""
    out: list[int] = []
    for first, end in _parts(lines, starts):
        if not out or end - out[-1] > GROUP_LINES:
            out.append(first)
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


def _json(lines: Lines) -> list[int]:
    """Rows with a key at the column of the first key."""
    keys = [row for row in range(len(lines)) if _JSON_KEY.match(lines.text(row))]
    return [row for row in keys if lines.column(row) == lines.column(keys[0])]


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


_KEYED = frozenset({"yaml", "yml", "json", "jsonc", "json5"})
_STARTS: dict[str, Callable[[Lines], list[int]]] = {
    "md": _markdown,
    "markdown": _markdown,
    **dict.fromkeys(("toml", "ini", "cfg", "conf"), _matching(_TABLE)),
    **dict.fromkeys(("yaml", "yml"), _matching(_YAML_KEY)),
    **dict.fromkeys(("json", "jsonc", "json5"), _json),
}
