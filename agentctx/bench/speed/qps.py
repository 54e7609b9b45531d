"""What `agentctx bench qps` measures: the highest request rate that a vLLM server holds, dense and sparse.

Windows are packed and selected first. Then, for each rate, requests go out at fixed times (`open_loop`): the whole
windows, and after them what was selected. Each request has a cache salt of its own, so the server's prefix cache gives
neither way anything. A way that had a timeout or an error isn't tried at higher rates.
"""

from __future__ import annotations

import asyncio
import math
import secrets
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agentctx.bench.scores import scores_of
from agentctx.bench.speed.interrupts import sigterm_like_sigint
from agentctx.bench.speed.open_loop import ANSWERED, TIMEOUT, Outcome, Send, hold
from agentctx.bench.speed.qps_prompts import Ready, groups_of, make_ready
from agentctx.bench.speed.qps_rows import WAYS, Measured, Row, Setting, row_of
from agentctx.config import RunOptions
from agentctx.errors import EngineUnavailable, UsageError
from agentctx.pipeline.services import Model, Services
from agentctx.prompt import Task
from agentctx.spec.engines.choice import AUTO
from agentctx.spec.engines.vllm import VllmEngine
from agentctx.spec.engines.vllm_http import VllmServer
from agentctx.spec.engines.vllm_load import Streamed, VllmLoad, open_load

ENGINE = "vllm"
PATIENCE = 600.0  # seconds for one request alone: a server may compile at its first one
Say = Callable[[str], None]
Try = Callable[[str, float], Awaitable[Row]]  # (way, rate)
Settle = Callable[[str], Awaitable[str]]  # (way) -> why the server is no longer fit to be measured, or ''


@dataclass(frozen=True, slots=True)
class Request:
    """`requests`: least number at each rate; `seconds`: least time that each rate is held. `prompts`: windows, where
    the task names no tests."""

    root: Path
    task: Task
    options: RunOptions
    tokens: int
    keep: float
    rates: tuple[float, ...]
    requests: int
    seconds: float
    timeout: float
    max_tokens: int
    prompts: int

    def count(self, rate: float) -> int:
        return max(self.requests, math.ceil(self.seconds * rate))


def measure(request: Request, services: Services, say: Say) -> Measured:
    """Asks the server whether it keeps positions, packs and selects, then loads it.

    Raises:
        UsageError: no address, no model, another engine, no test files, or a window beyond the model's context.
        EngineUnavailable: no server, no plugin in it, or it doesn't answer one request alone.
        ModelUnavailable, NotEnoughMemory: the model's folder or the drafter can't be loaded.
        BudgetError, RepoError, TaskError: see `make_ready`.
    """
    request = replace(request, options=_options(request))
    options = request.options
    assert options.model is not None, "looked at"
    main, score, drafter = scores_of("bench qps", options.model, options, request.tokens, services, say)
    context = main.info.max_position
    if request.tokens + request.max_tokens > context:
        raise UsageError(
            f"{request.tokens} tokens and {request.max_tokens} new ones are more than the {context} that "
            f"{main.info.name} reads",
            hint="lower --tokens",
        )
    server = _server(main)
    groups = groups_of(request.root, request.task, request.prompts, services)
    say(f"{len(groups)} prompts: " + ", ".join(group[0].path for group in groups))
    if not request.task.tests and len(groups) < request.prompts:
        say(f"the repository has no {request.prompts} files with tests")
    ready = make_ready(request.root, request.task, groups, request.options, main, score(), services)
    for one in ready:
        made = one.prompt
        say(f"  {made.tests[0]}: {made.tokens} tokens, {made.kept} kept in {made.spans} spans")
    rows, stopped = asyncio.run(_load(request, ready, server, say))
    setting = Setting(
        model=server.served_model,
        host=server.address.host,
        drafter=drafter,
        tokens=request.tokens,
        keep=request.keep,
        max_tokens=request.max_tokens,
        timeout_s=request.timeout,
        requests=request.requests,
        seconds=request.seconds,
    )
    return Measured(setting, tuple(one.prompt for one in ready), rows, stopped)


