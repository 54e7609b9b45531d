"""Bytes -> a syntax tree and what the language's query captures in it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache

from tree_sitter import Node, Parser, Query, QueryCursor

from agentctx.repo import languages

_NO_UTF8 = re.compile("[\udc80-\udcff]")

Captures = Mapping[str, Sequence[Node]]
Matches = Sequence[tuple[int, Captures]]


def root_of(data: bytes, language: str) -> Node:
    """The root of the tree of `data`; it keeps the tree alive.

    Text that the grammar doesn't understand is read with the language's `relaxed` rewrite, where that helps.
    """
    row = languages.LANGUAGES[language]
    data = readable(data)
    parser = Parser(languages.grammar(language))
    root = parser.parse(row.prepare(data) if row.prepare is not None else data).root_node
    if row.relaxed is None or not root.has_error:
        return root
    relaxed = row.relaxed(data)
    other = parser.parse(relaxed).root_node if relaxed != data else root
    return other if _n_errors(other, language) < _n_errors(root, language) else root


def readable(data: bytes) -> bytes:
    """`data` with a letter in place of each byte that is no UTF-8: Latin-1 names stay names, positions stay."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return _NO_UTF8.sub("x", data.decode("utf-8", "surrogateescape")).encode("utf-8")
    return data


def run_query(data: bytes, language: str) -> tuple[Captures, Node]:
    """All captures of the language's query in `data`, and the tree's root."""
    root = root_of(data, language)
    return QueryCursor(languages.query(language)).captures(root), root


def run_matches(data: bytes, language: str) -> tuple[Matches, Node]:
    """The matches of the language's query in `data`, and the tree's root."""
    root = root_of(data, language)
    return QueryCursor(languages.query(language)).matches(root), root


def count_errors(data: bytes, language: str) -> int:
    """ERROR and MISSING nodes in the tree of `data`."""
    return _n_errors(root_of(data, language), language)


def _n_errors(root: Node, language: str) -> int:
    if not root.has_error:
        return 0
    found = QueryCursor(_error_query(language)).captures(root).get("error", ())
    return len({node.id for node in found})


@cache
def _error_query(language: str) -> Query:
    return Query(languages.grammar(language), "[(ERROR) (MISSING)] @error")
