"""Ranking: order on fixture projects, reasons in words, and the same answer whatever the order of files."""

from __future__ import annotations

import random
import tomllib
from collections.abc import Callable

import pytest

from agentctx.pipeline.services import Clock
from agentctx.pipeline.understand import Understood, understand
from agentctx.prompt import Evidence, Task
from agentctx.repo.graph import build_graph
from agentctx.repo.locate import Located
from agentctx.repo.rank import chunks_of, owners, rank, unit_scores
from agentctx.repo.ranking.score import WORDS
from agentctx.repo.terms import query_terms
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
    """It is one of the first two; in INDIRECT neither the test nor the log names it: it is in the first quarter."""
    log = (REPOS / case["project"] / case["log"]).read_bytes()
    task = Task(request=case["request"], logs=((case["log"], log),))
    ranking = understand(repo(case["project"]).root, task, PlainServices(), Clock()).ranking
    within = -(-len(ranking) // 4) if case["project"] in INDIRECT else 2
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
    data = dict(reversed(list(made.index.data.items())))
    again = rank(build_graph(files), data, made.task, made.evidence, made.located, history=made.history)
    assert again == made.ranking


def test_reasons_are_said_strongest_first(repo: Callable[[str], Repo]) -> None:
    best = understood(repo("leap_year")).ranking[0]
    values = [value for _, value in best.reasons]
    assert values == sorted(values, reverse=True)
    assert {name for name, _ in best.reasons} <= set(WORDS.values())
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


def test_chunks_hold_every_unit_once() -> None:
    """Import statements are one chunk: fixes edit them, too."""
    graph = graph_of({"a.py": CODE})
    file = graph.files["a.py"]
    chunks = chunks_of(file, CODE.encode())
    assert sorted(unit for chunk in chunks for unit in chunk.units) == [unit.index for unit in file.units]
    assert [chunk.id for chunk in chunks if "import os" in chunk.text] == ["a.py@imports"]


# ---------------------------------------------------------------- units of a chunk


def test_every_unit_has_a_chance_of_its_own(repo: Callable[[str], Repo]) -> None:
    made = understood(repo("leap_year"))
    query = query_terms(made.evidence.text)
    for one in made.ranking[:10]:
        file = made.index.graph.files[one.chunk.path]
        scores = unit_scores(one, file, made.index.data[one.chunk.path], query)
        assert set(scores) == set(one.chunk.units)
        assert all(0 <= score <= 1 for score in scores.values())


def test_nothing_known_gives_no_score() -> None:
    graph = graph_of({"a.py": CODE})
    ranked = rank(graph, {"a.py": CODE.encode()}, Task(), Evidence(), Located())
    assert {one.score for one in ranked} == {0.0}
    assert {one.why for one in ranked} == {"no signal"}
