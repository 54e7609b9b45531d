"""What must be said of a selection from which units were taken away: worked out from the document alone.

The rule. Taken away are some units and all kept units that have one of them in their spine. What is left is searched
for *uses*: each link of a kept unit uses its import statement, what it resolves to and what else it needs; a unit of
the request or the log uses the sections of the configuration that it names. Of what is used by what is left

- a definition is lost when its header was taken away, or the line that stands for it (a module: the last of its units);
- an import statement, a re-export or a section is lost when it was taken away, a variable when all statements that
  bind it were;
- an ambiguous name is lost when all of its candidates were there and one isn't any more: it may be the one meant.

Each of these is named as a finding, with all the places that use it, and as an error where one of these was kept in
the first two tiers (a variable: in the first, else as a note; a module and a re-export as notes). Nothing else becomes
a finding: what nobody uses (the body of a failing test, a base that no kept header names) can be taken away and is not
missed, a body is no omission either: its definition is kept as a signature now instead of whole. What only units that
were taken away used is not spoken of any more. All other lines of the report stay as they were, but for the places
that are gone.
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
STATEMENTS = ("import", "re-export", "variable", "config")


class Thing(NamedTuple):
    """What can be used. `name`: a symbol, a place (path:line), or a word with its `candidates`."""

    kind: str  # definition | import | re-export | variable | config | ambiguous | unknown
    name: str  # of a variable the place that binds it, and its name
    candidates: tuple[str, ...] = ()


class Use(NamedTuple):
    unit: int
    thing: Thing
    place: tuple[str, int | None]
    either: tuple[int, ...] = ()  # statements of which one will do; () where none is packed


def thing_of(omission: Omission) -> Thing:
    """What a line of the report is about."""
    if omission.kind == "variable":
        return Thing("variable", f"{omission.symbol} {omission.name}")
    if omission.kind in STATEMENTS:
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
            found.touched.update(named_by(document, use, kept))
        if use.unit in left:
            found.used.update(named_by(document, use, left))
            if is_there(document, use, kept) and not is_there(document, use, left):
                found.lost.setdefault(use.thing, []).append(use)
    for thing in found.used - {*found.lost}:
        whole = document.definitions[thing.name].units if thing.kind == "definition" else ()
        # Go's methods can be there without their type.
        is_cut = not removal.gone.isdisjoint(whole) and removal.before.units.issuperset(whole)
        if is_cut and is_there(document, Use(-1, thing, ("", None)), left):
            found.halved.add(thing)
    return found


def named_by(document: PromptDocument, use: Use, kept: Kept) -> list[Thing]:
    """What the report says of a use: nothing of a statement or section that is simply there; of an ambiguous name
    the candidates that are there, and the name itself where that aren't all."""
    thing, there = use.thing, is_there(document, use, kept)
    if thing.kind in STATEMENTS:
        return [] if any(unit in kept and kept[unit].why is not Why.REPAIRED for unit in use.either) else [thing]
    if thing.kind == "ambiguous":
        known = [document.definitions[name] for name in thing.candidates if name in document.definitions]
        found = [Thing("definition", one.symbol) for one in known if is_defined(one, kept)]
        return found if there else [*found, thing]
    return [thing]


def is_there(document: PromptDocument, use: Use, kept: Kept) -> bool:
    """Whether a thing that is used is kept: enough of it to know what it is."""
    thing = use.thing
    if thing.kind == "definition":
        return is_defined(document.definitions[thing.name], kept)
    if thing.kind in STATEMENTS:
        return any(unit in kept for unit in use.either)
    known = [document.definitions[name] for name in thing.candidates if name in document.definitions]
    return len(known) == len(thing.candidates) and all(is_defined(one, kept) for one in known)


def is_defined(definition: Definition, kept: Kept) -> bool:
    units = definition.units if definition.kind is SymbolKind.MODULE else ()
    return any(unit in kept for unit in (definition.header, definition.line, *units))


# ---------------------------------------------------------------- uses


def uses(document: PromptDocument) -> Iterator[Use]:
    """Everything that any packed unit uses."""
    for link in document.links:
        place = (link.path or document.units[link.unit].section, link.line)
        known = [target for target in link.targets if target in document.definitions]
        if link.via is not None:
            yield Use(link.unit, Thing("import", _place(document, link.via)), place, (link.via,))
        if link.absent is not None:
            yield Use(link.unit, Thing("import", f"{link.absent.path}:{link.absent.line}"), place)
        for need in link.needs:
            spot = f"{need.absent.path}:{need.absent.line}" if need.absent is not None else ""
            if need.units:
                spot = _place(document, max((u for u in need.units if u < link.unit), default=min(need.units)))
            name = f"{spot} {link.name}" if need.kind == "variable" else spot
            yield Use(link.unit, Thing(need.kind.value, name), place, need.units)
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
                    yield Use(unit.index, Thing("config", _place(document, section)), (unit.section, None), (section,))


def _words(document: PromptDocument, unit: int) -> list[str]:
    return re.findall(r"[\w-]{3,}", document.unit_text(unit).decode("utf-8", "replace"), re.ASCII)
