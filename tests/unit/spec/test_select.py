"""Selection under a budget; in these prompts a unit costs as many tokens as it has bytes."""

from __future__ import annotations

import numpy as np
import pytest

from agentctx.config import OverBudget
from agentctx.errors import BudgetError
from agentctx.prompt import KeptUnit, Pins, PromptDocument, Section, Selection, Why
from agentctx.source import Resolution, Role, SymbolKind, UnitKind
from agentctx.spec.omissions import repair
from agentctx.spec.pins import collect
from agentctx.spec.select import SelectOptions, rank_scores, select
from agentctx.spec.why import explain
from tests.unit.spec.builders import Builder, by_bytes

FIXED = 84  # request and tail of Builder.frame()


def run(
    document: PromptDocument,
    limit: int,
    over_budget: OverBudget = OverBudget.REDUCE,
    *,
    evidence_share: float = 0.5,
) -> Selection:
    tokenized = by_bytes(document)
    options = SelectOptions(limit, over_budget, evidence_share)
    return select(tokenized, rank_scores(document), collect(document, tokenized), options)


def symbols(document: PromptDocument, selection: Selection) -> dict[str, int]:
    """How many units of each definition are kept."""
    return {
        symbol: n
        for symbol, definition in document.definitions.items()
        if (n := len(selection.units & set(definition.units)))
    }


# ---------------------------------------------------------------- scores


def test_bad_unit_scores_and_options_are_refused() -> None:
    b = Builder()
    b.unit(b"ab")
    document = b.build()
    tokenized = by_bytes(document)
    with pytest.raises(ValueError, match="1 units"):
        select(tokenized, np.zeros(2), collect(document, tokenized), SelectOptions(9))
    with pytest.raises(ValueError, match="limit 0"):
        SelectOptions(0)


# ---------------------------------------------------------------- tier 3


def three(scores: tuple[float, float, float]) -> PromptDocument:
    """Three functions of 40 tokens in one file (`# a.py`: 7)."""
    b = Builder()
    file = b.file("a.py")
    for name, score in zip("fgh", scores, strict=True):
        b.define(f"a.py::{name}", file, header=10, body=(30,), score=score)
    b.frame()
    return b.build()


def test_best_scores_first_each_with_its_spine() -> None:
    document = three((1.0, 3.0, 2.0))
    selection = run(document, FIXED + 7 + 80)
    assert symbols(document, selection) == {"a.py::g": 2, "a.py::h": 2}
    assert selection.n_tokens == FIXED + 7 + 80
    by_unit = {kept.unit: kept for kept in selection.kept}
    assert (by_unit[0].why, by_unit[0].tier, by_unit[0].score) == (Why.SPINE, 3, 0.0)
    assert (by_unit[3].why, by_unit[3].tier, by_unit[3].score) == (Why.SCORED, 3, 3.0)


def test_equal_scores_go_by_position() -> None:
    document = three((1.0, 1.0, 1.0))
    assert symbols(document, run(document, FIXED + 7 + 40)) == {"a.py::f": 2}


def test_what_is_too_large_is_skipped_and_smaller_goes_on() -> None:
    document = three((3.0, 2.0, 1.0))
    selection = run(document, FIXED + 7 + 40 + 25)  # the second body doesn't fit, its header does
    assert symbols(document, selection) == {"a.py::f": 2, "a.py::g": 1, "a.py::h": 1}


def test_a_file_line_is_never_kept_alone() -> None:
    selection = run(three((1.0, 1.0, 1.0)), FIXED + 10)
    assert selection.n_tokens == FIXED
    assert {kept.tier for kept in selection.kept} == {0}


def test_a_block_header_and_an_elision_need_what_they_are_for() -> None:
    b = Builder()
    file = b.file("a.py")
    gap = b.unit(12, UnitKind.ELISION, path="a.py", spine=(file,), score=9.0)
    block = b.unit(5, UnitKind.BLOCK, path="a.py", spine=(file, gap), score=9.0)
    b.unit(500, path="a.py", spine=(block,), score=9.0)
    other = b.unit(20, path="a.py", spine=(file,), score=1.0)
    b.frame()
    assert run(b.build(), FIXED + 100).units == {file, other, 5, 6}


def test_everything_when_everything_fits() -> None:
    document = three((1.0, 0.0, -1.0))
    assert len(run(document, 10_000).kept) == len(document.units)


# ---------------------------------------------------------------- the share of log and tests


def evidence(n_lines: int, *, test_body: tuple[int, ...] = (100, 100)) -> Builder:
    """A 300-token target (`# a.py`: 7), a failing test (`# t.py`: 7, header 10), `n_lines` error lines of 50."""
    b = Builder()
    b.define("a.py::f", b.file("a.py"), body=(290,))
    b.define("t.py::test_f", b.file("t.py", section=Section.TESTS), body=test_body, is_test=True)
    for _ in range(n_lines):
        b.unit(50, UnitKind.LOG, section=Section.LOG)
    b.frame()
    return b


