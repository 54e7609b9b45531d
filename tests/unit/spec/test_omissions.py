"""The omission check and its repair."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentctx.prompt import (
    AbsentStatement,
    Definition,
    KeptUnit,
    Need,
    NeedKind,
    Omission,
    OmissionAction,
    OmissionReport,
    PromptDocument,
    Section,
    Selection,
    SymbolState,
    Why,
)
from agentctx.source import Resolution, Role, SymbolKind, UnitKind
from agentctx.spans import LineSpan
from agentctx.spec.keep import keep as keep_closed
from agentctx.spec.omissions import check, repair
from agentctx.spec.pins import collect
from agentctx.spec.select import SelectOptions, rank_scores, select
from tests.unit.spec.builders import Builder, by_bytes

Row = tuple[str, str, str, str]


def keep(document: PromptDocument, units: dict[int, int], limit: int = 10_000) -> Selection:
    """A selection of unit -> tier, closed under spines."""
    tiers: dict[int, int] = {}
    for unit, tier in units.items():
        for other in (unit, *document.units[unit].spine):
            tiers[other] = min(tier, tiers.get(other, tier))
    kept = tuple(KeptUnit(unit, tier, Why.PINNED) for unit, tier in sorted(tiers.items()))
    return Selection(kept, limit, sum(len(document.unit_text(unit)) for unit in tiers))


def row(omission: Omission) -> Row:
    return (omission.symbol, omission.state.value, omission.severity, omission.action.value)


def rows(report: OmissionReport) -> list[Row]:
    return [row(omission) for omission in report.omissions]


def two(**target: object) -> tuple[Builder, int, int]:
    """f (whose body refers to things) and the definition g; f's body and g's header."""
    b = Builder()
    file = b.file("a.py")
    f = b.define("a.py::f", file)
    g = b.define("a.py::g", file, body=(30, 30), **target)  # type: ignore[arg-type]
    assert g.header is not None
    return b, f.units[1], g.header


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        ((), ("a.py::g", "dropped", "error", "flagged")),
        ((0,), ("a.py::g", "signature", "none", "none")),
        ((0, 1), ("a.py::g", "signature", "none", "none")),
        ((0, 1, 2), ("a.py::g", "kept", "none", "none")),
        ((1,), ("a.py::g", "signature", "none", "none")),  # the spine brings the header
    ],
)
def test_states(kept: tuple[int, ...], expected: Row) -> None:
    b, body, header = two()
    b.link(body, "a.py::g")
    document = b.build()
    report = check(document, keep(document, {body: 1} | {header + place: 3 for place in kept}))
    assert rows(report) == [expected]


@pytest.mark.parametrize(("tier", "severity"), [(0, "error"), (1, "error"), (2, "warning"), (3, "warning")])
def test_severity_is_that_of_the_strongest_reference(tier: int, severity: str) -> None:
    b, body, _ = two()
    weak = b.unit(10, UnitKind.STATEMENT, path="a.py", spine=(0,))
    b.link(weak, "a.py::g", role=Role.NAME)
    b.link(body, "a.py::g")
    document = b.build()
    [omission] = check(document, keep(document, {weak: 3, body: tier})).omissions
    assert omission.severity == severity
    assert omission.referenced_from == (("a.py", body + 1), ("a.py", weak + 1))
    assert (omission.path, omission.line, omission.kind, omission.name) == ("a.py", 4, "function", "g")


def test_outside_the_window() -> None:
    b, body, _ = two()
    b.absent("far.py::h")
    b.link(body, "far.py::h")
    document = b.build()
    assert rows(check(document, keep(document, {body: 1}))) == [("far.py::h", "dropped", "error", "not-packed")]


def test_an_import_outside_the_window_is_said_even_of_what_is_no_part_of_the_repository() -> None:
    b, body, _ = two()
    statement = AbsentStatement("a.py", 1, "import numpy as np")
    b.link(body, name="np", state=Resolution.EXTERNAL, role=Role.NAME)
    b.links[-1] = replace(b.links[-1], absent=statement)
    document = b.build()
    [omission] = check(document, keep(document, {body: 1})).omissions
    assert row(omission) == ("a.py:1", "dropped", "error", "not-packed")
    assert (omission.name, omission.kind, omission.path, omission.line) == ("import numpy as np", "import", "a.py", 1)
    assert omission.referenced_from == (("a.py", body + 1),)


def needing(kind: NeedKind) -> tuple[PromptDocument, int, tuple[int, int], int]:
    """f's body uses `x`, which needs one of two statements before it or the one after; the body, those, that."""
    b, _, _ = two()
    first, second = (b.unit(10, UnitKind.STATEMENT, path="a.py", spine=(0,)) for _ in range(2))
    user = b.unit(10, UnitKind.STATEMENT, path="a.py", spine=(0,))
    last = b.unit(10, UnitKind.STATEMENT, path="a.py", spine=(0,))
    need = Need(kind, (first, second, last))
    b.link(user, name="x", role=Role.NAME, state=Resolution.EXTERNAL, needs=(need,))
    return b.build(), user, (first, second), last


