"""What a task is about: tests, frames, focus and pins, and what is said when they don't exist."""

from __future__ import annotations

import pytest

from agentctx.errors import TaskError
from agentctx.prompt import Evidence, FocusRef, Frame, Task, TestRef
from agentctx.repo.locate import locate
from agentctx.source import RepoGraph
from tests.unit.repo.shapes import CODE, TESTS, find, shapes
from tests.unit.repo.test_graph_cases import graph_of


@pytest.fixture(scope="module")
def graph() -> RepoGraph:
    return shapes()


# ---------------------------------------------------------------- tests


def test_a_test_brings_its_fixtures(graph: RepoGraph) -> None:
    found = find(graph, tests=["tests/test_shapes.py::test_area"])
    assert found.failing_tests == ("tests/test_shapes.py::test_area",)
    assert set(found.fixtures) == {"tests/test_shapes.py::size", "tests/test_shapes.py::square"}
    assert (found.targets, found.notes) == ((), ())


def test_tests_come_in_the_order_given_and_once(graph: RepoGraph) -> None:
    names = ["TestMore::test_area", "test_scale[1]", "test_scale[2]", "TestMore::test_area"]
    found = find(graph, tests=[f"tests/test_shapes.py::{name}" for name in names])
    assert found.failing_tests == ("tests/test_shapes.py::TestMore.test_area", "tests/test_shapes.py::test_scale")
    assert found.notes == ()


def test_a_parameter_that_cant_be_told_is_a_note(graph: RepoGraph) -> None:
    found = find(graph, tests=["tests/test_shapes.py::test_area[7]"])
    assert found.failing_tests == ("tests/test_shapes.py::test_area",)
    assert found.notes == (
        "'tests/test_shapes.py::test_area[7]': the test is not parametrized there; the whole function stands for it",
    )


@pytest.mark.parametrize(
    ("test", "message", "hint"),
    [
        ("gone.py", "test file 'gone.py' is not in the repository", None),
        ("test_shapes.py", "test file 'test_shapes.py' is not in the repository", "did you mean tests/test_shapes.py?"),
        (
            "tests/test_shapes.py::test_gone",
            "no test 'test_gone' in tests/test_shapes.py",
            "tests there: TestMore::test_area, test_area, test_scale",
        ),
        (
            "tests/test_shapes.py::TestMore::test_gone",
            "no test 'TestMore::test_gone' in tests/test_shapes.py",
            "tests there: TestMore::test_area, test_area, test_scale",
        ),
        ("shapes.py::test_gone", "no test 'test_gone' in shapes.py", None),
    ],
)
def test_a_test_that_is_not_there(graph: RepoGraph, test: str, message: str, hint: str | None) -> None:
    with pytest.raises(TaskError) as caught:
        find(graph, tests=[test])
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_tests_of_the_log_count_where_none_was_given(graph: RepoGraph) -> None:
    failing = (
        TestRef("tests/test_shapes.py", ("test_area",)),
        TestRef("tests/test_shapes.py", ("test_gone",)),
        TestRef("elsewhere.py", ("test_x",)),
        TestRef("tests/test_shapes.py"),
    )
    assert find(graph, evidence=Evidence(failing=failing)).failing_tests == ("tests/test_shapes.py::test_area",)
    given = find(graph, tests=["tests/test_shapes.py::test_scale"], evidence=Evidence(failing=failing))
    assert given.failing_tests == ("tests/test_shapes.py::test_scale",)


# ---------------------------------------------------------------- frames


def frame(path: str, text: str, *, in_repo: bool = True) -> Frame:
    source = {"shapes.py": CODE, "tests/test_shapes.py": TESTS}.get(path, "")
    line = next((n for n, line in enumerate(source.split("\n"), 1) if text in line), 1)
    return Frame(path, line, None, in_repo)


def test_the_deepest_frame_is_the_target_and_tests_are_none(graph: RepoGraph) -> None:
    frames = (
        frame("tests/test_shapes.py", "square.area()"),
        frame("shapes.py", "return scale(1)"),
        frame("shapes.py", "return y"),
        frame("/usr/lib/json.py", "", in_repo=False),
    )
    found = find(graph, evidence=Evidence(frames=frames, text="log"))
    assert found.frames == ("shapes.py::scale.inner", "shapes.py::Square.area")
    assert found.targets == ("shapes.py::scale.inner",)
    assert found.frame_lines == tuple((f.path, f.line) for f in frames[:3])
    assert found.notes == ()


