"""What must be said of a selection from which units were taken away: worked out from the document alone.

The rule. Taken away are some units and all kept units that have one of them in their spine. What is left is searched
for *uses*: each link of a kept unit uses its import statement and what it resolves to; a unit of the request or the
log uses the sections of the configuration that it names. Of what is used by what is left

- a definition is lost when its header was taken away (a module: the last of its units);
- an import statement or a section is lost when it was taken away;
- an ambiguous name is lost when all of its candidates were there and one isn't any more: it may be the one meant.

Each of these is named as a finding, with all the places that use it, and as an error where one of these was kept in
the first two tiers. Nothing else becomes a finding: what nobody uses (the body of a failing test, a base that no kept
header names) can be taken away and is not missed, a body is no omission either: its definition is kept as a signature
now instead of whole. What only units that were taken away used is not spoken of any more. All other lines of the
report stay as they were, but for the places that are gone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePosixPath
from typing import NamedTuple

from agentctx.prompt import Definition, KeptUnit, Omission, PromptDocument, Section, Selection, SymbolState, Why
from agentctx.source import Resolution, SymbolKind, UnitKind

Kept = Mapping[int, KeptUnit]


class Thing(NamedTuple):
    """What can be used. `name`: a symbol, a place (path:line), or a word with its `candidates`."""

    kind: str  # definition | import | absent | config | ambiguous | unknown
    name: str
    candidates: tuple[str, ...] = ()


class Use(NamedTuple):
    unit: int
    thing: Thing
    place: tuple[str, int | None]


def thing_of(omission: Omission) -> Thing:
    """What a line of the report is about."""
    if omission.kind in ("import", "config"):
        return Thing(omission.kind, omission.symbol)
    if omission.state is SymbolState.AMBIGUOUS:
        return Thing("ambiguous", omission.name, omission.candidates)
    if omission.state is SymbolState.UNKNOWN:
        return Thing("unknown", omission.name)
    return Thing("definition", omission.symbol)


@dataclass(frozen=True)
class Removal:
    """A selection and the units that were taken away from it, dependents included."""

    document: PromptDocument
    before: Selection
    gone: frozenset[int]

    @classmethod
    def of(cls, document: PromptDocument, selection: Selection, unit: int) -> Removal:
        dependents = {other for other in selection.units if unit in document.units[other].spine}
        return cls(document, selection, frozenset({unit, *dependents}))

    @cached_property
    def after(self) -> Selection:
        left = tuple(kept for kept in self.before.kept if kept.unit not in self.gone)
        return Selection(left, self.before.limit, self.before.n_tokens)

    @cached_property
    def expected(self) -> Expected:
        return expected(self)


@dataclass(frozen=True)
class Expected:
    """`lost`: thing -> its uses. `halved`: definitions that aren't whole any more. `used`: all that is spoken of.

    `touched`: things that fewer use than before.
    """

    lost: dict[Thing, list[Use]] = field(default_factory=dict)
    halved: set[Thing] = field(default_factory=set)
    used: set[Thing] = field(default_factory=set)
    touched: set[Thing] = field(default_factory=set)


def expected(removal: Removal) -> Expected:
    document = removal.document
    kept = {unit.unit: unit for unit in removal.before.kept}
    left = {unit.unit: unit for unit in removal.after.kept}
    found = Expected()
    for use in uses(document):
        if use.unit in removal.gone:
            found.touched.update(named_by(document, use.thing, kept))
        if use.unit in left:
            found.used.update(named_by(document, use.thing, left))
            if is_there(document, use.thing, kept) and not is_there(document, use.thing, left):
                found.lost.setdefault(use.thing, []).append(use)
    for thing in found.used - {*found.lost}:
        whole = document.definitions[thing.name].units if thing.kind == "definition" else ()
        is_cut = not removal.gone.isdisjoint(whole) and removal.before.units.issuperset(whole)
        if is_cut and is_there(document, thing, left):  # Go's methods can be there without their type
            found.halved.add(thing)
    return found


def named_by(document: PromptDocument, thing: Thing, kept: Kept) -> list[Thing]:
    """What the report says of a use: nothing of a statement or section that is simply there; of an ambiguous name
    the candidates that are there, and the name itself where that aren't all."""
    there = is_there(document, thing, kept)
    if thing.kind in ("import", "config"):
        return [] if there and kept[unit_at(document, thing.name)].why is not Why.REPAIRED else [thing]
    if thing.kind == "ambiguous":
        known = [document.definitions[name] for name in thing.candidates if name in document.definitions]
        found = [Thing("definition", one.symbol) for one in known if is_defined(one, kept)]
        return found if there else [*found, thing]
    return [Thing("import", thing.name)] if thing.kind == "absent" else [thing]