@pytest.mark.parametrize(("tier", "severity"), [(0, "error"), (1, "note"), (3, "note")])
def test_a_variable_needs_one_of_the_statements_that_bind_it(tier: int, severity: str) -> None:
    document, user, (first, second), last = needing(NeedKind.VARIABLE)
    [omission] = check(document, keep(document, {user: tier})).omissions
    assert row(omission) == (f"a.py:{second + 1}", "dropped", severity, "flagged")  # the last one before the use
    assert (omission.name, omission.kind) == ("x", "variable")
    assert omission.referenced_from == (("a.py", user + 1),)
    for one in (first, second, last):
        assert rows(check(document, keep(document, {user: tier, one: 3}))) == []


@pytest.mark.parametrize("tier", [0, 1, 3])
def test_a_statement_that_only_hands_a_name_on_is_a_note(tier: int) -> None:
    document, user, (_, second), _ = needing(NeedKind.REEXPORT)
    [omission] = check(document, keep(document, {user: tier})).omissions
    assert row(omission) == (f"a.py:{second + 1}", "dropped", "note", "flagged")
    assert (omission.name, omission.kind) == (document.unit_text(second).decode().strip(), "re-export")


def test_a_statement_outside_the_window_is_said() -> None:
    b, body, _ = two()
    need = Need(NeedKind.VARIABLE, (), AbsentStatement("a.py", 7, "x = g()"))
    b.link(body, name="x", state=Resolution.EXTERNAL, role=Role.NAME, needs=(need,))
    document = b.build()
    [omission] = check(document, keep(document, {body: 0})).omissions
    assert row(omission) == ("a.py:7", "dropped", "error", "not-packed")
    assert (omission.name, omission.kind, omission.path, omission.line) == ("x", "variable", "a.py", 7)


@pytest.mark.parametrize("kind", list(NeedKind))
def test_repair_adds_the_nearest_statement_and_only_that(kind: NeedKind) -> None:
    document, user, (_, second), _ = needing(kind)
    before = keep(document, {user: 1})
    selection, report = repair(document, by_bytes(document), before)
    assert selection.units - before.units == {second}
    assert rows(report) == [(f"a.py:{second + 1}", "kept", "note", "repaired")]


def test_repair_adds_none_where_another_one_came_with_something_else() -> None:
    b, body, _ = two()
    first, second = (b.unit(10, UnitKind.STATEMENT, path="a.py", spine=(0,)) for _ in range(2))
    b.link(body, name="x", state=Resolution.EXTERNAL, role=Role.NAME, needs=(Need(NeedKind.VARIABLE, (first, second)),))
    b.link(body, name="np", state=Resolution.EXTERNAL, role=Role.NAME, via=first)
    document = b.build()
    selection, _ = repair(document, by_bytes(document), keep(document, {body: 1}))
    assert first in selection.units
    assert second not in selection.units


def test_ambiguous_until_all_candidates_are_kept() -> None:
    b, body, header = two()
    b.define("b.py::g", b.file("b.py"))
    b.link(body, "a.py::g", "b.py::g", state=Resolution.AMBIGUOUS)
    document = b.build()
    report = check(document, keep(document, {body: 1}))
    assert rows(report) == [("g", "ambiguous", "note", "flagged")]
    assert report.omissions[0].candidates == ("a.py::g", "b.py::g")
    assert report.omissions[0].kind == "function"
    one_kept = rows(check(document, keep(document, {body: 1, header: 2})))
    assert one_kept == [("g", "ambiguous", "note", "flagged"), ("a.py::g", "signature", "none", "none")]


