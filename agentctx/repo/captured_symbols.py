"""Definitions -> symbols: signatures, declared types, which are tests. All languages but Python."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from tree_sitter import Node

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
_CALLS = ("test", "fixture")  # what defines by a call has no name that code could use

_DECORATES = re.compile("decorator|annotation|attribute|call|constructor_invocation|user_type")
_TAIL = re.compile(r"(?:\s|=>|\|\|=|[{:=(,])+\Z")  # what leads to a body


def give_ids(found: Sequence[Found], ids: Ids) -> None:
    """Ids in file order; a type is named before the blocks that implement it."""
    for one in sorted(found, key=lambda one: one.what == "impl"):
        one.id = ids.new(one.qualname)


def symbols(
    data: bytes,
    path: str,
    found: Sequence[Found],
    lines: Lines,
    unit_at: Sequence[int],
    rules: TestRules,
    in_tests: bool,
    values: Mapping[int, str],
    types: Mapping[int, str],
) -> tuple[Symbol, ...]:
    """The symbols of all definitions, sorted by where they stand. `values`, `types`: of `captured_refs`."""
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
            signature=signature(data, one),
            bases=bases(data, one),
            decorators=decorators(data, one),
            is_test=id(one) in tests or (one.kind is SymbolKind.CLASS and one.id in suites),
            is_fixture=_is_fixture(data, one, rules, in_tests),
            form=one.what if one.is_type or one.what in _CALLS else "",
            type=types.get(one.name_node.start_byte, _type(data, one)),
            # A declared type that has no name (a function's) still says that it isn't the value's.
            value=""
            if one.type_node is not None and _type(data, one) is None
            else values.get(one.name_node.start_byte, ""),
        )
        for one in found
    ]
    return tuple(sorted(out, key=lambda s: (s.span.start, -s.span.end, s.id)))


def signature(data: bytes, one: Found) -> str:
    """One line, without decorators and body."""
    ends = [_decorator_end(node, one) for node in one.decorator_nodes]
    start = max([one.start, *(end for end in ends if end <= one.name_node.start_byte)])
    end = min(one.end if one.what == "type" else one.body, one.end, start + SIGNATURE_BYTES)
    return one_line(_TAIL.sub("", data[start:end].decode("utf-8", "replace")))


def _decorator_end(node: Node, one: Found) -> int:
    """The last byte of the whole decorator whose name `node` is."""
    while (around := node.parent) is not None and around.start_byte >= one.start and _DECORATES.search(around.type):
        node = around
    return node.end_byte


def _type(data: bytes, one: Found) -> str | None:
    node = one.type_node
    if node is None or node.end_byte - node.start_byte >= TYPE_BYTES:
        return None
    text = text_of(data, node)
    return None if text.startswith("(") and "=>" in text else bare_type(text)


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
