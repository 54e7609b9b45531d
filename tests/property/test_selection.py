"""Properties of pins, selection, check and repair on arbitrary small prompts."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from agentctx.config import OverBudget
from agentctx.errors import BudgetError
from agentctx.prompt import OmissionReport, PromptDocument, Section, Selection, SymbolState, Why
from agentctx.source import Resolution, Role, SymbolKind, UnitKind
from agentctx.spec.check import state_of
from agentctx.spec.index import PromptIndex
from agentctx.spec.keep import keep as keep_closed
from agentctx.spec.omissions import check, repair
from agentctx.spec.pins import collect
from agentctx.spec.select import SelectOptions, rank_scores, select
from agentctx.spec.why import explain
from tests.unit.spec.builders import Builder, by_bytes

Draw = Callable[[st.SearchStrategy[int]], int]
ROLES = (Role.CALL, Role.TYPE, Role.BASE, Role.NAME, Role.ATTRIBUTE, Role.DECORATOR, Role.FIXTURE)
STATES = (Resolution.RESOLVED,) * 6 + (Resolution.AMBIGUOUS, Resolution.UNKNOWN)

SETTINGS = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
LIMITS = st.integers(90, 900)


@st.composite
def documents(draw: Draw) -> PromptDocument:
    """Two code files and a test file with classes, functions, imports, elisions and links between them."""
    b = Builder()
    vias = []
    for path, section in (("a.py", Section.CODE), ("b.py", Section.EDITED), ("t.py", Section.TESTS)):
        file = b.file(path, section=section)
        gap = b.unit(9, UnitKind.ELISION, section=section, path=path, spine=(file,))
        vias.append(b.unit(12, UnitKind.IMPORT, section=section, path=path, spine=(file, gap)))
        for number in range(draw(st.integers(0, 3))):
            _define(draw, b, file, f"{path}::d{number}", is_test=section is Section.TESTS)
    b.absent("far.py::gone")
    logs = [b.unit(draw(st.integers(1, 60)), UnitKind.LOG, section=Section.LOG) for _ in range(3)]
    symbols = sorted(b.definitions)
    users = [unit.index for unit in b.units if unit.kind not in (UnitKind.FILE, UnitKind.ELISION)]
    for _ in range(draw(st.integers(0, 14))):
        _link(draw, b, users, symbols, vias)
    b.frame()
    packed = [symbol for symbol in symbols if b.definitions[symbol].units]
    tests = [symbol for symbol in packed if b.definitions[symbol].is_test]
    return b.build(
        targets=tuple(packed[:: draw(st.integers(1, 4))][: draw(st.integers(0, 2))]),
        frames=tuple(packed[: draw(st.integers(0, 2))]),
        frame_units=tuple(users[: draw(st.integers(0, 3))]),
        failing_tests=tuple(tests[: draw(st.integers(0, 2))]),
        error_units=tuple(logs[: draw(st.integers(0, 3))]),
        user_pins=tuple(users[3 : 3 + draw(st.integers(0, 2))]),
    )


def _define(draw: Draw, b: Builder, file: int, symbol: str, *, is_test: bool) -> None:
    body = [draw(st.integers(1, 80)) for _ in range(draw(st.integers(0, 3)))]
    score = draw(st.integers(0, 3))
    if draw(st.integers(0, 1)):
        b.define(symbol, file, kind=SymbolKind.CLASS, body=(), score=score, is_test=is_test)
        for name in ("m", "n")[: draw(st.integers(0, 2))]:
            inner = f"{symbol}.{name}"
            b.define(inner, file, kind=SymbolKind.METHOD, body=body, parent=symbol, score=score, is_test=is_test)
    else:
        b.define(symbol, file, header=draw(st.integers(2, 40)), body=body, score=score, is_test=is_test)


def _link(draw: Draw, b: Builder, users: list[int], symbols: list[str], vias: list[int]) -> None:
    state = STATES[draw(st.integers(0, len(STATES) - 1))]
    n_targets = {Resolution.RESOLVED: 1, Resolution.AMBIGUOUS: 2, Resolution.UNKNOWN: 0}[state]
    first = draw(st.integers(0, len(symbols) - 1))
    targets = [symbols[(first + step) % len(symbols)] for step in range(n_targets)]
    unit = users[draw(st.integers(0, len(users) - 1))]
    via = next((via for via in vias if b.units[via].path == b.units[unit].path), None)
    b.link(
        unit,
        *targets,
        role=ROLES[draw(st.integers(0, len(ROLES) - 1))],
        via=via if draw(st.integers(0, 2)) == 0 and via != unit else None,
        state=state,
        name=None if targets else "mystery",
    )


def choose(document: PromptDocument, limit: int, mode: OverBudget = OverBudget.REDUCE) -> Selection:
    tokenized = by_bytes(document)
    try:
        return select(tokenized, rank_scores(document), collect(document, tokenized), SelectOptions(limit, mode))
    except BudgetError:
        assume(False)
        raise


def assert_sound(document: PromptDocument, selection: Selection) -> None:
    """Closed under spines, counted right, and nothing kept that only serves what isn't kept."""
    kept = selection.units
    served = {other for unit in kept for other in document.units[unit].spine}
    for unit in kept:
        assert set(document.units[unit].spine) <= kept
        if document.units[unit].kind in (UnitKind.FILE, UnitKind.ELISION):
            assert unit in served
    assert selection.n_tokens == sum(len(document.unit_text(unit)) for unit in kept)


