"""What Python's symbols hold and return, and what their decorators say: `Symbol.type`, `value` and `traits`.

The value of a function is what a call gives: `:{X}` as annotated, else one of what it returns. That of a constant or
field is one of what is assigned to it, `{X}` as annotated, `={X}` where it is another name for a type.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace

from tree_sitter import Node

from agentctx.repo.field_types import class_name
from agentctx.repo.python_defs import Captures, Definition, Target, first_named, text_of
from agentctx.repo.python_exprs import Exprs, returned
from agentctx.repo.python_imports import literal_strings
from agentctx.repo.python_pytest import arguments_of
from agentctx.repo.python_reach import choice, receiver_of
from agentctx.repo.python_scopes import ScopeKind
from agentctx.source import Symbol

_TYPE_FORMS = re.compile(r"(?:\w+\.)*(?:[A-Z]\w*|list|dict|set|frozenset|tuple|type)\[")


class Typed:
    """Gives the symbols of one file what can be told of their values."""

    def __init__(self, data: bytes, captures: Captures, exprs: Exprs) -> None:
        self._data = data
        self._exprs = exprs
        self._returns: dict[int, list[Node]] = {}
        for node in sorted(captures.get("flow.return", ()), key=lambda n: n.start_byte):
            scope = exprs.flow.scope_at(node.start_byte)
            while scope.kind is ScopeKind.COMPREHENSION and scope.parent is not None:
                scope = scope.parent
            if scope.function is not None:
                self._returns.setdefault(scope.function.id, []).append(node)

    def definition(self, symbol: Symbol, made: Definition) -> Symbol:
        """The symbol of a function or class, completed."""
        traits = tuple(self._traits(made)) if symbol.is_fixture else ()
        node = made.node
        if node.type != "function_definition":
            return symbol
        annotation = node.child_by_field_name("return_type")
        if annotation is None:
            value = returned(self._exprs, self._returns.get(node.id, ()))
            return replace(symbol, value=value or "", traits=traits) if value or traits else symbol
        text = self._exprs.annotation(annotation)
        if text is not None and self._is_own_type(node, text):
            text = "{Self}"
        written = class_name(text_of(self._data, annotation))
        return replace(symbol, type=written, value=f":{text}" if text is not None else "", traits=traits)

    def _is_own_type(self, function: Node, text: str) -> bool:
        """Whether a method returns what its own first parameter is declared as: `def m(self: T) -> T`."""
        if receiver_of(self._data, function) is None:
            return False
        parameters = function.child_by_field_name("parameters")
        first = first_named(parameters) if parameters is not None else None
        annotation = first.child_by_field_name("type") if first is not None else None
        declared = self._exprs.annotation(annotation) if annotation is not None else None
        return declared in (text, f"{{type[{text[1:-1]}]}}", f"{{Type[{text[1:-1]}]}}", f"{{t.Type[{text[1:-1]}]}}")

    def target(self, symbol: Symbol, target: Target) -> Symbol:
        """The symbol of a constant or field, completed."""
        if target.name.parent is not None and target.name.parent.type == "attribute":
            symbol = replace(symbol, traits=("instance",))
        annotations = (node.child_by_field_name("type") for node in target.statements)
        annotation = next((node for node in annotations if node is not None), None)
        if annotation is not None and target.statements[0].type != "type_alias_statement":
            return self._annotated(symbol, annotation, target)
        right = target.statements[0].child_by_field_name("right")
        if target.owner is None:
            symbol = self._made_fixture(symbol, right)
        if symbol.name == "pytest_plugins" and right is not None:
            return replace(symbol, traits=tuple(f"plugin={name}" for name in literal_strings(self._data, right)))
        value = choice(self._assigned(node, target) for node in target.statements)
        return replace(symbol, value=value) if value else symbol

    def _annotated(self, symbol: Symbol, annotation: Node, target: Target) -> Symbol:
        text = text_of(self._data, annotation)
        right = target.statements[0].child_by_field_name("right")
        if text.rpartition(".")[2] == "TypeAlias" and right is not None:
            alias = self._exprs.annotation(right)
            return replace(symbol, value=f"={alias}") if alias is not None else symbol
        value = self._exprs.annotation(annotation)
        return replace(symbol, type=class_name(text), value=value or "")

    def _assigned(self, statement: Node, target: Target) -> str | None:
        left, right = statement.child_by_field_name("left"), statement.child_by_field_name("right")
        if left is None or right is None:
            return None
        if statement.type == "type_alias_statement" or (target.owner is None and self._is_type(right)):
            alias = self._exprs.annotation(right)
            return f"={alias}" if alias is not None else None
        while right.type == "assignment" and (inner := right.child_by_field_name("right")) is not None:
            right = inner
        value = self._exprs.value(right, self._exprs.flow.scope_at(right.start_byte), right.start_byte)
        path = self._path(left, text_of(self._data, target.name))
        return value + "".join(f"#{i}" for i in path) if value is not None else None

    def _is_type(self, node: Node) -> bool:
        """Whether a right side looks like another name for a type: `Union[A, B]`, `A | B`, `dict[str, A]`."""
        if node.type == "subscript":
            return _TYPE_FORMS.match(text_of(self._data, node)) is not None
        return node.type == "binary_operator" and any(child.type == "|" for child in node.children)

    def _path(self, left: Node, name: str) -> tuple[int, ...]:
        """The positions that lead to a name in a pattern."""
        stack: list[tuple[Node, tuple[int, ...]]] = [(left, ())]
        while stack:
            node, path = stack.pop()
            if node.type in ("pattern_list", "tuple_pattern", "list_pattern"):
                stack += [(child, (*path, i)) for i, child in enumerate(node.named_children)]
            elif text_of(self._data, node).rpartition(".")[2] == name:
                return path
        return ()

    def _traits(self, made: Definition) -> Iterator[str]:
        for decorator in made.outer.children if made.outer.type == "decorated_definition" else ():
            call = first_named(decorator) if decorator.type == "decorator" else None
            if call is not None and call.type == "call":
                yield from self._fixture_traits(call)

    def _fixture_traits(self, call: Node) -> Iterator[str]:
        """`name=x` and `autouse` of `pytest.fixture(name="x", autouse=True)`."""
        _, named = arguments_of(self._data, call)
        if "name" in named:
            yield from (f"name={text}" for text in literal_strings(self._data, named["name"]))
        if "autouse" in named and named["autouse"].type == "true":
            yield "autouse"

    def _made_fixture(self, symbol: Symbol, right: Node | None) -> Symbol:
        """`x = pytest.fixture(f)` and `x = pytest.fixture(name="y")(f)` are fixtures too."""
        function = right.child_by_field_name("function") if right is not None and right.type == "call" else None
        inner = function.child_by_field_name("function") if function is not None and function.type == "call" else None
        name = inner if inner is not None else function
        if name is None or text_of(self._data, name).rpartition(".")[2] != "fixture":
            return symbol
        traits = tuple(self._fixture_traits(function)) if function is not None and inner is not None else ()
        return replace(symbol, is_fixture=True, traits=traits)


def completed(
    typed: Typed,
    definitions: Iterable[tuple[Symbol, Definition]],
    targets: Iterable[tuple[Symbol, Target]],
) -> list[Symbol]:
    """All symbols of a file, in the order of their places."""
    symbols = [typed.definition(symbol, made) for symbol, made in definitions]
    symbols += [typed.target(symbol, target) for symbol, target in targets]
    return sorted(symbols, key=lambda s: (s.span.start, -s.span.end, s.id))
