"""A vLLM server, spoken to over its OpenAI-compatible HTTP interface with token ids."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentctx.errors import AgentctxError, EngineUnavailable
from agentctx.spec.engines.address import Address, parse_address
from agentctx.spec.engines.vllm_requests import Answer, Ask, Refused

if TYPE_CHECKING:
    from agentctx.spec.engines.openai_errors import Place


@dataclass(frozen=True, slots=True, eq=False)
class VllmServer:
    """Implements `vllm_requests.Carrier`."""

    client: Any = field(repr=False)  # it knows the key
    address: Address
    served_model: str
    key: str | None = field(repr=False)

    @property
    def tells_logits(self) -> bool:
        return False

    @property
    def where(self) -> str:
        return f"the vLLM server at {self.address.host}"

    def ask(self, asks: list[Ask]) -> list[Answer]:
        return [self._ask(ask) for ask in asks]

    def _ask(self, ask: Ask) -> Answer:
        import openai

        try:
            found = self.client.completions.create(**body_of(self.served_model, ask))
        except openai.BadRequestError as error:
            raise Refused(place_of(self.address, self.served_model, self.key).said(error)) from None
        except openai.APIError as error:
            raise _failed(error, self.address, self.served_model, self.key) from None
        choices = sorted(found.choices, key=lambda one: one.index)
        ids = [getattr(one, "token_ids", None) for one in choices]
        if any(one is None for one in ids):
            raise EngineUnavailable(f"{self.where} returned no token ids", hint="it must be a vLLM server")
        details = getattr(found.usage, "prompt_tokens_details", None)
        cached = None if details is None else details.cached_tokens
        return Answer(
            tuple(tuple(one) for one in ids if one is not None),
            tuple(one.finish_reason == "length" for one in choices),
            cached,
        )


def connect(url: str, served_model: str | None, api_key: str | None, read_seconds: float | None = None) -> VllmServer:
    """Raises EngineUnavailable: no client library, no server, no such model."""
    try:
        import openai

        from agentctx.spec.engines.openai_client import READ_SECONDS, make_client
    except ImportError as error:
        raise EngineUnavailable(
            f"a vLLM server can't be reached: {error}", hint='pip install "agentctx[openai]"'
        ) from error
    address = parse_address(url)
    client = make_client(address, api_key, read_seconds=read_seconds or READ_SECONDS)
    try:
        names = [model.id for model in client.models.list().data]
    except openai.APIError as error:
        raise _failed(error, address, served_model, api_key) from None
    if served_model is None and len(names) == 1:
        served_model = names[0]
    if served_model is None or served_model not in names:
        raise EngineUnavailable(
            f"the server at {address.host} serves {', '.join(names) or 'no model'}",
            hint="name one of them with --served-model",
        )
    return VllmServer(client, address, served_model, api_key)


def place_of(address: Address, model: str | None, key: str | None) -> Place:
    from agentctx.spec.engines.openai_errors import Place

    return Place(address.host, model or "", key=key)


def _failed(error: Exception, address: Address, model: str | None, key: str | None) -> AgentctxError:
    """To be raised `from None`: the library's error holds the request with its headers, and so the key."""
    from agentctx.spec.engines.openai_errors import translate

    return translate(error, place_of(address, model, key))


def body_of(served_model: str, ask: Ask) -> dict[str, Any]:
    """Every sampling parameter is said: a server fills in the model's own defaults (top_k, penalties) otherwise."""
    params = ask.params
    return {
        "model": served_model,
        "prompt": list(ask.ids),
        "max_tokens": params.max_new,
        "temperature": params.temperature,
        "top_p": params.top_p,
        "n": ask.n,
        "seed": params.seed,
        "stop": list(params.stop) or None,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "extra_body": {
            "top_k": 0,
            "min_p": 0.0,
            "repetition_penalty": 1.0,
            "stop_token_ids": list(ask.ends),
            "ignore_eos": params.past_eos,
            "include_stop_str_in_output": True,
            "return_token_ids": True,
            "vllm_xargs": ask.extra,
        },
    }
