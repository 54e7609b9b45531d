"""Which tests the path of a test file means, by what a change touches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentctx.errors import TaskError
from agentctx.prompt import ChangeSource, Evidence, FileChange, Task, TestRef
from agentctx.repo.locate import Located, locate
from agentctx.source import RepoGraph
from agentctx.spans import LineSpan
from tests.unit.repo.shapes import CODE, TESTS, find, shapes
from tests.unit.repo.test_graph_cases import graph_of


@pytest.fixture(scope="module")
def graph() -> RepoGraph:
    return shapes()


def test_a_bare_path_means_all_its_tests(graph: RepoGraph) -> None:
    found = find(graph, tests=["tests/test_shapes.py"])
    assert found.failing_tests == (
        "tests/test_shapes.py::test_scale",
        "tests/test_shapes.py::test_area",
        "tests/test_shapes.py::TestMore.test_area",
    )


def test_a_bare_path_means_its_changed_tests_largest_change_first(graph: RepoGraph) -> None:
    lines = TESTS.split("\n")
    scale, more = lines.index("def test_scale(x):") + 1, lines.index("class TestMore:") + 1
    changed = {"tests/test_shapes.py": [(scale, scale), (more, more + 2)], "shapes.py": [(1, 99)]}
    found = find(graph, tests=["tests/test_shapes.py"], changed=changed)
    assert found.failing_tests == ("tests/test_shapes.py::TestMore.test_area", "tests/test_shapes.py::test_scale")


def changed_tests(graph: RepoGraph, path: str, *lines: tuple[int, int]) -> Located:
    return find(graph, tests=[path], changed={path: lines})


def test_a_changed_fixture_speaks_for_the_tests_that_use_it(graph: RepoGraph) -> None:
    found = changed_tests(graph, "tests/test_shapes.py", (6, 7))
    assert found.failing_tests == ("tests/test_shapes.py::test_area",)


def test_a_changed_import_speaks_for_the_tests_that_use_it(graph: RepoGraph) -> None:
    """By themselves or through a fixture; one that nothing uses speaks for all."""
    found = changed_tests(graph, "tests/test_shapes.py", (2, 2))
    assert found.failing_tests == ("tests/test_shapes.py::test_scale", "tests/test_shapes.py::test_area")


GROUPED = """import os
from shapes import (
    LIMIT,
    scale,
)


def check(x):
    assert scale(x)


def test_limit():
    assert LIMIT == 9


def test_scale():
    check(1)


def test_more():
    assert True
"""


def test_of_an_import_statement_the_names_on_changed_lines_count() -> None:
    graph = graph_of({"shapes.py": CODE, "test_them.py": GROUPED})
    change = FileChange(
        "test_them.py", ChangeSource.STAGED, "modified", (LineSpan(4, 4),), added="    scale,\n", is_test=True
    )
    evidence = Evidence(changes=(change,))
    found = locate(Task(tests=(TestRef("test_them.py"),)), evidence, graph)
    assert found.failing_tests == ("test_them.py::test_scale",)
    nobody = replace(change, lines=(LineSpan(1, 1),), added="import os\n")
    found = locate(Task(tests=(TestRef("test_them.py"),)), replace(evidence, changes=(nobody,)), graph)
    assert len(found.failing_tests) == 3


HELPED = """import shapes

CASES = [1, 2]


def check(x):
    assert shapes.scale(x)


class TestOne:
    unit = 1

    def test_cases(self):
        for case in CASES:
            check(case)

    def test_unit(self):
        assert self.unit


def test_alone():
    assert shapes.LIMIT == 9
"""
SCRIPT = """import shapes
from shapes import scale

assert scale(1)


def check(x):
    assert shapes.scale(x)


check(2)
check(3)
"""


@pytest.mark.parametrize(
    ("lines", "tests"),
    [
        ((3, 3), ["TestOne.test_cases"]),  # a table of cases
        ((7, 7), ["TestOne.test_cases"]),  # a helper
        ((11, 11), ["TestOne.test_unit"]),  # a field of the class
        ((12, 12), ["TestOne.test_cases", "TestOne.test_unit"]),  # in the class, outside of everything in it
        ((18, 22), ["test_alone", "TestOne.test_unit"]),  # the larger share first
    ],
)
def test_changes_around_tests(lines: tuple[int, int], tests: list[str]) -> None:
    graph = graph_of({"shapes.py": CODE, "test_helped.py": HELPED})
    found = changed_tests(graph, "test_helped.py", lines)
    assert [test.partition("::")[2] for test in found.failing_tests] == tests


def test_a_script_stands_for_its_changed_definitions_and_statements() -> None:
    graph = graph_of({"shapes.py": CODE, "tests/script.py": SCRIPT})
    units = graph.files["tests/script.py"].units
    found = changed_tests(graph, "tests/script.py", (4, 8))
    assert found.failing_tests == ("tests/script.py::check",)
    assert [units[unit].lines.start for _, unit in found.test_units] == [4]
    whole = find(graph, tests=["tests/script.py"])
    assert (whole.failing_tests, whole.notes) == ((), ())
    assert [units[unit].lines.start for _, unit in whole.test_units] == [4, 11]


def test_several_paths_the_changed_one_first() -> None:
    graph = graph_of({"shapes.py": CODE, "a/test_one.py": HELPED, "b/test_two.py": TESTS})
    changed = {"b/test_two.py": [(15, 17)]}
    found = find(graph, tests=["a/test_one.py", "b/test_two.py"], changed=changed)
    assert found.failing_tests[0] == "b/test_two.py::test_scale"
    assert {test.partition("::")[0] for test in found.failing_tests[1:]} == {"a/test_one.py"}


def test_where_nothing_changed_the_best_match_comes_first(graph: RepoGraph) -> None:
    evidence = Evidence(mentions=("area",), failing=(TestRef("tests/test_shapes.py", ("TestMore", "test_area")),))
    found = find(graph, tests=["tests/test_shapes.py"], evidence=evidence)
    assert [test.partition("::")[2] for test in found.failing_tests] == [
        "TestMore.test_area",
        "test_area",
        "test_scale",
    ]


def test_a_test_that_the_change_moved_or_deleted(graph: RepoGraph) -> None:
    changes = (
        FileChange("tests/test_shapes.py", ChangeSource.STAGED, "renamed", old_path="tests/old.py"),
        FileChange("tests/gone.py", ChangeSource.UNSTAGED, "deleted"),
    )
    for path, hint in (
        ("tests/old.py", "it was renamed to tests/test_shapes.py"),
        ("tests/gone.py", "the change deletes it"),
    ):
        with pytest.raises(TaskError) as caught:
            find(graph, tests=[path], evidence=Evidence(changes=changes))
        assert caught.value.hint == hint


def test_a_bare_path_without_tests_is_said(graph: RepoGraph) -> None:
    found = find(graph, tests=["lib/test_more.py"])
    assert found.failing_tests == ()
    assert found.notes == ("lib/test_more.py: no test was found in it",)
