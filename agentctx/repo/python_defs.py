"""Definitions of a tree and the symbols that follow from them: functions, classes, constants, fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from agentctx.repo.parse_lines import Nesting
from agentctx.source import Symbol, SymbolKind
from agentctx.spans import ByteSpan, LineSpan

SIGNATURE_CHARS = 160

Captures = Mapping[str, Sequence[Node]]


@dataclass(frozen=True, slots=True)
class Definition:
    """A function or class. `node` is what is defined, `outer` also holds its decorators."""

    node: Node
    outer: Node
    id: str
    name: str
    qualname: str
    kind: SymbolKind
    parent: Definition | None


@dataclass(frozen=True, slots=True)
class Target:
    """A name that an assignment binds outside of functions, or an attribute of `self` inside of a method."""

    name: Node
    statement: Node
    owner: Definition | None  # the class; None for the module
    statements: list[Node]  # all that bind it in that block


class Ids:
    """Hands out ids in file order; the second `a.f` is `a.f~2`."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._seen: dict[str, int] = {}

    def new(self, qualname: str) -> str:
        count = self._seen[qualname] = self._seen.get(qualname, 0) + 1
        return f"{self._path}::{qualname}" + (f"~{count}" if count > 1 else "")


def first_named(node: Node) -> Node | None:
    return next(iter(node.named_children), None)


def names_directly(parameter: Node) -> bool:
    """Whether a typed parameter is a plain name, not `*name`."""
    first = first_named(parameter)
    return first is not None and first.type == "identifier"


def text_of(data: bytes, node: Node) -> str:
    return data[node.start_byte : node.end_byte].decode("utf-8", "replace")


def dotted(data: bytes, node: Node) -> str:
    """The node's dotted name without arguments and subscripts; what isn't one, as written, on one line."""
    while node.type in ("call", "subscript", "generic_type"):
        inner = node.child_by_field_name("function") or node.child_by_field_name("value") or first_named(node)
        if inner is None:
            break
        node = inner
    return re.sub(r"\s+", "", text_of(data, node))


def definitions(data: bytes, captures: Captures, ids: Ids) -> list[Definition]:
    """All functions and classes in file order, nested ones after what holds them."""
    outer_of = {}
    for node in captures.get("unit.decorated", ()):
        inner = node.child_by_field_name("definition")
        if inner is not None:
            outer_of[inner.id] = node
    classes = {node.id for node in captures.get("unit.class", ())}
    nodes = [*captures.get("unit.function", ()), *captures.get("unit.class", ())]
    found: list[Definition] = []
    stack: list[Definition] = []
    for node in sorted(nodes, key=lambda n: (n.start_byte, -n.end_byte)):
        while stack and stack[-1].node.end_byte <= node.start_byte:
            stack.pop()
        parent = stack[-1] if stack else None
        name_node = node.child_by_field_name("name")
        name = text_of(data, name_node) if name_node is not None else "?"
        qualname = f"{parent.qualname}.{name}" if parent is not None else name
        is_class = node.id in classes
        made = Definition(
            node=node,
            outer=outer_of.get(node.id, node),
            id=ids.new(qualname),
            name=name,
            qualname=qualname,
            kind=_kind(is_class, parent),
            parent=parent,
        )
        found.append(made)
        stack.append(made)
    return found


def _kind(is_class: bool, parent: Definition | None) -> SymbolKind:
    if is_class:
        return SymbolKind.CLASS
    return SymbolKind.METHOD if parent is not None and parent.kind is SymbolKind.CLASS else SymbolKind.FUNCTION


def nesting(found: Sequence[Definition]) -> Nesting[Definition]:
    """The definitions as a lookup by position; decorators and comments inside count."""
    return Nesting((d.outer.start_byte, d.outer.end_byte, d) for d in found)


def targets(data: bytes, captures: Captures, found: Sequence[Definition]) -> list[Target]:
    """What assignments define: constants, class fields, and the first assignment of each `self.x` of a class.

    A second assignment of a name in the same block defines nothing new.
    """
    where = nesting(found)
    methods: set[tuple[object, str]] = {(d.parent.id, d.name) for d in found if d.parent is not None}
    seen: dict[tuple[object, str], Target] = {}
    nodes = [*captures.get("def.assignment", ()), *captures.get("def.alias", ())]
    for node in sorted(nodes, key=lambda n: n.start_byte):
        owner = where.at(node.start_byte)
        left = node.child_by_field_name("left")
        if left is None:
            continue
        for name in flat_targets(left):
            target = _target(data, name, node, owner)
            if target is None:
                continue
            block: object = target.owner.id if target.owner is not None else _block_of(node)
            key = (block, text_of(data, target.name))
            if key in methods:
                continue
            if key in seen:
                seen[key].statements.append(node)
            else:
                seen[key] = target
    return list(seen.values())


def _block_of(node: Node) -> object:
    """Tells blocks of the module apart: an `if` and its `else` both define, a repetition doesn't."""
    while node.parent is not None and node.type not in ("block", "module"):
        node = node.parent
    return node.id


def _target(data: bytes, name: Node, statement: Node, owner: Definition | None) -> Target | None:
    if owner is None or owner.kind is SymbolKind.CLASS:
        return Target(name, statement, owner, [statement]) if name.type == "identifier" else None
    if owner.kind is not SymbolKind.METHOD or name.type != "attribute":
        return None
    attribute, instance = name.child_by_field_name("attribute"), name.child_by_field_name("object")
    if attribute is None or instance is None or text_of(data, instance) != first_parameter(data, owner.node):
        return None
    return Target(attribute, statement, owner.parent, [statement])


