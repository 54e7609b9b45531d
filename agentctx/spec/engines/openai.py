"""Any OpenAI-compatible server as an engine that takes text: chat completions, streamed. See docs/engines/openai.md."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import openai

from agentctx.errors import ModelUnavailable
from agentctx.prompt import Completion, Conversation
from agentctx.spec.engines.address import Address, parse_address
from agentctx.spec.engines.openai_client import CONNECT_SECONDS, READ_SECONDS, RETRIES, make_client
from agentctx.spec.engines.openai_errors import LOST, MALFORMED, Place, translate
from agentctx.spec.engines.openai_stream import Read, read
from agentctx.spec.protocols import Hear, SampleParams, ServedModel, TextUsage

# What a strict server may refuse and an answer can do without, with what is asked instead (None: nothing).
_OPTIONAL = {"stream_options": None, "seed": None, "n": None, "top_p": None, "max_tokens": "max_completion_tokens",
             "temperature": None}  # fmt: skip
_NAMED = r"""["'`]{0}["'`]"""  # by itself, `n` would be found anywhere


def connect(
    url: str,
    model: str | None,
    *,
    key: str | None,
    connect_seconds: float = CONNECT_SECONDS,
    read_seconds: float = READ_SECONDS,
    retries: int = RETRIES,
) -> OpenAIEngine:
    """See `TextEngineModule.connect`."""
    started = time.perf_counter()
    address = parse_address(url)
    client = make_client(address, key, connect_seconds, read_seconds, retries)
    place = Place(address.host, model or "", key=key)
    listed = _listed(client, place, needed=model is None)
    name = model or _only(listed, address)
    row = next((one for one in listed if one["id"] == name), {})
    served = ServedModel(name, address.host, address.is_local, _context(row))
    place = replace(place, model=name, names=tuple(one["id"] for one in listed))
    return OpenAIEngine(client, served, place, time.perf_counter() - started, row.get("owned_by") == "omlx")


def _listed(client: openai.OpenAI, place: Place, *, needed: bool) -> list[dict[str, Any]]:
    """The server's models. A server that has no list is taken as it is where a model was named."""
    try:
        rows = [one.model_dump() for one in client.models.list().data]
        return [row for row in rows if isinstance(row.get("id"), str)]
    except openai.NotFoundError as error:
        if needed:
            hint = "name one with --model; and is the address right? (often it ends in /v1)"
            raise ModelUnavailable(f"{place.host} doesn't list its models: {place.said(error)}", hint=hint) from None
        return []
    except (openai.APIError, LOST, *MALFORMED) as error:
        raise translate(error, place) from None  # its request holds the key


def _only(listed: list[dict[str, Any]], address: Address) -> str:
    names = [str(row["id"]) for row in listed]
    if len(names) == 1:
        return names[0]
    if not names:
        raise ModelUnavailable(f"{address.host} serves no model", hint="load one there, or name one with --model")
    shown = ", ".join(names[:8]) + (" ..." if len(names) > 8 else "")
    raise ModelUnavailable(f"{address.host} has {len(names)} models", hint=f"name one with --model: {shown}")


def _context(row: dict[str, Any]) -> int | None:
    """Tokens of context, where a server adds that to its list (vLLM, llama.cpp, LM Studio and OpenRouter)."""
    meta = row.get("meta") if isinstance(row.get("meta"), dict) else {}
    for value in (row.get("max_model_len"), (meta or {}).get("n_ctx"), row.get("context_length")):
        if isinstance(value, int) and value > 0:
            return value
    return None


@dataclass(frozen=True, slots=True)
class OpenAIEngine:
    """Implements `TextEngine`."""

    client: openai.OpenAI = field(repr=False)  # it knows the key
    served: ServedModel
    place: Place = field(repr=False)
    load_seconds: float
    is_omlx: bool = False

    def open(self, conversation: Conversation) -> OpenAISession:
        return OpenAISession(self, conversation)


@dataclass(slots=True)
class OpenAISession:
    """Implements `TextSession`. Learns from the server's refusals what not to ask again."""

    engine: OpenAIEngine
    conversation: Conversation
    usage: TextUsage = field(default_factory=TextUsage)
    notes: tuple[str, ...] = ()
    _refused: dict[str, str | None] = field(default_factory=dict)
    _alone: bool = False  # the server gives one choice, whatever `n` says
    _asked: bool = False

    def sample(self, n: int, params: SampleParams, hear: Hear | None = None) -> list[Completion]:
        """Greedy: one request. Else one with `n`; what it leaves over in single ones, sample i with `seed + i`."""
        if n < 1:
            raise ValueError(f"can't draw {n} samples")
        if params.past_eos:
            raise ValueError("a server that takes text ends its answers where the model does")
        if params.temperature <= 0:
            return self._ask(1, params, hear, 0)[:1] * n
        drawn: list[Completion] = []
        while len(drawn) < n:
            wanted = 1 if self._alone else n - len(drawn)
            got = self._ask(wanted, replace(params, seed=params.seed + len(drawn)), hear, len(drawn))[:wanted]
            if len(got) < wanted:
                self._alone = True
                self._note("the server gives one answer per request: samples were asked for one by one")
            drawn += got
        return drawn

    def _ask(self, n: int, params: SampleParams, hear: Hear | None, first: int) -> list[Completion]:
        answer = self._read(n, params, hear, first)
        if not self._asked:
            self.usage, self._asked = answer.facts(), True
        for note in answer.notes():
            self._note(note)
        return answer.completions()

    def _read(self, n: int, params: SampleParams, hear: Hear | None, first: int) -> Read:
        while True:
            body = self._body(n, params)
            try:
                with self._stream(body) as (chunks, started):
                    return read(chunks, started, params.stop, hear, first)
            except openai.APIStatusError as error:
                field_ = _refused_field(error, body)
                if field_ is None:
                    raise translate(error, self.engine.place) from None  # its request holds the key
                self._refused[field_] = _OPTIONAL[field_]
                self._note(f"the server refuses {field_!r}: it was left out" + _instead(field_))
            except (openai.APIError, LOST, *MALFORMED) as error:
                raise translate(error, self.engine.place) from None

    @contextmanager
    def _stream(self, body: dict[str, Any]) -> Iterator[tuple[Any, float]]:
        """Closed at the end, however that comes: a server stops generating when its client is gone."""
        started = time.perf_counter()
        extra = {"specprefill": False} if self.engine.is_omlx else None  # it was selected already
        with self.engine.client.chat.completions.create(**body, extra_body=extra) as chunks:
            yield chunks, started

    def _body(self, n: int, params: SampleParams) -> dict[str, Any]:
        """As few fields as will do. No `stop`: servers take it out of the text, and some don't know it."""
        said = self.conversation
        body: dict[str, Any] = {
            "model": self.engine.served.name,
            "messages": [{"role": "system", "content": said.system}, {"role": "user", "content": said.user}],
            "stream": True,
            "stream_options": {"include_usage": True},
            "max_tokens": params.max_new,
            "temperature": max(0.0, params.temperature),
        }
        if params.temperature > 0:
            body |= {"top_p": params.top_p, "seed": params.seed}
        if n > 1:
            body["n"] = n
        for name, other in self._refused.items():
            value = body.pop(name, None)
            if other is not None and value is not None:
                body[other] = value
        return body

    def _note(self, note: str) -> None:
        if note not in self.notes:
            self.notes = (*self.notes, note)


def _refused_field(error: openai.APIStatusError, body: dict[str, Any]) -> str | None:
    """The optional field that the server doesn't take, where it names one."""
    if error.status_code not in (400, 422):
        return None
    if error.param in _OPTIONAL and error.param in body:
        return error.param
    named = (name for name in _OPTIONAL if name in body)
    return next((name for name in named if re.search(_NAMED.format(name), error.message)), None)


def _instead(name: str) -> str:
    other = _OPTIONAL[name]
    return f", {other!r} asked instead" if other is not None else ""