def build(b: Builder) -> PromptDocument:
    lines = tuple(unit.index for unit in b.units if unit.section is Section.LOG)
    return b.build(targets=("a.py::f",), failing_tests=("t.py::test_f",), error_units=lines)


def n_evidence(document: PromptDocument, selection: Selection) -> int:
    units = (document.units[unit] for unit in selection.units)
    return sum(len(unit.span) for unit in units if unit.section in (Section.LOG, Section.TESTS))


def test_log_and_tests_within_their_share_are_whole() -> None:
    document = build(evidence(2))
    selection = run(document, 1000)
    assert n_evidence(document, selection) == 317
    assert selection.findings == ()
    assert not any(kept.reduced for kept in selection.kept)


def test_a_test_above_the_share_is_reduced_and_said() -> None:
    document = build(evidence(2))
    selection = run(document, 620)  # 608 once the test is reduced; its share is 310
    assert symbols(document, selection) == {"a.py::f": 2, "t.py::test_f": 2}
    assert n_evidence(document, selection) == 217
    assert {kept.unit for kept in selection.kept if kept.reduced} == {3, 4, 6}
    messages = [finding.message for finding in selection.findings]
    assert "log and tests need 317 tokens, their share of the limit 620 is 310" in messages
    assert "failing-test t.py::test_f: reduced to 3 of 4 units" in messages
    assert {(f.code, f.severity) for f in selection.findings} == {("budget", "warning")}


def test_the_last_error_lines_give_way_to_the_test() -> None:
    document = build(evidence(20))
    selection = run(document, 840)
    kept_lines = [unit for unit in selection.units if document.units[unit].section is Section.LOG]
    assert sorted(kept_lines) == [7, 8, 9, 10]  # 4 x 50 of half the share (210), and 217 for the test
    assert symbols(document, selection)["t.py::test_f"] == 3
    assert any(finding.message.startswith("log-evidence: 16 dropped") for finding in selection.findings)


def test_the_share_binds_scored_units_too() -> None:
    b = Builder()
    tests = b.file("t.py", section=Section.TESTS)
    for _ in range(10):
        b.unit(50, path="t.py", section=Section.TESTS, spine=(tests,), score=5.0)
    b.frame()
    document = b.build()
    assert n_evidence(document, run(document, 400)) == 157
    assert n_evidence(document, run(document, 400, evidence_share=1.0)) == 307


# ---------------------------------------------------------------- pins above the limit


def crowded(*, framed: bool = True) -> Builder:
    """target 300, two callers of 200 (cores: 60), four callees of 10 at distance 1, four at distance 2."""
    b = Builder()
    main = b.file("a.py")
    f = b.define("a.py::f", main, header=20, body=(280,))
    for name in ("c1", "c2"):
        caller = b.define(f"a.py::{name}", main, header=20, body=(40, 140))
        b.link(caller.units[1], "a.py::f")
        for number in range(2):
            b.define(f"a.py::{name}_far{number}", main, body=(80,))
            b.link(caller.units[2], f"a.py::{name}_far{number}")
    for number in range(4):
        b.define(f"a.py::near{number}", main, body=(80,))
        b.link(f.units[1], f"a.py::near{number}")
    if framed:
        b.frame()
    return b


NEED = FIXED + 7 + 300 + 2 * 200 + 8 * 10


def kept_whole(limit: int) -> tuple[dict[str, int], Selection]:
    document = crowded().build(targets=("a.py::f",))
    selection = run(document, limit)
    assert selection.n_tokens <= limit
    return symbols(document, selection), selection


def test_at_the_need_nothing_is_reduced() -> None:
    found, selection = kept_whole(NEED)
    assert selection.findings == ()
    assert selection.n_tokens == NEED
    assert (found["a.py::f"], found["a.py::c1"], found["a.py::c2"]) == (2, 3, 3)


def test_callers_give_way_first_the_last_one_first() -> None:
    found, selection = kept_whole(NEED - 1)
    assert (found["a.py::f"], found["a.py::c1"], found["a.py::c2"]) == (2, 3, 2)
    assert {f"a.py::near{n}" for n in range(4)} | {f"a.py::c{c}_far{n}" for c in (1, 2) for n in (0, 1)} <= set(found)
    messages = [finding.message for finding in selection.findings]
    assert messages[0] == f"the pins need {NEED} tokens, the limit is {NEED - 1}: see what was reduced or dropped"
    assert messages[1:] == ["caller a.py::c2: reduced to 3 of 4 units"]
    c2 = crowded().definitions["a.py::c2"].units
    assert [kept.unit for kept in selection.kept if kept.reduced] == list(c2[:2])  # the file's line isn't: c1 is whole


