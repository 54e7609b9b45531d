"""A syntax tree whose query says where blocks are -> drafts of units. For all languages but Python.

A statement is its *skeleton* (the rows outside of its blocks: `if (..) {`, `} else {`, `}`) and the statements in its
blocks. The rows of a skeleton are one group: who keeps a statement inside keeps all of them. Only rows that hold
nothing but whole statements leave the skeleton, so the skeleton by itself still is code. Statements of a block that
share a row stay together.

The walk is a stack of generators, so that nesting in the code never is nesting of calls. Rows are 0-based.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tree_sitter import Node

from agentctx.repo.captured import Captured
from agentctx.repo.comment_lines import CommentLines
from agentctx.repo.parse_draft import GROUP_LINES, Context, Draft
from agentctx.repo.pieces import Piece, Pieces
from agentctx.source import UnitKind

WHOLE_DEFINITION_LINES = 3
DOC_LINES = 4  # the rest of a longer doc is a unit of its own
BROKEN_LINES = 60  # longest statement with a syntax error in its skeleton that stays whole
MIN_REGION_LINES = 2  # a shorter block of a compound statement costs as much as the comment in its place

Steps = Iterator["Steps"]


@dataclass(frozen=True, slots=True)
class Extent:
    """Where a definition stands. `body`: the first byte of its body, its end where it has none."""

    start: int
    end: int
    body: int
    key: int
    inside: UnitKind  # what the statements in it are


@dataclass(frozen=True, slots=True)
class Region:
    """The rows of a block that hold nothing but its statements. `block` is the block's number."""

    block: int
    pieces: list[Piece]
    extent: Extent | None  # the innermost definition around it, of those that start in the statement


