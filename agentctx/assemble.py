"""Pieces of code and text -> the units and the text of a prompt; and a prompt cut down to what was kept. Pure.

Comes in: blocks in prompt order, each with the pieces that are to be shown. Goes out: text and units that tile
it, with a line that names each file and a comment for each run of left-out lines. Called by `repo.pack` (the
window) and by the pipeline (text-level prompts, which are contiguous).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentctx.prompt import PromptDocument, PromptFile, PromptUnit, Section
from agentctx.source import MARKS, UnitKind
from agentctx.spans import ByteSpan, LineSpan

Key = tuple[str, int]  # names a piece: (path or section, number)


@dataclass(frozen=True, slots=True)
class Piece:
    """A unit to show. `spine` names the pieces that must be kept with it."""

    key: Key
    kind: UnitKind
    text: bytes
    lines: LineSpan | None = None
    symbol: str | None = None
    spine: tuple[Key, ...] = ()
    score: float = 0.0
    why: str = ""


@dataclass(frozen=True, slots=True)
class Gap:
    """Lines left out before a piece (or at the end of a file); `indent` is that of the first left-out line."""

    n_lines: int
    indent: bytes


@dataclass(frozen=True, slots=True)
class Block:
    """Pieces of one file (`file` given) or of one other section, in order. `gaps[i]` comes before piece i."""

    section: Section
    pieces: tuple[Piece, ...]
    file: PromptFile | None = None
    gaps: tuple[Gap | None, ...] = ()  # one per piece and one for the end; () = none


@dataclass(frozen=True, slots=True)
class Assembled:
    text: bytes
    units: tuple[PromptUnit, ...]
    index: Mapping[Key, int]


def file_line(file: PromptFile) -> bytes:
    """The line that names a file, as a comment in its language."""
    opening, closing = file.comment
    return f"{opening} {file.path}{closing and ' ' + closing}\n".encode("utf-8", "surrogateescape")


def elision_line(file: PromptFile, gap: Gap) -> bytes:
    """The comment that stands for left-out lines."""
    opening, closing = file.comment
    noun = "line" if gap.n_lines == 1 else "lines"
    words = f"{opening} ... {gap.n_lines} {noun} left out ...{closing and ' ' + closing}\n"
    return gap.indent + words.encode()


@dataclass(slots=True)
class _Draft:
    """A unit whose place is not known yet; `spine` holds unit numbers and keys."""

    section: Section
    kind: UnitKind
    text: bytes
    spine: set[int]
    keys: tuple[Key, ...] = ()
    path: str | None = None
    piece: Piece | None = None


def assemble(blocks: Sequence[Block]) -> Assembled:
    """Lay the blocks out. Spines come out closed and sorted; a key that is not shown is left out of them."""
    drafts: list[_Draft] = []
    index: dict[Key, int] = {}
    for block in blocks:
        for draft in _drafts(block, len(drafts)):
            if draft.piece is not None:
                index[draft.piece.key] = len(drafts)
            drafts.append(draft)
    for draft in drafts:
        draft.spine.update(index[key] for key in draft.keys if key in index)
    return Assembled(b"".join(draft.text for draft in drafts), tuple(_units(drafts)), index)


def _drafts(block: Block, start: int) -> Iterator[_Draft]:
    """The drafts of one block; unit numbers begin at `start`."""
    if not block.pieces:
        return
    number = start
    path = block.file.path if block.file else None
    always: set[int] = set()
    if block.file is not None:
        yield _Draft(block.section, UnitKind.FILE, file_line(block.file), set(), path=path)
        always, number = {number}, number + 1
    gaps = block.gaps or (None,) * (len(block.pieces) + 1)
    last = len(block.pieces) - 1
    for at, (piece, gap) in enumerate(zip(block.pieces, gaps, strict=False)):
        spine = set(always)
        if gap is not None and block.file is not None:
            text = elision_line(block.file, gap)
            yield _Draft(block.section, UnitKind.ELISION, text, set(always), path=path)
            spine.add(number)
            number += 1
        tail = gaps[-1] if at == last else None
        if tail is not None and block.file is not None:
            spine.add(number + 1)
        joined = at < last and gaps[at + 1] is None  # the next piece is the next of the file
        text = _whole_lines(piece.text, joined=joined) if block.file is not None else piece.text
        yield _Draft(block.section, piece.kind, text, spine, piece.spine, path, piece)
        number += 1
        if tail is not None and block.file is not None:
            text = elision_line(block.file, tail)
            yield _Draft(block.section, UnitKind.ELISION, text, set(always), path=path)


def _whole_lines(text: bytes, *, joined: bool) -> bytes:
    """Code that ends without a newline gets one: what follows in the prompt must start a line.

    After a lone CR, which ends a line of its own file only, too.
    """
    return text if text.endswith((b"\n", b"\r") if joined else b"\n") else text + b"\n"


def _units(drafts: Sequence[_Draft]) -> Iterator[PromptUnit]:
    at = 0
    for number, draft in enumerate(drafts):
        end = at + len(draft.text)
        spine = _closed(number, drafts)
        piece = draft.piece
        yield PromptUnit(
            index=number,
            section=draft.section,
            kind=draft.kind,
            span=ByteSpan(at, end),
            path=draft.path,
            lines=piece.lines if piece else None,
            symbol=piece.symbol if piece else None,
            spine=spine,
            score=piece.score if piece else 0.0,
            why=piece.why if piece else "",
        )
        at = end


def _closed(number: int, drafts: Sequence[_Draft]) -> tuple[int, ...]:
    seen: set[int] = set()
    todo = list(drafts[number].spine)
    while todo:
        unit = todo.pop()
        if unit not in seen:
            seen.add(unit)
            todo.extend(drafts[unit].spine)
    seen.discard(number)
    return tuple(sorted(seen))


# ---------------------------------------------------------------- contiguous prompts


def restrict(document: PromptDocument, kept: Collection[int]) -> tuple[PromptDocument, Mapping[int, int]]:
    """The prompt with the kept units alone, contiguous, left-out runs marked; and old unit -> new unit.

    Old FILE and ELISION units are made anew. Links, definitions and facts are not carried over: the check was
    done on the whole document.
    """
    chosen = frozenset(kept)
    wanted = [unit for unit in document.units if unit.index in chosen and unit.kind not in MARKS]
    blocks: list[Block] = []
    for section, path, units in _by_file(wanted):
        pieces = tuple(_piece(document, unit) for unit in units)
        file = document.files[path] if path is not None else None
        gaps = _gaps(document, units, file) if file is not None else ()
        blocks.append(Block(section, pieces, file, gaps))
    made = assemble(blocks)
    moved = {unit.index: made.index[("unit", unit.index)] for unit in wanted}
    return PromptDocument(made.text, made.units, document.files), moved


def _piece(document: PromptDocument, unit: PromptUnit) -> Piece:
    return Piece(
        key=("unit", unit.index),
        kind=unit.kind,
        text=document.unit_text(unit.index),
        lines=unit.lines,
        symbol=unit.symbol,
        spine=tuple(("unit", other) for other in unit.spine),
        score=unit.score,
        why=unit.why,
    )


def _by_file(units: Sequence[PromptUnit]) -> Iterator[tuple[Section, str | None, list[PromptUnit]]]:
    group: list[PromptUnit] = []
    for unit in units:
        if group and (unit.section, unit.path) != (group[-1].section, group[-1].path):
            yield group[-1].section, group[-1].path, group
            group = []
        group.append(unit)
    if group:
        yield group[-1].section, group[-1].path, group


def _gaps(document: PromptDocument, units: Sequence[PromptUnit], file: PromptFile) -> tuple[Gap | None, ...]:
    """What is missing before each unit and after the last, by line numbers.

    The first left-out unit is the one after the last kept unit; where the window left lines out, that is the
    elision, which has their indentation.
    """
    gaps: list[Gap | None] = []
    line, before = 1, _first_of_file(document, units[0])
    for unit in units:
        assert unit.lines is not None, "units of files have lines"
        missing = unit.lines.start - line
        gaps.append(Gap(missing, indentation(document.unit_text(before))) if missing > 0 else None)
        line, before = unit.lines.end + 1, unit.index + 1
    missing = file.n_lines - line + 1
    gaps.append(Gap(missing, indentation(document.unit_text(before))) if missing > 0 else None)
    return tuple(gaps)


def _first_of_file(document: PromptDocument, unit: PromptUnit) -> int:
    at = unit.index
    while at > 0 and document.units[at - 1].path == unit.path and document.units[at - 1].kind is not UnitKind.FILE:
        at -= 1
    return at


def indentation(text: bytes) -> bytes:
    """The blanks that the first non-blank line starts with."""
    for line in text.splitlines():
        stripped = line.lstrip(b" \t\f")
        if stripped:
            return line[: len(line) - len(stripped)].replace(b"\f", b"")
    return b""
