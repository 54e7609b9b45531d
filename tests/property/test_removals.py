"""The omission check after a removal: what kept text still uses and has lost is named, and nothing else.

`tests.removals` says the rule and works out what must be named. Some five hundred removals from real selections of
projects in all languages; AGENTCTX_REMOVALS=1000 asks for at least so many.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import count
from random import Random

import pytest

from agentctx.prompt import Omission, OmissionReport, PromptDocument, SymbolState, Why
from agentctx.source import RepoGraph, Resolution, SymbolKind, UnitKind
from agentctx.spec.check import check
from tests.projects import PROJECTS, random_selections
from tests.removals import Expected, Removal, Thing, thing_of

REMOVALS = int(os.environ.get("AGENTCTX_REMOVALS", "500"))  # read before `own_world` takes it away
EACH = 7  # from one selection


@cache
def removals(project: str) -> tuple[tuple[Removal, OmissionReport, OmissionReport], ...]:
    """Removals of pinned units and signature lines of a project, with the check before and after."""
    found: list[tuple[Removal, OmissionReport, OmissionReport]] = []
    for number in count():
        rng = Random(f"{project}:{number}")
        for graph, fitter, selection in random_selections(project, rng):
            document, index = fitter.full.document, fitter.index
            check_links(graph, document)
            before = check(document, selection, index=index)
            pinned = [kept.unit for kept in selection.kept if kept.why is Why.PINNED]
            lines = [one for one in selection.units if document.units[one].kind is UnitKind.SIGNATURE]
            for unit in (*rng.choices(pinned, k=EACH), *lines[:1]):
                removal = Removal.of(document, selection, unit)
                found.append((removal, before, check(document, removal.after, index=index)))
        if len(found) >= REMOVALS / len(PROJECTS):
            break
    return tuple(found)


def check_links(graph: RepoGraph, document: PromptDocument) -> None:
    """The document's links are those of the repository: no use in packed code was lost on the way."""
    places = {(u.path, u.lines.start): u.index for u in document.units if u.path is not None and u.lines is not None}
    wanted = Counter()
    for link in graph.links:
        start = graph.files[link.reference.path].units[link.reference.unit].lines.start
        unit = places.get((link.reference.path, start))
        if unit is not None and link.state is not Resolution.EXTERNAL:
            wanted[unit, link.reference.name, link.reference.line, link.state, link.targets] += 1
    packed = [link for link in document.links if link.path is not None and link.state is not Resolution.EXTERNAL]
    assert Counter((link.unit, link.name, link.line, link.state, link.targets) for link in packed) == wanted


def by_thing(report: OmissionReport) -> dict[Thing, Omission]:
    found = {thing_of(omission): omission for omission in report.omissions}
    assert len(found) == len(report.omissions), "a thing is named twice"
    return found


@pytest.mark.parametrize("project", PROJECTS)
def test_what_was_removed_is_named_and_nothing_else(project: str) -> None:
    for removal, first, second in removals(project):
        before, after, wanted = by_thing(first), by_thing(second), removal.expected
        assert {*after} == wanted.used
        findings = {thing for thing, omission in after.items() if omission.is_finding}
        assert findings - {thing for thing, omission in before.items() if omission.is_finding} == {*wanted.lost}
        check_lost(removal, after, wanted)
        halved = {thing for thing in after if before.get(thing, after[thing]).state is not after[thing].state}
        assert halved - {*wanted.lost} == wanted.halved
        assert all(after[thing].state is SymbolState.SIGNATURE for thing in wanted.halved)
        check_others(before, after, wanted)


def check_lost(removal: Removal, after: dict[Thing, Omission], wanted: Expected) -> None:
    """Each thing that is missed: where it is, who uses it, how bad it is."""
    tiers = {kept.unit: kept.tier for kept in removal.after.kept}
    for thing, uses in wanted.lost.items():
        said = after[thing]
        assert said.state is (SymbolState.AMBIGUOUS if thing.kind == "ambiguous" else SymbolState.DROPPED)
        assert {*said.referenced_from} == {use.place for use in uses}
        is_note = thing.kind in ("ambiguous", "re-export") or said.kind == SymbolKind.MODULE
        is_variable = thing.kind == "variable"
        is_error = any(tiers[use.unit] <= (0 if is_variable else 1) for use in uses)
        is_note = is_note or (is_variable and not is_error)
        assert said.severity == ("note" if is_note else "error" if is_error else "warning")
        if thing.kind == "definition":
            definition = removal.document.definitions[thing.name]
            assert (said.name, said.kind) == (definition.name, definition.kind)
            assert (said.path, said.line) == (definition.path, definition.lines.start)
        elif thing.kind != "ambiguous":
            assert f"{said.path}:{said.line}" == thing.name.partition(" ")[0]
            assert said.name.endswith(thing.name.partition(" ")[2])


def check_others(before: dict[Thing, Omission], after: dict[Thing, Omission], wanted: Expected) -> None:
    """The lines of the report that the removal has nothing to do with are as they were."""
    for thing, said in after.items():
        if thing in wanted.lost or thing in wanted.halved:
            continue
        old = before[thing]
        if thing in wanted.touched:  # some of those who use it are gone
            assert {*said.referenced_from} <= {*old.referenced_from}
            said = replace(said, referenced_from=old.referenced_from, severity=old.severity)
        assert said == old


def test_the_removals_are_of_all_kinds() -> None:
    """So many that each kind is among them: what is lost, what is only halved, and what nobody misses."""
    done = [removal for project in PROJECTS for removal, _, _ in removals(project)]
    assert len(done) >= REMOVALS
    lost = Counter(kind for removal in done for kind in {thing.kind for thing in removal.expected.lost})
    assert {*lost} == {"definition", "import", "re-export", "variable", "config", "ambiguous"}
    assert min(lost.values()) >= REMOVALS / 500
    assert lost["definition"] > REMOVALS / 10
    assert sum(not removal.expected.lost for removal in done) > REMOVALS / 10
    assert sum(bool(removal.expected.halved) for removal in done) > REMOVALS / 20
