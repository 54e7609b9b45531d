"""The engine for vLLM: loaded here (`load_engine`), or a server (`connect`). Import it through `engines.load`.

vLLM keeps the prefilled prompt in its prefix cache, not in the session: sampling sends the kept tokens again, and vLLM
finds their keys and values there. What was evicted meanwhile is computed again; the answer is the same.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from agentctx.errors import EngineUnavailable
from agentctx.prompt import Completion, Float32, SparsePrompt, Tokenizer, readonly
from agentctx.spec.engines import vllm_http, vllm_local
from agentctx.spec.engines.folder import eos_ids, read_config
from agentctx.spec.engines.limits import check_room, check_sparse, room_to_decode
from agentctx.spec.engines.sampling import stop_end
from agentctx.spec.engines.vllm_requests import Answer, Ask, Carrier, answers, ask_for, prove
from agentctx.spec.protocols import ChatFrame, EngineCaps, Hear, ModelInfo, SampleParams


@dataclass(frozen=True, slots=True, eq=False)
class VllmEngine:
    """Implements `protocols.Engine`."""

    info: ModelInfo
    tokenizer: Tokenizer
    chat: ChatFrame
    load_seconds: float
    carrier: Carrier
    eos: frozenset[int]

    @property
    def form(self) -> None:
        """vLLM chooses by itself."""

    @property
    def caps(self) -> EngineCaps:
        logprobs = self.carrier.tells_logits
        return EngineCaps(True, True, logprobs, self.info.max_position, self.info.tokenizer_digest)

    def prefill(self, prompt: SparsePrompt, *, chunk: int = 512) -> VllmSession:
        """One request for one token, which fills the prefix cache.

        Args:
            chunk: not used; the server's `max_num_batched_tokens` says how much is computed at once.

        Raises:
            EngineUnavailable: the prompt doesn't fit the model, or the plugin isn't active (any more).
        """
        check_sparse(self.info, prompt)
        prove(self.carrier)  # each time: a server may have been restarted without the plugin
        ask = ask_for(prompt, self.eos)
        started = time.perf_counter()
        answer = answers(self.carrier, [ask])[0]
        return VllmSession(self, ask, prompt.total, time.perf_counter() - started, answer.n_cached)


@dataclass(frozen=True, eq=False)
class VllmSession:
    """Implements `protocols.Session`. `n_cached`: tokens found in the prefix cache, None if it isn't told."""

    engine: VllmEngine
    ask: Ask
    total: int
    prefill_seconds: float
    n_cached: int | None

    @cached_property
    def logits(self) -> Float32:
        """float32 (V,): log-probabilities, which are the logits up to a constant.

        Raises EngineUnavailable over HTTP, where the whole vocabulary isn't told.
        """
        return readonly(self._after([[]])[0])

    def extend(self, ids: Sequence[int]) -> Float32:
        """float32 (len(ids), V): log-probabilities. One request per token; the prefix cache holds what they share."""
        if not ids:
            self._check_told()
            return np.zeros((0, self.engine.info.vocab_size), np.float32)
        check_room(self.engine.info, self.total, len(ids), room_to_decode(self.engine.info, self.total))
        return self._after([list(ids[: i + 1]) for i in range(len(ids))])

    def sample(self, n: int, params: SampleParams, hear: Hear | None = None) -> list[Completion]:
        """Also says each text at its end: nothing is streamed."""
        if n < 1:
            raise ValueError(f"can't draw {n} samples")
        limit = max(0, min(params.max_new, room_to_decode(self.engine.info, self.total)))
        if not limit:
            return [Completion("", (), "length", 0.0)] * n
        greedy = params.temperature <= 0
        params = replace(params, max_new=limit, temperature=max(0.0, params.temperature))
        started = time.perf_counter()
        ask = replace(self.ask, params=params, n=1 if greedy else n)
        found = self._completions(answers(self.engine.carrier, [ask])[0], params, started)
        for number, one in enumerate(found):
            if hear is not None and one.text:
                hear(number, one.text)
        return found * n if greedy else found

    def _after(self, tails: list[list[int]]) -> Float32:
        """float32 (len(tails), V): for the token after the prompt and each tail."""
        self._check_told()
        asks = [replace(self.ask.extended(tail), logits=True) for tail in tails]
        found = [answer.logits for answer in answers(self.engine.carrier, asks)]
        return np.stack([one for one in found if one is not None])

    def _check_told(self) -> None:
        if not self.engine.carrier.tells_logits:
            raise EngineUnavailable(
                f"{self.engine.carrier.where} doesn't tell the logits of the whole vocabulary",
                hint="load the model here, or use the torch engine",
            )

    def _completions(self, answer: Answer, params: SampleParams, started: float) -> list[Completion]:
        seconds = time.perf_counter() - started
        pairs = zip(answer.ids, answer.cut, strict=True)
        return [finish(self.engine, ids, cut, params, seconds) for ids, cut in pairs]


def finish(engine: VllmEngine, ids: tuple[int, ...], cut: bool, params: SampleParams, seconds: float) -> Completion:
    """A completion as every engine of ours ends it: without the EOS token, after the first stop string."""
    ends = [i for i, token in enumerate(ids) if token in engine.eos and not params.past_eos]
    if ends:
        ids, cut = ids[: ends[0]], False
    text = engine.tokenizer.decode(ids)
    if stop_end(text, params.stop) is None:
        return Completion(text, ids, "length" if cut else "stop", seconds)
    # The shortest beginning of the ids that holds a stop string; it holds one from there on, so halves will do.
    low, high = 1, len(ids)
    while low < high:
        middle = (low + high) // 2
        if stop_end(engine.tokenizer.decode(ids[:middle]), params.stop) is None:
            low = middle + 1
        else:
            high = middle
    text = engine.tokenizer.decode(ids[:low])
    return Completion(text[: stop_end(text, params.stop)], ids[:low], "stop", seconds)


def load_engine(
    folder: Path, name: str, *, tokenizer: Tokenizer, chat: ChatFrame, info: ModelInfo, **options: Any
) -> VllmEngine:
    """A vLLM in this process on the model in `folder`.

    Args:
        options: arguments of `vllm.LLM`, e.g. `max_model_len`, `gpu_memory_utilization`, `tensor_parallel_size`.

    Raises:
        ModelUnavailable, NotEnoughMemory, EngineUnavailable.
    """
    started = time.perf_counter()
    eos = eos_ids(folder, read_config(folder), tokenizer)
    carrier = vllm_local.load(folder, name, info, options)
    prove(carrier)
    return VllmEngine(info, tokenizer, chat, time.perf_counter() - started, carrier, eos)


def connect(
    url: str,
    served_model: str | None = None,
    *,
    tokenizer: Tokenizer,
    chat: ChatFrame,
    info: ModelInfo,
    api_key: str | None = None,
    timeout: float = 600.0,
) -> VllmEngine:
    """The engine on a running vLLM server.

    Args:
        url: with or without `/v1`.
        served_model: as the server calls it; None = the only one.
        info: of the same model, whose folder (config and tokenizer, no weights) lies here.
        timeout: seconds that one answer may take.

    Raises:
        EngineUnavailable: no server, no such model, or no active plugin in it.
    """
    started = time.perf_counter()
    folder = Path(info.folder)
    eos = eos_ids(folder, read_config(folder), tokenizer)
    carrier = vllm_http.connect(url, served_model, api_key, timeout)
    prove(carrier)
    return VllmEngine(info, tokenizer, chat, time.perf_counter() - started, carrier, eos)