def first_parameter(data: bytes, function: Node) -> str | None:
    """The name of a function's first parameter."""
    parameters = function.child_by_field_name("parameters")
    first = next((c for c in parameters.named_children if not c.is_extra), None) if parameters is not None else None
    name = parameter_name(first) if first is not None else None
    return text_of(data, name) if name is not None else None


def parameter_name(parameter: Node) -> Node | None:
    """The identifier that a parameter binds."""
    node: Node | None = parameter
    while node is not None and node.type != "identifier":
        node = node.child_by_field_name("name") or first_named(node)
    return node


def flat_targets(left: Node) -> Iterator[Node]:
    """Identifiers and attributes on the left of an assignment, unpacked."""
    stack = [left]
    while stack:
        node = stack.pop()
        if node.type in ("pattern_list", "tuple_pattern", "list_pattern", "list_splat_pattern"):
            stack.extend(reversed(node.named_children))
        elif node.type in ("type", "generic_type"):  # of a type alias
            stack.extend(node.named_children[:1])
        elif node.type in ("identifier", "attribute"):
            yield node


def definition_symbol(data: bytes, path: str, made: Definition, header: int, *, in_tests: bool) -> Symbol:
    """The symbol of a function or class."""
    node, outer = made.node, made.outer
    name = node.child_by_field_name("name") or node
    bases = _bases(data, node) if made.kind is SymbolKind.CLASS else ()
    decorators = tuple(
        dotted(data, child.named_children[0]) for child in outer.named_children if _is_decorator(outer, child)
    )
    is_function = made.kind is not SymbolKind.CLASS
    nested = made.parent is not None and made.parent.kind is not SymbolKind.CLASS
    named = made.name.startswith("test") if is_function else made.name.startswith("Test") or _is_case(bases)
    return Symbol(
        id=made.id,
        name=made.name,
        qualname=made.qualname,
        kind=made.kind,
        path=path,
        span=span_of(outer),
        name_span=span_of(name),
        lines=lines_of(outer),
        header=header,
        parent=made.parent.id if made.parent is not None else None,
        signature=signature(data, node),
        bases=bases,
        decorators=decorators,
        is_test=in_tests and named and not nested,
        is_fixture=is_function and any(d.rpartition(".")[2] == "fixture" for d in decorators),
    )


def _is_decorator(outer: Node, child: Node) -> bool:
    return outer.type == "decorated_definition" and child.type == "decorator" and child.named_child_count > 0


def _is_case(bases: Sequence[str]) -> bool:
    return any(base.endswith("TestCase") for base in bases)


def _bases(data: bytes, node: Node) -> tuple[str, ...]:
    arguments = node.child_by_field_name("superclasses")
    if arguments is None:
        return ()
    kinds = ("identifier", "attribute", "subscript", "call")
    return tuple(dotted(data, child) for child in arguments.named_children if child.type in kinds)


def target_symbol(data: bytes, path: str, target: Target, header: int, new_id: Callable[[str], str]) -> Symbol:
    """The symbol of a constant or a field."""
    name, owner = text_of(data, target.name), target.owner
    qualname = f"{owner.qualname}.{name}" if owner is not None else name
    return Symbol(
        id=new_id(qualname),
        name=name,
        qualname=qualname,
        kind=SymbolKind.CONSTANT if owner is None else SymbolKind.FIELD,
        path=path,
        span=span_of(target.statement),
        name_span=span_of(target.name),
        lines=lines_of(target.statement),
        header=header,
        parent=owner.id if owner is not None else None,
        signature=one_line(text_of(data, target.statement)),
    )


def signature(data: bytes, node: Node) -> str:
    """`def f(a: int) -> str` or `class A(B)`: one line, without comments and without the final colon."""
    block = node.child_by_field_name("body")
    end = block.start_byte if block is not None else node.end_byte
    pieces: list[bytes] = []
    at = node.start_byte
    for hole in sorted(_comments(node, end), key=lambda n: n.start_byte):
        pieces.append(data[at : hole.start_byte])
        at = hole.end_byte
    pieces.append(data[at:end])
    line = one_line(b" ".join(pieces).decode("utf-8", "replace"), limit=None).rstrip(": ")
    return shorten(re.sub(r",? \)", ")", line.replace("( ", "(")))


def _comments(node: Node, end: int) -> Iterator[Node]:
    stack = [child for child in node.children if child.start_byte < end]
    while stack:
        child = stack.pop()
        if child.type == "comment":
            yield child
        elif child.type in ("parameters", "argument_list"):
            stack.extend(child.children)


def one_line(text: str, limit: int | None = SIGNATURE_CHARS) -> str:
    line = " ".join(text.split())
    return line if limit is None else shorten(line, limit)


def shorten(line: str, limit: int = SIGNATURE_CHARS) -> str:
    return line if len(line) <= limit else line[: limit - 3] + "..."


def span_of(node: Node) -> ByteSpan:
    return ByteSpan(node.start_byte, node.end_byte)


def lines_of(node: Node) -> LineSpan:
    return LineSpan(node.start_point[0] + 1, max(node.start_point[0], node.end_point[0]) + 1)
