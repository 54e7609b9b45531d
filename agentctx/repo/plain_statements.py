"""Outlines of SQL, makefiles and Dockerfiles."""

from __future__ import annotations

import re

from agentctx.repo.parse_lines import Lines
from agentctx.repo.plain_parts import (
    Outline,
    Part,
    headed,
    joined,
    spans,
)

_SQL = re.compile(
    rb"--[^\n]*|/\*.*?(?:\*/|\Z)|'(?:''|[^'])*'?|\"(?:\"\"|[^\"])*\"?|`[^`]*`?"
    rb"|\$(?P<tag>[A-Za-z_]\w*)?\$.*?(?:\$(?(tag)(?P=tag)|)\$|\Z)|;",
    re.DOTALL,
)


def sql(lines: Lines) -> Outline:
    """Statements, by the semicolons outside of strings, dollar quotes and comments; small ones together."""
    whole: list[tuple[int, int]] = []
    ends: list[int] = []
    for first, last, text in spans(_SQL, lines):
        if text == b";":
            ends.append(first)
        elif last > first:
            whole.append((first, last + 1))
    starts: list[int] = []
    for row in sorted(set(ends)):
        first = row + 1
        while first < len(lines) and lines.is_blank(first):
            first += 1
        if first < len(lines) and not any(a < first < b for a, b in whole[-1:]):
            starts.append(first)
    return Outline(tuple(Part(row, 0, 1) for row in starts), tuple(whole), grouped=True)


_TARGET = re.compile(rb"[^\s#=][^=]*?:(?!=)")


def makefile(lines: Lines) -> Outline:
    """Targets with the comments above them; `define` blocks and continued rows stay whole."""
    whole = list(joined(lines))
    defined: set[int] = set()
    first: int | None = None
    for row in range(len(lines)):
        if first is None and re.match(rb"define\b", lines.text(row)):
            first = row
        elif first is not None and lines.text(row).startswith(b"endef"):
            whole.append((first, row + 1))
            defined.update(range(first, row + 1))
            first = None
    inside = {row for a, b in whole for row in range(a + 1, b)} | defined
    rows = [row for row in range(len(lines)) if row not in inside and not lines.column(row)]
    targets = [row for row in rows if _TARGET.match(lines.text(row))]
    return Outline(tuple(headed(lines, targets)), tuple(whole), grouped=True)


def dockerfile(lines: Lines) -> Outline:
    """Stages (`FROM`); continued instructions stay whole."""
    stages = [row for row in range(len(lines)) if re.match(rb"FROM\s", lines.text(row), re.IGNORECASE)]
    return Outline(tuple(headed(lines, stages)), tuple(joined(lines)))