def test_unknown_is_said() -> None:
    b, body, _ = two()
    b.link(body, name="mystery", state=Resolution.UNKNOWN)
    b.link(body, name="numpy", state=Resolution.EXTERNAL)
    document = b.build()
    assert rows(check(document, keep(document, {body: 1}))) == [("mystery", "unknown", "note", "flagged")]


def test_a_mention_in_the_log_is_an_error() -> None:
    b, _, _ = two()
    log = b.unit(10, UnitKind.LOG, section=Section.LOG)
    b.link(log, "a.py::g", role=Role.MENTION)
    document = b.build()
    [omission] = check(document, keep(document, {log: 0})).omissions
    assert omission.severity == "error"
    assert omission.referenced_from == (("log", log + 1),)


@pytest.mark.parametrize("packed", [True, False])
def test_a_module_that_is_not_there_is_a_note_and_nothing_is_added_for_it(packed: bool) -> None:
    b, body, _ = two()
    if packed:
        b.define("lib.py", b.file("lib.py"), kind=SymbolKind.MODULE, body=())
    else:
        b.definitions["lib.py"] = Definition("lib.py", "lib", SymbolKind.MODULE, "lib.py", LineSpan(1, 9), None)
    b.link(body, "lib.py", role=Role.NAME)
    document = b.build()
    selection, report = repair(document, by_bytes(document), keep(document, {body: 1}))
    assert rows(report) == [("lib.py", "dropped", "note", "flagged" if packed else "not-packed")]
    assert {document.units[unit].path for unit in selection.units} == {"a.py"}


def test_a_module_is_there_when_anything_of_it_is() -> None:
    b, body, header = two()
    b.define("a.py", 0, kind=SymbolKind.MODULE, body=())
    b.change("a.py", units=tuple(range(1, 7)))
    other = b.unit(10, UnitKind.STATEMENT, path="z.py", spine=(b.file("z.py"),))
    b.link(other, "a.py", role=Role.NAME)
    document = b.build()
    assert rows(check(document, keep(document, {other: 3}))) == [("a.py", "dropped", "note", "flagged")]
    assert rows(check(document, keep(document, {other: 3, header: 3})))[0][1] == "signature"
    assert body in document.definitions["a.py"].units


def imported() -> tuple[PromptDocument, int, int, int]:
    """main.py's f uses lib.py::g by an import; the import, f's body and g's header."""
    b = Builder()
    g = b.define("lib.py::g", b.file("lib.py"))
    main = b.file("main.py")
    via = b.unit(b"from lib import (\n    g,\n)\n", UnitKind.IMPORT, path="main.py", spine=(main,))
    f = b.define("main.py::f", main)
    b.link(f.units[1], "lib.py::g", via=via)
    b.link(via, "lib.py::g", role=Role.IMPORT)
    return b.build(), via, f.units[1], g.units[0]


def test_a_missing_import_is_an_omission() -> None:
    document, via, body, header = imported()
    report = check(document, keep(document, {body: 1, header: 2}))
    assert rows(report) == [
        ("main.py:5", "dropped", "error", "flagged"),
        ("lib.py::g", "signature", "none", "none"),
    ]
    assert (report.findings[0].kind, report.findings[0].name) == ("import", "from lib import ( g, )")
    assert rows(check(document, keep(document, {body: 1, header: 2, via: 2}))) == [
        ("lib.py::g", "signature", "none", "none")
    ]


def test_counts_hold_every_state() -> None:
    document, _, body, header = imported()
    assert check(document, keep(document, {body: 1, header: 2})).counts == {
        "kept": 0,
        "signature": 1,
        "dropped": 1,
        "ambiguous": 0,
        "unknown": 0,
    }


# ---------------------------------------------------------------- repair


def test_repair_adds_header_spine_and_import() -> None:
    document, via, body, header = imported()
    before = keep(document, {body: 1})
    selection, report = repair(document, by_bytes(document), before)
    assert selection.units - before.units == {0, header, via}
    added = {kept.unit: (kept.why, kept.tier) for kept in selection.kept if kept.unit not in before.units}
    assert added == {0: (Why.SPINE, 2), header: (Why.REPAIRED, 2), via: (Why.REPAIRED, 2)}
    assert rows(report) == [("lib.py::g", "signature", "note", "repaired"), ("main.py:5", "kept", "note", "repaired")]
    assert report.findings == ()
    assert selection.n_tokens == sum(len(document.unit_text(unit)) for unit in selection.units)


