"""A small project with tests, and what a task is about in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from agentctx.pipeline.refs import parse_focus, parse_test
from agentctx.prompt import ChangeSource, Evidence, FileChange, Task
from agentctx.repo.locate import Located, locate
from agentctx.source import RepoGraph
from agentctx.spans import LineSpan
from tests.trees import ROOT
from tests.unit.repo.test_graph_cases import graph_of

CODE = '''"""Shapes."""

LIMIT = 9


class Shape:
    sides = 0

    def area(self):
        raise NotImplementedError


class Square(Shape):
    def area(self):
        return scale(1)


def scale(x):
    def inner(y):
        return y

    return inner(x)
'''
TESTS = """import pytest
from shapes import Square, scale


@pytest.fixture
def size():
    return 3


@pytest.fixture
def square(size):
    return Square(size)


@pytest.mark.parametrize("x", [1, 2])
def test_scale(x):
    assert scale(x)


def test_area(square):
    assert square.area()


class TestMore:
    def test_area(self):
        assert 1
"""


def shapes() -> RepoGraph:
    return graph_of({"shapes.py": CODE, "tests/test_shapes.py": TESTS, "lib/test_more.py": "def helper(): pass\n"})


def find(
    graph: RepoGraph,
    *,
    tests: Sequence[str] = (),
    focus: Sequence[str] = (),
    pins: Sequence[str] = (),
    evidence: Evidence | None = None,
    changed: Mapping[str, Sequence[tuple[int, int]]] | None = None,
) -> Located:
    task = Task(
        tests=tuple(parse_test(text, ROOT) for text in tests),
        focus=tuple(parse_focus(text, ROOT) for text in focus),
        pins=tuple(parse_focus(text, ROOT) for text in pins),
    )
    spans = {path: tuple(LineSpan(*line) for line in lines) for path, lines in (changed or {}).items()}
    changes = tuple(FileChange(path, ChangeSource.STAGED, "modified", lines) for path, lines in spans.items())
    known = evidence or Evidence()
    return locate(task, replace(known, changes=(*known.changes, *changes)), graph)
