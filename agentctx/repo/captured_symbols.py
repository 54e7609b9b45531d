"""Definitions -> symbols: signatures, declared types, which are tests. All languages but Python."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence

from tree_sitter import Node

from agentctx.repo.captured import Captured
from agentctx.repo.captured_defs import Found, bases, decorators, parents
from agentctx.repo.captured_names import text_of
from agentctx.repo.language_rows import TestRules
from agentctx.repo.parse_lines import Lines
from agentctx.repo.python_defs import Ids, one_line, span_of
from agentctx.repo.type_names import bare_type
from agentctx.source import Symbol, SymbolKind
from agentctx.spans import ByteSpan, LineSpan

SIGNATURE_BYTES = 2000  # what is looked at of a definition that has no body
TYPE_BYTES = 300
_BODIES = ("body", "value", "right", "declaration", "definition", "declarator", "arguments")

_TAIL = re.compile(r"(?:\s|=>|[{:=(,])+\Z")  # what leads to a body


def give_ids(found: Sequence[Found], ids: Ids) -> None:
    """Ids in file order; a type is named before the blocks that implement it."""
    for one in sorted(found, key=lambda one: one.what == "impl"):
        one.id = ids.new(one.qualname)


def body_start(one: Found, found: Captured, block_starts: Sequence[int]) -> int:
    """The first byte of the definition's body; its end where it has none."""
    node: Node | None = one.outer
    while node is not None:
        body = node.child_by_field_name("body")
        if body is not None and body.start_byte >= one.name_node.end_byte:
            return body.start_byte
        node = next((child for name in _BODIES if (child := node.child_by_field_name(name)) is not None), None)
        if node is not None and node.end_byte <= one.name_node.end_byte:
            break
    at = bisect_left(block_starts, one.name_node.end_byte)
    return min(block_starts[at], one.end) if at < len(block_starts) else one.end


def symbols(
    data: bytes,
    path: str,
    found: Sequence[Found],
    bodies: Sequence[int],
    lines: Lines,
    unit_at: Sequence[int],
    rules: TestRules,
    in_tests: bool,
) -> tuple[Symbol, ...]:
    """The symbols of all definitions, sorted by where they stand."""
    parent_of = parents(found)
    tests = {id(one) for one in found if _is_test(data, one, rules, in_tests)}
    suites = {parent_of[id(one)] for one in found if id(one) in tests and id(one) in parent_of}
    out = [
        Symbol(
            id=one.id,
            name=one.name,
            qualname=one.qualname,
            kind=one.kind,
            path=path,
            span=ByteSpan(one.start, one.end),
            name_span=span_of(one.name_node),
            lines=LineSpan(lines.row_of(one.start) + 1, lines.row_of(max(one.start, one.end - 1)) + 1),
            header=unit_at[one.name_node.start_point[0]],
            parent=parent_of.get(id(one)),
            signature=signature(data, one, body),
            bases=bases(data, one),
            decorators=decorators(data, one),
            is_test=id(one) in tests or (one.kind is SymbolKind.CLASS and one.id in suites),
            is_fixture=_is_fixture(data, one, rules, in_tests),
            form=one.what if one.is_type else "",
            type=_type(data, one),
        )
        for one, body in zip(found, bodies, strict=True)
    ]
    return tuple(sorted(out, key=lambda s: (s.span.start, -s.span.end, s.id)))


def signature(data: bytes, one: Found, body: int) -> str:
    """One line, without decorators and body."""
    start = one.start
    for node in one.decorator_nodes:
        if node.start_byte < one.name_node.start_byte:
            start = max(start, data.find(b"\n", node.end_byte) + 1)
    if start >= one.name_node.start_byte:
        start = one.start
    end = min(one.end if one.what == "type" else body, one.end, start + SIGNATURE_BYTES)
    return one_line(_TAIL.sub("", data[start:end].decode("utf-8", "replace")))


def _type(data: bytes, one: Found) -> str | None:
    node = one.type_node
    return bare_type(text_of(data, node)) if node is not None and node.end_byte - node.start_byte < TYPE_BYTES else None


def _is_test(data: bytes, one: Found, rules: TestRules, in_tests: bool) -> bool:
    if one.what in ("test", "suite"):
        return True
    if one.kind not in (SymbolKind.FUNCTION, SymbolKind.METHOD) or (one.around is not None and not one.around.is_type):
        return False
    if any(name.rpartition(".")[2] in rules.decorators for name in decorators(data, one)):
        return True
    if data.startswith(b"@test", one.start):  # bats
        return True
    return (in_tests or rules.named_anywhere) and rules.names.fullmatch(one.name) is not None


def _is_fixture(data: bytes, one: Found, rules: TestRules, in_tests: bool) -> bool:
    if one.what == "fixture":
        return True
    if one.kind not in (SymbolKind.FUNCTION, SymbolKind.METHOD):
        return False
    if any(name.rpartition(".")[2] in rules.fixture_decorators for name in decorators(data, one)):
        return True
    return in_tests and rules.fixtures.fullmatch(one.name) is not None
