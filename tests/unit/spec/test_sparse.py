from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from spec_prompts import make_prompt

from agentctx.errors import BudgetError
from agentctx.prompt import Section
from agentctx.spec.sparse import compact, dense, to_sparse

PROMPT = make_prompt(
    [(Section.SYSTEM, 4), (Section.CODE, 10), (Section.CODE, 6), (Section.CODE, 30), (Section.TAIL, 5)]
)


def test_kept_units_stay_where_they_were() -> None:
    sparse, findings = to_sparse(PROMPT, [4, 0, 2], max_position=None)
    assert sparse.positions.tolist() == [0, 1, 2, 3, *range(14, 20), *range(50, 55)]
    assert sparse.ids.tolist() == [int(PROMPT.ids[i]) for i in sparse.positions]
    assert (sparse.total, findings) == (55, ())
    assert sparse.runs() == ((0, 4, 0), (4, 10, 14), (10, 15, 50))


def test_the_last_token_is_always_kept() -> None:
    assert to_sparse(PROMPT, [1], max_position=None)[0].positions.tolist() == [*range(4, 14), 54]
    assert to_sparse(PROMPT, [], max_position=None)[0].positions.tolist() == [54]


def test_dense_is_everything() -> None:
    sparse = dense(PROMPT)
    assert sparse.positions.tolist() == list(range(55))
    np.testing.assert_array_equal(sparse.ids, PROMPT.ids)
    assert to_sparse(PROMPT, range(5), max_position=55)[0].runs() == ((0, 55, 0),)


def test_the_largest_gap_shrinks_first_and_runs_stay_whole() -> None:
    sparse, findings = to_sparse(PROMPT, [0, 2, 4], max_position=45)  # gaps 10 and 30
    assert sparse.positions.tolist() == [0, 1, 2, 3, *range(14, 20), *range(40, 45)]
    assert sparse.total == 45
    (finding,) = findings
    assert (finding.code, finding.severity) == ("compacted", "note")
    assert all(number in finding.message for number in ("55", "45", "10", "20"))


def test_contiguous_is_the_last_resort_and_then_the_budget_fails() -> None:
    sparse, _ = to_sparse(PROMPT, [0, 2, 4], max_position=15)
    assert sparse.positions.tolist() == list(range(15))
    with pytest.raises(BudgetError, match="15 tokens are kept, the model reads 14") as caught:
        to_sparse(PROMPT, [0, 2, 4], max_position=14)
    assert caught.value.hint
    with pytest.raises(BudgetError, match="55 tokens"):
        to_sparse(PROMPT, range(5), max_position=54)


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 60)), min_size=1, max_size=12), st.data())
def test_compaction(runs: list[tuple[int, int]], data: st.DataObject) -> None:
    at, kept = 0, []
    for length, gap in runs:
        at += gap
        kept += range(at, at + length)
        at += length
    positions = np.asarray(kept, np.int32)
    dropped = at - len(kept)
    excess = data.draw(st.integers(0, dropped))
    found, longest = compact(positions, excess)
    before, after = np.diff(positions, prepend=-1) - 1, np.diff(found, prepend=-1) - 1
    assert found[-1] == at - 1 - excess
    assert (after >= 0).all()
    assert (after <= before).all()
    assert longest == after.max()
    cut = after < before
    assert not cut.any() or after[cut].min() >= after.max() - 1  # only the longest gaps, to one length
