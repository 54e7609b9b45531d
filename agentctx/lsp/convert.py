"""Bytes, lines and paths <-> what the protocol speaks: positions in the client's units, and URIs. Nowhere else."""

from __future__ import annotations

import io
import tokenize
from bisect import bisect_right
from functools import cached_property
from itertools import accumulate
from pathlib import Path

from lsprotocol import types as lsp
from pygls import uris
from pygls.workspace import PositionCodec

from agentctx.spans import ByteSpan, LineSpan

BOM = b"\xef\xbb\xbf"


class FilePositions:
    """Byte offsets of one file's content <-> positions.

    Lines end at `\\n`, as in `agentctx.source`. A byte order mark is no part of the editor's first line; a byte
    that is not UTF-8 is one character, as in the editor, which shows a replacement for it.
    """

    def __init__(self, data: bytes, codec: PositionCodec) -> None:
        self._data = data
        self._codec = codec

    @cached_property
    def _starts(self) -> list[int]:
        lengths = [len(line) + 1 for line in self._data.split(b"\n")]
        return [0, *list(accumulate(lengths))[:-1]]

    def position(self, offset: int) -> lsp.Position:
        """The position of a byte offset within the content."""
        row = bisect_right(self._starts, offset) - 1
        return lsp.Position(row, self._units(self._data[self._start(row) : offset]))

    def range(self, span: ByteSpan) -> lsp.Range:
        return lsp.Range(self.position(span.start), self.position(span.end))

    def line(self, number: int) -> lsp.Range:
        """The text of a line (1-based), without indentation and line end."""
        return self.lines(LineSpan(number, number), indented=False)

    def lines(self, span: LineSpan, *, indented: bool = True) -> lsp.Range:
        """From the start of the first line to the end of the last one's text."""
        first, last = span.start - 1, min(span.end, len(self._starts)) - 1
        if first > last:
            return lsp.Range(lsp.Position(first, 0), lsp.Position(first, 0))
        text, end = self._text(first), self._text(last).rstrip()
        blanks = 0 if indented else len(text) - len(text.lstrip())
        return lsp.Range(lsp.Position(first, self._units(text[:blanks])), lsp.Position(last, self._units(end)))

    def offset(self, position: lsp.Position) -> int:
        """The byte offset of a position; a column beyond the end of its line is that end."""
        if position.line >= len(self._starts):
            return len(self._data)
        text = decode(self._text(position.line).rstrip(b"\r"))
        units, taken = 0, 0
        for char in text:
            if units >= position.character:
                break
            units += self._codec.client_num_units(char)
            taken += 1
        return self._start(position.line) + len(encode(text[:taken]))

    def _start(self, row: int) -> int:
        return len(BOM) if row == 0 and self._data.startswith(BOM) else self._starts[row]

    def _text(self, row: int) -> bytes:
        end = self._starts[row + 1] - 1 if row + 1 < len(self._starts) else len(self._data)
        return self._data[self._start(row) : end]

    def _units(self, text: bytes) -> int:
        return int(self._codec.client_num_units(decode(text)))


def decode(data: bytes) -> str:
    """UTF-8; other bytes become one surrogate each, and come back unchanged from `encode`."""
    return data.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """The reverse of `decode`."""
    return text.encode("utf-8", "surrogateescape")


def buffer_bytes(text: str, saved: bytes | None) -> bytes:
    """What saving the editor's text would write, judged by what is on disk: its encoding and byte order mark."""
    if saved is None:
        return text.encode("utf-8", "replace")
    mark = BOM if saved.startswith(BOM) and not text.startswith("\ufeff") else b""
    try:
        return mark + text.encode(_encoding(saved))
    except UnicodeEncodeError:
        return mark + text.encode("utf-8", "replace")


def _encoding(saved: bytes) -> str:
    """The encoding of a file: that of its coding line (PEP 263), else UTF-8."""
    try:
        return tokenize.detect_encoding(io.BytesIO(saved).readline)[0].removesuffix("-sig")
    except SyntaxError:
        return "utf-8"


def path_of(uri: str, root: Path) -> str | None:
    """The POSIX path relative to `root`; None for what lies elsewhere or is no file."""
    name = uris.to_fs_path(uri)
    if not name:
        return None
    for path, base in ((Path(name), root), (Path(name).resolve(), root.resolve())):
        if path.is_relative_to(base):
            return path.relative_to(base).as_posix()
    return None


def uri_of(path: str, root: Path) -> str:
    """The URI of a path relative to `root`."""
    return (root / path).as_uri()