class BlockWalk:
    """One walk over one tree. `extents`: definitions with units of their own, outer ones first."""

    def __init__(self, lines: CommentLines, found: Captured, extents: Sequence[Extent]) -> None:
        self.lines = lines
        self.blocks = found.blocks
        self.extents = extents
        self.pieces = Pieces(lines, found)
        self.errors = found.errors
        self.drafts: list[Draft] = []
        self.floor = -1  # the last row that is taken
        self._block_starts = [node.start_byte for node in found.blocks]
        self._extent_starts = [extent.start for extent in extents]

    def run(self, root: Node) -> list[Draft]:
        """The drafts of the whole tree, in order, never overlapping."""
        stack: list[Steps] = [self._root(root)]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
            else:
                stack.append(step)
        return self.drafts

    # ---- one step per construct

    def _root(self, root: Node) -> Steps:
        """Statements of the file. What must stay (`<?php`) is needed by all that follows it."""
        pieces = self._with_licence(list(self.pieces.of(root)))
        keep = next((at for at, piece in enumerate(pieces) if piece.tag == "keep"), len(pieces))
        yield self._block(pieces[:keep], Context(), -1, None)
        if keep < len(pieces):
            group: list[int] = []
            piece = pieces[keep]
            head = self._emit(UnitKind.STATEMENT, self._lead(piece.first), piece.last, Context(), group=group)
            yield self._block(pieces[keep + 1 :], Context(parent=head), -1, group)

    def _with_licence(self, pieces: list[Piece]) -> list[Piece]:
        """A licence at the top of a file is a unit, and documents nothing."""
        rows = self.lines.licence()
        if rows is None:
            return pieces
        first, last = rows
        licence = Piece(self.lines.start(first), self.lines.end(last), first, last, "licence")
        at = next((number for number, piece in enumerate(pieces) if piece.first > last), len(pieces))
        return [*pieces[:at], licence, *pieces[at:]]

    def _block(self, pieces: Sequence[Piece], context: Context, block: int, skeleton: list[int] | None) -> Steps:
        """The statements of block number `block`; `skeleton` is the group of the rows around them."""
        pending: tuple[int, int] | None = None
        taken = self.floor
        for piece in pieces:
            lead = self._lead(piece.first)
            loose = self.lines.first_code(taken + 1, lead)
            taken = piece.last
            extent = self._extent(piece, block)
            simple = piece.tag in ("", "shared", "lead", "tail") and extent is None
            if simple and piece.n_rows <= GROUP_LINES and loose == lead:
                joins = pending is not None and lead == pending[1] + 1 and piece.last - pending[0] < GROUP_LINES
                if pending is not None and not joins:
                    self._emit(context.kind, *pending, context)
                pending = (pending[0] if pending is not None and joins else lead, piece.last)
                self.floor = piece.last
                continue
            if pending is not None:
                self._emit(context.kind, *pending, context)
                pending = None
            if loose < lead:
                self._emit(context.kind, loose, lead - 1, context, group=skeleton)
            yield from self._special(piece, lead, context, block, skeleton, extent)
        if pending is not None:
            self._emit(context.kind, *pending, context)

    def _special(
        self, piece: Piece, lead: int, context: Context, block: int, skeleton: list[int] | None, extent: Extent | None
    ) -> Steps:
        if piece.tag == "import":
            self._emit(UnitKind.IMPORT, lead, piece.last, context)
            return
        if piece.tag == "keep":
            self._emit(context.kind, lead, piece.last, context, group=skeleton)
            return
        if piece.tag == "clause":
            yield self._compound(piece, lead, context, self._regions(piece, block, extent), extent, skeleton)
            return
        small = piece.n_rows <= (WHOLE_DEFINITION_LINES if extent is not None else GROUP_LINES)
        regions = [] if small else self._regions(piece, block, extent)
        if regions:
            yield self._compound(piece, lead, context, regions, extent)
        elif extent is not None:
            self._head(UnitKind.HEADER, (lead, piece.first, piece.last), context, extent.key, [])
        else:
            self._emit(context.kind, lead, piece.last, context)

    def _compound(
        self,
        piece: Piece,
        lead: int,
        context: Context,
        regions: Sequence[Region],
        extent: Extent | None,
        skeleton: list[int] | None = None,
    ) -> Steps:
        """A statement in parts. With `skeleton` (a clause) its own skeleton goes with that of what it stands in."""
        group = [] if skeleton is None else skeleton
        head: int | None = None
        inside = context
        row = lead
        kind = UnitKind.HEADER if extent is not None else UnitKind.BLOCK
        owner = extent.key if extent is not None else context.owner
        for region in regions:
            first = self._lead(region.pieces[0].first)
            if head is None:
                head = self._head(kind, (lead, piece.first, first - 1), context, owner, group)
            else:
                self._skeleton(UnitKind.BLOCK, row, first, inside, group)
            within = region.extent
            inside = Context(
                kind=within.inside if within is not None else context.kind,
                parent=head,
                owner=within.key if within is not None else context.owner,
            )
            yield self._block(region.pieces, inside, region.block, group)
            row = region.pieces[-1].last + 1
        if head is None:
            kind = kind if extent is not None else context.kind
            self._head(kind, (lead, piece.first, piece.last), context, owner, group)
        else:
            self._skeleton(UnitKind.CLOSE, row, piece.last + 1, inside, group)

    def _skeleton(self, kind: UnitKind, row: int, end: int, context: Context, group: list[int]) -> None:
        """Emits the rows in `row..end` from the first that holds code."""
        row = self.lines.first_code(row, end)
        if row < end:
            self._emit(kind, row, end - 1, context, group=group)

    def _head(
        self, kind: UnitKind, rows: tuple[int, int, int], context: Context, owner: int | None, group: list[int]
    ) -> int:
        """Emits rows (first, first behind the leading comments, last); gives the draft that holds the second."""
        lead, first, last = rows
        cut = self.lines.doc_cut(lead, first, DOC_LINES) if kind is UnitKind.HEADER and first > lead else None
        if cut is None:
            return self._emit(kind, lead, last, context, owner=owner, group=group)
        opening = self._emit(kind, lead, cut[0], context, owner=owner, group=group)
        self._emit(UnitKind.DOC, cut[0] + 1, cut[1], replace(context, parent=opening, owner=owner))
        return self._emit(kind, cut[1] + 1, last, context, owner=owner, group=group)

    # ---- helpers

    def _lead(self, row: int) -> int:
        """The first row of the comments directly above `row` that are not indented deeper than it."""
        column = self.lines.column(row)
        while row - 1 > self.floor and self.lines.is_comment(row - 1) and self.lines.column(row - 1) <= column:
            row -= 1
        return row

    def _emit(
        self,
        kind: UnitKind,
        first: int,
        last: int,
        context: Context,
        *,
        owner: int | None = None,
        group: list[int] | None = None,
    ) -> int:
        """Adds a draft and gives its index. Rows that are taken already (broken code) stay where they are."""
        self.floor = max(self.floor, last)
        if self.drafts and first <= self.drafts[-1].last:
            self.drafts[-1].last = max(self.drafts[-1].last, last)
            return len(self.drafts) - 1
        draft = Draft(kind, first, last, context, context.owner if owner is None else owner)
        index = len(self.drafts)
        if group is not None:
            group.append(index)
            draft.group = group
        self.drafts.append(draft)
        return index

    def _extent(self, piece: Piece, block: int) -> Extent | None:
        """The definition that the piece is: the first that starts in it, unless one of its blocks holds it."""
        at = bisect_left(self._extent_starts, piece.start)
        if at == len(self.extents) or self.extents[at].end > piece.end:
            return None
        extent = self.extents[at]
        for number in self._top_blocks(piece, block):
            node = self.blocks[number]
            if node.start_byte > extent.start:
                break
            if node.end_byte >= extent.end and (node.start_byte, node.end_byte) != (extent.start, extent.end):
                return None
        return extent

    def _top_blocks(self, piece: Piece, block: int) -> Iterator[int]:
        """Numbers of the outermost blocks in the piece, which is a statement of block number `block`."""
        at = max(bisect_left(self._block_starts, piece.start), block + 1)
        while at < len(self.blocks) and self._block_starts[at] < piece.end:
            if self.blocks[at].end_byte > piece.end:
                at += 1  # a block around the piece
                continue
            yield at
            at = max(at + 1, bisect_left(self._block_starts, self.blocks[at].end_byte))

    def _regions(self, piece: Piece, block: int, extent: Extent | None) -> list[Region]:
        """The outermost blocks of the piece that can be cut, those of a definition's head left out."""
        out: list[Region] = []
        at = max(bisect_left(self._block_starts, piece.start), block + 1)
        begin = extent.body if extent is not None else piece.start
        least = 1 if extent is not None else MIN_REGION_LINES
        while at < len(self.blocks) and self._block_starts[at] < piece.end:
            node, number = self.blocks[at], at
            at += 1
            if node.end_byte > piece.end or node.start_byte < begin or node.start_point[0] == node.end_point[0]:
                continue
            pieces = self.pieces.cuttable(node)
            if pieces and pieces[0].start == piece.start:
                pieces = pieces[1:]  # a statement can't do without its first part
            if pieces and pieces[-1].last - pieces[0].first + 1 >= least:
                out.append(Region(number, pieces, self._around(piece, node)))
                at = max(at, bisect_left(self._block_starts, node.end_byte))
        return [] if piece.n_rows <= BROKEN_LINES and self._is_broken(piece, out) else out

    def _is_broken(self, piece: Piece, regions: Sequence[Region]) -> bool:
        """Whether the skeleton of the piece holds a syntax error: its parts alone may not be what they seem."""
        at = bisect_left(self.errors, piece.start)
        while at < len(self.errors) and self.errors[at] <= piece.end:
            error = self.errors[at]
            around = next((r for r in regions if r.pieces[0].start <= error <= r.pieces[-1].end), None)
            if around is None:
                return True
            at = bisect_left(self.errors, around.pieces[-1].end + 1)
        return False

    def _around(self, piece: Piece, node: Node) -> Extent | None:
        """The innermost definition in the piece that holds `node`."""
        found = None
        at = bisect_left(self._extent_starts, piece.start)
        while at < len(self.extents) and self._extent_starts[at] <= node.start_byte:
            if node.end_byte <= self.extents[at].end <= piece.end:
                found = self.extents[at]
            at += 1
        return found