def test_repair_can_be_switched_off() -> None:
    document, _, body, _ = imported()
    before = keep(document, {body: 1})
    selection, report = repair(document, by_bytes(document), before, enabled=False)
    assert selection is before
    assert len(report.findings) == 2


def chain() -> tuple[PromptDocument, int]:
    """start -> a -> b -> c by types in headers, and start -> loose by a tier-3 unit; all headers are 20 tokens."""
    b = Builder()
    file = b.file("a.py")
    for name in "abc":
        b.define(f"a.py::{name}", file, kind=SymbolKind.CLASS, header=20)
    b.define("a.py::loose", file, header=20)
    start = b.define("a.py::start", file)
    b.link(start.units[1], "a.py::a")
    b.link(b.definitions["a.py::a"].units[0], "a.py::b", role=Role.TYPE)
    b.link(b.definitions["a.py::b"].units[0], "a.py::c", role=Role.TYPE)
    b.link(start.units[0], "a.py::loose", role=Role.NAME)
    return b.build(), start.units[1]


@pytest.mark.parametrize(
    ("room", "added"),
    [(0, ""), (19, ""), (20, "a"), (40, "a loose"), (60, "a b loose"), (79, "a b loose"), (80, "a b c loose")],
)
def test_repair_is_a_closure_nearest_first_while_the_budget_lasts(room: int, added: str) -> None:
    document, body = chain()
    tokens = len(b"# a.py\n") + 40
    selection, report = repair(document, by_bytes(document), keep(document, {body: 1}, limit=tokens + room))
    found = {s.split("::")[1] for s, d in document.definitions.items() if d.header in selection.units} - {"start"}
    assert found == set(added.split())
    assert selection.n_tokens <= tokens + room
    dropped = {omission.name for omission in report.findings}
    assert not dropped & found
    assert dropped or room == 80


def test_errors_are_repaired_before_warnings() -> None:
    b = Builder()
    file = b.file("a.py")
    b.define("a.py::wanted_by_3", file, header=20)
    b.define("a.py::wanted_by_1", file, header=20)
    weak = b.unit(10, UnitKind.STATEMENT, path="a.py", spine=(file,))
    strong = b.unit(10, UnitKind.STATEMENT, path="a.py", spine=(file,))
    b.link(weak, "a.py::wanted_by_3")
    b.link(strong, "a.py::wanted_by_1")
    document = b.build()
    _, report = repair(document, by_bytes(document), keep(document, {weak: 3, strong: 1}, limit=7 + 20 + 20))
    assert [omission.symbol for omission in report.findings] == ["a.py::wanted_by_3"]


def test_repair_respects_the_share_of_the_tests() -> None:
    b = Builder()
    tests = b.file("t.py", section=Section.TESTS)
    b.define("t.py::helper", tests, header=20)
    test = b.define("t.py::test_f", tests, header=20, body=(60,))
    b.link(test.units[1], "t.py::helper")
    document = b.build()
    before = keep(document, {test.units[1]: 1}, limit=200)
    assert rows(repair(document, by_bytes(document), before)[1])[0][1] == "dropped"
    assert rows(repair(document, by_bytes(document), before, evidence_share=0.6)[1])[0][1] == "signature"


# ---------------------------------------------------------------- selection and repair together


def busy() -> PromptDocument:
    """Ten scored functions, each with a helper of no score of its own; and a target."""
    b = Builder()
    file = b.file("a.py")
    for number in range(10):
        b.define(f"a.py::helper{number}", file, header=20, body=(80,))
    for number in range(10):
        f = b.define(f"a.py::f{number}", file, header=20, body=(80,), score=1 + number)
        b.link(f.units[1], f"a.py::helper{number}")
    target = b.define("a.py::target", file)
    log = b.unit(20, UnitKind.LOG, section=Section.LOG)
    b.link(log, "a.py::helper0", role=Role.MENTION)
    b.frame()
    return b.build(targets=(target.symbol,), error_units=(log,))


