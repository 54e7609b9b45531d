"""Bytes to the client's positions and back, whatever its encoding and the file's bytes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types as lsp
from pygls.workspace import PositionCodec

from agentctx.lsp.convert import FilePositions, buffer_bytes, path_of, uri_of
from agentctx.spans import ByteSpan, LineSpan

ENCODINGS = [lsp.PositionEncodingKind.Utf8, lsp.PositionEncodingKind.Utf16, lsp.PositionEncodingKind.Utf32]
LINE = 'x = "\U0001d6ff é" + mean(y)\r\n'  # an astral character (2 UTF-16 units, 4 bytes) and one of 2 bytes


@pytest.mark.parametrize(("encoding", "column"), [(ENCODINGS[0], 16), (ENCODINGS[1], 13), (ENCODINGS[2], 12)])
def test_columns_behind_an_astral_character(encoding: lsp.PositionEncodingKind, column: int) -> None:
    data = ("# one\r\n" + LINE).encode()
    start = data.index(b"mean")
    positions = FilePositions(data, PositionCodec(encoding))
    found = positions.range(ByteSpan(start, start + 4))
    assert found == lsp.Range(lsp.Position(1, column), lsp.Position(1, column + 4))
    assert positions.offset(found.start) == start
    assert positions.line(2).start == lsp.Position(1, 0)


def test_a_byte_order_mark_is_not_in_the_first_line() -> None:
    data = b"\xef\xbb\xbfmean()\n"
    positions = FilePositions(data, PositionCodec(lsp.PositionEncodingKind.Utf16))
    assert positions.position(3) == lsp.Position(0, 0)
    assert positions.offset(lsp.Position(0, 0)) == 3
    assert positions.line(1) == lsp.Range(lsp.Position(0, 0), lsp.Position(0, 6))


def test_lines_without_their_ends() -> None:
    positions = FilePositions(b"a\r\n  bc  \r\n\td", PositionCodec(lsp.PositionEncodingKind.Utf16))
    assert positions.line(2) == lsp.Range(lsp.Position(1, 2), lsp.Position(1, 4))
    assert positions.lines(LineSpan(2, 9)) == lsp.Range(lsp.Position(1, 0), lsp.Position(2, 2))
    assert positions.line(7) == lsp.Range(lsp.Position(6, 0), lsp.Position(6, 0))
    assert positions.offset(lsp.Position(0, 99)) == 1
    assert positions.offset(lsp.Position(99, 0)) == 13


@given(st.text(), st.sampled_from(ENCODINGS), st.booleans())
def test_there_and_back(text: str, encoding: lsp.PositionEncodingKind, marked: bool) -> None:
    mark = b"\xef\xbb\xbf" if marked else b""
    data = mark + text.replace("\r", "").encode("utf-8", "replace")
    positions = FilePositions(data, PositionCodec(encoding))
    offset = len(mark)
    for char in data[len(mark) :].decode():
        assert positions.offset(positions.position(offset)) == offset
        offset += len(char.encode())


@given(st.binary())
def test_any_bytes_have_positions(data: bytes) -> None:
    positions = FilePositions(data, PositionCodec(lsp.PositionEncodingKind.Utf16))
    assert positions.position(len(data)).line == data.count(b"\n")


@pytest.mark.parametrize(
    ("saved", "text", "expected"),
    [
        pytest.param(None, "é", "é".encode(), id="new"),
        pytest.param(b"\xef\xbb\xbfx = 1\n", "x = 2\n", b"\xef\xbb\xbfx = 2\n", id="byte order mark"),
        pytest.param(b"# coding: latin-1\n#\xe9", "# coding: latin-1\n#é", b"# coding: latin-1\n#\xe9", id="coding"),
        pytest.param(b"# coding: latin-1\n", "# \u20ac", "# \u20ac".encode(), id="not in that encoding"),
        pytest.param(b"# coding: nonsense\n", "é", "é".encode(), id="unknown encoding"),
        pytest.param(b"a\r\n", "a\r\nb\r\n", b"a\r\nb\r\n", id="line ends"),
    ],
)
def test_buffers_as_they_would_be_saved(saved: bytes | None, text: str, expected: bytes) -> None:
    assert buffer_bytes(text, saved) == expected


def test_paths_and_uris(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    root = tmp_path / "link"
    assert path_of(uri_of("a b/größe.py", root), root) == "a b/größe.py"
    assert path_of(uri_of("x.py", tmp_path / "real"), root) == "x.py"
    assert path_of(uri_of("x.py", tmp_path), root) is None
    assert path_of("untitled:Untitled-1", root) is None
