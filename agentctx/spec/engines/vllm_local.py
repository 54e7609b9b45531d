"""vLLM inside this process (`vllm.LLM`): the offline carrier."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agentctx.errors import EngineUnavailable, ModelUnavailable, NotEnoughMemory
from agentctx.prompt import Float32
from agentctx.spec.engines.vllm_requests import Answer, Ask, Refused
from agentctx.spec.protocols import ModelInfo

# vLLM reads these when it is imported. Its log goes to stdout by itself, where our results are.
ENVIRONMENT = {
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
    "VLLM_LOGGING_LEVEL": "WARNING",
    "VLLM_NO_USAGE_STATS": "1",
}


@dataclass(frozen=True, slots=True, eq=False)
class LocalVllm:
    """Implements `vllm_requests.Carrier`."""

    llm: Any
    n_vocab: int

    @property
    def tells_logits(self) -> bool:
        return True

    @property
    def where(self) -> str:
        return "vLLM in this process"

    def ask(self, asks: list[Ask]) -> list[Answer]:
        from vllm.exceptions import VLLMError, VLLMValidationError

        try:
            prompts = [{"prompt_token_ids": list(ask.ids)} for ask in asks]
            outputs = self.llm.generate(prompts, [_params(ask) for ask in asks], use_tqdm=False)
        except VLLMValidationError as error:
            raise Refused(str(error)) from error
        except (VLLMError, RuntimeError, ValueError) as error:
            raise EngineUnavailable(f"vLLM failed: {error}") from error
        return [self._answer(ask, output) for ask, output in zip(asks, outputs, strict=True)]

    def _answer(self, ask: Ask, output: Any) -> Answer:
        found = sorted(output.outputs, key=lambda one: one.index)
        return Answer(
            tuple(tuple(one.token_ids) for one in found),
            tuple(one.finish_reason == "length" for one in found),
            output.num_cached_tokens,
            self._logits(found[0].logprobs[0]) if ask.logits else None,
        )

    def _logits(self, told: Any) -> Float32:
        """float32 (V,) of a mapping id -> logprob; an id that isn't told has no probability."""
        out = np.full(self.n_vocab, -np.inf, np.float32)
        for token, value in told.items():
            if token < self.n_vocab:
                out[token] = value.logprob
        return out


def load(folder: Path, name: str, info: ModelInfo, options: dict[str, Any]) -> LocalVllm:
    """Raises EngineUnavailable (no vLLM, or it refuses), ModelUnavailable, NotEnoughMemory."""
    for key, value in ENVIRONMENT.items():
        os.environ.setdefault(key, value)
    try:
        import vllm
        from vllm.platforms import current_platform
    except (ImportError, OSError, RuntimeError) as error:
        raise EngineUnavailable(f"engine vllm can't be used: {error}", hint='pip install "agentctx[vllm]"') from error
    defaults: dict[str, Any] = {
        "max_model_len": info.max_position,
        "skip_tokenizer_init": not (folder / "tokenizer.json").is_file(),
    }
    if current_platform.is_cpu():  # as the torch engine; compiling there takes minutes and a compiler
        defaults.update(dtype="float32", enforce_eager=True)
    try:
        llm = vllm.LLM(str(folder), max_logprobs=-1, **{**defaults, **options})
    except OSError as error:
        raise ModelUnavailable(f"{name} can't be loaded: {error}", hint=f"agentctx models check {name}") from error
    except (RuntimeError, ValueError, MemoryError) as error:
        if isinstance(error, MemoryError) or "memory" in str(error) or "KV cache" in str(error):
            raise NotEnoughMemory(f"{name} does not fit into memory: {error}", hint="choose a smaller model") from error
        raise EngineUnavailable(f"vLLM can't load {name}: {error}") from error
    return LocalVllm(llm, info.vocab_size)


def _params(ask: Ask) -> Any:
    from vllm import SamplingParams

    params = ask.params
    return SamplingParams(
        n=ask.n,
        max_tokens=params.max_new,
        temperature=params.temperature,
        top_p=params.top_p,
        seed=params.seed,  # sample i of n draws with seed + i
        stop=list(params.stop),
        include_stop_str_in_output=True,
        stop_token_ids=list(ask.ends),
        ignore_eos=params.past_eos,
        logprobs=-1 if ask.logits else None,
        detokenize=bool(params.stop),
        extra_args=ask.extra,
    )