def evidence(document: PromptDocument, selection: Selection, *, above_tier: int = -1) -> int:
    sections = (Section.LOG, Section.TESTS)
    kept = (k.unit for k in selection.kept if k.tier > above_tier)
    return sum(len(document.unit_text(unit)) for unit in kept if document.units[unit].section in sections)


@SETTINGS
@given(documents(), LIMITS)
def test_the_limit_is_hard(document: PromptDocument, limit: int) -> None:
    selection = choose(document, limit)
    assert_sound(document, selection)
    assert selection.n_tokens <= limit
    tier_0 = evidence(document, selection) - evidence(document, selection, above_tier=0)
    assert evidence(document, selection) <= max(limit // 2, tier_0)


@SETTINGS
@given(documents(), LIMITS)
def test_what_is_left_out_does_not_fit(document: PromptDocument, limit: int) -> None:
    selection = choose(document, limit)
    support = PromptIndex(document).is_support
    for unit in document.units:
        missing = [u for u in (unit.index, *unit.spine) if u not in selection.units]
        if not missing or support[unit.index]:
            continue
        cost = sum(len(document.unit_text(u)) for u in missing)
        is_evidence = unit.section in (Section.LOG, Section.TESTS)
        assert selection.n_tokens + cost > limit or (is_evidence and evidence(document, selection) + cost > limit // 2)


@SETTINGS
@given(documents(), LIMITS, st.sampled_from(list(OverBudget)))
def test_every_pin_is_whole_reduced_or_said(document: PromptDocument, limit: int, mode: OverBudget) -> None:
    tokenized = by_bytes(document)
    pins = collect(document, tokenized)
    selection = choose(document, limit, mode)
    said = " ".join(finding.message for finding in selection.findings if finding.code == "budget")
    reduced = {kept.unit for kept in selection.kept if kept.reduced}
    for pin in pins.pins:
        if set(pin.units) <= selection.units:
            continue
        assert pin.tier > 0
        assert pin.reason.value in said
        if pin.tier == 1:
            assert pin.subject in said
    assert not reduced or said


@SETTINGS
@given(documents(), LIMITS, st.sampled_from([0.0, 0.2, 0.5]))
def test_pins_on_a_lead_hold_less_and_it_is_said(document: PromptDocument, limit: int, share: float) -> None:
    tokenized = by_bytes(document)
    pins = collect(document, tokenized)
    try:
        selection = select(tokenized, rank_scores(document), pins, SelectOptions(limit, lead_share=share))
    except BudgetError:
        assume(False)
        raise
    assert_sound(document, selection)
    assert selection.n_tokens <= limit
    said = " ".join(finding.message for finding in selection.findings if finding.code == "budget")
    for pin in pins.pins:
        if not set(pin.units) <= selection.units:
            assert pin.tier > 0
            assert pin.reason.value in said


@SETTINGS
@given(documents(), LIMITS)
def test_tier_1_before_tier_2_before_scores(document: PromptDocument, limit: int) -> None:
    selection = choose(document, limit)
    pins = collect(document, by_bytes(document)).pins
    lost = [pin for pin in pins if pin.tier == 1 and pin.core and not set(pin.core) <= selection.units]
    # A tier-1 group that isn't even there as its core would not fit next to the other pinned units.
    pinned = {k.unit for k in selection.kept if k.why is Why.PINNED}
    size = sum(len(document.unit_text(unit)) for unit in pinned)
    for pin in lost:
        more = sum(len(document.unit_text(unit)) for unit in pin.core if unit not in pinned)
        in_evidence = any(document.units[unit].section in (Section.LOG, Section.TESTS) for unit in pin.core)
        assert size + more > limit or in_evidence


@SETTINGS
@given(documents(), LIMITS)
def test_everything_is_deterministic(document: PromptDocument, limit: int) -> None:
    first, second = choose(document, limit), choose(document, limit)
    assert first == second
    tokenized = by_bytes(document)
    assert repair(document, tokenized, first) == repair(document, tokenized, second)
    assert explain(tokenized, first) == explain(tokenized, second)
    assert set(explain(tokenized, first)) == first.units


@SETTINGS
@given(documents(), LIMITS)
def test_more_budget_never_loses_a_pin_at_the_need(document: PromptDocument, limit: int) -> None:
    raised = choose(document, limit, OverBudget.RAISE)
    everything = {unit for pin in collect(document, by_bytes(document)).pins for unit in pin.units}
    over_share = any("share" in finding.message for finding in raised.findings)
    assert over_share or everything <= raised.units


# ---------------------------------------------------------------- check and repair


def repairable(document: PromptDocument, report: OmissionReport) -> list[tuple[int, ...]]:
    """For each finding that could be repaired, the units that it needs."""
    index = PromptIndex(document)
    found = []
    for omission in report.findings:
        if omission.kind == "import":
            [via] = [
                u.index for u in document.units if u.lines and (u.path, u.lines.start) == (omission.path, omission.line)
            ]
            found.append(index.closure((via,)))
        elif omission.state is SymbolState.DROPPED and index.signature(omission.symbol):
            found.append(index.signature(omission.symbol))
    return found


@SETTINGS
@given(documents(), LIMITS, st.booleans())
def test_a_repaired_selection_holds_nothing_that_could_still_be_repaired(
    document: PromptDocument, limit: int, together: bool
) -> None:
    tokenized = by_bytes(document)
    selection = choose(document, limit)
    if together:
        pins = collect(document, tokenized)
        repaired, report = keep_closed(tokenized, rank_scores(document), pins, SelectOptions(limit))
    else:
        repaired, report = repair(document, tokenized, selection)
        assert selection.units <= repaired.units
    assert_sound(document, repaired)
    assert repaired.n_tokens <= limit
    assert report == check(document, repaired)
    for units in repairable(document, report):
        cost = sum(len(document.unit_text(unit)) for unit in units if unit not in repaired.units)
        is_evidence = any(document.units[unit].section in (Section.LOG, Section.TESTS) for unit in units)
        assert repaired.n_tokens + cost > limit or is_evidence
    assert repair(document, tokenized, repaired) == (repaired, report)


def whole(document: PromptDocument, limit: int) -> Selection:
    """A repaired selection with all the room there is, made from one with little."""
    small = choose(document, limit)
    roomy = Selection(small.kept, 10**9, small.n_tokens)
    return repair(document, by_bytes(document), roomy)[0]


@SETTINGS
@given(documents(), LIMITS)
def test_with_room_no_packed_definition_is_dropped(document: PromptDocument, limit: int) -> None:
    report = check(document, whole(document, limit))
    assert repairable(document, report) == []
    dropped = [omission for omission in report.findings if omission.state is SymbolState.DROPPED]
    assert {omission.symbol for omission in dropped} <= {"far.py::gone"}


@SETTINGS
@given(documents(), LIMITS, st.integers(0, 10**6))
def test_a_deleted_unit_is_named_and_nothing_else(document: PromptDocument, limit: int, which: int) -> None:
    selection = whole(document, limit)
    gone = selection.kept[which % len(selection.kept)].unit
    rest = Selection(
        tuple(kept for kept in selection.kept if kept.unit != gone),
        selection.limit,
        selection.n_tokens - len(document.unit_text(gone)),
    )
    kept = {unit.unit: unit for unit in rest.kept}
    links = [link for link in document.links if link.unit in kept]
    undefined = {
        target
        for link in links
        if link.state is Resolution.RESOLVED
        for target in link.targets
        if state_of(document.definitions[target], kept) is SymbolState.DROPPED
    }
    assert undefined - {"far.py::gone"} <= {s for s, d in document.definitions.items() if d.header == gone}
    imports = {
        (document.units[link.via].path, document.units[link.via].lines.start)  # type: ignore[union-attr]
        for link in links
        if link.via == gone
    }
    findings = check(document, rest).findings
    assert {o.symbol for o in findings if o.state is SymbolState.DROPPED and o.kind != "import"} == undefined
    assert {(o.path, o.line) for o in findings if o.kind == "import"} == imports


@SETTINGS
@given(documents(), LIMITS, st.integers(0, 2**32 - 1))
def test_scores_do_not_change_what_is_pinned(document: PromptDocument, limit: int, seed: int) -> None:
    tokenized = by_bytes(document)
    pins = collect(document, tokenized)
    scores = np.random.default_rng(seed).random(len(document.units))
    usual = choose(document, limit)
    other = select(tokenized, scores, pins, SelectOptions(limit))
    pinned = [{k.unit for k in s.kept if k.why is Why.PINNED} for s in (usual, other)]
    assert pinned[0] == pinned[1]
