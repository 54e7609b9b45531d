"""Models of a given shape with random weights, made where they run: for measurements of seconds without any file."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import torch
import transformers

from agentctx.prompt import ChatFrame, ModelInfo, Tokenizer
from agentctx.spec.engines.limits import layers_to_run
from agentctx.spec.engines.modules import Device
from agentctx.spec.engines.torch import TorchDrafter, TorchEngine
from agentctx.spec.engines.torch_capture import ATTENTION
from agentctx.spec.engines.torch_device import device, torch_dtype
from agentctx.spec.engines.torch_model import TorchModel, mapped, ready, wrap
from agentctx.spec.engines.transformers_quiet import quiet

SPREAD = 0.02  # what Qwen2 models are initialised with


def random_engine(
    config: Mapping[str, Any], *, info: ModelInfo, tokenizer: Tokenizer, chat: ChatFrame, seed: int, place: Device
) -> TorchEngine:
    """A main model of this configuration. The same seed gives the same weights on the same kind of device.

    Raises EngineUnavailable (torch is too old, a shape it can't make) or NotEnoughMemory.
    """
    started = time.perf_counter()
    model = random_model(config, info.name, seed, place)
    return TorchEngine(info, tokenizer, chat, time.perf_counter() - started, model, frozenset())


def random_drafter(
    config: Mapping[str, Any],
    *,
    info: ModelInfo,
    tokenizer: Tokenizer,
    n_layers: int | None,
    seed: int,
    place: Device,
) -> TorchDrafter:
    """A drafter: the first `n_layers` layers (None = all); no others are made. Raises as `random_engine`."""
    started = time.perf_counter()
    layers = layers_to_run(info, n_layers)
    model = random_model({**config, "num_hidden_layers": layers}, info.name, seed, place).first_layers(layers)
    own = info.beginning(layers, model.n_params)
    return TorchDrafter(own, tokenizer, time.perf_counter() - started, model, frozenset())


def random_model(config: Mapping[str, Any], name: str, seed: int, place: Device | None = None) -> TorchModel:
    """Normal weights, ones for norms, zeros for biases. transformers' own initialisation takes minutes for large ones,
    and would make them on the CPU first."""
    place = place or device()
    ready(place)
    with mapped(name), quiet():
        settings = transformers.AutoConfig.for_model(**config)
        with torch.device("meta"):  # shapes without memory
            module = transformers.AutoModelForCausalLM.from_config(
                settings, dtype=torch_dtype(place), attn_implementation=ATTENTION
            )
        module.to_empty(device=place.kind)
        module.tie_weights()  # making room for each parameter has cut the ties
        # Its frequencies are computed, not stored: what lies in their place now means nothing.
        module.model.rotary_emb = type(module.model.rotary_emb)(config=settings).to(place.kind)
        _fill(module, torch.Generator(place.kind).manual_seed(seed))
    return wrap(module.eval(), name)


def _fill(module: Any, generator: Any) -> None:
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
            elif parameter.ndim == 1:
                parameter.fill_(1)
            else:
                parameter.normal_(0, SPREAD, generator=generator)
