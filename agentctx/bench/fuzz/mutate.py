"""Broken files made from whole ones: what editors, tools and accidents do to source text. Deterministic."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

_MARKS = (
    *(b"", b"(", b")", b"{", b"}", b"[", b"]", b"<", b">", b'"', b"'", b"`", b'"""', b"'''", b"/*", b"*/", b"//", b"#"),
    *(
        b"\n",
        b"\r",
        b"\r\n",
        b"\t",
        b"\x0c",
        b"\0",
        b"\xff",
        b"\xe9",
        b"\xef\xbb\xbf",
        b"\xe2\x80\xa8",
        b"\\",
        b";",
        b",",
    ),
    *(b"end\n", b"else", b"<<EOF\n", b"?>", b"<?php ", b"#if X\n", b"#endif\n", b"=begin\n", b"${", b"@", b"=>", b":"),
)
_LONGEST = 400


def mutated(data: bytes, random: Random) -> bytes:
    """`data` after one to four changes."""
    for _ in range(random.randint(1, 4)):
        data = random.choice(_CHANGES)(data, random)
    return data


def _range(data: bytes, random: Random) -> tuple[int, int]:
    start = random.randint(0, len(data))
    return start, min(len(data), start + random.randint(0, _LONGEST))


def _delete(data: bytes, random: Random) -> bytes:
    start, end = _range(data, random)
    return data[:start] + data[end:]


def _duplicate(data: bytes, random: Random) -> bytes:
    start, end = _range(data, random)
    return data[:end] + data[start:end] + data[end:]


def _move(data: bytes, random: Random) -> bytes:
    start, end = _range(data, random)
    rest = data[:start] + data[end:]
    at = random.randint(0, len(rest))
    return rest[:at] + data[start:end] + rest[at:]


def _insert(data: bytes, random: Random) -> bytes:
    at = random.randint(0, len(data))
    return data[:at] + random.choice(_MARKS) + data[at:]


def _garble(data: bytes, random: Random) -> bytes:
    start, end = _range(data, random)
    return data[:start] + random.randbytes(min(end - start, 8)) + data[end:]


def _truncate(data: bytes, random: Random) -> bytes:
    return data[: random.randint(0, len(data))]


def _rows(data: bytes, random: Random) -> bytes:
    """Some rows are gone."""
    rows = data.splitlines(keepends=True)
    start = random.randint(0, len(rows))
    return b"".join(rows[:start] + rows[start + random.randint(0, 12) :])


def _crlf(data: bytes, random: Random) -> bytes:
    return data.replace(b"\r\n", b"\n").replace(b"\n", random.choice((b"\r\n", b"\r", b"\n\r\n")))


def _tabs(data: bytes, random: Random) -> bytes:
    return data.replace(b"    ", b"\t") if random.random() < 0.5 else data.replace(b"\t", b"  ")


def _bom(data: bytes, random: Random) -> bytes:
    return b"\xef\xbb\xbf" + data


def _no_end(data: bytes, random: Random) -> bytes:
    return data.rstrip()


def _latin(data: bytes, random: Random) -> bytes:
    return data.replace(b"e", b"\xe9", random.randint(1, 5))


_CHANGES: tuple[Callable[[bytes, Random], bytes], ...] = (
    *(_delete, _duplicate, _move, _insert, _insert, _garble, _truncate, _rows, _rows),
    *(_crlf, _tabs, _bom, _no_end, _latin),
)
