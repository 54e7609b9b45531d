"""Python's name scopes: which names a function, lambda or comprehension binds.

Imports and nested definitions are bound too, but they are what references are about, so they don't count here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from tree_sitter import Node

from agentctx.repo.parse_lines import Nesting
from agentctx.repo.python_defs import Captures, first_named, parameter_name, text_of

DOTTED = re.compile(r"[^\W\d]\w*(?:\s*\.\s*[^\W\d]\w*)*")


class ScopeKind(Enum):
    MODULE = auto()
    CLASS = auto()  # its names are fields: seen from outside only through the class
    FUNCTION = auto()
    COMPREHENSION = auto()


@dataclass(slots=True, eq=False)
class Scope:
    """`counts`: how often each local name is bound. `rows`: where, but for `x += 1`. `parameters`: a function's own."""

    kind: ScopeKind
    start: int
    end: int
    parent: Scope | None = None
    counts: dict[str, int] = field(default_factory=dict)
    rows: dict[str, list[int]] = field(default_factory=dict)
    parameters: dict[str, Node] = field(default_factory=dict)
    function: Node | None = None
    excluded: set[str] = field(default_factory=set)  # global, nonlocal, imported or defined here

    def holds(self, name: str) -> bool:
        return self.kind is not ScopeKind.CLASS and name in self.counts and name not in self.excluded


def owner_of(name: str, scope: Scope | None) -> Scope | None:
    """The innermost scope around that binds `name`, if one does."""
    while scope is not None and not scope.holds(name):
        scope = scope.parent
    return scope


def scopes(data: bytes, captures: Captures) -> list[Scope]:
    """The module's scope, then all others in file order, with their bindings."""
    made = [Scope(ScopeKind.MODULE, 0, len(data) + 1)]
    made += sorted(_nodes(data, captures), key=lambda s: (s.start, -s.end))
    stack: list[Scope] = []
    for scope in made:
        while stack and stack[-1].end <= scope.start:
            stack.pop()
        scope.parent = stack[-1] if stack else None
        stack.append(scope)
    _bind(data, captures, made)
    return made


def lookup(made: Sequence[Scope]) -> Nesting[Scope]:
    return Nesting((scope.start, scope.end, scope) for scope in made)


def _nodes(data: bytes, captures: Captures) -> Iterator[Scope]:
    for node in captures.get("scope.comprehension", ()):
        yield Scope(ScopeKind.COMPREHENSION, node.start_byte, node.end_byte)
    for node in captures.get("unit.class", ()):
        block = node.child_by_field_name("body")
        if block is not None:
            yield Scope(ScopeKind.CLASS, block.start_byte, block.end_byte)
    for node in [*captures.get("unit.function", ()), *captures.get("scope.lambda", ())]:
        block = node.child_by_field_name("body")
        if block is not None:
            scope = Scope(ScopeKind.FUNCTION, block.start_byte, block.end_byte, function=node)
            _parameters(data, node.child_by_field_name("parameters"), scope)
            yield scope
    for node in captures.get("scope.type-parameters", ()):
        scope = Scope(ScopeKind.FUNCTION, node.start_byte, node.parent.end_byte if node.parent else node.end_byte)
        names = (_first_identifier(child) for child in node.named_children)
        for name in names:
            if name is not None:
                scope.counts[text_of(data, name)] = 1
                scope.rows[text_of(data, name)] = [name.start_point[0]]
        yield scope


def _first_identifier(node: Node) -> Node | None:
    found: Node | None = node
    while found is not None and found.type != "identifier":
        found = first_named(found)
    return found


def _parameters(data: bytes, parameters: Node | None, scope: Scope) -> None:
    """Mutates `scope`: adds the parameters."""
    for child in parameters.named_children if parameters is not None else ():
        name = parameter_name(child)
        if name is None:
            continue
        text = text_of(data, name)
        scope.counts[text] = 1
        scope.rows[text] = [name.start_point[0]]
        scope.parameters[text] = child


def _bind(data: bytes, captures: Captures, made: Sequence[Scope]) -> None:
    """Mutates the scopes: counts bindings, and excludes what is bound elsewhere or is a reference's subject."""
    places = [(n, "bind") for n in {n.id: n for n in captures.get("bind", ())}.values()]
    for capture in ("bind.augmented", "bind.walrus", "bind.outer", "def.name"):
        places += [(n, capture) for n in captures.get(capture, ())]
    places += [(n, "import") for n in _import_names(captures)]
    where = lookup(made)
    for node, capture in sorted(places, key=lambda place: place[0].start_byte):
        scope = where.at(node.start_byte)
        if capture == "bind.walrus":
            while scope is not None and scope.kind is ScopeKind.COMPREHENSION:
                scope = scope.parent
        if scope is None:
            continue
        name = text_of(data, node)
        if capture in ("bind.outer", "def.name", "import"):
            scope.excluded.add(name)
        else:
            scope.counts[name] = scope.counts.get(name, 0) + 1
            if capture != "bind.augmented":
                scope.rows.setdefault(name, []).append(node.start_point[0])


def _import_names(captures: Captures) -> Iterator[Node]:
    """The identifiers that imports bind."""
    for statement in captures.get("unit.import", ()):
        for child in statement.children_by_field_name("name"):
            bound = child.child_by_field_name("alias") if child.type == "aliased_import" else first_named(child)
            if bound is not None:
                yield bound
