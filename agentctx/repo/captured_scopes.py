"""What functions bind, and what is known of the values of names: all languages but Python.

What a name is, is written as a type's name, or as `=` and the chain (`chains`) of the value that it was given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from agentctx.repo.chains import chain
from agentctx.repo.parse_lines import Nesting
from agentctx.repo.type_names import bare_type

OWN = frozenset({"this", "self", "super", "base", "Self", "crate", "static", "parent", "it", "_"})
MAX_FOLLOWED = 4
TYPE_BYTES = 300
_TYPEOF = re.compile(r"typeof\s+([\w$]+(?:\.[\w$]+)*)")
# What gives a module is no local: the import that stands there says what the name is.
_MODULE = re.compile(
    rb"\(?(?:await\s+)?(?:require|import)\s*\(\s*(?:'[^'\n]*'|\"[^\"\n]*\"|`[^`\n]*`)\s*\)\)?(?:\.[\w$]+)*"
)


@dataclass(slots=True)
class Scope:
    """Names bound in a function or block: name -> its type (None: not known); `rows`: where they are bound."""

    start: int
    end: int
    parent: Scope | None = None
    names: dict[str, str | None] = field(default_factory=dict)
    rows: dict[str, list[int]] = field(default_factory=dict)


Ranged = tuple[int, int, Scope]  # start, end


@dataclass(slots=True)
class Bound:
    """What a query says of names that functions bind, and of values."""

    skipped: set[int] = field(default_factory=set)  # first bytes of names that are no uses
    locals: list[tuple[Node, Mapping[str, Sequence[Node]]]] = field(default_factory=list)  # name, the match
    given: list[tuple[Node, Node]] = field(default_factory=list)  # name of a definition, what it holds or returns
    declared: list[tuple[Node, Node]] = field(default_factory=list)  # name of a definition, its type
    inferred: list[Node] = field(default_factory=list)  # names that a conditional type binds
    scopes: list[Node] = field(default_factory=list)


def scopes(data: bytes, bound: Bound, functions: Sequence[tuple[int, int]]) -> list[Ranged]:
    """The scopes with what is bound in them."""
    spans = {(start, end) for start, end in functions} | {(n.start_byte, n.end_byte) for n in bound.scopes}
    stack: list[Scope] = []
    made: list[Ranged] = []
    for start, end in sorted(spans, key=lambda s: (s[0], -s[1])):
        while stack and stack[-1].end <= start:
            stack.pop()
        scope = Scope(start, end, stack[-1] if stack else None)
        made.append((start, end, scope))
        stack.append(scope)
    where = Nesting(made)
    modules = {name.start_byte for name, match in bound.locals if _is_module(data, match)}
    for name, match in sorted(bound.locals, key=lambda item: item[0].start_byte):
        bound.skipped.add(name.start_byte)
        if name.start_byte in modules:
            continue
        scope_at = where.at(name.start_byte)
        if scope_at is not None:
            _bind(data, scope_at, name, match)
    _bind_inferred(data, bound, made)
    return made


def _is_module(data: bytes, match: Mapping[str, Sequence[Node]]) -> bool:
    given = match.get("local.value") or match.get("local.whole") or ()
    return len(given) > 0 and _MODULE.fullmatch(data, given[0].start_byte, given[0].end_byte) is not None


def _bind(data: bytes, scope: Scope, name: Node, match: Mapping[str, Sequence[Node]]) -> None:
    text = _text(data, name)
    scope.rows.setdefault(text, []).append(name.start_point[0])
    if scope.names.get(text) is not None:
        return
    scope.names[text] = None if "local.type" not in match else _type_at(data, match["local.type"][0], scope)
    if scope.names[text] is not None:
        return
    if "local.value" in match:
        scope.names[text] = _value_at(data, match["local.value"][0], scope)
    elif "local.whole" in match or "local.in" in match:
        key = _text(data, match["local.key"][0]) if "local.key" in match else text
        scope.names[text] = _part_of(_whole(data, match, scope), key)


def _whole(data: bytes, match: Mapping[str, Sequence[Node]], scope: Scope) -> str | None:
    """What a pattern takes apart."""
    if "local.in" in match:
        return _type_at(data, match["local.in"][0], scope)
    return _value_at(data, match["local.whole"][0], scope)


def _part_of(whole: str | None, key: str) -> str | None:
    if whole is None or whole.count(".") > MAX_FOLLOWED:
        return None
    return f"{whole}.{key}" if whole.startswith("=") else f"=<{whole}>.{key}"


def _type_at(data: bytes, node: Node, scope: Scope) -> str | None:
    """A type as written; for a type parameter what it is bound to be."""
    if node.end_byte - node.start_byte > TYPE_BYTES:
        return None
    written = _text(data, node)
    value = _TYPEOF.fullmatch(written)
    if value is not None:
        return _followed(value[1], scope)
    known = bare_type(written)
    at: Scope | None = scope
    while at is not None and known is not None:
        if known in at.names:
            return at.names[known]
        at = at.parent
    return known


def _value_at(data: bytes, node: Node, scope: Scope | None) -> str | None:
    reached = chain(data, node)
    return _followed(reached, scope) if reached is not None else None


def _bind_inferred(data: bytes, bound: Bound, made: Sequence[Ranged]) -> None:
    """`infer T` is known in all of the conditional type around."""
    where = {(start, end): scope for start, end, scope in made}
    for name in bound.inferred:
        node: Node | None = name
        while node is not None and node.type != "conditional_type":
            node = node.parent
        scope = where.get((node.start_byte, node.end_byte)) if node is not None else None
        bound.skipped.add(name.start_byte)
        if scope is not None:
            scope.names.setdefault(_text(data, name), None)
            scope.rows.setdefault(_text(data, name), []).append(name.start_point[0])


def types(data: bytes, bound: Bound, where: Nesting[Scope]) -> dict[int, str]:
    """What type parameters that definitions are declared with are bound to be: by the first byte of their names."""
    out: dict[int, str] = {}
    for name, type_ in sorted(bound.declared, key=lambda item: item[1].start_byte):
        written = bare_type(_text(data, type_)) if type_.end_byte - type_.start_byte <= TYPE_BYTES else None
        scope = where.at(type_.start_byte) if written is not None else None
        if scope is not None and owner_of(written or "", scope) is not None:
            known = _type_at(data, type_, scope)
            if known is not None:
                out[name.start_byte] = known
    return out


def values(data: bytes, bound: Bound, where: Nesting[Scope]) -> dict[int, str]:
    """What definitions hold, and what calling them gives: by the first byte of their name."""
    given = [(value.start_byte, True, name, value) for name, value in bound.given]
    for name, match in bound.locals:
        if "local.value" in match:
            given.append((match["local.value"][0].start_byte, False, name, match["local.value"][0]))
    out: dict[int, str] = {}
    for start, in_function, name, value in sorted(given, key=lambda item: item[:2]):
        scope = where.at(start)
        if name.start_byte not in out and (in_function or scope is None):
            known = _value_at(data, value, scope)
            if known is not None:
                out[name.start_byte] = known
    return out


def _followed(reached: str, scope: Scope | None) -> str | None:
    """The chain of a value as a type: `<T>` is T, one that starts with a local starts with what that is instead."""
    if reached.startswith("<") and reached.endswith(">"):
        return reached[1:-1]
    first, dot, rest = reached.partition(".")
    bare = first.removesuffix("()")
    while scope is not None:
        if bare in scope.names:
            known = scope.names[bare]
            if known is None or first != bare:
                return None
            start = known[1:] if known.startswith("=") else f"<{known}>"
            return f"={start}{dot}{rest}" if start.count(".") < MAX_FOLLOWED else None
        scope = scope.parent
    return f"={reached}"


def owner_of(name: str, scope: Scope | None) -> Scope | None:
    """The innermost scope around that binds `name`, if one does."""
    while scope is not None and name not in scope.names:
        scope = scope.parent
    return scope


def receiver_type(receiver: str, scope: Scope | None) -> str | None:
    """What the local that a receiver starts with is; '?' where it is a local of which nothing is known."""
    first = receiver.partition(".")[0].removesuffix("()")
    if first in OWN:
        return None
    while scope is not None:
        if first in scope.names:
            return scope.names[first] or "?"
        scope = scope.parent
    return None


def _text(data: bytes, node: Node) -> str:
    return data[node.start_byte : node.end_byte].decode("utf-8", "replace")
