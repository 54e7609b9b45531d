"""What the local variables of a Python function are: events that bind or narrow a name, and where they hold.

Only nodes are collected here; `python_exprs` turns the few that somebody asks for into text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from tree_sitter import Node

from agentctx.repo.parse_lines import Nesting
from agentctx.repo.python_defs import Captures, text_of
from agentctx.repo.python_scopes import Scope, ScopeKind, lookup

_PATTERNS = ("pattern_list", "tuple_pattern", "list_pattern", "tuple", "list")
_LEAVES = ("return_statement", "raise_statement", "continue_statement", "break_statement")


class How(Enum):
    """How a name comes to its value."""

    VALUE = auto()  # x = node
    ITEM = auto()  # for x in node
    ENTERED = auto()  # with node as x
    RAISED = auto()  # except node as x
    TYPE = auto()  # x: node
    NARROWED = auto()  # isinstance(x, node)


@dataclass(frozen=True, slots=True, eq=False)
class Event:
    """`at`: from where on it holds. `start`, `end`: where it is certain to have happened (or where it holds at all).

    `path`: the positions to go to in what is unpacked.
    """

    how: How
    node: Node
    at: int
    start: int
    end: int
    path: tuple[int, ...] = ()


class Flow:
    """The events of all scopes of a file."""

    def __init__(self, data: bytes, captures: Captures, made: Sequence[Scope]) -> None:
        self._data = data
        self._made = sorted(made, key=lambda s: (s.start, -s.end))
        self._starts = [scope.start for scope in self._made]
        self._events: dict[tuple[int, str], list[Event]] = {}
        self._collect(captures, made)

    def events(self, scope: Scope, name: str) -> Sequence[Event]:
        """In order of their position."""
        return self._events.get((id(scope), name), ())

    def scope_at(self, position: int) -> Scope:
        """The innermost scope that holds a position."""
        scope: Scope | None = self._made[bisect_right(self._starts, position) - 1]
        while scope is not None and scope.end <= position:
            scope = scope.parent
        return scope or self._made[0]

    def _collect(self, captures: Captures, made: Sequence[Scope]) -> None:
        scopes = lookup(made)
        whole = (0, len(self._data) + 1)
        blocks = Nesting((n.start_byte, n.end_byte, (n.start_byte, n.end_byte)) for n in captures.get("unit.block", ()))
        for node, kind in _sources(captures):
            scope = scopes.at(node.start_byte)
            block = blocks.at(node.start_byte) or whole
            if scope is None:
                continue
            if kind == "flow.walrus":
                while scope.kind is ScopeKind.COMPREHENSION and scope.parent is not None:
                    scope = scope.parent
            if scope.kind is ScopeKind.COMPREHENSION:
                block = (scope.start, scope.end)
            for name, event in self._of(node, kind, block):
                self._events.setdefault((id(scope), name), []).append(event)

    def _of(self, node: Node, kind: str, block: tuple[int, int]) -> Iterator[tuple[str, Event]]:
        match kind:
            case "def.assignment":
                yield from self._assigned(node, block)
            case "flow.walrus":
                yield from self._bound(node.child_by_field_name("name"), node, How.VALUE, block, "value")
            case "flow.for":
                yield from self._bound(node.child_by_field_name("left"), node, How.ITEM, block, "right")
            case "flow.as":
                yield from self._named_as(node, block)
            case _:
                yield from self._narrowed(node, block)

    def _assigned(self, node: Node, block: tuple[int, int]) -> Iterator[tuple[str, Event]]:
        left, right, annotation = (node.child_by_field_name(part) for part in ("left", "right", "type"))
        if annotation is not None and left is not None and left.type == "identifier":
            yield text_of(self._data, left), Event(How.TYPE, annotation, node.start_byte, *block)
        while right is not None and right.type == "assignment":
            right = right.child_by_field_name("right")
        if left is not None and right is not None:
            yield from self._unpacked(left, right, How.VALUE, block)

    def _bound(
        self, target: Node | None, node: Node, how: How, block: tuple[int, int], part: str
    ) -> Iterator[tuple[str, Event]]:
        value = node.child_by_field_name(part)
        if target is not None and value is not None:
            yield from self._unpacked(target, value, how, block)

    def _named_as(self, node: Node, block: tuple[int, int]) -> Iterator[tuple[str, Event]]:
        """`with value as x`, `except value as x`."""
        alias = node.child_by_field_name("alias")
        value = next(iter(node.named_children), None)
        target = next(iter(alias.named_children), None) if alias is not None else None
        if target is None or value is None or node.parent is None:
            return
        if node.parent.type == "with_item":
            yield from self._unpacked(target, value, How.ENTERED, block)
        elif node.parent.type == "except_clause":
            clause = (node.parent.start_byte, node.parent.end_byte)
            yield from self._unpacked(target, value, How.RAISED, clause)

    def _unpacked(self, target: Node, value: Node, how: How, block: tuple[int, int]) -> Iterator[tuple[str, Event]]:
        at = value.end_byte
        if target.type == "identifier":  # the usual case
            yield text_of(self._data, target), Event(how, value, at, *block)
            return
        stack: list[tuple[Node, tuple[int, ...]]] = [(target, ())]
        while stack:
            node, path = stack.pop()
            if node.type == "identifier":
                yield text_of(self._data, node), Event(how, value, at, *block, path)
            elif node.type in _PATTERNS:
                stack += [(child, (*path, i)) for i, child in enumerate(node.named_children)]

    def _narrowed(self, call: Node, block: tuple[int, int]) -> Iterator[tuple[str, Event]]:
        """`isinstance(x, C)` where it decides: in a condition, an `assert`, before an early exit."""
        arguments = call.child_by_field_name("arguments")
        parts = arguments.named_children if arguments is not None else []
        if len(parts) != 2 or parts[0].type != "identifier":
            return
        name = text_of(self._data, parts[0])
        for start, end in _where_true(call, block):
            yield name, Event(How.NARROWED, parts[1], start, start, end)


def _sources(captures: Captures) -> list[tuple[Node, str]]:
    found = [(node, kind) for kind in ("def.assignment", "flow.walrus", "flow.for", "flow.as")
             for node in captures.get(kind, ())]  # fmt: skip
    for node in captures.get("ref.call", ()):
        if node.end_byte - node.start_byte == 10 and node.text == b"isinstance" and node.parent is not None:
            found.append((node.parent, "isinstance"))
    return sorted(found, key=lambda item: (item[0].start_byte, -item[0].end_byte, item[1]))


def _where_true(call: Node, block: tuple[int, int]) -> Iterator[tuple[int, int]]:
    """The ranges in which the call has been found true."""
    node, parent = call, call.parent
    while parent is not None and (parent.type == "parenthesized_expression" or _is_and(parent)):
        if _is_and(parent):
            yield node.end_byte, parent.end_byte
        node, parent = parent, parent.parent
    if parent is None:
        return
    if parent.type in ("if_statement", "elif_clause", "while_statement"):
        body = parent.child_by_field_name("consequence") or parent.child_by_field_name("body")
        if body is not None and node == parent.child_by_field_name("condition"):
            yield body.start_byte, body.end_byte
    elif parent.type == "conditional_expression" and node == parent.named_children[1]:
        yield parent.start_byte, node.start_byte
    elif parent.type == "if_clause" and parent.parent is not None:
        yield parent.parent.start_byte, parent.parent.end_byte
    elif parent.type == "assert_statement" and node == parent.named_children[0]:
        yield parent.end_byte, block[1]
    elif parent.type == "not_operator" and (leaving := _leaves(parent)) is not None:
        yield leaving.end_byte, block[1]


def _is_and(node: Node) -> bool:
    return node.type == "boolean_operator" and any(child.type == "and" for child in node.children)


def _leaves(condition: Node) -> Node | None:
    """The `if` with this condition, where its body never goes on."""
    parent = condition.parent
    if parent is None or parent.type != "if_statement" or parent.child_by_field_name("alternative") is not None:
        return None
    body = parent.child_by_field_name("consequence")
    last = body.named_children[-1] if body is not None and body.named_children else None
    return parent if last is not None and last.type in _LEAVES else None