def test_selected_units_come_with_what_they_refer_to() -> None:
    document = busy()
    tokenized = by_bytes(document)
    scores, pins, options = rank_scores(document), collect(document, tokenized), SelectOptions(500)
    selection, report = keep_closed(tokenized, scores, pins, options)
    assert report.findings == ()
    assert 0.95 * 500 <= selection.n_tokens <= 500
    plain, plain_report = repair(document, tokenized, select(tokenized, scores, pins, options))
    assert len(plain_report.findings) > 0
    assert any(kept.why is Why.SCORED for kept in selection.kept)
    assert plain.n_tokens <= 500


def test_what_the_log_names_comes_before_scored_units() -> None:
    document = busy()
    tokenized = by_bytes(document)
    limit = 84 + 20 + 7 + 40 + 20  # pins, and one header
    selection, report = keep_closed(
        tokenized, rank_scores(document), collect(document, tokenized), SelectOptions(limit)
    )
    assert report.findings == ()
    assert document.definitions["a.py::helper0"].header in selection.units
    assert report.repaired[0].symbol == "a.py::helper0"
    assert report.repaired[0].action is OmissionAction.REPAIRED
    assert report.repaired[0].state is SymbolState.SIGNATURE


def room_for_one(helper: int) -> PromptDocument:
    """Pins of 331 tokens; then `best` (30) uses a helper with a header of `helper` tokens, `other` (30) nothing."""
    b = Builder()
    file = b.file("a.py")
    b.define("a.py::target", file, header=40, body=(200,))
    b.define("a.py::helper", file, header=helper, body=())
    for name, score in (("best", 5.0), ("other", 1.0)):
        b.define(f"a.py::{name}", file, header=30, body=(), score=score)
    b.link(b.definitions["a.py::best"].units[0], "a.py::helper", role=Role.TYPE)
    b.frame()
    return b.build(targets=("a.py::target",))


@pytest.mark.parametrize(
    ("limit", "kept", "n_findings"),
    [
        (331 + 35, {"other"}, 0),  # `best` alone would fit, but not with its helper
        (331 + 65, {"other"}, 0),  # nor here: what kept code uses isn't put out by more code
        (331 + 115, {"best", "other", "helper"}, 0),
    ],
)
def test_the_rest_of_the_room_goes_to_units_that_lack_nothing(limit: int, kept: set[str], n_findings: int) -> None:
    document = room_for_one(helper=50)
    tokenized = by_bytes(document)
    selection, report = keep_closed(
        tokenized, rank_scores(document), collect(document, tokenized), SelectOptions(limit)
    )
    assert {s.split("::")[1] for s, d in document.definitions.items() if d.header in selection.units} == {
        "target",
        *kept,
    }
    assert len(report.findings) == n_findings


def configured(request: bytes) -> tuple[Builder, list[int], int]:
    """Two sections of a configuration, and a request."""
    b = Builder()
    file = b.file("settings.toml")
    texts = (b"[server]\nport = 1\n", b"[timeout]\nseconds = 3\n")
    sections = [b.unit(text, UnitKind.TEXT, path="settings.toml", spine=(file,)) for text in texts]
    return b, sections, b.unit(request, UnitKind.REQUEST, section=Section.REQUEST)


@pytest.mark.parametrize(
    ("request_text", "kept", "expected"),
    [
        (b"raise the timeout in settings.toml\n", (), [("settings.toml:3", "dropped", "error", "flagged")]),
        (b"settings.toml is wrong\n", (), [("settings.toml:2", "dropped", "error", "flagged")]),
        (b"raise the timeout in settings.toml\n", (1,), []),
        (b"the timeout is too low\n", (), []),
    ],
)
def test_configuration_that_is_named_must_be_there(
    request_text: bytes, kept: tuple[int, ...], expected: list[Row]
) -> None:
    b, sections, request = configured(request_text)
    document = b.build()
    selection = keep(document, {request: 0, **{sections[n]: 2 for n in kept}})
    assert rows(check(document, selection)) == expected
    if expected:
        [omission] = check(document, selection).omissions
        assert omission.kind == "config"
        assert omission.name.endswith("in settings.toml")
        assert omission.referenced_from == (("request", None),)


def test_configuration_that_is_named_is_repaired() -> None:
    b, sections, request = configured(b"raise the timeout in settings.toml\n")
    document = b.build()
    selection = keep(document, {request: 0}, limit=500)
    repaired, report = repair(document, by_bytes(document), selection)
    assert sections[1] in repaired.units
    assert rows(report) == [("settings.toml:3", "kept", "note", "repaired")]
