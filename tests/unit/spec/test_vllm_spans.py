"""The contract of sparse requests to vLLM, without a vLLM."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctx.errors import EngineUnavailable
from agentctx.prompt import SparsePrompt
from agentctx.spec.engines import vllm_requests
from agentctx.spec.engines.vllm_plugin import contract, runner_v1, workers
from agentctx.spec.engines.vllm_plugin.contract import LENGTH, SPANS, BadSpans, check_request, encode, parse
from agentctx.spec.engines.vllm_requests import Ask, Refused


def extra(spans: Any, length: Any) -> dict[str, Any]:
    return {SPANS: spans, LENGTH: length}


@st.composite
def prompts(draw: st.DrawFn) -> SparsePrompt:
    kept = sorted(draw(st.sets(st.integers(0, 150), max_size=60)))
    total = draw(st.integers(kept[-1] + 1 if kept else 1, 160))
    positions = np.asarray(sorted({*kept, total - 1}), np.int32)
    return SparsePrompt(np.zeros(len(positions), np.int32), positions, total)


@given(prompts())
def test_spans_say_the_positions_of_the_prompt(prompt: SparsePrompt) -> None:
    spans = parse(encode(prompt))
    assert spans is not None
    np.testing.assert_array_equal(spans.kept, prompt.positions)
    assert (spans.n_kept, spans.total) == (len(prompt.ids), prompt.total)


@given(prompts(), st.integers(0, 70), st.integers(1, 40))
def test_slots_go_on_at_the_original_length(prompt: SparsePrompt, start: int, n: int) -> None:
    spans = parse(encode(prompt))
    assert spans is not None
    whole = [*prompt.positions.tolist(), *range(prompt.total, prompt.total + 200)]
    assert spans.positions(start, start + n).tolist() == whole[start : start + n]
    moved = runner_v1.shifts(spans, start, n) + np.arange(start, start + n)
    assert moved.tolist() == whole[start : start + n]


@given(prompts(), prompts(), st.integers(0, 5))
def test_blocks_share_a_key_only_at_the_same_positions(one: SparsePrompt, two: SparsePrompt, block: int) -> None:
    start, end = 16 * block, 16 * block + 16
    a, b = parse(encode(one)), parse(encode(two))
    assert a is not None
    assert b is not None
    same = a.positions(start, end).tolist() == b.positions(start, end).tolist()
    assert (a.block_key(start, end) == b.block_key(start, end)) == same
    dense = a.positions(0, end).tolist() == list(range(end))
    assert (a.block_key(start, end) is None) == dense


BAD = {
    "no spans": (extra([], 5), "0 numbers"),
    "odd": (extra([0, 3, 5], 5), "3 numbers"),
    "empty span": (extra([0, 0, 3, 5], 5), "is empty"),
    "reversed": (extra([3, 1, 3, 5], 5), "is empty"),
    "unsorted": (extra([3, 4, 0, 5], 5), "starts at 0, before 4"),
    "overlapping": (extra([0, 3, 2, 5], 5), "starts at 2, before 3"),
    "negative": (extra([-1, 5], 5), "isn't within"),
    "beyond": (extra([0, 6], 5), "isn't within"),
    "no tail": (extra([0, 3], 5), r"last token \(4\) must be kept"),
    "no length": ({SPANS: [0, 5]}, f"{LENGTH} is missing"),
    "only a length": ({LENGTH: 5}, f"{SPANS} is missing"),
    "zero length": (extra([0, 5], 0), "must be 1 to"),
    "negative length": (extra([0, 5], -5), "must be 1 to"),
    "too long": (extra([0, 2**40], 2**40), "a huge number"),
    "overflow": (extra([0, 2**70], 2**70), "a huge number"),
    "overflow inside": (extra([2**70, 2**71, 0, 5], 5), "a huge number"),
    "float": (extra([0.0, 5], 5), "not float"),
    "bool": (extra([False, 5], 5), "not bool"),
    "text": (extra("0,5", 5), "not str"),
    "text inside": (extra(["0", 5], 5), "not str"),
    "text length": (extra([0, 5], "5"), "not str"),
    "nested": (extra([[0, 5]], 5), "not list"),
    "a mapping": (extra({"0": 5}, 5), "not dict"),
    "nothing": (extra(None, 5), "not NoneType"),
    "too many": (extra([0, 1] * (contract.MAX_SPANS + 1), 5), "at most"),
}


@pytest.mark.parametrize(("given", "says"), BAD.values(), ids=BAD)
def test_anything_unclear_is_refused(given: dict[str, Any], says: str) -> None:
    with pytest.raises(BadSpans, match=says):
        parse(given)


@given(st.lists(st.one_of(st.integers(), st.floats(), st.text(), st.none()), max_size=8), st.integers())
def test_whatever_comes_is_taken_whole_or_refused(flat: list[Any], total: int) -> None:
    try:
        spans = parse(extra(flat, total))
    except BadSpans:
        return
    assert spans is not None
    assert 0 < spans.n_kept <= spans.total == spans.kept[-1] + 1
    assert (np.diff(spans.kept) > 0).all()


def test_ordinary_requests_are_left_alone() -> None:
    assert parse(None) is None
    assert parse({}) is None
    assert parse({"other": 1}) is None


def test_spans_fit_the_prompt_and_the_model() -> None:
    spans = parse(extra([0, 3, 90, 100], 100))
    assert spans is not None
    check_request(spans, n_tokens=13, max_new=1, limit=100)
    check_request(spans, n_tokens=13, max_new=11, limit=110)
    with pytest.raises(BadSpans, match="13 positions, the prompt has 12 tokens"):
        check_request(spans, n_tokens=12, max_new=1, limit=100)
    with pytest.raises(BadSpans, match="beyond the 109"):
        check_request(spans, n_tokens=13, max_new=11, limit=109)


def test_more_tokens_come_after_the_original_length() -> None:
    ask = Ask((1, 2), extra([0, 1, 9, 10], 10), ()).extended([7, 8])
    spans = parse(ask.extra)
    assert spans is not None
    assert spans.kept.tolist() == [0, 9, 10, 11]
    assert ask.ids == (1, 2, 7, 8)


class Carrier:
    tells_logits = False
    where = "the server"

    def __init__(self, says: str | None) -> None:
        self.says = says

    def ask(self, asks: list[Ask]) -> list[Any]:
        with pytest.raises(BadSpans):
            parse(asks[0].extra)  # the proof must never be a request that could be answered
        if self.says is not None:
            raise Refused(self.says)
        return []


@pytest.mark.parametrize(
    ("says", "message"),
    [
        (None, "has no agentctx plugin"),
        ("unknown field vllm_xargs", "doesn't say that it keeps positions"),
        (f"{contract.OFF}: vLLM 9 was not tried", "vLLM 9 was not tried"),
    ],
)
def test_a_server_that_does_not_prove_itself_gets_no_sparse_prompt(says: str | None, message: str) -> None:
    with pytest.raises(EngineUnavailable, match=message) as caught:
        vllm_requests.prove(Carrier(says))
    assert "agentctx[vllm]" in str(caught.value.hint)
    assert "openai" in str(caught.value.hint)


def test_the_plugin_proves_itself_by_its_own_refusal() -> None:
    vllm_requests.prove(Carrier(f"{contract.ACTIVE}: the spans hold nothing"))


def test_a_worker_without_the_plugin_ends_the_start() -> None:
    workers.check(["", ""])
    with pytest.raises(RuntimeError, match="not in worker 1: vLLM 9 was not tried"):
        workers.check(["", "vLLM 9 was not tried"])