def test_a_log_without_a_known_frame_is_said(graph: RepoGraph) -> None:
    found = find(graph, evidence=Evidence(frames=(frame("x.py", "", in_repo=False),), text="log"))
    assert (found.frames, found.targets) == ((), ())
    assert found.notes == ("the log has no frame inside the repository; ranking relies on names, tests and text",)


def test_a_focus_comes_before_frames(graph: RepoGraph) -> None:
    evidence = Evidence(frames=(frame("shapes.py", "return scale(1)"),))
    assert find(graph, focus=["shapes.py#Shape.area"], evidence=evidence).targets == ("shapes.py::Shape.area",)


# ---------------------------------------------------------------- focus and pins


def line_of(text: str) -> int:
    return CODE.split("\n").index(text) + 1


@pytest.mark.parametrize(
    ("focus", "expected"),
    [
        ("shapes.py#Square.area", ["shapes.py::Square.area"]),
        ("shapes.py#area", ["shapes.py::Shape.area", "shapes.py::Square.area"]),
        ("shapes.py#LIMIT", ["shapes.py::LIMIT"]),
        (f"shapes.py:{line_of('        return y')}", ["shapes.py::scale.inner"]),
        (f"shapes.py:{line_of('    return inner(x)')}", ["shapes.py::scale"]),
        (f"shapes.py:{line_of('LIMIT = 9')}", ["shapes.py::LIMIT"]),
        ("shapes.py", ["shapes.py::Shape", "shapes.py::Square", "shapes.py::scale"]),
    ],
)
def test_focus(graph: RepoGraph, focus: str, expected: list[str]) -> None:
    assert list(find(graph, focus=[focus]).targets) == expected


def test_a_focus_on_a_line_of_no_definition_is_said(graph: RepoGraph) -> None:
    found = find(graph, focus=["shapes.py:2"])
    assert found.targets == ()
    assert found.notes == ("shapes.py:2: no definition is there to focus on",)


@pytest.mark.parametrize("what", ["focus", "pins"])
@pytest.mark.parametrize(
    ("place", "message", "hint"),
    [
        ("gone.py", "'gone.py'", None),
        ("x/shapes.py", "'x/shapes.py'", "did you mean shapes.py?"),
        (
            "shapes.py#Circle",
            "no definition 'Circle' in shapes.py",
            "definitions there: Shape, Shape.area, Square, Square.area, scale, scale.inner",
        ),
        ("shapes.py:0", "shapes.py has 22 lines, there is no line 0", None),
        ("shapes.py:23", "shapes.py has 22 lines, there is no line 23", None),
    ],
)
def test_a_place_that_is_not_there(graph: RepoGraph, what: str, place: str, message: str, hint: str | None) -> None:
    with pytest.raises(TaskError) as caught:
        find(graph, **{what: [place]})  # type: ignore[arg-type]
    assert message in caught.value.message
    assert caught.value.hint == hint


def test_pins_are_units(graph: RepoGraph) -> None:
    units = graph.files["shapes.py"].units
    whole = find(graph, pins=["shapes.py"]).pinned
    assert whole == tuple(("shapes.py", unit.index) for unit in units)
    method = find(graph, pins=["shapes.py#Square.area"]).pinned
    symbol = graph.symbols["shapes.py::Square.area"]
    assert [units[u].lines.overlaps(symbol.lines) for u in range(len(units))] == [
        ("shapes.py", u.index) in method for u in units
    ]
    assert {line for _, u in method for line in range(units[u].lines.start, units[u].lines.end + 1)} >= {14, 15}
    (line,) = find(graph, pins=["shapes.py:3"]).pinned
    assert units[line[1]].lines.holds(3)
    assert find(graph, pins=["shapes.py:3", "shapes.py#LIMIT"]).pinned == (line,)


def test_symbol_ids_work_as_focus(graph: RepoGraph) -> None:
    task = Task(focus=(FocusRef("shapes.py", symbol="Square.area"), FocusRef("shapes.py", symbol="area")))
    assert locate(task, Evidence(), graph).targets == ("shapes.py::Square.area", "shapes.py::Shape.area")


def test_of_many_names_a_hint_shows_the_nearest() -> None:
    words = ("alpha", "beta", "gamma", "delta", "zeta", "eta", "theta", "kappa", "pager")
    many = graph_of({"tests/test_a.py": "".join(f"def test_{word}():\n    pass\n\n\n" for word in words)})
    for task in (
        Task(tests=(TestRef("tests/test_a.py", ("test_pagers",)),)),
        Task(focus=(FocusRef("tests/test_a.py", symbol="test_pagers"),)),
    ):
        with pytest.raises(TaskError) as caught:
            locate(task, Evidence(), many)
        assert (caught.value.hint or "").startswith("did you mean test_pager")
