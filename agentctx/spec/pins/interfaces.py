"""Tier 2: signatures that the pinned code uses or implements. One small pure function per rule.

The rules run in order and see what those before them pinned: `callee` tier 1 alone; `type` and `base` also the
signatures that `callee` brought in, and `import` everything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from agentctx.prompt import Pin, PinReason, PromptLink
from agentctx.source import Resolution, Role, SymbolKind, UnitKind
from agentctx.spec.pins.view import Hop, Rule, View

CALLABLE = (SymbolKind.FUNCTION, SymbolKind.METHOD)
CALL_ROLES = (Role.CALL, Role.DECORATOR, Role.FIXTURE)
VALUE_ROLES = (Role.NAME, Role.ATTRIBUTE)
SIGNATURE_KINDS = (UnitKind.HEADER, UnitKind.FIELDS)
# Through which a class is called: Python; JavaScript, TypeScript, Kotlin; PHP; Ruby. Elsewhere it has the class's name.
CONSTRUCTORS = ("__init__", "__call__", "constructor", "__construct", "initialize")
# Files through which names come that others define: Python; JavaScript and TypeScript; Rust.
DOORS = ("__init__", "index", "mod", "lib")
_DOOR_BYTES = tuple(door.encode() for door in DOORS)
# What must be implemented whole; elsewhere methods say so by themselves.
_INTERFACE = re.compile(rb"\b(?:interface|trait|Protocol)\b")
_ABSTRACT = re.compile(rb"abstract|= *0 *;")  # the last is C++'s


def callee(view: View) -> Iterator[Pin]:
    """What tier-1 code calls, decorates with or hands on. A class is called through its constructor."""
    called = dict.fromkeys(view.uses(lambda _unit, _hop, link: link.role in CALL_ROLES))
    handed = view.uses(lambda _unit, _hop, link: link.role in VALUE_ROLES)
    uses = [*called, *(use for use in handed if _kind(view, use[0]) in CALLABLE)]
    for symbol, distance in called:
        if _kind(view, symbol) is SymbolKind.CLASS:
            own = view.document.definitions[symbol].name
            uses += [(member, distance) for member in _named(view, symbol, (*CONSTRUCTORS, own))]
    return view.signatures(PinReason.CALLEE, uses)


def base(view: View) -> Iterator[Pin]:
    """Bases of pinned classes, and theirs."""
    found = dict(view.uses(lambda _unit, _hop, link: link.role is Role.BASE))
    todo = sorted(found)
    while todo:
        symbol = todo.pop()
        for parent in view.index.bases(symbol):
            if parent not in found:
                found[parent] = found[symbol] + 1
                todo.append(parent)
    return view.signatures(PinReason.BASE, found.items())


def override(view: View) -> Iterator[Pin]:
    """Methods that a target overrides, that override it, and that override the same method."""
    uses: list[tuple[str, int]] = []
    for symbol in view.index.nested(view.facts.targets):
        definition = view.index.definition(symbol)
        if definition is None:
            continue
        uses += [(other, 1) for other in (*definition.overrides, *definition.overridden_by)]
        for overridden in definition.overrides:
            original = view.index.definition(overridden)
            uses += [(sibling, 2) for sibling in (original.overridden_by if original else ()) if sibling != symbol]
    return view.signatures(PinReason.OVERRIDE, uses)


def implements(view: View) -> Iterator[Pin]:
    """Abstract methods of the bases of a target's class, and all methods of an interface, a trait or a Protocol."""
    definitions = (view.index.definition(symbol) for symbol in view.facts.targets)
    owners = {d.symbol if d.kind is SymbolKind.CLASS else d.parent for d in definitions if d is not None}
    todo = [(symbol, 1) for symbol in sorted(owner for owner in owners if owner is not None)]
    seen: set[str] = set()
    uses: list[tuple[str, int]] = []
    while todo:
        symbol, distance = todo.pop(0)
        for parent in view.index.bases(symbol):
            if parent not in seen:
                seen.add(parent)
                todo.append((parent, distance + 1))
                uses += [(member, distance) for member in _to_implement(view, parent)]
    return view.signatures(PinReason.IMPLEMENTS, uses)


def types(view: View) -> Iterator[Pin]:
    """Types in pinned signatures, and classes that tier-1 code names (`isinstance`, `except`, class attributes)."""

    def wanted(unit: int, hop: Hop, link: PromptLink) -> bool:
        return link.role is Role.TYPE and (hop.tier == 1 or view.document.units[unit].kind in SIGNATURE_KINDS)

    named = view.uses(lambda _unit, hop, link: hop.tier == 1 and link.role in VALUE_ROLES)
    classes = [use for use in named if _kind(view, use[0]) is SymbolKind.CLASS]
    return view.signatures(PinReason.TYPE, [*view.uses(wanted), *classes])


