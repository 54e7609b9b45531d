"""The outline of a text, by its kind: where parts begin, how they nest, and what must not be cut. Row by row.

Strings, comments and brackets are found by one pattern per kind, from left to right: nothing recurses, and what is
not closed goes on to the end.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath

from agentctx.repo.languages import extension
from agentctx.repo.parse_lines import Lines

VALUE_LINES = 400  # of one value in JSON
TABLE_LINES = 80  # rows of a table or of indented text that stay together


@dataclass(frozen=True, slots=True)
class Part:
    """Begins at `row`. `level` > 0: a section, which holds the parts of higher levels that follow.

    `head`: how many rows its heading takes, which stands for the part where it is cut. `alone`: not to be grouped.
    """

    row: int
    level: int = 0
    head: int = 0
    alone: bool = False


@dataclass(frozen=True, slots=True)
class Outline:
    """`whole`: rows first <= r < end that are never cut apart. `open_end`, `close`: rows of a file in brackets."""

    parts: tuple[Part, ...] = ()
    whole: tuple[tuple[int, int], ...] = ()
    grouped: bool = False
    open_end: int | None = None  # first row behind what opens the file
    close: int | None = None  # first row of what closes it


def outline_of(path: str, lines: Lines) -> Outline:
    """By the name's ending, or the name; paragraphs where neither says anything."""
    name = PurePosixPath(path).name
    if name.startswith(("Dockerfile", "Containerfile")):
        return dockerfile(lines)
    if name in ("Makefile", "GNUmakefile", "makefile", "Justfile", "justfile"):
        return makefile(lines)
    return _OUTLINES.get(extension(path), paragraphs)(lines)


# ---------------------------------------------------------------- help


def paragraphs(lines: Lines) -> Outline:
    """Rows after a blank row."""
    rows = (row for row in range(1, len(lines)) if lines.is_blank(row - 1) and not lines.is_blank(row))
    return Outline(tuple(Part(row) for row in rows))


def _spans(pattern: re.Pattern[bytes], lines: Lines) -> Iterator[tuple[int, int, bytes]]:
    """(first row, last row, text) of each token."""
    for match in pattern.finditer(lines.data):
        if match.end() > match.start():
            yield lines.row_of(match.start()), lines.row_of(match.end() - 1), match[0]


def _commented(lines: Lines, row: int, marks: tuple[bytes, ...] = (b"#", b";", b"--", b"//")) -> int:
    """The row, or the first of the comment rows directly above it."""
    while row > 0 and lines.text(row - 1).startswith(marks):
        row -= 1
    return row


def _joined(lines: Lines) -> Iterator[tuple[int, int]]:
    """Rows that a backslash at the end holds together."""
    first = None
    for row in range(len(lines)):
        if lines.text(row).endswith(b"\\"):
            first = row if first is None else first
        elif first is not None:
            yield first, row + 1
            first = None
    if first is not None:
        yield first, len(lines)


def _runs(lines: Lines, fits: Callable[[int], bool]) -> Iterator[tuple[int, int]]:
    """Maximal runs of rows that fit, as far as they are not too long to stay together."""
    first = None
    for row in range(len(lines) + 1):
        if row < len(lines) and fits(row):
            first = row if first is None else first
        elif first is not None:
            if 1 < row - first <= TABLE_LINES:
                yield first, row
            first = None


# ---------------------------------------------------------------- markup

_HEADING = re.compile(rb"(#{1,6})(\s|$)")
_FENCE = re.compile(rb"(```+|~~~+)")
_SETEXT = re.compile(rb"(=+|-+)$")


def markdown(lines: Lines) -> Outline:
    """Sections by headings; fenced code, front matter and tables stay whole."""
    parts: list[Part] = []
    front = _front_matter(lines)
    whole = [(0, front)] if front else []
    fenced = list(_fences(lines, front))
    inside = {row for first, end in fenced for row in range(first, end)}
    for row in range(front, len(lines)):
        match = _HEADING.match(lines.text(row)) if row not in inside and lines.column(row) < 4 else None
        if match is not None:
            parts.append(Part(row, len(match[1]), _head_rows(lines, row, 1)))
        elif row > front and row not in inside and _underlines(lines, row, front, inside):
            level = 1 if lines.text(row).startswith(b"=") else 2
            parts.append(Part(row - 1, level, _head_rows(lines, row - 1, 2)))
    if front and (not parts or parts[0].row > front) and front < len(lines):
        parts.insert(0, Part(front))
    tables = _runs(lines, lambda row: row not in inside and lines.text(row).startswith(b"|"))
    return Outline(tuple(parts), (*whole, *fenced, *tables))


def _underlines(lines: Lines, row: int, front: int, inside: set[int]) -> bool:
    """Whether the row makes a heading of the one above, which must be a paragraph of one row."""
    above = lines.text(row - 1)
    is_text = bool(above) and row - 1 not in inside and not above.startswith((b"#", b"|", b"-", b"*", b">", b"<", b"="))
    alone = row - 2 < front or lines.is_blank(row - 2)
    return is_text and alone and lines.column(row) < 4 and bool(_SETEXT.match(lines.text(row)))


def _head_rows(lines: Lines, row: int, n: int) -> int:
    """The heading's rows with the blank ones behind it."""
    end = row + n
    while end < len(lines) and lines.is_blank(end):
        end += 1
    return end - row


