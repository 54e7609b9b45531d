"""Bytes -> a syntax tree and what the language's query captures in it."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping, Sequence
from functools import cache

from tree_sitter import Node, Parser, Query, QueryCursor

from agentctx.repo import languages

MAX_READS = 20_000
CHUNK = 4096
_NO_UTF8 = re.compile("[\udc80-\udcff]")

Captures = Mapping[str, Sequence[Node]]
Matches = Sequence[tuple[int, Captures]]


class TooHard(Exception):
    """Text that the grammar of this language can't be used on. `parse` takes it as plain text."""


def tree_of(data: bytes, language: str) -> tuple[Node, bytes]:
    """The root of the tree of `data`, which keeps the tree alive, and the text as it was read, of the same length.

    Text that the grammar doesn't understand is read with the language's `relaxed` rewrite, where that helps.

    Raises:
        TooHard: the parser would not come to an end in reasonable time.
    """
    row = languages.LANGUAGES[language]
    data = readable(data)
    parser = Parser(languages.grammar(language))
    text = row.prepare(data) if row.prepare is not None else data
    root = _parsed(parser, text)
    if root is None:
        raise TooHard(language)
    relaxed = row.relaxed(text) if row.relaxed is not None and root.has_error else text
    if relaxed == text:
        return root, text
    other = _parsed(parser, relaxed)
    if other is None or _n_errors(other, language) >= _n_errors(root, language):
        return root, text
    return other, relaxed


def _parsed(parser: Parser, data: bytes) -> Node | None:
    """The root of the tree; None where broken code sends the parser into ever more alternatives.

    How often the parser asks for text measures its work, the same on every machine: about 50 times for a file as
    people write them, millions of times in the worst case. Past the limit the text ends.

    That tree would ask for the texts of its nodes in the same way, so it is made once more of the bytes, which takes
    little time: nothing has changed, and what is there is used again.
    """
    left = MAX_READS + len(data) // 64

    def read(at: int, _: object) -> memoryview | bytes:
        nonlocal left
        left -= 1
        return _BUFFER.holding(data[at : at + CHUNK]) if left > 0 else b""

    tree = parser.parse(read)
    return parser.parse(data, tree).root_node if left > 0 else None


class _Buffer(threading.local):
    """Lends the same objects again and again, because the binding (0.26) never gives back what a callback returns:
    with objects of its own, each reading of a file would leave a copy of it in memory. One for each thread."""

    def __init__(self) -> None:
        self._data = bytearray(CHUNK)
        self._views: dict[int, memoryview] = {}

    def holding(self, part: bytes) -> memoryview:
        """`part`, until the next call; at most CHUNK bytes."""
        self._data[: len(part)] = part
        if len(part) not in self._views:
            self._views[len(part)] = memoryview(self._data)[: len(part)]
        return self._views[len(part)]


_BUFFER = _Buffer()


def readable(data: bytes) -> bytes:
    """`data` with a letter in place of each byte that is no UTF-8: Latin-1 names stay names, positions stay."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return _NO_UTF8.sub("x", data.decode("utf-8", "surrogateescape")).encode("utf-8")
    return data


def run_query(data: bytes, language: str) -> tuple[Captures, Node]:
    """All captures of the language's query in `data`, and the tree's root."""
    root, _ = tree_of(data, language)
    return QueryCursor(languages.query(language)).captures(root), root


def run_matches(data: bytes, language: str) -> tuple[Matches, Node]:
    """The matches of the language's query in `data`, and the tree's root."""
    root, _ = tree_of(data, language)
    return matches_of(root, language), root


def matches_of(root: Node, language: str) -> Matches:
    """The matches of the language's query in a tree."""
    return QueryCursor(languages.query(language)).matches(root)


def count_errors(data: bytes, language: str) -> int:
    """ERROR and MISSING nodes in the tree of `data`."""
    return _n_errors(tree_of(data, language)[0], language)


def _n_errors(root: Node, language: str) -> int:
    if not root.has_error:
        return 0
    found = QueryCursor(_error_query(language)).captures(root).get("error", ())
    return len({node.id for node in found})


@cache
def _error_query(language: str) -> Query:
    return Query(languages.grammar(language), "[(ERROR) (MISSING)] @error")
