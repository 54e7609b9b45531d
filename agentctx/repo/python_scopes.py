"""Python's name scopes: which names a function, lambda or comprehension binds, and what their types are.

Imports and nested definitions are bound too, but they are what references are about, so they don't count here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto

from tree_sitter import Node

from agentctx.repo.parse_lines import Nesting
from agentctx.repo.python_defs import Captures, first_named, names_directly, parameter_name, text_of

_DOTTED = r"[^\W\d]\w*(?:\s*\.\s*[^\W\d]\w*)*"
DOTTED = re.compile(_DOTTED)
_OPTIONAL = re.compile(rf"(?:{_DOTTED}\s*\.\s*)?Optional\[\s*({_DOTTED})\s*\]")
_GENERIC = re.compile(rf"({_DOTTED})\s*(?:\[.*\])?", re.DOTALL)


class ScopeKind(Enum):
    MODULE = auto()
    CLASS = auto()  # its names are fields: seen from outside only through the class
    FUNCTION = auto()
    COMPREHENSION = auto()


@dataclass(slots=True, eq=False)
class Scope:
    """`counts`: how often each local name is bound. `declared` and `assigned`: name -> dotted type."""

    kind: ScopeKind
    start: int
    end: int
    parent: Scope | None = None
    counts: dict[str, int] = field(default_factory=dict)
    declared: dict[str, str] = field(default_factory=dict)
    assigned: dict[str, str] = field(default_factory=dict)
    excluded: set[str] = field(default_factory=set)  # global, nonlocal, imported or defined here

    def holds(self, name: str) -> bool:
        return self.kind is not ScopeKind.CLASS and name in self.counts and name not in self.excluded

    def type_of(self, name: str) -> str | None:
        if name in self.declared:
            return self.declared[name]
        return self.assigned.get(name) if self.counts.get(name) == 1 else None


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
    _types(data, captures, made)
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
            scope = Scope(ScopeKind.FUNCTION, block.start_byte, block.end_byte)
            _parameters(data, node.child_by_field_name("parameters"), scope)
            yield scope
    for node in captures.get("scope.type-parameters", ()):
        scope = Scope(ScopeKind.FUNCTION, node.start_byte, node.parent.end_byte if node.parent else node.end_byte)
        names = (_first_identifier(child) for child in node.named_children)
        scope.counts = {text_of(data, name): 1 for name in names if name is not None}
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
        annotation = child.child_by_field_name("type")
        plain = child.type != "typed_parameter" or names_directly(child)
        declared = plain_type(text_of(data, annotation)) if annotation is not None and plain else None
        if declared is not None:
            scope.declared[text] = declared


def plain_type(annotation: str) -> str | None:
    """The class that an annotation names: `X`, `"X"`, `X[...]`, `Optional[X]`, `X | None`; else None."""
    text = annotation.strip()
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        text = text[1:-1].strip()
    optional = _OPTIONAL.fullmatch(text)
    if optional is not None:
        text = optional[1]
    elif "|" in text:
        parts = [part.strip() for part in text.split("|")]
        named = [part for part in parts if part != "None"]
        text = named[0] if len(named) == 1 else ""
    found = _GENERIC.fullmatch(text)
    return "".join(found[1].split()) if found is not None and found[1] != "None" else None


def _sorted(nodes: Iterable[Node]) -> list[Node]:
    return sorted(nodes, key=lambda n: n.start_byte)


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


def _import_names(captures: Captures) -> Iterator[Node]:
    """The identifiers that imports bind."""
    for statement in captures.get("unit.import", ()):
        for child in statement.children_by_field_name("name"):
            bound = child.child_by_field_name("alias") if child.type == "aliased_import" else first_named(child)
            if bound is not None:
                yield bound


def _types(data: bytes, captures: Captures, made: Sequence[Scope]) -> None:
    """Mutates the scopes: adds the types that annotations and `x = Name(...)` tell."""
    where = lookup(made)
    for node in _sorted(captures.get("def.assignment", ())):
        scope = where.at(node.start_byte)
        left = node.child_by_field_name("left")
        if scope is None or left is None or left.type != "identifier":
            continue
        name = text_of(data, left)
        annotation = node.child_by_field_name("type")
        declared = plain_type(text_of(data, annotation)) if annotation is not None else None
        if declared is not None:
            scope.declared.setdefault(name, declared)
            continue
        made_by = _constructor(data, node.child_by_field_name("right"))
        if made_by is not None and owner_of(made_by.partition(".")[0], scope) is None:
            scope.assigned[name] = made_by


def _constructor(data: bytes, value: Node | None) -> str | None:
    function = value.child_by_field_name("function") if value is not None and value.type == "call" else None
    if function is None or function.type not in ("identifier", "attribute"):
        return None
    text = text_of(data, function)
    return "".join(text.split()) if DOTTED.fullmatch(text) else None
