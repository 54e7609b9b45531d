"""Words of code, and BM25 by hand."""

from __future__ import annotations

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctx.repo.terms import bag, bm25, parts, query_terms, words


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("parse", ("parse",)),
        ("Parse", ("parse",)),
        ("parse_args", ("parse_args", "parse", "args")),
        ("parseArgs", ("parseargs", "parse", "args")),
        ("HTTPServer2Go", ("httpserver2go", "httpserver2", "go")),
        ("_private", ("_private", "private")),
        ("__init__", ("__init__", "init")),
        ("_", ("_",)),
        ("größe_neu", ("größe_neu", "größe", "neu")),
    ],
)
def test_parts(word: str, expected: tuple[str, ...]) -> None:
    assert parts(word) == expected


def test_words_are_identifiers() -> None:
    assert words("x1 = f(3.5, 'né') + 2y # a-b") == ["x1", "f", "né", "y", "a", "b"]


def test_how_often_a_query_says_it_does_not_count() -> None:
    assert query_terms("get_x get_x get") == {"get_x", "get", "x"}


def test_a_bag_counts_wanted_terms_and_the_length_of_all() -> None:
    made = bag("get_x(get) other_name", frozenset({"get"}))
    assert (made.counts, made.length) == ({"get": 2}, 3 + 1 + 3)


def test_bm25_by_hand() -> None:
    query = frozenset({"cat", "dog"})
    bags = [bag(text, query) for text in ("cat cat bird", "dog", "bird fish cat dog bird")]
    average = (3 + 1 + 5) / 3

    def idf(df: int) -> float:
        return log(1 + (3 - df + 0.5) / (df + 0.5))

    def term(n: int, df: int, length: int) -> float:
        return idf(df) * n * 2.2 / (n + 1.2 * (0.25 + 0.75 * length / average))

    assert bm25(bags, query) == pytest.approx([term(2, 2, 3), term(1, 2, 1), term(1, 2, 5) + term(1, 2, 5)])


@pytest.mark.parametrize("texts", [[], [""], ["", "a"], ["zzz"]])
def test_nothing_to_find(texts: list[str]) -> None:
    query = frozenset({"cat"})
    assert bm25([bag(text, query) for text in texts], query) == [0.0] * len(texts)


@given(st.lists(st.text("abc_ ", max_size=20), max_size=6), st.text("abc_ ", max_size=10))
def test_scores_are_never_negative_and_need_a_common_term(texts: list[str], asked: str) -> None:
    query = query_terms(asked)
    for text, score in zip(texts, bm25([bag(text, query) for text in texts], query), strict=True):
        assert (score > 0) == bool(query & query_terms(text))
