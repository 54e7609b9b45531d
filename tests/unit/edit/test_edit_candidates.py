"""Several answers, one winner."""

from __future__ import annotations

import sys

import pytest
from edit_repos import Tree

from agentctx.edit.candidates import CandidateStatus, Event, try_candidates
from agentctx.edit.checks import Check, pytest_check, pytest_guard, shell_check
from agentctx.edit.formats import edit_format
from agentctx.edit.target import EditTarget, make_target
from agentctx.errors import CheckInvalid, TaskError
from agentctx.prompt import Completion
from agentctx.spans import ByteSpan

CODE = b"def add(a, b):\n    return a - b\n"
TEST = "from m import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"


def answers(*bodies: str, finish: str = "stop") -> list[Completion]:
    return [Completion(f"\n    {body}\n", (), finish, 0.0) for body in bodies]


@pytest.fixture
def bug(tree: Tree) -> Tree:
    tree.write({"m.py": CODE, "test_m.py": TEST})
    return tree


def target() -> EditTarget:
    return make_target("m.py", CODE, ByteSpan(0, len(CODE) - 1), "add")


def check() -> Check:
    return pytest_check(sys.executable, ["test_m.py"])


def test_the_first_that_passes_lands(bug: Tree) -> None:
    events: list[Event] = []
    stream = iter(answers("return a * b", "return (a", "return a * b", "return b + a", "return a + b"))
    with bug.session() as session:
        result = try_candidates(session, stream, edit_format("function"), target(), check(), on_event=events.append)
        assert [report.status for report in result.reports] == ["failed", "unusable", "duplicate", "passed"]
        assert result.winner == 3
        assert result.best is result.reports[3]
        assert result.reports[2].duplicate_of == 0
        assert "parses" in result.reports[1].message
        assert result.baseline is not None
        assert result.baseline.status == "failed"
        assert "m.py" in result.reports[3].check.origins.worktree
        assert (bug.root / "m.py").read_bytes() == CODE  # nothing lands by itself
        session.land(result.best.applied)
    assert (bug.root / "m.py").read_bytes() == CODE.replace(b"a - b", b"b + a")
    assert next(stream).text == "\n    return a + b\n"  # not even sampled
    assert [(event.stage, event.index, event.status) for event in events[:4]] == [
        ("baseline", None, ""),
        ("baseline", None, "failed"),
        ("candidate", 0, ""),
        ("candidate", 0, "failed"),
    ]


def test_none_passes(bug: Tree) -> None:
    before = bug.state()
    with bug.session() as session:
        result = try_candidates(session, answers("oops", "return 4"), edit_format("function"), target(), check())
    assert result.winner is None
    assert result.best is not None
    assert result.best.index == 0
    assert "exit code 1" in result.best.message
    assert bug.state() == before


def test_no_answer_at_all(bug: Tree) -> None:
    with bug.session() as session:
        result = try_candidates(session, [], edit_format("function"), target(), check())
    assert (result.winner, result.best, result.reports) == (None, None, ())


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("true", "already passes"),
        ("nope-no-such", r"can't run \(exit code 127\)"),
        ("sleep 9", "timed out"),
    ],
)
def test_a_baseline_that_proves_nothing_stops_the_run(bug: Tree, line: str, message: str) -> None:
    def never():
        raise AssertionError("no answer may be sampled")
        yield

    with bug.session() as session, pytest.raises(TaskError, match=message):
        try_candidates(session, never(), edit_format("function"), target(), shell_check(line, timeout=1))


def test_without_a_check_the_first_usable_answer_is_taken_and_said(bug: Tree) -> None:
    with bug.session() as session:
        result = try_candidates(session, answers("(", "return 1"), edit_format("function"), target(), None)
    assert [report.status for report in result.reports] == [CandidateStatus.UNUSABLE, CandidateStatus.UNCHECKED]
    assert (result.winner, result.baseline) == (1, None)


def test_an_answer_cut_at_the_limit_is_not_used(bug: Tree) -> None:
    with bug.session() as session:
        result = try_candidates(
            session, answers("c = a + b\n    return c", finish="length"), edit_format("function"), target(), check()
        )
        assert result.reports[0].message == "the answer was cut off at the token limit"
        whole = [Completion("\n    return a + b\n```\nThis adds", (), "length", 0.0)]
        assert try_candidates(session, whole, edit_format("function"), target(), check()).winner == 0


def test_a_candidate_that_touches_what_it_must_not(bug: Tree) -> None:
    block = "test_m.py\n<<<<<<< SEARCH\n    assert add(1, 2) == 3\n=======\n    pass\n>>>>>>> REPLACE\n"
    with bug.session(protect=["test_*.py"]) as session:
        result = try_candidates(
            session, [Completion(block, (), "stop", 0.0)], edit_format("search-replace"), None, check()
        )
    assert result.reports[0].status is CandidateStatus.UNUSABLE
    assert "protected" in result.reports[0].message


def test_a_check_of_the_users_tree_stops_the_run(bug: Tree) -> None:
    bug.write({"test_m.py": f"import runpy, sys\nfrom importlib.machinery import SourceFileLoader\n"
               f"m = SourceFileLoader('m', {str(bug.root / 'm.py')!r}).load_module()\n"
               "def test(): assert m.add(1, 2) == 3\n"})  # fmt: skip
    with bug.session() as session, pytest.raises(CheckInvalid, match=r"your own tree.*m\.py"):
        try_candidates(session, answers("return a + b"), edit_format("function"), target(), check())


OTHERS = TEST + "\n\ndef test_zero():\n    assert add(0, 0) == 0\n"


def guarded(tree: Tree, *bodies: str):  # type: ignore[no-untyped-def]
    ids = ["test_m.py::test_add"]
    with tree.session() as session:
        return try_candidates(
            session,
            answers(*bodies),
            edit_format("function"),
            target(),
            pytest_check(sys.executable, ids),
            guard=pytest_guard(sys.executable, ids),
        )


def test_an_edit_that_breaks_other_tests_of_the_file_does_not_win(tree: Tree) -> None:
    tree.write({"m.py": CODE, "test_m.py": OTHERS})
    result = guarded(tree, "return 3", "return a + b")
    assert [report.status for report in result.reports] == ["failed", "passed"]
    assert "breaks other tests: FAILED test_m.py::test_zero" in result.reports[0].message
    assert result.guard is not None
    assert result.guard.status == "passed"


def test_a_guard_that_failed_before_guards_nothing(tree: Tree) -> None:
    tree.write({"m.py": CODE, "test_m.py": OTHERS + "\n\ndef test_broken():\n    assert False\n"})
    result = guarded(tree, "return 3")
    assert result.winner == 0
    assert result.guard is not None
    assert result.guard.status == "failed"


def test_a_file_without_other_tests_has_no_guard(bug: Tree) -> None:
    result = guarded(bug, "return a + b")
    assert result.winner == 0
    assert result.guard is not None
    assert result.guard.status == "error"  # nothing collected