def is_there(document: PromptDocument, thing: Thing, kept: Kept) -> bool:
    """Whether a thing that is used is kept: enough of it to know what it is."""
    if thing.kind == "definition":
        return is_defined(document.definitions[thing.name], kept)
    if thing.kind in ("import", "config"):
        return unit_at(document, thing.name) in kept
    known = [document.definitions[name] for name in thing.candidates if name in document.definitions]
    return len(known) == len(thing.candidates) and all(is_defined(one, kept) for one in known)


def is_defined(definition: Definition, kept: Kept) -> bool:
    units = definition.units if definition.kind is SymbolKind.MODULE else ()
    return any(unit in kept for unit in (definition.header, *units))


def unit_at(document: PromptDocument, place: str) -> int:
    """The packed unit of a file that starts at `path:line`."""
    path, _, line = place.rpartition(":")
    [unit] = [u.index for u in document.units if u.path == path and u.lines and u.lines.start == int(line)]
    return unit


# ---------------------------------------------------------------- uses


def uses(document: PromptDocument) -> Iterator[Use]:
    """Everything that any packed unit uses."""
    for link in document.links:
        place = (link.path or document.units[link.unit].section, link.line)
        known = [target for target in link.targets if target in document.definitions]
        if link.via is not None:
            yield Use(link.unit, Thing("import", _place(document, link.via)), place)
        if link.absent is not None:
            yield Use(link.unit, Thing("absent", f"{link.absent.path}:{link.absent.line}"), place)
        if link.state is Resolution.UNKNOWN or (link.state is not Resolution.EXTERNAL and not known):
            yield Use(link.unit, Thing("unknown", link.name), place)
        elif link.state is Resolution.AMBIGUOUS:
            yield Use(link.unit, Thing("ambiguous", link.name, link.targets), place)
        elif link.state is Resolution.RESOLVED:
            yield from (Use(link.unit, Thing("definition", target), place) for target in known)
    yield from _spoken(document)


def _place(document: PromptDocument, unit: int) -> str:
    lines = document.units[unit].lines
    assert lines is not None
    return f"{document.units[unit].path}:{lines.start}"


def _spoken(document: PromptDocument) -> Iterator[Use]:
    """Sections of configuration files that request and log name: those whose first word they hold, else the first."""
    talk = [unit for unit in document.units if unit.section in (Section.REQUEST, Section.LOG)]
    words = {word for unit in talk for word in _words(document, unit.index)}
    for path in sorted({unit.path for unit in document.units if unit.kind is UnitKind.TEXT and unit.path}):
        sections = [unit.index for unit in document.units if unit.kind is UnitKind.TEXT and unit.path == path]
        wanted = [unit for unit in sections if _words(document, unit)[:1] and _words(document, unit)[0] in words]
        name = re.compile(rf"(?<![\w.-]){re.escape(PurePosixPath(path).name)}(?![\w-])", re.ASCII)
        for unit in talk:
            if name.search(document.unit_text(unit.index).decode("utf-8", "replace")):
                for section in wanted or sections[:1]:
                    yield Use(unit.index, Thing("config", _place(document, section)), (unit.section, None))


def _words(document: PromptDocument, unit: int) -> list[str]:
    return re.findall(r"[\w-]{3,}", document.unit_text(unit).decode("utf-8", "replace"), re.ASCII)
