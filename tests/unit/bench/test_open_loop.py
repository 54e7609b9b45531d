"""Requests at fixed times: against a function whose pace the test sets, and against a server over HTTP.

No test depends on how fast this machine is: what must be answered has a minute, what must time out is never answered.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

import numpy as np
import pytest

pytest.importorskip("openai")

from agentctx.bench.speed.open_loop import ANSWERED, TIMEOUT, Outcome, hold
from agentctx.prompt import SparsePrompt
from agentctx.spec.engines.vllm_http import VllmServer, connect
from agentctx.spec.engines.vllm_load import Streamed, open_load
from agentctx.spec.engines.vllm_plugin import contract
from agentctx.spec.engines.vllm_requests import Ask
from agentctx.spec.protocols import SampleParams
from tests.fake_vllm import (
    ANSWER,
    BREAK,
    CLOSE,
    EVENT,
    HANG,
    HANG_LATER,
    NONSENSE,
    FakeVllm,
    serve_vllm,
)

PATIENT, SHORT = 60.0, 0.3  # seconds
ASK = Ask(
    (1, 2, 3), {"specprefill_spans": [0, 2, 5, 6], "specprefill_len": 6}, (), SampleParams(max_new=2, past_eos=True)
)


@pytest.fixture
def vllm() -> Iterator[FakeVllm]:
    yield from serve_vllm(FakeVllm())


async def load(server: FakeVllm, n: int, timeout: float, rate: float = 100.0) -> list[Outcome]:
    async with open_load(connected(server), PATIENT) as made:
        return await hold(lambda number: made.read(ASK, f"salt-{number}"), rate, n, timeout)


def connected(server: FakeVllm) -> VllmServer:
    return connect(server.url, None, "a-key")


# ---------------------------------------------------------------- the loop alone


async def test_requests_go_out_although_none_was_answered() -> None:
    """Each waits until all have been sent: a loop that waits for answers would never get there."""
    n_sent, all_sent, ended = 0, asyncio.Event(), 0.0

    async def send(number: int) -> Streamed:
        nonlocal n_sent, ended
        n_sent += 1
        if n_sent == 8:
            ended = asyncio.get_running_loop().time()
            all_sent.set()
        await all_sent.wait()
        return Streamed(ended, ended, None)

    outcomes = await hold(send, 200.0, 8, PATIENT)
    assert [one.kind for one in outcomes] == [ANSWERED] * 8
    firsts = [one.first or 0.0 for one in outcomes]
    assert firsts == sorted(firsts, reverse=True)  # the first one has waited longest


async def test_times_count_from_when_a_request_was_due() -> None:
    """A busy client sends late: that the request waited here is a part of its time."""

    async def send(number: int) -> Streamed:
        sent = asyncio.get_running_loop().time()
        return Streamed(sent, sent, 5)

    async def busy() -> None:
        await asyncio.sleep(0.06)
        time.sleep(0.2)  # the loop stands still while requests are due

    waiting = asyncio.create_task(busy())
    outcomes = await hold(send, 50.0, 10, PATIENT)
    await waiting
    worst = max(outcomes, key=lambda one: one.late)
    assert worst.late > 0.05
    for one in outcomes:
        assert one.first is not None
        assert one.first >= one.late
        assert one.n_cached == 5


async def test_what_hangs_times_out_and_is_cancelled() -> None:
    n_cancelled = 0

    async def send(number: int) -> Streamed:
        nonlocal n_cancelled
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            n_cancelled += 1
            raise
        raise AssertionError("it waits for ever")

    outcomes = await hold(send, 100.0, 5, SHORT)
    assert [one.kind for one in outcomes] == [TIMEOUT] * 5
    assert n_cancelled == 5


async def test_a_bug_in_sending_is_not_counted_as_an_error_of_the_server() -> None:
    async def send(number: int) -> Streamed:
        raise ZeroDivisionError

    with pytest.raises(ExceptionGroup) as caught:
        await hold(send, 100.0, 2, PATIENT)
    assert isinstance(caught.value.exceptions[0], ZeroDivisionError)


# ---------------------------------------------------------------- over HTTP


async def test_answers_are_streamed_and_asked_for_as_the_contract_says(vllm: FakeVllm) -> None:
    vllm.n_cached = 3
    outcomes = await load(vllm, 4, PATIENT)
    for one in outcomes:
        assert (one.kind, one.n_cached) == (ANSWERED, 3)
        assert one.first is not None
        assert one.whole is not None
        assert 0 < one.first <= one.whole
    assert len(vllm.bodies) == 4
    body = vllm.bodies[0]
    assert (body["model"], body["prompt"], body["max_tokens"], body["temperature"]) == ("tiny", [1, 2, 3], 2, 0)
    assert body["vllm_xargs"] == ASK.extra
    assert (body["stream"], body["ignore_eos"], body["stop_token_ids"]) == (True, True, [])
    assert {one["cache_salt"] for one in vllm.bodies} == {f"salt-{number}" for number in range(4)}


FAILURES: list[tuple[str | int, str, str]] = [
    (400, "HTTP 400", "no, 400"),
    (500, "HTTP 500", "no, 500"),
    (429, "HTTP 429", "no, 429"),
    (CLOSE, "connection", ""),
    (BREAK, "broken off", "the stream ended before the answer did"),
    (EVENT, "error within the stream", "out of blocks"),
    (NONSENSE, "no completion", ""),
]


@pytest.mark.parametrize(("how", "kind", "message"), FAILURES, ids=[str(one[0]) for one in FAILURES])
async def test_errors_are_counted_by_kind_and_never_asked_again(
    vllm: FakeVllm, how: str | int, kind: str, message: str
) -> None:
    vllm.behave = lambda body: how
    outcomes = await load(vllm, 3, PATIENT)
    assert [one.kind for one in outcomes] == [kind] * 3
    assert all(message in one.message and "a-key" not in one.message for one in outcomes)
    assert len(vllm.bodies) == 3  # the library's retries are off


@pytest.mark.parametrize("how", [HANG, HANG_LATER])
async def test_a_timeout_closes_its_connection(vllm: FakeVllm, how: str) -> None:
    vllm.behave = lambda body: how
    outcomes = await load(vllm, 3, SHORT)
    assert [one.kind for one in outcomes] == [TIMEOUT] * 3
    # Where this machine is slow, one may be cancelled before the server has read it: then it never hangs there.
    assert await asyncio.to_thread(vllm.wait_for, lambda it: it.n_open == 0)


async def test_only_what_fails_is_counted_as_failed(vllm: FakeVllm) -> None:
    hows = iter([ANSWER, 500, ANSWER, CLOSE, ANSWER])
    vllm.behave = lambda body: next(hows)
    kinds = sorted(one.kind for one in await load(vllm, 5, PATIENT))
    assert kinds == ["HTTP 500", ANSWERED, ANSWERED, ANSWERED, "connection"]


async def test_a_server_that_is_gone_is_an_error() -> None:
    for vllm in serve_vllm(FakeVllm()):
        server = connected(vllm)
    async with open_load(server, PATIENT) as made:
        outcomes = await hold(lambda number: made.read(ASK, "x"), 100.0, 2, PATIENT)
    assert [one.kind for one in outcomes] == ["connection"] * 2


async def test_cancelling_leaves_nothing_running(vllm: FakeVllm) -> None:
    vllm.behave = lambda body: HANG
    running = asyncio.create_task(load(vllm, 6, PATIENT))
    assert await asyncio.to_thread(vllm.wait_for, lambda it: it.n_open == 6)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await asyncio.to_thread(vllm.wait_for, lambda it: (it.n_open, it.n_left) == (0, 6))
    assert asyncio.all_tasks() == {asyncio.current_task()}


def test_the_prompt_of_the_ask_is_a_valid_one() -> None:
    made = SparsePrompt(np.asarray([1, 2, 3], np.int32), np.asarray([0, 1, 5], np.int32), 6)
    assert contract.encode(made) == ASK.extra
