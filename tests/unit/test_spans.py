"""Spans and their algebra, against sets of positions."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctx.spans import ByteSpan, LineSpan, TokenSpan, merge, subtract, tiles

spans = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 8)).map(lambda p: ByteSpan(p[0], p[0] + p[1])), max_size=8
)


def positions(some: tuple[ByteSpan, ...] | list[ByteSpan]) -> set[int]:
    return {at for span in some for at in range(span.start, span.end)}


@pytest.mark.parametrize(("start", "end"), [(-1, 2), (3, 2), (-2, -1)])
def test_impossible_spans_are_refused(start: int, end: int) -> None:
    with pytest.raises(ValueError, match=f"not a span: {start}..{end}"):
        ByteSpan(start, end)


@pytest.mark.parametrize(("start", "end"), [(0, 1), (3, 2), (0, 0)])
def test_lines_begin_with_one(start: int, end: int) -> None:
    with pytest.raises(ValueError, match="not a line span"):
        LineSpan(start, end)


def test_equal_numbers_in_different_units_differ() -> None:
    assert ByteSpan(1, 2) != TokenSpan(1, 2)
    assert ByteSpan(1, 2) == ByteSpan(1, 2)
    with pytest.raises(TypeError):
        ByteSpan(1, 2) < TokenSpan(3, 4)  # type: ignore[operator]  # noqa: B015


def test_half_open_and_inclusive() -> None:
    assert (len(ByteSpan(2, 5)), len(LineSpan(2, 5)), len(ByteSpan(4, 4))) == (3, 4, 0)
    assert ByteSpan(2, 5).contains(ByteSpan(5, 5))
    assert not ByteSpan(2, 5).contains(ByteSpan(1, 3))
    assert not ByteSpan(2, 5).overlaps(ByteSpan(5, 6))
    assert LineSpan(2, 5).overlaps(LineSpan(5, 6))
    assert not LineSpan(2, 5).overlaps(LineSpan(6, 6))
    assert [line for line in range(8) if LineSpan(2, 5).holds(line)] == [2, 3, 4, 5]
    assert TokenSpan(2, 5).shift(-2) == TokenSpan(0, 3)


@given(spans)
def test_merging_keeps_positions_and_leaves_gaps(some: list[ByteSpan]) -> None:
    merged = merge(some)
    assert positions(merged) == positions(some)
    assert all(len(span) for span in merged)
    assert all(a.end < b.start for a, b in pairwise(merged))


@given(spans, spans)
def test_subtracting_is_the_difference_of_positions(some: list[ByteSpan], holes: list[ByteSpan]) -> None:
    left = subtract(some, holes)
    assert positions(left) == positions(some) - positions(holes)
    assert all(a.end <= b.start for a, b in pairwise(left))


@pytest.mark.parametrize(
    ("some", "length", "expected"),
    [
        ([], 0, True),
        ([], 1, False),
        ([ByteSpan(0, 2), ByteSpan(2, 2), ByteSpan(2, 3)], 3, True),
        ([ByteSpan(0, 2), ByteSpan(3, 4)], 4, False),
        ([ByteSpan(0, 2), ByteSpan(1, 4)], 4, False),
        ([ByteSpan(1, 4)], 4, False),
    ],
)
def test_tiling(some: list[ByteSpan], length: int, expected: bool) -> None:
    assert tiles(some, length) is expected
