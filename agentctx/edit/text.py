"""A file's bytes as lines, with byte offsets, so that edits keep encoding, newlines and BOM. Pure."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from itertools import accumulate

from agentctx.errors import EditFormatError
from agentctx.spans import ByteSpan

_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")


@dataclass(frozen=True, slots=True)
class FileText:
    """Lines without their ends. `starts[i]` is the byte where line `i` starts, `starts[n]` the length of the file.

    A BOM belongs to no line: `starts[0]` is 3 where there is one.
    """

    path: str
    data: bytes
    encoding: str
    newline: str  # what new lines end with: the file's most frequent end
    lines: tuple[str, ...]
    starts: tuple[int, ...]  # n_lines + 1

    @classmethod
    def read(cls, path: str, data: bytes) -> FileText:
        """Split `data`.

        Raises:
            EditFormatError: the file is binary (NUL bytes), so there are no lines to edit.
        """
        if b"\0" in data:
            raise EditFormatError(f"{path} is a binary file; only text can be edited")
        bom = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
        encoding = encoding_of(data)
        raw = data[bom:].splitlines(keepends=True) if b"\n" not in data else _split(data[bom:])
        starts = tuple(accumulate((len(line) for line in raw), initial=bom))
        lines = tuple(line.rstrip(b"\r\n").decode(encoding) for line in raw)
        return cls(path, data, encoding, newline_of(data), lines, starts)

    def span(self, first: int, end: int) -> ByteSpan:
        """Bytes of lines `first <= i < end` (0-based), line ends included."""
        return ByteSpan(self.starts[first], self.starts[end])

    def encode(self, text: str) -> bytes:
        """`text` (with `\\n`) in the file's encoding and newline style.

        Raises:
            EditFormatError: the encoding has no such character.
        """
        try:
            return text.replace("\n", self.newline).encode(self.encoding)
        except UnicodeEncodeError as error:
            bad = text[error.start : error.end]
            raise EditFormatError(f"{self.path} is {self.encoding} and can't hold {bad!r}") from error


def _split(data: bytes) -> list[bytes]:
    lines = data.split(b"\n")
    ended = [line + b"\n" for line in lines[:-1]]
    return [*ended, lines[-1]] if lines[-1] else ended


def newline_of(data: bytes) -> str:
    """The most frequent line end of `data`; `\\n` where there is none."""
    crlf = data.count(b"\r\n")
    lf = data.count(b"\n") - crlf
    if not crlf and not lf and b"\r" in data:
        return "\r"
    return "\r\n" if crlf > lf else "\n"


def encoding_of(data: bytes) -> str:
    """UTF-8 if it decodes, else the encoding that a PEP 263 cookie names, else Latin-1 (which keeps every byte)."""
    body = data.removeprefix(codecs.BOM_UTF8)
    for name in ("utf-8", *_cookie(body)):
        try:
            if body.decode(name).encode(name) == body:
                return name
        except (UnicodeError, LookupError):
            continue
    return "latin-1"


def _cookie(data: bytes) -> tuple[str, ...]:
    found = (_COOKIE.match(line) for line in data.split(b"\n", 2)[:2])
    return tuple(match.group(1).decode("ascii") for match in found if match)


def indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]
