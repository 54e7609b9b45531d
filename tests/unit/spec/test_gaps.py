"""Gaps that cost as much as they save."""

from __future__ import annotations

import pytest

from agentctx.prompt import Section, Why
from agentctx.source import UnitKind
from agentctx.spec.draft import Draft, unit_sizes
from agentctx.spec.gaps import close_gaps, gaps
from agentctx.spec.index import PromptIndex
from agentctx.spec.keep import keep
from agentctx.spec.pins import collect
from agentctx.spec.select import SelectOptions, rank_scores
from tests.unit.spec.builders import Builder, by_bytes


def draft_of(b: Builder, kept: tuple[int, ...], limit: int = 1000) -> Draft:
    document = b.build()
    draft = Draft(PromptIndex(document), unit_sizes(by_bytes(document)), limit, limit)
    for unit in kept:
        if unit not in draft.kept:
            draft.keep(unit, Why.SCORED, 3, 1.0)
    return draft


def rows(*sizes: int) -> tuple[Builder, list[int]]:
    """A file with body lines of these sizes."""
    b = Builder()
    file = b.file("a.py")
    return b, [b.unit(size, path="a.py", spine=(file,)) for size in sizes]


@pytest.mark.parametrize(("most", "added"), [(0, []), (9, [2]), (10, [2]), (20, [2, 4])])
def test_gaps_up_to_the_cost_of_a_mark_are_closed(most: int, added: list[int]) -> None:
    b, units = rows(30, 9, 30, 15, 30)
    draft = draft_of(b, (units[0], units[2], units[4]))
    before = set(draft.kept)
    close_gaps(draft, most)
    assert sorted(set(draft.kept) - before) == added
    assert all(draft.kept[unit].why is Why.GAP for unit in added)


def test_the_shortest_go_first_while_there_is_room() -> None:
    b, units = rows(30, 8, 30, 5, 30)
    draft = draft_of(b, (units[0], units[2], units[4]), limit=100 + len("# a.py\n") - 3)
    close_gaps(draft, 10)
    assert units[3] in draft.kept
    assert units[1] not in draft.kept


def test_no_gap_at_the_ends_between_files_or_where_the_window_left_lines_out() -> None:
    b, units = rows(5, 30, 5)
    other = b.file("b.py")
    far = b.unit(30, path="b.py", spine=(other,))
    mark = b.unit(5, UnitKind.ELISION, path="b.py", spine=(other,))
    last = b.unit(30, path="b.py", spine=(other,))
    log = b.unit(5, UnitKind.LOG, section=Section.LOG)
    draft = draft_of(b, (units[1], far, last, log))
    draft.kept.pop(mark, None)
    assert list(gaps(draft)) == []


def test_a_gap_whose_spine_is_left_out_stays() -> None:
    b = Builder()
    file = b.file("a.py")
    header = b.unit(30, UnitKind.HEADER, path="a.py", spine=(file,))
    first = b.unit(30, path="a.py", spine=(file,))
    inner = b.unit(4, path="a.py", spine=(header,))
    last = b.unit(30, path="a.py", spine=(file,))
    assert list(gaps(draft_of(b, (first, last)))) == []
    assert list(gaps(draft_of(b, (first, last, header)))) == [[inner]]


def test_the_whole_selection_closes_them() -> None:
    """A line that is of use to another one only is never kept for its own sake."""
    b = Builder()
    file = b.file("a.py")
    first = b.unit(30, path="a.py", spine=(file,))
    block = b.unit(9, UnitKind.BLOCK, path="a.py", spine=(file,))
    last = b.unit(30, path="a.py", spine=(file,))
    b.unit(500, path="a.py", spine=(block,))
    b.frame()
    document = b.build()
    tokenized = by_bytes(document)
    scores = rank_scores(document)
    scores[[first, last]] = 5.0
    pins = collect(document, tokenized)
    limit = sum(unit_sizes(tokenized)) - 400
    assert block not in keep(tokenized, scores, pins, SelectOptions(limit=limit))[0].units
    assert block in keep(tokenized, scores, pins, SelectOptions(limit=limit, gap=10))[0].units
