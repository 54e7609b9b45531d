"""References of a Python file: every use of a name that its own function doesn't bind."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from tree_sitter import Node

from agentctx.repo.local_uses import Seen
from agentctx.repo.parse_lines import Lines, Nesting
from agentctx.repo.python_defs import (
    Captures,
    Definition,
    nesting,
    text_of,
)
from agentctx.repo.python_exprs import Exprs
from agentctx.repo.python_pytest import Use, test_uses
from agentctx.repo.python_scopes import DOTTED, Scope, lookup, owner_of, scopes
from agentctx.source import Reference, Role, Symbol
from agentctx.spans import ByteSpan

_QUOTED_TYPE = re.compile(r"[\w\s.,|\[\]]+")
_OWN = ("self", "cls")  # whose attributes are defined by assigning to them
_SUPER = re.compile(r"super\s*\(.*\)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Places:
    """Where things stand. `unit_at`: row -> unit."""

    path: str
    data: bytes
    lines: Lines
    unit_at: Sequence[int]


def file_scopes(data: bytes, captures: Captures, constants: Iterable[str]) -> list[Scope]:
    """The scopes of a file. `constants`: the module's, which are what references are about."""
    made = scopes(data, captures)
    made[0].excluded.update(constants)
    return made


def references(
    places: Places,
    captures: Captures,
    found: Sequence[Definition],
    symbols: Sequence[Symbol],
    made: Sequence[Scope],
    exprs: Exprs,
) -> tuple[Reference, ...]:
    """All references of the file, ordered by position. `symbols`: the file's, for fixtures. `made`: its scopes."""
    uses = [
        *_names(places.data, captures, made, exprs),
        *_quoted(places.data, captures),
        *test_uses(places.data, captures, found, symbols, exprs),
    ]
    where = nesting(found)
    out: list[Reference] = []
    for use in sorted(uses, key=lambda use: (use.start, use.end, use.role)):
        owner = where.at(use.start)
        row = places.lines.row_of(use.start)
        out.append(
            Reference(
                path=places.path,
                span=ByteSpan(use.start, use.end),
                line=row + 1,
                name=use.name,
                role=use.role,
                scope=owner.id if owner is not None else None,
                receiver=use.receiver,
                unit=places.unit_at[row],
                receiver_type=use.receiver_type,
            )
        )
    return tuple(out)


def local_variables(captures: Captures, made: Sequence[Scope]) -> Iterator[Seen]:
    """Uses of names that functions bind, in file order. `made`: the file's scopes."""
    where = lookup(made)
    skipped = _skipped(captures) - {node.start_byte for node in captures.get("bind.augmented", ())}
    attributes = {node.end_byte for node in captures.get("ref.attribute", ())}
    for node in sorted(captures.get("ref", ()), key=lambda node: node.start_byte):
        if node.start_byte in skipped or node.end_byte in attributes:
            continue
        name = node.text.decode("utf-8", "replace") if node.text is not None else ""
        owner = owner_of(name, where.at(node.start_byte))
        if owner is not None:
            yield Seen(node.start_point[0], name, owner.rows.get(name, ()))


class _Roles:
    """What the captures say about an identifier, by the byte where it (or the dotted name it ends) ends."""

    def __init__(self, captures: Captures) -> None:
        self._by_end: dict[int, Role] = {}
        for capture, role in (("ref.call", Role.CALL), ("ref.base", Role.BASE), ("ref.decorator", Role.DECORATOR)):
            self._by_end.update((node.end_byte, role) for node in captures.get(capture, ()))
        self._objects = {node.end_byte for node in captures.get("ref.object", ())}
        self._types: Nesting[bool] = Nesting((n.start_byte, n.end_byte, True) for n in captures.get("ref.type", ()))

    def of(self, start: int, end: int, otherwise: Role) -> Role:
        """The role of the identifier; ask in file order."""
        in_type = self._types.at(start) is not None
        role = self._by_end.get(end)
        if role is not None:
            return role
        return Role.TYPE if in_type and end not in self._objects else otherwise


def _names(data: bytes, captures: Captures, made: Sequence[Scope], exprs: Exprs) -> Iterator[Use]:
    """Uses of identifiers, in file order."""
    skipped = _skipped(captures)
    stored = _stored(captures)
    attributes = {node.end_byte: node for node in captures.get("ref.attribute", ())}
    patterns = dict(_dotted_patterns(captures))
    roles = _Roles(captures)
    where = lookup(made)
    for start, end in sorted({(n.start_byte, n.end_byte) for n in captures.get("ref", ())}):
        if start in skipped:
            continue
        name = data[start:end].decode("utf-8", "replace")
        scope = where.at(start)
        node = attributes.get(end)
        first = node.start_byte if node is not None else patterns.get(end, start)
        if first < start:
            receiver, receiver_type = _receiver(data[first:start], scope, first, node, exprs)
            if start not in stored:
                yield Use(start, end, name, roles.of(start, end, Role.ATTRIBUTE), receiver, receiver_type)
            elif receiver not in _OWN:
                yield Use(start, end, name, Role.STORE, receiver, receiver_type)
        elif owner_of(name, scope) is None:
            yield Use(start, end, name, roles.of(start, end, Role.NAME))