def test_then_tier_2_farthest_first() -> None:
    found, selection = kept_whole(NEED - 2 * 140 - 15)
    assert (found["a.py::f"], found["a.py::c1"], found["a.py::c2"]) == (2, 2, 2)
    assert {f"a.py::near{n}" for n in range(4)} <= set(found)
    assert sum("far" in name for name in found) == 2
    assert selection.findings[-1].message == "callee: 2 dropped: a.py::c2_far0, a.py::c2_far1"


def test_targets_give_way_last_but_before_callers_are_lost() -> None:
    found, selection = kept_whole(FIXED + 7 + 300 + 60)
    assert (found["a.py::f"], found["a.py::c1"], found["a.py::c2"]) == (1, 3, 2)
    assert "target a.py::f: reduced to 2 of 3 units" in [finding.message for finding in selection.findings]


def test_what_fits_after_all_comes_back() -> None:
    # Reducing the target frees 280, more than was wanted: the signatures that had gone before it return.
    found, _ = kept_whole(FIXED + 7 + 300 + 60)
    assert {f"a.py::near{n}" for n in range(4)} <= set(found)


def test_when_even_the_cores_are_too_large_whole_groups_go_and_the_target_last() -> None:
    found, selection = kept_whole(FIXED + 30)
    assert found == {"a.py::f": 1}
    assert any(f.message == "caller: 2 dropped: a.py::c1, a.py::c2" for f in selection.findings)


def test_a_target_that_cannot_be_whole_grows_as_far_as_there_is_room() -> None:
    b = Builder()
    b.define("a.py::f", b.file("a.py"), header=20, body=(100, 400, 60))
    b.frame()
    document = b.build(targets=("a.py::f",))
    selection = run(document, 300)
    assert selection.units == {0, 1, 2, 4, 5, 6}
    assert [kept.unit for kept in selection.kept if kept.reduced] == [0, 1, 2, 4]


def test_the_best_guess_is_whole_longest() -> None:
    b = Builder()
    file = b.file("a.py")
    b.define("a.py::second", file, header=20, body=(100,))
    b.define("a.py::first", file, header=20, body=(100,))
    b.frame()
    document = b.build(targets=("a.py::first", "a.py::second"), targets_guessed=True)
    assert symbols(document, run(document, FIXED + 7 + 150)) == {"a.py::first": 2, "a.py::second": 1}


def test_a_test_whose_core_is_too_large_keeps_what_fits() -> None:
    document = build(evidence(0, test_body=(50, 50, 400)))
    selection = run(document, 520)
    assert symbols(document, selection)["t.py::test_f"] == 3
    assert n_evidence(document, selection) == 117


def test_imports_outlast_fields_at_the_same_distance() -> None:
    b = Builder()
    lib = b.file("lib.py")
    owner = b.define("lib.py::C", lib, kind=SymbolKind.CLASS, header=10, body=())
    b.define("lib.py::C.size", lib, kind=SymbolKind.FIELD, header=10, body=(), parent="lib.py::C")
    file = b.file("a.py")
    via = b.unit(10, UnitKind.IMPORT, path="a.py", spine=(file,))
    far = b.define("a.py::f", file, header=10, body=(20,))
    caller = b.define("a.py::g", file, header=10, body=(20,))
    b.link(caller.units[1], "a.py::f", via=via)
    b.link(far.units[1], "lib.py::C.size", role=Role.ATTRIBUTE)
    b.frame()
    document = b.build(targets=("a.py::f",))
    selection = run(document, FIXED + 7 + 60 + 10)
    assert via in selection.units
    assert owner.header not in selection.units


def test_frames_before_failing_tests_before_targets() -> None:
    b = Builder()
    main = b.file("a.py")
    b.define("a.py::f", main, header=20, body=(280,))
    b.define("a.py::frame", main, header=20, body=(200, 30))
    b.frame()
    document = b.build(targets=("a.py::f",), frames=("a.py::frame",), frame_units=(5,))
    selection = run(document, FIXED + 7 + 300 + 50)
    assert symbols(document, selection) == {"a.py::f": 2, "a.py::frame": 2}
    assert 5 in selection.units


# ---------------------------------------------------------------- --over-budget


def test_raise() -> None:
    document = crowded().build(targets=("a.py::f",))
    selection = run(document, 200, OverBudget.RAISE)
    assert (selection.limit, selection.n_tokens) == (NEED, NEED)
    assert [f.message for f in selection.findings] == [
        f"the pins need {NEED} tokens, the limit is 200: it was raised to {NEED}"
    ]


