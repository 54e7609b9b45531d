"""Open-loop load: requests go out at fixed times, whether or not earlier ones were answered.

Every time is measured from when a request was due, not from when it was sent: what waits for its turn counts as
waiting. Nothing here knows what a request is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from agentctx.spec.engines.vllm_load import NotAnswered, Streamed

ANSWERED, TIMEOUT = "answered", "timeout"
LEAD = 0.05  # seconds before the first request, in which all of them are made ready

Send = Callable[[int], Awaitable[Streamed]]  # by the number of the request


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one request. Seconds; `kind`: ANSWERED, TIMEOUT, or what kind of error `message` is.

    Args:
        due: when it was due, since the first one was.
        late: how much later it was sent; more than a few milliseconds say that this machine was too busy.
        first: from when it was due to the first token; `whole`: to the end of the answer. None: there was none.
        n_cached: prompt tokens that the server had in its prefix cache, None where it doesn't tell.
    """

    due: float
    late: float
    kind: str
    message: str = ""
    first: float | None = None
    whole: float | None = None
    n_cached: int | None = None


def schedule(rate: float, n: int) -> tuple[float, ...]:
    """Seconds at which n requests are due, `rate` of them per second, the first at 0."""
    return tuple(i / rate for i in range(n))


async def hold(send: Send, rate: float, n: int, timeout: float) -> list[Outcome]:
    """n requests at `rate` per second. When it returns, or is cancelled, none of them is left.

    Args:
        timeout: seconds from when a request is due in which it must be answered whole; then it is cancelled.
    """
    begin = asyncio.get_running_loop().time() + LEAD
    async with asyncio.TaskGroup() as group:
        made = [group.create_task(_one(send, i, due, begin, timeout)) for i, due in enumerate(schedule(rate, n))]
    return [one.result() for one in made]


async def _one(send: Send, number: int, due: float, begin: float, timeout: float) -> Outcome:
    now = asyncio.get_running_loop().time
    wanted = begin + due
    await asyncio.sleep(wanted - now())
    late = max(0.0, now() - wanted)
    try:
        async with asyncio.timeout_at(wanted + timeout):
            got = await send(number)
    except TimeoutError:
        return Outcome(due, late, TIMEOUT)
    except NotAnswered as error:
        return Outcome(due, late, error.kind, error.message)
    return Outcome(due, late, ANSWERED, first=got.first - wanted, whole=got.last - wanted, n_cached=got.n_cached)
