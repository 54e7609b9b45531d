"""Definitions of a file from the matches of its query, and the symbols that they are. All languages but Python."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from agentctx.repo.captured import Captured
from agentctx.repo.captured_bodies import body_start
from agentctx.repo.captured_names import dotted_name, owner_name, plain_name, test_name
from agentctx.repo.trees import Captures
from agentctx.source import SymbolKind, UnitKind

# Where several patterns match one name, the strongest kind says what it is.
_STRENGTH = {
    **dict.fromkeys(("interface", "trait", "struct", "enum", "namespace", "impl", "suite", "test"), 5),
    **dict.fromkeys(("class", "function", "method", "fixture", "property"), 4),
    "type": 3,
    **dict.fromkeys(("field", "constant"), 1),
}
_TYPES = frozenset({"class", "interface", "trait", "struct", "enum", "type", "namespace", "impl", "suite"})
_PLACES = frozenset({"namespace", "suite"})  # what they hold are no members
_CALLED = frozenset({"suite", "test"})
_VALUES = frozenset({"field", "constant"})
_FIELDS = frozenset({"field", "property"})
_INSIDE = {"namespace": UnitKind.STATEMENT, "suite": UnitKind.BODY}


@dataclass(slots=True)
class Found:
    """A definition. `start..end` are the bytes of all that belongs to it, decorators included.

    `body` is the first byte of its body, `end` where it has none.
    """

    what: str  # the capture without `def.`
    outer: Node
    name_node: Node
    start: int
    end: int
    name: str
    owner: str | None = None
    owned_by_self: bool = False  # a field that a method gives its object
    base_nodes: list[Node] = field(default_factory=list)
    decorator_nodes: list[Node] = field(default_factory=list)
    type_node: Node | None = None
    body: int = 0
    around: Found | None = None
    qualname: str = ""
    id: str = ""

    @property
    def is_type(self) -> bool:
        return self.what in _TYPES

    @property
    def holds(self) -> bool:
        """Whether it can hold definitions and statements."""
        return self.what not in _VALUES

    @property
    def is_enumerator(self) -> bool:
        """Whether the name is known outside of its type."""
        return self.outer.type == "enumerator"

    @property
    def is_member(self) -> bool:
        return self.around is not None and self.around.is_type and self.around.what not in _PLACES

    @property
    def inside(self) -> UnitKind:
        return _INSIDE.get(self.what, UnitKind.FIELDS if self.is_type else UnitKind.BODY)

    @property
    def kind(self) -> SymbolKind:
        if self.is_type:
            return SymbolKind.CLASS
        if self.what in _FIELDS:
            return SymbolKind.FIELD
        if self.what == "constant":
            return SymbolKind.FIELD if self.is_member or self.owner is not None else SymbolKind.CONSTANT
        belongs = self.owner is not None or self.is_member or (self.what == "method" and self.around is not None)
        is_method = self.what in ("method", "function") and belongs
        return SymbolKind.METHOD if is_method else SymbolKind.FUNCTION


def definitions(data: bytes, found: Captured, wrappers: frozenset[str], no_locals: frozenset[str]) -> list[Found]:
    """All definitions in file order, outer ones first; each with its qualified name."""
    made = list(_united(data, found.definitions).values())
    imports = {node for node, tag in found.tags.items() if tag == "import"}
    for one in made:
        _widen(data, one, wrappers)
    kept = [one for one in made if one.outer.id not in imports]
    block_starts = [node.start_byte for node in found.blocks]
    for one in kept:
        one.body = body_start(one.outer, one.name_node, one.end, block_starts)
    kept.sort(key=lambda one: (one.start, -one.end, -_STRENGTH[one.what], one.name_node.start_byte))
    return list(_named(kept, no_locals))


def _united(data: bytes, matches: Iterable[tuple[str, Captures]]) -> dict[int, Found]:
    """First byte of a name -> its definition, with what all matches of it captured."""
    made: dict[int, Found] = {}
    for what, match in matches:
        names = match.get("name")
        outer = match[f"def.{what}"][0]
        name = names[0] if names else outer
        if name.start_byte == name.end_byte:
            continue  # the parser put it in where it is missing
        one = made.get(name.start_byte)
        if one is None:
            text = (test_name if what in _CALLED else plain_name)(data, name) if names else what
            one = made[name.start_byte] = Found(what, outer, name, outer.start_byte, outer.end_byte, text)
        else:
            _strengthen(one, what, outer)
        _add(data, one, match)
    return made


def _strengthen(one: Found, what: str, outer: Node) -> None:
    stronger = _STRENGTH[what] - _STRENGTH[one.what]
    wider = outer.end_byte - outer.start_byte > one.end - one.start
    if stronger > 0 or (stronger == 0 and wider):
        one.what, one.outer, one.start, one.end = what, outer, outer.start_byte, outer.end_byte


def _add(data: bytes, one: Found, match: Captures) -> None:
    if "owner" in match:
        outer = owner_name(data, match["owner.outer"][0]) if "owner.outer" in match else None
        inner = owner_name(data, match["owner"][0])
        one.owner = f"{outer}.{inner}" if outer and inner else inner
        if (one.owner, one.name) == ("module", "exports"):
            one.owner = None
    if "end" in match:
        one.end = max(one.end, match["end"][0].end_byte)
    one.owned_by_self = one.owned_by_self or "owner.self" in match
    for capture, nodes in (("base", one.base_nodes), ("decorator", one.decorator_nodes)):
        known = {node.id for node in nodes}
        nodes += [node for node in match.get(capture, ()) if node.id not in known]
    if "type" in match and one.type_node is None:
        one.type_node = match["type"][0]


def _widen(data: bytes, one: Found, wrappers: frozenset[str]) -> None:
    """Takes in the statement that holds nothing else (`export`, `const`), and decorators before it."""
    node = one.outer
    while (around := node.parent) is not None and around.type in wrappers:
        if sum(child.type == node.type for child in around.named_children) > 1:
            break
        node = around
    one.outer, one.start, one.end = node, node.start_byte, max(one.end, node.end_byte)
    for decorator in one.decorator_nodes:
        if decorator.start_byte < one.start:
            row = data.rfind(b"\n", 0, decorator.start_byte) + 1
            one.start = row + len(data[row : decorator.start_byte]) - len(data[row : decorator.start_byte].lstrip())


def _named(found: Sequence[Found], no_locals: frozenset[str]) -> Iterator[Found]:
    """The definitions that are no locals, with what is around them and their qualified names."""
    stack: list[Found] = []
    fields: set[tuple[int, str]] = set()
    for one in found:
        while stack and stack[-1].end <= one.start:
            stack.pop()
        twin = stack[-1] if stack and (stack[-1].start, stack[-1].end) == (one.start, one.end) else None
        if twin is not None and twin.what == "test" and one.what == "function":
            continue  # a macro's name
        one.around = (twin.around if twin is not None else _holder(one, stack[-1])) if stack else None
        if one.owned_by_self:
            one.around = next((outer for outer in reversed(stack) if outer.is_type or _makes(outer)), None)
        if not one.holds and not _is_kept(one, fields):
            continue
        if one.outer.type in no_locals and one.around is not None and not one.around.is_type:
            continue
        one.qualname = f"{_prefix(one)}{one.name}"
        yield one
        if one.holds and twin is None:
            stack.append(one)


def _holder(one: Found, outer: Found) -> Found | None:
    """`outer`, unless `one` stands before its body: `a.f = a.g = function () {}` defines two of the same level."""
    beside = one.holds and one.owner is not None and one.start < outer.body and not outer.is_type
    return outer.around if beside else outer


def _makes(outer: Found) -> bool:
    """Whether a function is written to be called with `new`: then it has what it assigns to `this`."""
    return outer.what == "function" and outer.owner is None and outer.name[:1].isupper()


def _is_kept(one: Found, fields: set[tuple[int, str]]) -> bool:
    """Whether a constant or field is no local, nor known already."""
    around = one.around
    if around is None:
        return not one.owned_by_self and (one.what != "field" or one.owner is not None or one.is_enumerator)
    key = (id(around), one.name)
    if not (around.is_type or (one.owned_by_self and _makes(around))) or (one.owned_by_self and key in fields):
        return False
    fields.add(key)
    return True


def _prefix(one: Found) -> str:
    around = one.around
    if around is None:
        return f"{one.owner}." if one.owner else ""
    inside_type = around.is_type and around.what not in _PLACES
    return f"{around.qualname}." + (f"{one.owner}." if one.owner and not inside_type else "")


def parents(found: Sequence[Found]) -> Mapping[int, str]:
    """id(definition) -> the symbol id of the type or function that it belongs to."""
    types: dict[str, Found] = {}
    for one in found:
        if one.is_type and (one.qualname not in types or types[one.qualname].what == "impl" != one.what):
            types[one.qualname] = one
    out: dict[int, str] = {}
    for one in found:
        owner = types.get(one.qualname.removesuffix(f".{one.name}")) if one.qualname != one.name else None
        around = one.around
        if one.owner is None and around is not None and around.what != "impl":
            owner = around
        parent = owner if owner is not None else around
        if parent is not None and parent is not one:
            out[id(one)] = parent.id
    return out


def bases(data: bytes, one: Found) -> tuple[str, ...]:
    nodes = sorted(one.base_nodes, key=lambda n: n.start_byte)
    return tuple(dict.fromkeys(name for node in nodes if (name := dotted_name(data, node))))


def decorators(data: bytes, one: Found) -> tuple[str, ...]:
    nodes = sorted(one.decorator_nodes, key=lambda n: n.start_byte)
    return tuple(name for node in nodes if (name := dotted_name(data, node)))
