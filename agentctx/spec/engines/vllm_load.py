"""Many requests at once to a vLLM server, each timed as it streams in. What `agentctx bench qps` sends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentctx.spec.engines.vllm_http import VllmServer, body_of, place_of
from agentctx.spec.engines.vllm_requests import Ask

if TYPE_CHECKING:
    import openai


class NotAnswered(Exception):
    """A request without a whole answer. `kind`: a few words that are the same for every one like it."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message


@dataclass(frozen=True, slots=True)
class Streamed:
    """When the first token and the end came, seconds of the event loop's clock.

    `n_cached`: prompt tokens that were in the prefix cache, None where the server doesn't tell.
    """

    first: float
    last: float
    n_cached: int | None


@dataclass(frozen=True, slots=True, eq=False)
class VllmLoad:
    client: openai.AsyncOpenAI
    server: VllmServer

    async def read(self, ask: Ask, salt: str) -> Streamed:
        """One answer. When it is cancelled its connection closes, and the server gives the request up.

        Args:
            salt: goes into the hashes of the prefix cache, so that only requests with the same one share anything.

        Raises:
            NotAnswered: it was refused, or broke off.
            TimeoutError: no connection in time.
        """
        import openai

        from agentctx.spec.engines.openai_errors import LOST, MALFORMED

        place = place_of(self.server.address, self.server.served_model, self.server.key)
        try:
            return await self._stream(ask, salt)
        except openai.APITimeoutError:
            raise TimeoutError from None
        except openai.APIStatusError as error:  # `from None`: its request holds the key
            raise NotAnswered(f"HTTP {error.status_code}", place.said(error)) from None
        except (openai.APIConnectionError, LOST) as error:
            raise NotAnswered("connection", place.clean(str(error.__cause__ or error))) from None
        except openai.APIError as error:
            raise NotAnswered("error within the stream", place.said(error)) from None
        except MALFORMED as error:
            raise NotAnswered("no completion", type(error).__name__) from None

    async def _stream(self, ask: Ask, salt: str) -> Streamed:
        now = asyncio.get_running_loop().time
        first: float | None = None
        done, usage = False, None
        async with await self.client.completions.create(**_body(self.server.served_model, ask, salt)) as chunks:
            async for chunk in chunks:
                usage = getattr(chunk, "usage", None) or usage
                for choice in chunk.choices:
                    first = now() if first is None else first
                    done = done or choice.finish_reason is not None
        if first is None or not done:
            raise NotAnswered("broken off", "the stream ended before the answer did")
        details = getattr(usage, "prompt_tokens_details", None)
        return Streamed(first, now(), None if details is None else details.cached_tokens)


@asynccontextmanager
async def open_load(server: VllmServer, read_seconds: float) -> AsyncIterator[VllmLoad]:
    """Closes every connection at the end. `read_seconds`: between two pieces of an answer."""
    from agentctx.spec.engines.openai_client import make_async_client

    async with make_async_client(server.address, server.key, read_seconds) as client:
        yield VllmLoad(client, server)


def _body(served_model: str, ask: Ask, salt: str) -> dict[str, Any]:
    """No ids come back."""
    body = body_of(served_model, ask)
    extra = {**body["extra_body"], "return_token_ids": False, "cache_salt": salt}
    return {**body, "stream": True, "stream_options": {"include_usage": True}, "extra_body": extra}
