"""Bytes -> a syntax tree and what the language's query captures in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tree_sitter import Node, Parser, Query, QueryCursor

from agentctx.repo import languages

Captures = Mapping[str, Sequence[Node]]
Matches = Sequence[tuple[int, Captures]]


def root_of(data: bytes, language: str) -> Node:
    """The root of the tree of `data`; it keeps the tree alive."""
    return Parser(languages.grammar(language)).parse(data).root_node


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
    query = Query(languages.grammar(language), "[(ERROR) (MISSING)] @error")
    found = QueryCursor(query).captures(root_of(data, language)).get("error", ())
    return len({node.id for node in found})
