"""A file's bytes as rows (0-based), and nested ranges as a lookup. No decoding, no tree-sitter."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class Lines:
    """Rows of `data`, split at `\\n` only, as tree-sitter counts them. `starts[row]` is the row's first byte."""

    __slots__ = ("_comment", "data", "starts")

    def __init__(self, data: bytes, comment: str = "#") -> None:
        self.data = data
        self._comment = comment.encode()
        starts = [0] if data else []
        at = data.find(b"\n") + 1
        while 0 < at < len(data):
            starts.append(at)
            at = data.find(b"\n", at) + 1
        self.starts = starts

    def __len__(self) -> int:
        return len(self.starts)

    def end(self, row: int) -> int:
        """The byte after the row's newline; `len(data)` for rows past the last."""
        return self.starts[row + 1] if row + 1 < len(self.starts) else len(self.data)

    def start(self, row: int) -> int:
        """The first byte of the row; `len(data)` for the row past the last."""
        return self.starts[row] if row < len(self.starts) else len(self.data)

    def text(self, row: int) -> bytes:
        """The row without the white space (and the byte order mark) around it."""
        raw = self.data[self.starts[row] : self.end(row)]
        return (raw.removeprefix(b"\xef\xbb\xbf") if row == 0 else raw).strip()

    def is_blank(self, row: int) -> bool:
        return not self.text(row)

    def is_comment(self, row: int) -> bool:
        return self.text(row).startswith(self._comment)

    def column(self, row: int) -> int:
        """Bytes of white space before the row's text."""
        raw = self.data[self.starts[row] : self.end(row)]
        return len(raw) - len(raw.lstrip())

    def row_of(self, byte: int) -> int:
        return max(bisect_right(self.starts, byte) - 1, 0)

    def is_first(self, byte: int, row: int) -> bool:
        """Whether a cut before `row` is safe: only white space before `byte` there, and no `\\` joins it upwards."""
        if row == 0 or row >= len(self.starts):  # an empty node may stand behind the last row
            return True
        before = self.data[self.starts[row] : byte]
        return not before.strip() and not self.joins(row - 1)

    def joins(self, row: int) -> bool:
        """Whether the row ends with a line continuation."""
        text = self.text(row)
        return text.endswith(b"\\") and not text.startswith(self._comment)


class Nesting(Generic[T]):
    """Nested `(start, end, value)` ranges. Ask for the innermost at positions that never decrease."""

    __slots__ = ("_at", "_ranges", "_stack")

    def __init__(self, ranges: Iterable[tuple[int, int, T]]) -> None:
        self._ranges = sorted(ranges, key=lambda r: (r[0], -r[1]))
        self._at = 0
        self._stack: list[tuple[int, int, T]] = []

    def at(self, position: int) -> T | None:
        """The value of the innermost range that holds `position`."""
        ranges, stack = self._ranges, self._stack
        while self._at < len(ranges) and ranges[self._at][0] <= position:
            while stack and stack[-1][1] <= ranges[self._at][0]:
                stack.pop()
            stack.append(ranges[self._at])
            self._at += 1
        while stack and stack[-1][1] <= position:
            stack.pop()
        return stack[-1][2] if stack else None