def _front_matter(lines: Lines) -> int:
    """The row behind `---` ... `---` (or `+++`) at the top; 0 without."""
    mark = lines.text(0)
    if mark not in (b"---", b"+++"):
        return 0
    return next((row + 1 for row in range(1, len(lines)) if lines.text(row) in (mark, b"...")), 0)


def _fences(lines: Lines, front: int) -> Iterator[tuple[int, int]]:
    first, fence = 0, b""
    for row in range(front, len(lines)):
        text = lines.text(row)
        match = _FENCE.match(text)
        if match is None:
            continue
        if not fence:
            first, fence = row, match[1]
        elif text.startswith(fence) and not text.strip(fence[:1]):
            yield first, row + 1
            fence = b""
    if fence:
        yield first, len(lines)


_ADORNED = re.compile(rb"([=\-~^\"'`#*+.:_])\1{2,}$")


def rst(lines: Lines) -> Outline:
    """Sections by underlined titles, whose levels follow from the order in which they occur; indented text whole."""
    levels: dict[tuple[bytes, bool], int] = {}
    parts: list[Part] = []
    for row in range(1, len(lines)):
        match = _ADORNED.match(lines.text(row))
        title = lines.text(row - 1)
        if (
            match is None
            or not title
            or _ADORNED.match(title)
            or len(title) > len(lines.text(row))
            or lines.column(row)
        ):
            continue
        over = row >= 2 and lines.text(row - 2) == lines.text(row)
        if not over and (lines.column(row - 1) or (row >= 2 and not lines.is_blank(row - 2))):
            continue
        level = levels.setdefault((match[1], over), len(levels) + 1)
        first = row - 2 if over else row - 1
        parts.append(Part(first, level, _head_rows(lines, first, row + 1 - first)))
    indented = _runs(lines, lambda row: lines.is_blank(row) or lines.column(row) > 0)
    return Outline(tuple(parts), tuple(indented))


# ---------------------------------------------------------------- tables and keys

_TOML = re.compile(
    rb"#[^\n]*|\"\"\"(?:\\.|[^\\])*?(?:\"\"\"|\Z)|'''.*?(?:'''|\Z)|\"(?:\\.|[^\"\\\n])*\"?|'[^'\n]*'?|[\[\]{}]",
    re.DOTALL,
)


def toml(lines: Lines) -> Outline:
    """Tables; a `[` inside of an array or a string begins none. Strings of several rows stay whole."""
    inside: set[int] = set()
    whole: list[tuple[int, int]] = []
    depth, opened = 0, 0
    for first, last, text in _spans(_TOML, lines):
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
    return Outline(tuple(_headed(lines, tables)), tuple(whole))


def _headed(lines: Lines, rows: list[int]) -> Iterator[Part]:
    """Parts whose head is the row with the comments above it."""
    for row in rows:
        first = _commented(lines, row)
        yield Part(first, 0, row + 1 - first)


def ini(lines: Lines) -> Outline:
    """Sections; values that go on in the next row stay whole where a backslash says so."""
    rows = [row for row in range(len(lines)) if lines.text(row).startswith(b"[") and not lines.column(row)]
    return Outline(tuple(_headed(lines, rows)), tuple(_joined(lines))) if rows else paragraphs(lines)


def properties(lines: Lines) -> Outline:
    return Outline(paragraphs(lines).parts, tuple(_joined(lines)))


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
    found = {part.row: part for part in _headed(lines, keys or items)}
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
    for first, _, text in _spans(_JSON, lines):
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


# ---------------------------------------------------------------- statements

_SQL = re.compile(
    rb"--[^\n]*|/\*.*?(?:\*/|\Z)|'(?:''|[^'])*'?|\"(?:\"\"|[^\"])*\"?|`[^`]*`?"
    rb"|\$(?P<tag>[A-Za-z_]\w*)?\$.*?(?:\$(?(tag)(?P=tag)|)\$|\Z)|;",
    re.DOTALL,
)


def sql(lines: Lines) -> Outline:
    """Statements, by the semicolons outside of strings, dollar quotes and comments; small ones together."""
    whole: list[tuple[int, int]] = []
    ends: list[int] = []
    for first, last, text in _spans(_SQL, lines):
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
    whole = list(_joined(lines))
    defined, first = set(), None
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
    return Outline(tuple(_headed(lines, targets)), tuple(whole), grouped=True)


def dockerfile(lines: Lines) -> Outline:
    """Stages (`FROM`); continued instructions stay whole."""
    stages = [row for row in range(len(lines)) if re.match(rb"FROM\s", lines.text(row), re.IGNORECASE)]
    return Outline(tuple(_headed(lines, stages)), tuple(_joined(lines)))


_OUTLINES: dict[str, Callable[[Lines], Outline]] = {
    **dict.fromkeys(("md", "markdown"), markdown),
    "rst": rst,
    "toml": toml,
    **dict.fromkeys(("ini", "cfg", "conf", "editorconfig"), ini),
    "properties": properties,
    **dict.fromkeys(("yaml", "yml"), yaml),
    **dict.fromkeys(("json", "jsonc", "json5"), json),
    "sql": sql,
    "mk": makefile,
    "dockerfile": dockerfile,
}
