"""Outlines of TOML, INI, properties, YAML and JSON.

Strings, comments and brackets are found by one pattern per kind, from left to right: nothing recurses, and what is
not closed goes on to the end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from agentctx.repo.parse_lines import Lines
from agentctx.repo.plain_parts import (
    VALUE_LINES,
    Outline,
    Part,
    headed,
    joined,
    paragraphs,
    spans,
)

_TOML = re.compile(
    rb"#[^\n]*|\"\"\"(?:\\.|[^\\])*?(?:\"\"\"|\Z)|'''.*?(?:'''|\Z)|\"(?:\\.|[^\"\\\n])*\"?|'[^'\n]*'?|[\[\]{}]",
    re.DOTALL,
)


def toml(lines: Lines) -> Outline:
    """Tables; a `[` inside of an array or a string begins none. Strings of several rows stay whole."""
    inside: set[int] = set()
    whole: list[tuple[int, int]] = []
    depth, opened = 0, 0
    for first, last, text in spans(_TOML, lines):
        if text in (b"[", b"{"):
            opened = first if not depth else opened
            depth += 1
        elif text in (b"]", b"}") and depth:
            depth -= 1
            if not depth:
                inside.update(range(opened + 1, first + 1))
        elif last > first:
            whole.append((first, last + 1))
            inside.update(range(first + 1, last + 1))
    tables = [row for row in range(len(lines)) if row not in inside and lines.text(row).startswith(b"[")]
    return Outline(tuple(headed(lines, tables)), tuple(whole))


def ini(lines: Lines) -> Outline:
    """Sections; values that go on in the next row stay whole where a backslash says so."""
    rows = [row for row in range(len(lines)) if lines.text(row).startswith(b"[") and not lines.column(row)]
    return Outline(tuple(headed(lines, rows)), tuple(joined(lines))) if rows else paragraphs(lines)


def properties(lines: Lines) -> Outline:
    return Outline(paragraphs(lines).parts, tuple(joined(lines)))


_YAML_KEY = re.compile(rb"[^\s#\-\]}%].*")
_BLOCK_SCALAR = re.compile(rb".*(?:^|[:\-\s])[|>][+\-0-9]{0,2}(?:\s+#.*)?$")


def yaml(lines: Lines) -> Outline:
    """Top-level keys, or the items of a top-level list; documents; block scalars stay whole."""
    scalars = list(_block_scalars(lines))
    inside = {row for first, end in scalars for row in range(first + 1, end)}
    free = [row for row in range(len(lines)) if row not in inside and not lines.column(row) and not lines.is_blank(row)]
    marks = [row for row in free if lines.text(row) in (b"---", b"...") or lines.text(row).startswith(b"--- ")]
    keys = [row for row in free if _YAML_KEY.match(lines.text(row)) and row not in marks]
    items = [row for row in free if lines.text(row).startswith(b"- ") or lines.text(row) == b"-"] if not keys else []
    found = {part.row: part for part in headed(lines, keys or items)}
    found |= {row: Part(row, alone=True) for row in marks if row}
    return Outline(tuple(found[row] for row in sorted(found)), tuple(scalars), grouped=True)


def _block_scalars(lines: Lines) -> Iterator[tuple[int, int]]:
    row = 0
    while row < len(lines):
        end = row + 1
        if _BLOCK_SCALAR.match(lines.text(row)) and not lines.text(row).startswith(b"#"):
            while end < len(lines) and (lines.is_blank(end) or lines.column(end) > lines.column(row)):
                end += 1
            while end > row + 1 and lines.is_blank(end - 1):
                end -= 1
            yield row, end
        row = end


_JSON = re.compile(rb"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?|[\[\]{}]", re.DOTALL)


def json(lines: Lines) -> Outline:
    """What is directly in the outermost brackets, which belong to each part; JSON in one row is one unit.

    A value stays whole, so that what is kept reads as JSON with comments; only very long ones (data) are cut.
    """
    depth, seen = 0, 0
    rows: dict[int, int] = {}  # depth at the start of each row
    close: int | None = None
    for first, _, text in spans(_JSON, lines):
        rows.update(dict.fromkeys(range(seen + 1, first + 1), depth))
        seen = max(seen, first)
        if text in (b"[", b"{"):
            depth += 1
        elif text in (b"]", b"}"):
            depth -= 1
            close = first if not depth else close
    starts = [row for row, at in rows.items() if at == 1 and row != close and not lines.is_blank(row)]
    if not starts or close is None or close <= starts[-1] or close in starts:
        return Outline()
    parts = [*(Part(row, 0, 1) for row in starts), Part(close)]
    values = [(a, b) for a, b in pairwise([*starts, close]) if b - a <= VALUE_LINES]
    return Outline(tuple(parts), tuple(values), grouped=True, open_end=starts[0], close=close)
