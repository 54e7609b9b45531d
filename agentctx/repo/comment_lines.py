"""Rows of a file whose comments are known as nodes: block comments too, and text that only looks like a comment."""

from __future__ import annotations

from collections.abc import Sequence

from tree_sitter import Node

from agentctx.repo.parse_lines import Lines

_LICENCE = (b"opyright", b"icense", b"ICENSE", b"SPDX-")


class CommentLines(Lines):
    """A row is a comment when nothing else stands on it. All rows of a block comment have the column of its first."""

    __slots__ = ("_columns",)

    def __init__(self, data: bytes, comments: Sequence[Node]) -> None:
        super().__init__(data)
        self._columns: dict[int, int] = {}
        for node in comments:
            (first, column), (last, end_column) = node.start_point, node.end_point
            last = last - 1 if end_column == 0 and last > first else last
            if self._alone(node, first, last):
                self._columns.update(dict.fromkeys(range(first, last + 1), column))

    def _alone(self, node: Node, first: int, last: int) -> bool:
        before = self.data[self.starts[first] : node.start_byte]
        if before.strip() and not (first == 0 and before.strip() == b"\xef\xbb\xbf"):
            return False
        return not self.data[node.end_byte : self.end(last)].strip()

    def is_blank(self, row: int) -> bool:
        return row not in self._columns and not self.text(row)

    def is_comment(self, row: int) -> bool:
        return row in self._columns

    def column(self, row: int) -> int:
        known = self._columns.get(row)
        return known if known is not None else super().column(row)

    def is_first(self, byte: int, row: int) -> bool:
        if row:
            return super().is_first(byte, row)
        return self.data[:byte].strip() in (b"", b"\xef\xbb\xbf")

    def joins(self, row: int) -> bool:
        return row not in self._columns and self.text(row).endswith(b"\\")

    def first_code(self, row: int, end: int) -> int:
        """The first row in `row..end` that holds code, `end` where none does."""
        while row < end and (row in self._columns or not self.text(row)):
            row += 1
        return row

    def licence(self) -> tuple[int, int] | None:
        """The rows of a licence at the top of the file; what has to stand above it may."""
        first = 0
        while first < len(self) and first not in self._columns and (self.is_blank(first) or self._opens(first)):
            first += 1
        last = first
        while last < len(self) and last in self._columns:
            last += 1
        text = self.data[self.start(first) : self.start(last)]
        return (first, last - 1) if any(word in text for word in _LICENCE) else None

    def _opens(self, row: int) -> bool:
        return row == 0 and self.text(row).startswith((b"#!", b"<?"))

    def doc_cut(self, first: int, end: int, more_than: int) -> tuple[int, int] | None:
        """(last row of the first paragraph, last row of the rest) of the doc in the comment rows `first..end`.

        None where the rest has no more than `more_than` rows, or can't be cut out of its comment.
        """
        row = first
        while row < end and not self._words(row):
            row += 1
        while row < end and self._words(row)[:1] not in (b"", b"@", b"\\"):
            row += 1
        rest_end = end - 1
        if self.text(rest_end).endswith(b"*/") or not self._words(rest_end):
            rest_end -= 1
        if row == first or rest_end - row + 1 <= more_than:
            return None
        rest = self.data[self.start(row) : self.end(rest_end)]
        if b"*/" in rest or b"/*" in rest or self.text(first).startswith(b"="):
            return None
        return row - 1, rest_end

    def _words(self, row: int) -> bytes:
        return self.text(row).lstrip(b"/*#!<-; \t").rstrip(b"*/ \t")
