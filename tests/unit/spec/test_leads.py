"""What is pinned on a lead alone holds its share; in these prompts a unit costs as many tokens as it has bytes."""

from __future__ import annotations

import pytest

from agentctx.prompt import PromptDocument, Section, Selection
from agentctx.source import Role
from agentctx.spec.pins import collect
from agentctx.spec.select import SelectOptions, rank_scores, select
from tests.unit.spec.builders import Builder, by_bytes


def prompt(*, guessed: bool) -> PromptDocument:
    """A target of 100 tokens with a caller of 300 and a callee of 30, all in the window, nothing scored."""
    b = Builder()
    a = b.file("a.py")
    target = b.define("a.py::target", a, header=20, body=(80,))
    b.define("a.py::callee", a, header=30, body=(10,))
    caller = b.define("a.py::caller", a, header=20, body=(200, 80))
    b.link(caller.units[2], "a.py::target", role=Role.CALL)
    b.link(target.units[1], "a.py::callee", role=Role.CALL)
    b.frame()
    return b.build(targets=("a.py::target",), targets_guessed=guessed)


def pinned(document: PromptDocument, lead_share: float) -> tuple[Selection, dict[str, int], str]:
    """The selection, how many units of each definition it pins, and what it says of the budget."""
    tokenized = by_bytes(document)
    options = SelectOptions(1000, lead_share=lead_share)
    selection = select(tokenized, rank_scores(document), collect(document, tokenized), options)
    units = {kept.unit for kept in selection.kept if kept.pins}
    found = {name: len(units & set(known.units)) for name, known in document.definitions.items()}
    said = "; ".join(finding.message for finding in selection.findings if finding.code == "budget")
    return selection, found, said


@pytest.mark.parametrize("guessed", [False, True])
def test_within_the_share_everything_is_whole(guessed: bool) -> None:
    _, found, said = pinned(prompt(guessed=guessed), 0.9)
    assert found == {"a.py::target": 2, "a.py::callee": 1, "a.py::caller": 3}
    assert not said


def test_a_caller_goes_to_its_core_and_is_marked() -> None:
    document = prompt(guessed=False)
    selection, found, said = pinned(document, 0.3)
    assert found == {"a.py::target": 2, "a.py::callee": 1, "a.py::caller": 2}
    core = set(document.definitions["a.py::caller"].units) & {kept.unit for kept in selection.kept if kept.reduced}
    assert len(core) == 2
    assert "caller a.py::caller is reduced" in said
    assert "300 tokens" in said


def test_only_callers_of_guesses_are_dropped() -> None:
    assert pinned(prompt(guessed=False), 0.11)[1] == {"a.py::target": 2, "a.py::callee": 0, "a.py::caller": 2}
    _, found, said = pinned(prompt(guessed=True), 0.11)
    assert found == {"a.py::target": 2, "a.py::callee": 0, "a.py::caller": 0}
    assert "caller: 1 left to the ranking (a.py::caller)" in said


def test_the_first_target_stays_whole() -> None:
    assert pinned(prompt(guessed=True), 0.0)[1]["a.py::target"] == 2


def test_the_whole_limit_is_no_share() -> None:
    assert pinned(prompt(guessed=True), 1.0)[1]["a.py::caller"] == 3


def test_what_only_tests_use_is_left_alone() -> None:
    """Dropping it would leave the pinned code as large as it was."""
    b = Builder()
    target = b.define("a.py::target", b.file("a.py"), header=20, body=(200,))
    tests = b.file("test_a.py", section=Section.TESTS)
    helper = b.define("test_a.py::helper", tests, header=20, body=(10,), is_test=True)
    test = b.define("test_a.py::test", tests, header=20, body=(30,), is_test=True)
    b.link(test.units[1], "test_a.py::helper", role=Role.CALL)
    b.frame()
    document = b.build(targets=("a.py::target",), targets_guessed=True, failing_tests=("test_a.py::test",))
    selection, found, said = pinned(document, 0.1)
    assert found["test_a.py::helper"] == 1
    assert not said
    assert {target.units[0], helper.units[0]} <= selection.units
