"""Code that looks like what a change took from the tests."""

from __future__ import annotations

import numpy as np

from agentctx.repo.ranking.twins import lost_lines, shapes, twins

LOST = ("for i := 0; i < 100; i++ {", "for i := 0; i < b.N; i++ {")
UNITS = (
    "func isASCII(s string) bool {\n\tfor i := 0; i < len(s); i++ {\n\t\tif s[i] > 127 {\n\t\t\treturn false\n",
    "func area(a int) int {\n\treturn a * a\n}\n",
    "for i := 0; i < 100; i++ {\n",
    "",
)


def test_what_was_taken_and_not_put_in_again() -> None:
    assert lost_lines("  a(1)\nb()\n\n  a(1)\nc\n", ["b()"]) == ("a(1)", "c")
    assert lost_lines("") == ()
    assert len(lost_lines("\n".join(f"f({n})" for n in range(999)))) == 300


def test_a_line_is_its_pairs_of_tokens() -> None:
    assert shapes("}\nreturn x + 1\n\n  (1, 2)\n") == (frozenset({("return", "x"), ("x", "+"), ("+", "1")}),)


def test_the_same_line_and_one_like_it() -> None:
    near, held = twins(UNITS, LOST, np.ones(4))
    assert near[2] == 1.0
    assert 0.3 < near[0] < 1
    assert near[1] == near[3] == 0
    assert held[2] > held[0] > 0
    assert held[1] == 0


def test_only_what_shares_words_is_compared() -> None:
    near, _ = twins(UNITS, LOST, np.array([1.0, 1.0, 0.0, 0.0]))
    assert near[0] > 0
    assert near[2] == 0
    assert not twins(UNITS, (), np.ones(4))[0].any()


def test_not_by_the_order_of_what_was_lost() -> None:
    forward, backward = twins(UNITS, LOST, np.ones(4)), twins(UNITS, LOST[::-1], np.ones(4))
    assert np.array_equal(forward[0], backward[0])
    assert np.array_equal(forward[1], backward[1])
