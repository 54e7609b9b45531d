"""The statements of a block as pieces: what shares a row, and what belongs to the next statement, is one piece."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tree_sitter import Node

from agentctx.repo.captured import Captured
from agentctx.repo.comment_lines import CommentLines
from agentctx.repo.parse_draft import GROUP_LINES

_BRACE = ord("{")
_ENDS_ITEM = (b";;", b";&")


@dataclass(frozen=True, slots=True)
class Piece:
    """Statements that share rows; the usual piece is one statement."""

    start: int
    end: int
    first: int
    last: int
    tag: str  # the capture without `unit.`; '' for plain statements, 'shared' where several share rows

    @property
    def n_rows(self) -> int:
        return self.last - self.first + 1


class Pieces:
    """Cuts blocks of one file into pieces."""

    def __init__(self, lines: CommentLines, found: Captured) -> None:
        self._lines = lines
        self._tags = found.tags
        self._nonempty = found.nonempty
        self._comments = {node.id for node in found.comments}

    def of(self, block: Node) -> Iterator[Piece]:
        """The pieces of a block, in order."""
        pending: Piece | None = None
        for node in self._statements(block):
            piece = self._piece(node)
            if pending is None:
                pending = piece
            elif self._apart(pending, piece):
                yield pending
                pending = piece
            else:
                tag = _joined(pending.tag, piece.tag)
                pending = Piece(pending.start, piece.end, pending.first, max(pending.last, piece.last), tag)
        if pending is not None:
            yield pending

    def cuttable(self, block: Node) -> list[Piece]:
        """The pieces of a block that share no row with what is around them; none where all of them must stay."""
        pieces = list(self.of(block))
        start = 0
        while start < len(pieces) and not self._lines.is_first(pieces[start].start, pieces[start].first):
            start += 1
        end = len(pieces)
        while end > start and not self._ends_row(pieces[end - 1]):
            end -= 1
        pieces = [piece if self._ends_row(piece) else replace(piece, tag="keep") for piece in pieces[start:end]]
        if pieces and not start and block.id in self._nonempty and self._lines.data[block.start_byte] != _BRACE:
            pieces[0] = replace(pieces[0], tag="clause")
        return pieces if any(piece.tag != "keep" for piece in pieces) else []

    def _statements(self, block: Node) -> Iterator[Node]:
        """The block's children; long errors and what is marked `inline` are replaced by what they hold."""
        stack = list(reversed(block.named_children))
        while stack:
            node = stack.pop()
            if node.id in self._comments or node.start_byte == node.end_byte:
                continue
            if self._tags.get(node.id) == "inline":
                row = node.start_point[0]
                stack.extend(child for child in reversed(node.named_children) if child.start_point[0] > row)
            elif node.is_error and node.end_point[0] - node.start_point[0] >= GROUP_LINES and node.child_count:
                stack.extend(reversed(node.children))
            else:
                yield node

    def _piece(self, node: Node) -> Piece:
        first, (last, column) = node.start_point[0], node.end_point
        last = max(first, last - 1 if column == 0 else last)
        return Piece(node.start_byte, node.end_byte, first, last, self._tags.get(node.id, ""))

    def _apart(self, before: Piece, piece: Piece) -> bool:
        """Whether the two share no row, and the first doesn't lead to the second."""
        return (
            before.tag != "lead"
            and piece.tag != "tail"
            and piece.first > before.last
            and self._lines.is_first(piece.start, piece.first)
        )

    def _ends_row(self, piece: Piece) -> bool:
        """Whether nothing but separators and a comment stands behind the piece. What ends an item of Bash's `case` is
        no separator: it must stay."""
        rest = self._lines.data[piece.end : self._lines.end(piece.last)].strip(b" \t\r\n\f")
        if rest.startswith(_ENDS_ITEM):
            return False
        rest = rest.strip(b" \t,;")
        if rest.startswith(b"/*"):
            return rest.endswith(b"*/") and rest.count(b"*/") == 1
        return not rest or rest.startswith((b"//", b"#"))


def _joined(before: str, tag: str) -> str:
    if before == "lead":
        return tag
    if "keep" in (before, tag):
        return "keep"
    return before if before == tag or tag == "tail" else "shared"
