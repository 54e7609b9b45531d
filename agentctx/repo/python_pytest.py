"""What tests name in pytest's and mock's own ways: fixtures by parameter and by string, patched things by string."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from agentctx.repo.python_defs import Captures, Definition, first_named, names_directly, parameter_name, text_of
from agentctx.repo.python_exprs import Exprs
from agentctx.repo.python_imports import literal_strings
from agentctx.source import Role, Symbol, SymbolKind

_DOTTED_TEXT = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_BY_STRING = frozenset({"usefixtures", "getfixturevalue", "getfuncargvalue", "lazy_fixture"})
_PATCHES = frozenset({"patch", "setattr", "delattr", "object"})  # mock.patch, monkeypatch.setattr, patch.object


@dataclass(frozen=True, slots=True)
class Use:
    """A name at bytes `start` to `end`; the rest as in `source.Reference`."""

    start: int
    end: int
    name: str
    role: Role
    receiver: str | None = None
    receiver_type: str | None = None


def test_uses(
    data: bytes, captures: Captures, found: Sequence[Definition], symbols: Sequence[Symbol], exprs: Exprs
) -> Iterator[Use]:
    """All such uses of a file."""
    yield from _by_parameter(data, found, symbols)
    for call in captures.get("ref.call", ()):
        yield from _by_string(data, call, exprs)


# ---------------------------------------------------------------- fixtures by parameter


def _by_parameter(data: bytes, found: Sequence[Definition], symbols: Sequence[Symbol]) -> Iterator[Use]:
    """Parameters that pytest fills in: of tests and fixtures, without what `parametrize` gives."""
    asks = {s.id for s in symbols if (s.is_test or s.is_fixture) and s.kind is not SymbolKind.CLASS}
    for made in found:
        parameters = made.node.child_by_field_name("parameters") if made.id in asks else None
        if parameters is None:
            continue
        given = {"self", "cls", *_parametrized(data, made)}
        for child in parameters.named_children:
            name = parameter_name(child) if child.type in ("identifier", "typed_parameter") else None
            if name is not None and not _is_splat(child) and text_of(data, name) not in given:
                yield Use(name.start_byte, name.end_byte, text_of(data, name), Role.FIXTURE)


def _is_splat(parameter: Node) -> bool:
    return parameter.type == "typed_parameter" and not names_directly(parameter)


def _parametrized(data: bytes, made: Definition | None) -> Iterator[str]:
    """Argument names that the `parametrize` marks on a definition, and on the classes around it, give directly."""
    while made is not None:
        for decorator in made.outer.children if made.outer.type == "decorated_definition" else ():
            call = first_named(decorator) if decorator.type == "decorator" else None
            function = call.child_by_field_name("function") if call is not None else None
            if call is None or function is None or not text_of(data, function).endswith("parametrize"):
                continue
            given, named = arguments_of(data, call)
            first = given[0] if given else named.get("argnames")
            indirect = named.get("indirect") or (given[2] if len(given) > 2 else None)
            if first is None or (indirect is not None and indirect.type == "true"):
                continue  # the values go to the fixtures of these names
            through = set(literal_strings(data, indirect)) if indirect is not None else set()
            for text in literal_strings(data, first):
                yield from (name.strip() for name in text.split(",") if name.strip() not in through)
        made = made.parent


def arguments_of(data: bytes, call: Node) -> tuple[list[Node], dict[str, Node]]:
    """(positional arguments, keyword arguments) of a call."""
    arguments = call.child_by_field_name("arguments")
    given: list[Node] = []
    named: dict[str, Node] = {}
    for child in arguments.named_children if arguments is not None else ():
        key = child.child_by_field_name("name") if child.type == "keyword_argument" else None
        value = child.child_by_field_name("value") if key is not None else None
        if key is not None and value is not None:
            named[text_of(data, key)] = value
        elif not child.is_extra:
            given.append(child)
    return given, named


# ---------------------------------------------------------------- names in strings


def _by_string(data: bytes, function: Node, exprs: Exprs) -> Iterator[Use]:
    """Names in the arguments of a call; `function` is what is called."""
    last = data[function.start_byte : function.end_byte].rpartition(b".")[2].decode("utf-8", "replace")
    if last not in _BY_STRING and last not in _PATCHES:
        return
    call = function.parent
    if call is None or call.type != "call":
        return
    given, _ = arguments_of(data, call)
    if last in _BY_STRING:
        for node in given:
            yield from _named(data, node, Role.FIXTURE)
    elif given and given[0].type == "string":
        yield from _patched(data, given[0])
    elif (
        len(given) > 1
        and given[1].type == "string"
        and last != "patch"
        and given[0].type in ("identifier", "attribute")
    ):
        owner = exprs.value(given[0], exprs.flow.scope_at(call.start_byte), call.start_byte)
        yield from _named(data, given[1], Role.ATTRIBUTE, text_of(data, given[0]), owner or "?")


def _content(data: bytes, node: Node) -> tuple[int, str] | None:
    """(first byte, text) of a plain string of one part that is a dotted name."""
    parts = [child for child in node.named_children if child.type == "string_content"]
    if node.type != "string" or len(parts) != 1:
        return None
    text = text_of(data, parts[0])
    return (parts[0].start_byte, text) if text.isascii() and _DOTTED_TEXT.fullmatch(text) else None


def _named(
    data: bytes, node: Node, role: Role, receiver: str | None = None, receiver_type: str | None = None
) -> Iterator[Use]:
    found = _content(data, node)
    if found is not None and "." not in found[1]:
        start, text = found
        yield Use(start, start + len(text), text, role, receiver, receiver_type)


def _patched(data: bytes, node: Node) -> Iterator[Use]:
    """`"package.module.name"`: a name of a module that need not be imported here."""
    found = _content(data, node)
    if found is None or "." not in found[1]:
        return
    start, text = found
    module, _, name = text.rpartition(".")
    yield Use(start + len(module) + 1, start + len(text), name, Role.ATTRIBUTE, module, f"!{module}")
