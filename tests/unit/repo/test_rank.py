"""Ranking: order on fixture projects, the walk by hand, and the same answer whatever the order of files."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable

import pytest

from agentctx.pipeline.select import Understood, understand
from agentctx.pipeline.services import Clock
from agentctx.prompt import Evidence, Task
from agentctx.repo.graph import build_graph
from agentctx.repo.locate import Located
from agentctx.repo.rank import WEIGHTS, chunks_of, owners, rank, unit_scores, walk
from agentctx.repo.terms import query_terms
from agentctx.source import UnitKind
from tests.services import PlainServices
from tests.trees import REPOS, Repo
from tests.unit.repo.test_graph_cases import graph_of


def understood(repo: Repo, request: str = "") -> Understood:
    task = Task(request=request, logs=(("failure.log", repo.log),))
    return understand(repo.root, task, PlainServices(), Clock())


INDIRECT = ("override_base", "src_layout")


def cases() -> list[dict[str, str]]:
    return [{"project": manifest.parent.name, **case} for manifest in sorted(REPOS.glob("*/manifest.toml"))
            for case in tomllib.loads(manifest.read_text("utf-8"))["case"]]  # fmt: skip


@pytest.mark.parametrize("case", cases(), ids=lambda case: case["id"])
def test_the_code_to_edit_comes_first(repo: Callable[[str], Repo], case: dict[str, str]) -> None:
    """In INDIRECT neither the test nor the log names it: it is in the first quarter."""
    log = (REPOS / case["project"] / case["log"]).read_bytes()
    task = Task(request=case["request"], logs=((case["log"], log),))
    ranking = understand(repo(case["project"]).root, task, PlainServices(), Clock()).ranking
    within = len(ranking) // 4 if case["project"] in INDIRECT else 1
    assert case["target"].replace("#", "::") in [one.chunk.id for one in ranking[:within]]


def test_every_chunk_outside_of_tests_is_ranked_once(repo: Callable[[str], Repo]) -> None:
    made = understood(repo("leap_year"))
    graph = made.index.graph
    expected = [chunk.id for path in graph.files if not graph.files[path].is_test
                for chunk in chunks_of(graph.files[path], made.index.data[path])]  # fmt: skip
    assert sorted(one.chunk.id for one in made.ranking) == sorted(expected)
    scores = [one.score for one in made.ranking]
    assert scores == sorted(scores, reverse=True)
    assert scores[-1] >= 0


def test_the_order_of_files_and_links_does_not_matter(repo: Callable[[str], Repo]) -> None:
    made = understood(repo("chunks"), "batches drops the last items")
    files = list(made.index.graph.files.values())
    random.Random(3).shuffle(files)
    data = dict(reversed(made.index.data.items()))
    again = rank(build_graph(files), data, made.task, made.evidence, made.located)
    assert again == made.ranking


def test_reasons_are_said_strongest_first(repo: Callable[[str], Repo]) -> None:
    best = understood(repo("leap_year")).ranking[0]
    values = [value for _, value in best.reasons]
    assert values == sorted(values, reverse=True)
    assert {name for name, _ in best.reasons} <= {
        "text", "error lines", "called from the test", "in the traceback", "target", "named in the evidence",
        "module of the test",
    }  # fmt: skip
    assert best.why.startswith(f"{best.reasons[0][0]} {best.reasons[0][1]:.2f}")


# ---------------------------------------------------------------- chunks

CODE = '''"""Doc."""
import os

LIMIT = 1


class A:
    """A."""

    x: int = 0

    def m(self):
        def inner():
            return LIMIT

        return inner

    class Nested:
        def n(self):
            return 2


def f():
    import sys

    return sys
'''


def test_what_is_read_together_is_one_chunk() -> None:
    graph = graph_of({"a.py": CODE})
    owner = owners(graph.files["a.py"])
    assert owner["a.py::A.m.inner"] == "a.py::A.m"
    assert owner["a.py::A.m"] == "a.py::A.m"
    assert owner["a.py::A.Nested.n"] == "a.py::A.Nested.n"
    assert owner["a.py::A.Nested"] == "a.py::A.Nested"
    assert owner["a.py::A.x"] == "a.py::A"
    assert owner["a.py::LIMIT"] == "a.py::LIMIT"


def test_chunks_hold_every_unit_but_imports_once() -> None:
    graph = graph_of({"a.py": CODE})
    file = graph.files["a.py"]
    chunks = chunks_of(file, CODE.encode())
    held = [unit for chunk in chunks for unit in chunk.units]
    imports = [unit.index for unit in file.units if unit.kind is UnitKind.IMPORT and unit.symbol is None]
    assert sorted(held + imports) == [unit.index for unit in file.units]
    assert imports


# ---------------------------------------------------------------- the walk


def test_the_walk_by_hand() -> None:
    """test -> f, g; f -> h. Mass 1 goes on by half, shared by the root of how many are called."""
    graph = graph_of({
        "m.py": "def f():\n  return h()\n\ndef g():\n  return 1\n\ndef h():\n  return 2\n\ndef z():\n  return f()\n",
        "test_m.py": "from m import f, g\n\ndef test_a():\n  assert f() and g()\n",
    })  # fmt: skip
    mass = walk(graph, ["test_m.py::test_a"], [])
    first = 0.5 / 2**0.5
    assert mass == pytest.approx({"m.py::f": first, "m.py::g": first, "m.py::h": first * 0.5})
    assert "m.py::z" not in mass
    assert walk(graph, [], []) == {}


# ---------------------------------------------------------------- units of a chunk


def test_units_share_their_chunks_score(repo: Callable[[str], Repo]) -> None:
    made = understood(repo("leap_year"))
    query = query_terms(made.evidence.text)
    for one in made.ranking[:10]:
        file = made.index.graph.files[one.chunk.path]
        scores = unit_scores(one, file, made.index.data[one.chunk.path], query)
        assert set(scores) == set(one.chunk.units)
        assert all(0.699 * one.score <= score <= 1.001 * one.score for score in scores.values())
        if query & query_terms(one.chunk.text):
            assert max(scores.values()) == pytest.approx(one.score)


def test_nothing_known_gives_no_score() -> None:
    graph = graph_of({"a.py": CODE})
    ranked = rank(graph, {"a.py": CODE.encode()}, Task(), Evidence(), Located(), WEIGHTS)
    assert {one.score for one in ranked} == {0.0}
    assert {one.why for one in ranked} == {"no signal"}
