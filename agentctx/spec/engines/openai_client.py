"""The HTTP client of every engine that is a server: the official `openai` package, kept from going elsewhere."""

from __future__ import annotations

import re
import weakref
from typing import Any

import openai

from agentctx.errors import ConfigError
from agentctx.spec.engines.address import Address
from agentctx.spec.engines.openai_errors import WIRE

CONNECT_SECONDS = 5.0
READ_SECONDS = 600.0  # between two pieces of an answer: the first one waits for the whole prefill
RETRIES = 2
NO_KEY = "none"  # the library wants one; servers without keys don't look at it


def make_client(
    address: Address,
    key: str | None,
    connect_seconds: float = CONNECT_SECONDS,
    read_seconds: float = READ_SECONDS,
    retries: int = RETRIES,
) -> openai.OpenAI:
    """Connects to nothing yet. Raises ConfigError for a key that can't be one."""
    http = openai.DefaultHttpxClient(**_route(address))
    client = openai.OpenAI(
        api_key=_checked(key) or NO_KEY,
        base_url=address.base,
        max_retries=retries,
        http_client=http,
        timeout=openai.Timeout(read_seconds, connect=connect_seconds),
    )
    weakref.finalize(client, http.close)  # the library closes its own when they are gone, not one that it was given
    return client


def make_async_client(address: Address, key: str | None, seconds: float) -> openai.AsyncOpenAI:
    """For measurements: nothing is asked twice, and each request has a connection of its own, as users have.

    A kept connection may be closed by the server just when the next request goes out on it, which would look like an
    error of the server; and a bounded number of them would hold requests back here. Use it in `async with`.

    Args:
        seconds: to connect, and between two pieces of an answer.

    Raises:
        ConfigError: a key that can't be one.
    """
    limits = WIRE.Limits(max_connections=None, max_keepalive_connections=0)
    http = openai.DefaultAsyncHttpxClient(**_route(address), limits=limits)
    return openai.AsyncOpenAI(
        api_key=_checked(key) or NO_KEY,
        base_url=address.base,
        max_retries=0,
        http_client=http,
        timeout=openai.Timeout(seconds),
    )


def _route(address: Address) -> dict[str, Any]:
    """A redirect would take the prompt elsewhere, and a proxy has no business between this machine and itself."""
    return {"follow_redirects": False, "trust_env": not address.is_local}


def _checked(key: str | None) -> str | None:
    """Raises ConfigError for what can't stand in a header; the library's own error would show it."""
    if key is not None and not re.fullmatch(r"[\x21-\x7e]+", key):
        raise ConfigError("the API key holds blanks or characters that no key has", hint="look at AGENTCTX_API_KEY")
    return key