def _options(request: Request) -> RunOptions:
    """Raises UsageError: what is asked for is no vLLM server."""
    options, address = request.options, "--url http://localhost:8000/v1"
    if options.engine not in (AUTO, ENGINE):
        raise UsageError(
            f"bench qps measures a vLLM server, not engine {options.engine}", hint=f"--engine {ENGINE} {address}"
        )
    if options.url is None:
        raise UsageError("bench qps needs the address of a running vLLM server", hint=address)
    if options.model is None:
        raise UsageError(
            "bench qps needs --model: the folder or name of the model that the server runs",
            hint="config.json and tokenizer.json are enough there",
        )
    return replace(
        options, engine=ENGINE, window=request.tokens, keep=request.keep, budget=None, max_new=request.max_tokens
    )


def _server(main: Model) -> VllmServer:
    """Raises EngineUnavailable: no server, or no plugin in it."""
    engine = main.load_engine()
    assert isinstance(engine, VllmEngine), "asked for"
    assert isinstance(engine.carrier, VllmServer), "it has an address"
    return engine.carrier


async def _load(request: Request, ready: Sequence[Ready], server: VllmServer, say: Say) -> tuple[tuple[Row, ...], str]:
    with sigterm_like_sigint():
        async with open_load(server, max(PATIENCE, request.timeout)) as load:
            return await _climbed(request, ready, load, say)


async def _climbed(request: Request, ready: Sequence[Ready], load: VllmLoad, say: Say) -> tuple[tuple[Row, ...], str]:
    sends = {way: _send(load, ready, way) for way in WAYS}

    async def alone(way: str) -> Outcome:
        return (await hold(sends[way], 1.0, 1, PATIENCE))[0]

    async def settle(way: str) -> str:
        found = await alone(way)
        return "" if found.kind == ANSWERED else _unfit(way, found)

    async def attempt(way: str, rate: float) -> Row:
        row = row_of(way, rate, await hold(sends[way], rate, request.count(rate), request.timeout))
        say(f"{way} at {rate:g}/s: {row.answered} of {row.sent} answered, {row.timeouts} timeouts")
        return row

    for way in WAYS:
        found = await alone(way)
        if found.kind != ANSWERED:
            raise EngineUnavailable(_unfit(way, found), hint="its log says more")
        say(f"{way}, one request alone: {found.whole or 0:.2f} s")
    return await climb(sorted({*request.rates}), attempt, settle)


def _unfit(way: str, found: Outcome) -> str:
    said = f" after {PATIENCE:g} s" if found.kind == TIMEOUT else f": {found.message}"
    return f"the server didn't answer one {way} request alone: {found.kind}{said}"


def _send(load: VllmLoad, ready: Sequence[Ready], way: str) -> Send:
    """By turns each prompt. The salt is new in every run: what the server has kept of an earlier one is of no use."""
    run = secrets.token_hex(8)
    n_sent = 0

    async def send(number: int) -> Streamed:
        nonlocal n_sent
        n_sent += 1
        return await load.read(ready[number % len(ready)].asks[way], f"{run}-{way}-{n_sent}")

    return send


async def climb(rates: Sequence[float], attempt: Try, settle: Settle) -> tuple[tuple[Row, ...], str]:
    """Every way at every rate, in the order given, as long as it has no timeouts and no errors.

    What a failed way left on the server must not slow the next one: the server answers one request alone between.

    Returns:
        The rows, and why it ended early ('': it didn't).
    """
    rows: list[Row] = []
    failed: dict[str, float] = {}
    stopped, unsettled = "", False
    for rate in rates:
        for way in WAYS:
            if way in failed:
                rows.append(Row(way, rate, not_tried=f"it failed at {failed[way]:g}/s"))
                continue
            if unsettled and not stopped:
                stopped, unsettled = await settle(way), False
            if stopped:
                rows.append(Row(way, rate, not_tried="stopped"))
                continue
            rows.append(await attempt(way, rate))
            if not rows[-1].is_clean:
                failed[way], unsettled = rate, True
    return tuple(rows), stopped