def constant(view: View) -> Iterator[Pin]:
    """Constants that pinned code uses."""
    return view.signatures(PinReason.CONSTANT, _values(view, SymbolKind.CONSTANT))


def field(view: View) -> Iterator[Pin]:
    """Declarations of the fields that pinned code uses."""
    return view.signatures(PinReason.FIELD, _values(view, SymbolKind.FIELD))


def config(view: View) -> Iterator[Pin]:
    """Configuration that the request or the log names: the sections named with the file, else its first section."""
    for unit in sorted({unit for units in view.index.configs.values() for unit in units}):
        yield Pin(PinReason.CONFIG, view.index.closure((unit,)), view.document.units[unit].path or "", distance=1)


def re_export(view: View) -> Iterator[Pin]:
    """Imports in DOORS through which an imported name comes: the module that defines it isn't named."""
    found: dict[int, tuple[str, int]] = {}
    for unit, hop in view.pinned.items():
        for link in view.index.links[unit]:
            if link.via is None or link.state is not Resolution.RESOLVED:
                continue
            for symbol in link.targets:
                for door in _doors(view, symbol, link.via):
                    found[door] = min(found.get(door, (symbol, hop.distance)), (symbol, hop.distance))
    for door, (symbol, distance) in sorted(found.items()):
        yield Pin(PinReason.RE_EXPORT, view.index.closure((door,)), symbol, distance=distance)


def imports(view: View) -> Iterator[Pin]:
    """The import statements that bring in names of pinned code."""
    nearest: dict[int, int] = {}
    for unit, hop in view.pinned.items():
        for link in view.index.links[unit]:
            if link.via is not None:
                nearest[link.via] = min(hop.distance, nearest.get(link.via, hop.distance))
    for via, distance in sorted(nearest.items()):
        if via not in view.pinned:
            subject = view.document.units[via].path or view.document.units[via].section
            yield Pin(PinReason.IMPORT, view.index.closure((via,)), subject, distance=distance)


def _kind(view: View, symbol: str) -> SymbolKind | None:
    definition = view.index.definition(symbol)
    return None if definition is None else definition.kind


def _named(view: View, parent: str, names: tuple[str, ...]) -> list[str]:
    return [m for m in view.index.members.get(parent, ()) if view.document.definitions[m].name in names]


def _values(view: View, kind: SymbolKind) -> Iterator[tuple[str, int]]:
    uses = view.uses(lambda _unit, hop, link: hop.tier > 0 and link.role not in (Role.IMPORT, Role.MENTION))
    return (use for use in uses if _kind(view, use[0]) is kind)


def _to_implement(view: View, symbol: str) -> list[str]:
    definition = view.index.definition(symbol)
    if definition is None or definition.header is None:
        return []
    everything = _INTERFACE.search(view.document.unit_text(definition.header)) is not None
    methods = [m for m in view.index.members.get(symbol, ()) if _kind(view, m) is SymbolKind.METHOD]
    return [method for method in methods if everything or _is_abstract(view, method)]


def _is_abstract(view: View, method: str) -> bool:
    header = view.document.definitions[method].header
    return header is not None and _ABSTRACT.search(view.document.unit_text(header)) is not None


def _doors(view: View, symbol: str, via: int) -> Iterator[int]:
    definition = view.index.definition(symbol)
    if definition is None or _names_module(view.document.unit_text(via), definition.path):
        return
    here = view.document.units[via].path
    for link in view.index.incoming.get(symbol, ()):
        path = view.document.units[link.unit].path
        is_door = link.role is Role.IMPORT and path not in (None, here, definition.path)
        if is_door and PurePosixPath(path or "").stem in DOORS:
            yield link.unit


def _names_module(statement: bytes, path: str) -> bool:
    """Whether an import statement names the very module (`from pkg.mod import x`), not a package above it."""
    source = statement.split(b" import ", 1)[0]
    stem = PurePosixPath(path).stem.encode("utf-8", "surrogateescape")
    return stem not in _DOOR_BYTES and re.search(rb"\b" + re.escape(stem) + rb"\b", source) is not None


RULES = (
    Rule(PinReason.CALLEE, callee),
    Rule(PinReason.BASE, base),
    Rule(PinReason.OVERRIDE, override),
    Rule(PinReason.IMPLEMENTS, implements),
    Rule(PinReason.TYPE, types),
    Rule(PinReason.CONSTANT, constant),
    Rule(PinReason.FIELD, field),
    Rule(PinReason.CONFIG, config),
    Rule(PinReason.RE_EXPORT, re_export),
    Rule(PinReason.IMPORT, imports),
)
