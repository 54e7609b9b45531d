"""Errors of the `openai` package -> ours. No key, header or whole answer gets into a message."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import Any

import openai

from agentctx.errors import AgentctxError, EngineUnavailable, ModelUnavailable, UsageError

# The client's HTTP library, httpx or httpx2: before openai 3 its errors came through where an answer broke off.
WIRE: Any = import_module(openai.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0])
LOST: type[Exception] = WIRE.TransportError
_LATE: type[Exception] = WIRE.TimeoutException
MALFORMED = (ValueError, TypeError, AttributeError, KeyError)  # what odd answers end in: JSON that isn't, other shapes
_SHOWN = 300  # characters of what a server says
_TOO_LONG = (
    "context length",
    "context_length",
    "context size",
    "context window",
    "maximum context",
    "too long",
    "n_ctx",
)
_KEY_HINT = "set AGENTCTX_API_KEY to this server's key"


@dataclass(frozen=True, slots=True)
class Place:
    """Who was asked. `key` is known here only to be taken out of what is shown."""

    host: str
    model: str
    names: tuple[str, ...] = ()
    key: str | None = None

    def said(self, error: openai.APIError) -> str:
        """What the server said, on one line, short and without the key."""
        body = error.body if isinstance(error.body, dict) else {}
        message = body.get("message")
        return self.clean(message if isinstance(message, str) else error.message)

    def clean(self, text: str) -> str:
        text = " ".join(text.split())
        if self.key:
            text = text.replace(self.key, "<key>")
        return text if len(text) <= _SHOWN else text[:_SHOWN] + "..."


def translate(error: Exception, place: Place) -> AgentctxError:
    """Our error for one of the library's, or for what a malformed answer ended in.

    Raise it `from None`: the library's error holds the request with its headers, and so the key.
    """
    if isinstance(error, openai.APITimeoutError | _LATE):
        return EngineUnavailable(f"{place.host} didn't answer in time", hint="is the server busy, or still loading?")
    if isinstance(error, openai.APIConnectionError | LOST):
        return _connection(error, place)
    if isinstance(error, openai.APIStatusError):
        return _status(error, place)
    if isinstance(error, openai.APIError):  # sent as an event within the stream
        return too_long(place.said(error), place) or EngineUnavailable(f"{place.host} gave up: {place.said(error)}")
    return EngineUnavailable(
        f"{place.host} answered with something that is no chat completion ({type(error).__name__})",
        hint="--url must lead to an OpenAI-compatible server; most want a path that ends in /v1",
    )


def _connection(error: Exception, place: Place) -> AgentctxError:
    why = place.clean(str(error.__cause__ or error))
    return EngineUnavailable(
        f"can't reach a server at {place.host}: {why}", hint="start it, or give another address with --url"
    )


def _status(error: openai.APIStatusError, place: Place) -> AgentctxError:
    code, said = error.status_code, place.said(error)
    long = too_long(said, place) if code in (400, 413, 422, 500) else None
    if long is not None:
        return long
    if code in (401, 403):
        what = "the API key" if place.key else "requests without an API key"
        return EngineUnavailable(f"{place.host} refuses {what} ({code}): {said}", hint=_KEY_HINT)
    if code == 404:
        known = (
            f"it has {', '.join(place.names[:8])}" if place.names else "is the address right? (often it ends in /v1)"
        )
        return ModelUnavailable(f"{place.host} has no model {place.model!r} ({code}): {said}", hint=known)
    if code == 429:
        return EngineUnavailable(f"{place.host} takes no more requests now ({code}): {said}", hint="try again later")
    if 300 <= code < 400:
        return EngineUnavailable(f"{place.host} sends us elsewhere ({code})", hint="give the final address with --url")
    kind = "failed" if code >= 500 else "refuses the request"
    return EngineUnavailable(f"{place.host} {kind} ({code}): {said}")


def too_long(said: str, place: Place) -> UsageError | None:
    """The error for a prompt beyond the context, where the server speaks of that."""
    if not any(words in said.lower() for words in _TOO_LONG):
        return None
    return UsageError(f"the prompt is too long for {place.model}: {said}", hint="lower --budget or --max-new")