def test_dense() -> None:
    document = crowded().build(targets=("a.py::f",))
    selection = run(document, 200, OverBudget.DENSE)
    assert len(selection.kept) == len(document.units)
    assert selection.n_tokens == len(document.text)
    assert selection.limit == 200
    assert str(len(document.text)) in selection.findings[0].message


def test_fail() -> None:
    document = crowded().build(targets=("a.py::f",))
    with pytest.raises(BudgetError, match=f"{NEED} tokens, the limit is 200") as caught:
        run(document, 200, OverBudget.FAIL)
    assert caught.value.exit_code == 2
    assert caught.value.hint == f"give at least --budget {NEED} (and --window, if given)"
    assert run(document, NEED, OverBudget.FAIL).n_tokens == NEED


@pytest.mark.parametrize("mode", [OverBudget.REDUCE, OverBudget.FAIL])
def test_tier_0_above_the_limit(mode: OverBudget) -> None:
    document = three((1, 1, 1))
    with pytest.raises(BudgetError, match=f"{FIXED} tokens, the limit is {FIXED - 1}"):
        run(document, FIXED - 1, mode)


# ---------------------------------------------------------------- why


def test_a_sentence_for_every_kept_unit() -> None:
    b = crowded(framed=False)
    b.define("a.py::Box", 0, kind=SymbolKind.CLASS, body=(), score=0.0)
    b.link(b.definitions["a.py::f"].units[0], "a.py::Box", role=Role.TYPE)
    lone = b.file("z.py")
    best = b.unit(30, path="z.py", spine=(lone,), score=2.5)
    b.frame()
    document = b.build(targets=("a.py::f",))
    selection = run(document, len(document.text))
    sentences = explain(by_bytes(document), selection)
    assert set(sentences) == selection.units
    assert sentences[1] == "to be edited: f"
    assert sentences[document.definitions["a.py::c1"].units[2]] == "calls the target f (caller c1)"
    assert sentences[document.definitions["a.py::near0"].units[0]] == "signature of near0, which pinned code uses"
    assert sentences[document.definitions["a.py::Box"].units[0]] == "type Box of a pinned signature"
    assert sentences[best] == "score 2.5, 1st of 9 kept by score"
    assert sentences[best + 1] == "the request"
    assert sentences[document.definitions["a.py::near0"].units[1]].startswith("score 0, ")


def test_equal_scores_share_a_place() -> None:
    """So neighbours that go in for the same reason read alike, and a report can show them as one row."""
    document = three((2.0, 3.0, 2.0))
    sentences = explain(by_bytes(document), run(document, len(document.text)))
    said = [sentences[unit].partition(" of ")[0] for unit in range(1, 7)]  # header and body of f, g, h
    assert said == ["score 2, 3rd"] * 2 + ["score 3, 1st"] * 2 + ["score 2, 3rd"] * 2


def test_sentences_of_scores_spines_and_reduced_groups() -> None:
    document = three((0.25, 3.0, 2.0))
    sentences = explain(by_bytes(document), run(document, FIXED + 7 + 80))
    assert sentences[0] == "belongs to a.py:4"
    assert sentences[3] == "score 3, 1st of 4 kept by score"
    reduced = crowded().build(targets=("a.py::f",))
    sentences = explain(by_bytes(reduced), run(reduced, NEED - 1))
    assert sentences[reduced.definitions["a.py::c2"].units[1]] == "calls the target f (caller c2) (reduced)"


def test_a_sentence_for_an_import_inside_a_larger_statement() -> None:
    b = Builder()
    top = b.define("a.py::f", b.file("a.py"), body=()).units[0]
    text = b"    try:\n        import x\n    except ImportError:\n        return\n"
    brings = b.unit(text, path="a.py", spine=(top,))
    uses = b.unit(20, path="a.py", spine=(top,))
    b.link(uses, name="x", via=brings, state=Resolution.EXTERNAL)
    document = b.build()
    kept = tuple(KeptUnit(unit, 3, Why.SCORED) for unit in (0, top, uses))
    selection, _ = repair(document, by_bytes(document), Selection(kept, 1000, 37))
    assert explain(by_bytes(document), selection, Pins())[brings] == "import that kept code needs (repaired)"


def test_the_end_of_the_prompt_is_the_last_of_the_reasons() -> None:
    b = Builder()
    f = b.define("a.py::f", b.file("a.py"), header=10, body=(10,))
    b.unit(20, UnitKind.REQUEST, section=Section.REQUEST)
    document = b.build(targets=("a.py::f",))
    selection = run(document, 1000)
    assert {kept.tier for kept in selection.kept} == {0}
    assert [explain(by_bytes(document), selection)[unit] for unit in f.units] == ["to be edited: f"] * 2
