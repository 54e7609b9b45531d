"""Models with random weights in the shape of real ones, for measurements: nothing is downloaded or written."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
import transformers

from agentctx.errors import NotEnoughMemory
from agentctx.prompt import Tokenizer
from agentctx.spec.engines.limits import layers_to_run
from agentctx.spec.engines.torch import TorchDrafter, TorchEngine
from agentctx.spec.engines.torch_capture import ATTENTION
from agentctx.spec.engines.torch_model import TorchModel, as_model, chunk_on, dtype_of, mapped, prepared_device
from agentctx.spec.protocols import ChatFrame, ModelInfo

SEED = 0
CHUNK = 512  # as `Engine.prefill` has it


@dataclass(frozen=True, slots=True)
class Device:
    """Where torch computes. `free`: bytes; None: main memory, which others know."""

    name: str
    kind: str  # 'cuda' or 'cpu'
    dtype: str
    value_bytes: int
    free: int | None
    chunk: int  # tokens of a forward of the main model
    peak: int | None  # the most bytes that torch has held there


def device() -> Device:
    kind = prepared_device(None)
    dtype = dtype_of(kind)
    name, free, peak = "the CPU", None, None
    if kind.startswith("cuda"):
        name, free = torch.cuda.get_device_name(), torch.cuda.mem_get_info()[0]
        peak = torch.cuda.max_memory_allocated()
    said = str(dtype).removeprefix("torch.")
    return Device(name, kind, said, torch.finfo(dtype).bits // 8, free, chunk_on(kind, CHUNK), peak)


def require(where: Device, need: int, what: str) -> None:
    """Raises NotEnoughMemory where a GPU has less than `need` bytes free."""
    if where.free is not None and need > where.free:
        raise NotEnoughMemory(
            f"{what} needs {need / 1e9:.1f} GB; {where.free / 1e9:.1f} GB are free on {where.name}",
            hint="take a smaller shape, or fewer --tokens",
        )


def random_engine(
    config: Mapping[str, Any], name: str, *, tokenizer: Tokenizer, chat: ChatFrame, info: ModelInfo
) -> TorchEngine:
    """Raises NotEnoughMemory, EngineUnavailable."""
    started = time.perf_counter()
    model = _random(config, name)
    return TorchEngine(info, tokenizer, chat, time.perf_counter() - started, model, frozenset())


def random_drafter(
    config: Mapping[str, Any], name: str, *, tokenizer: Tokenizer, info: ModelInfo, n_layers: int | None
) -> TorchDrafter:
    """Its first `n_layers` layers (None = all); no other is made. Raises NotEnoughMemory, EngineUnavailable."""
    started = time.perf_counter()
    layers = layers_to_run(info, n_layers)
    model = _random({**config, "num_hidden_layers": layers}, name)
    own = replace(info, n_layers=layers, n_params=model.n_params)
    return TorchDrafter(own, tokenizer, time.perf_counter() - started, model, frozenset())


def _random(config: Mapping[str, Any], name: str) -> TorchModel:
    """As transformers initializes them: normal (0, 0.02), norms 1, biases 0; the same for the same device and seed."""
    kind = prepared_device(None)
    with mapped(name, loading=True), torch.random.fork_rng(devices=[0] if kind.startswith("cuda") else []):
        torch.manual_seed(SEED)
        made = transformers.AutoConfig.for_model(**config)
        with torch.device(kind):
            module = transformers.AutoModelForCausalLM.from_config(
                made, dtype=dtype_of(kind), attn_implementation=ATTENTION
            )
    return as_model(name, module)
