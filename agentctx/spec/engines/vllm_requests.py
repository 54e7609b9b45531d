"""What the vLLM engine asks, whoever carries it (a vLLM in this process, or a server), and the proof that it is heard.

A vLLM without the plugin ignores extra arguments without a word and would answer from contiguous positions. So before
anything sparse is sent, a request goes out whose spans are wrong on purpose: only the plugin refuses it, in its words.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from agentctx.errors import AgentctxError, EngineUnavailable
from agentctx.prompt import Float32, SparsePrompt
from agentctx.spec.engines.vllm_plugin import contract
from agentctx.spec.protocols import SampleParams

GREEDY = SampleParams(max_new=1)


@dataclass(frozen=True, slots=True, eq=False)
class Ask:
    """n completions of one prompt."""

    ids: tuple[int, ...]
    extra: dict[str, Any]
    eos: tuple[int, ...]
    params: SampleParams = GREEDY
    n: int = 1
    logits: bool = False  # of the first new token

    @property
    def ends(self) -> tuple[int, ...]:
        """The tokens that end an answer."""
        return () if self.params.past_eos else self.eos

    def extended(self, more: list[int]) -> Ask:
        """The same with `more` tokens, placed from the original length on."""
        if not more:
            return self
        spans, total = self.extra[contract.SPANS], self.extra[contract.LENGTH]
        end = total + len(more)
        extra = {contract.SPANS: [*spans, total, end], contract.LENGTH: end}
        return replace(self, ids=(*self.ids, *more), extra=extra)


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """New ids of each completion, the one that ended it included, and whether it ran to the limit."""

    ids: tuple[tuple[int, ...], ...]
    cut: tuple[bool, ...]
    n_cached: int | None = None  # prompt tokens that were in the prefix cache, where it is told
    logits: Float32 | None = field(default=None)  # float32 (V,): log-probabilities


class Refused(Exception):
    """vLLM took the request for invalid; the text is its reason."""


class Carrier(Protocol):
    """Brings requests to a vLLM."""

    @property
    def tells_logits(self) -> bool: ...

    @property
    def where(self) -> str: ...

    def ask(self, asks: list[Ask]) -> list[Answer]:
        """In the order of `asks`. Raises Refused, EngineUnavailable."""


def ask_for(prompt: SparsePrompt, eos: frozenset[int]) -> Ask:
    """Raises EngineUnavailable where the prompt can't be said in spans."""
    try:
        extra = contract.encode(prompt)
    except contract.BadSpans as error:
        raise EngineUnavailable(f"vLLM can't prefill this prompt: {error}") from error
    return Ask(tuple(int(i) for i in prompt.ids), extra, tuple(sorted(eos)))


def answers(carrier: Carrier, asks: list[Ask]) -> list[Answer]:
    try:
        return carrier.ask(asks)
    except Refused as error:
        raise EngineUnavailable(f"{carrier.where} refused the prompt: {error}") from error


def prove(carrier: Carrier) -> None:
    """Raises EngineUnavailable unless the plugin is active behind the carrier."""
    wrong = Ask((1, 1), {contract.SPANS: [1, 1], contract.LENGTH: 2}, ())
    try:
        carrier.ask([wrong])
    except Refused as error:
        said = str(error)
        if contract.ACTIVE in said:
            return
        raise _unproven(carrier, said) from error
    raise _unproven(carrier, "")


def _unproven(carrier: Carrier, said: str) -> AgentctxError:
    if contract.OFF in said:
        message = f"{carrier.where} takes no sparse prompts: {said}"
    elif said:
        message = f"{carrier.where} doesn't say that it keeps positions, but: {said}"
    else:
        message = (
            f"{carrier.where} has no agentctx plugin: it would ignore the positions and answer as if there were none"
        )
    return EngineUnavailable(
        message,
        hint='pip install "agentctx[vllm]" in the environment that vLLM runs in, on every node, and restart it; '
        "or use the text-level engine: openai",
    )