def _skipped(captures: Captures) -> frozenset[int]:
    """First bytes of identifiers that aren't uses."""
    starts = {node.start_byte for capture in ("skip", "def.name", "bind", "bind.walrus", "bind.outer")
              for node in captures.get(capture, ())}  # fmt: skip
    patterns = {node.start_byte for node in captures.get("ref.dotted", ())}
    imports = {node.start_byte for node in captures.get("name.dotted", ())}
    in_patterns = {child.start_byte for node in captures.get("ref.dotted", ()) for child in node.named_children}
    starts |= imports - patterns - in_patterns
    return frozenset(starts)


def _stored(captures: Captures) -> frozenset[int]:
    """First bytes of attributes that are assigned to."""
    names = (node.child_by_field_name("attribute") for node in captures.get("ref.store", ()))
    return frozenset(name.start_byte for name in names if name is not None)


def _dotted_patterns(captures: Captures) -> Iterator[tuple[int, int]]:
    """(end, first byte of the dotted name) of `RED` in `case Color.RED`."""
    for node in captures.get("ref.dotted", ()):
        for child in node.named_children[1:]:
            yield child.end_byte, node.start_byte


def _receiver(
    before: bytes, scope: Scope | None, at: int, attribute: Node | None, exprs: Exprs
) -> tuple[str, str | None]:
    """The dotted text before an attribute, and what it is made of where a function binds its first name."""
    text = before.decode("utf-8", "replace").rstrip().removesuffix(".").rstrip()
    if DOTTED.fullmatch(text) is None:
        if _SUPER.fullmatch(text):
            return "super()", None
        inner = attribute.child_by_field_name("object") if attribute is not None else None
        return "?", exprs.value(inner, scope, at) if inner is not None else None
    text = "".join(text.split())
    first, dot, rest = text.partition(".")
    owner = owner_of(first, scope)
    if owner is None:
        return text, None
    made_of = exprs.name(first, scope, at)
    if made_of in ("@self", "@cls") and first == next(iter(owner.parameters), None):
        return text, None  # what the first parameter of a method is, the resolver knows
    return text, f"{made_of}{dot}{rest}" if made_of is not None else None


def _quoted(data: bytes, captures: Captures) -> Iterator[Use]:
    """Names in string annotations: `"A"`, `"m.A | None"`, `list["A"]`, and aliases; nothing inside of `Literal`."""
    literal = Nesting((n.start_byte, n.end_byte, True) for n in _literals(data, captures))
    inside = [*captures.get("ref.type", ()), *captures.get("ref.alias", ())]
    types = Nesting((n.start_byte, n.end_byte, True) for n in sorted(inside, key=lambda n: (n.start_byte, -n.end_byte)))
    nodes = [*captures.get("ref.type-string", ()), *captures.get("ref.subscript-string", ())]
    for node in sorted({n.id: n for n in nodes}.values(), key=lambda n: n.start_byte):
        at = node.start_byte
        if literal.at(at) is not None or types.at(at) is None or node.named_child_count != 3:
            continue
        content = node.named_children[1]
        text = data[content.start_byte : content.end_byte]
        if _QUOTED_TYPE.fullmatch(text.decode("utf-8", "replace")) and text.isascii():
            yield from _quoted_names(text.decode(), content.start_byte)


def _literals(data: bytes, captures: Captures) -> Iterator[Node]:
    """Annotations `Literal[...]` and `m.Literal[...]`."""
    names = {
        node.start_byte
        for node in captures.get("ref.generic", ())
        if text_of(data, node).rpartition(".")[2] == "Literal"
    }
    return (node for node in captures.get("ref.generic-type", ()) if node.start_byte in names)


def _quoted_names(text: str, offset: int) -> Iterator[Use]:
    for match in DOTTED.finditer(text):
        if match[0] == "None":
            continue
        start = match.start()
        parts = match[0].split(".")
        for i, part in enumerate(parts):
            at = start + text[start:].index(part)
            role = Role.TYPE if i == len(parts) - 1 else Role.ATTRIBUTE if i else Role.NAME
            receiver = ".".join(p.strip() for p in parts[:i]) if i else None
            yield Use(offset + at, offset + at + len(part.strip()), part.strip(), role, receiver)
            start = at + len(part) + 1
