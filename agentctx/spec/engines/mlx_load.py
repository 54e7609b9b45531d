"""Loading a folder into mlx-lm: what is refused, how the configuration is written for it, and in which type it is held.

mlx-lm has its own defaults for what a configuration doesn't say, drops what it doesn't know, and runs all the same. So
transformers, which it brings along, fills the configuration in, and what would be dropped is translated or refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import mlx.core as mx
from huggingface_hub.errors import StrictDataclassError
from transformers import AutoConfig

from agentctx.errors import EngineUnavailable, ModelUnavailable, NotEnoughMemory
from agentctx.prompt import ModelInfo
from agentctx.spec.engines.folder import read_config, refuse
from agentctx.spec.engines.mlx_device import on_gpu, refuse_slow
from agentctx.spec.engines.mlx_library import get_total_parameters, load_model
from agentctx.spec.engines.mlx_model import MlxModel, out_of_memory

# Decoders with full attention and rotary embeddings only; each is compared with a masked dense forward in the tests.
SUPPORTED = frozenset({"granite", "llama", "mistral", "olmo2", "phi3", "qwen2", "qwen3", "smollm3"})
ACTIVATION = "silu"  # what mlx-lm computes for all of these, whatever the configuration says
ROPES = frozenset({"default", "linear", "llama3"})
FOREIGN = (
    RuntimeError,
    MemoryError,
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    StrictDataclassError,  # transformers finds a configuration invalid
)
PARTLY_ROTARY = frozenset({"phi3"})


def load(folder: Path, name: str, info: ModelInfo, *, n_layers: int | None = None) -> MlxModel:
    """The model in `folder`; with `n_layers` only those weights are read.

    float32 on a CPU; on a GPU as stored, bfloat16 where that is float32. Weights that mlx-lm quantised stay so.

    Raises EngineUnavailable (unsupported, too slow here), ModelUnavailable (missing, damaged), NotEnoughMemory.
    """
    config = _plain(read_config(folder))
    refuse(config, name, SUPPORTED)
    with _mapped(name):
        full = AutoConfig.for_model(**config).to_dict()
    _refuse_dropped(full, name)
    refuse_slow(info)
    with _mapped(name):
        # Lazily: only what is left of the model after it was cut is read.
        module, _ = load_model(folder, lazy=True, model_config=_translated(full))
        if n_layers is not None:
            module.model.layers = module.model.layers[:n_layers]
        dtype = _dtype(module)
        module.set_dtype(dtype)
        mx.eval(_arrays(module))
    return MlxModel(name, module, len(module.layers), get_total_parameters(module), dtype)


def _plain(config: dict[str, Any]) -> dict[str, Any]:
    """The configuration without mlx-lm's own quantisation, which is written twice. Others stay, and are refused."""
    own = config.get("quantization")
    if own is None or config.get("quantization_config", own) != own:
        return config
    return {key: value for key, value in config.items() if not key.startswith("quantization")}


def _refuse_dropped(config: dict[str, Any], name: str) -> None:
    """Raise EngineUnavailable for what mlx-lm would leave out."""
    reason = _dropped(config)
    if reason is not None:
        raise EngineUnavailable(f"{name} can't be run by mlx-lm: {reason}", hint="use --engine torch")


def _dropped(config: dict[str, Any]) -> str | None:
    kind, rope = config["model_type"], config["rope_parameters"]
    if config["hidden_act"] != ACTIVATION:
        return f"it activates with {config['hidden_act']}, mlx-lm computes {ACTIVATION} for {kind} models"
    if rope["rope_type"] not in ROPES:
        return f"its rotary embedding is {rope['rope_type']}, only these were tried: {', '.join(sorted(ROPES))}"
    if rope.get("partial_rotary_factor", 1.0) != 1.0 and kind not in PARTLY_ROTARY:
        return "its rotary embedding turns a part of each head only"
    return None


def _translated(config: dict[str, Any]) -> dict[str, Any]:
    """As mlx-lm reads it: transformers 5 keeps in one dictionary what was three keys."""
    rope = config["rope_parameters"]
    scaling = None if rope["rope_type"] == "default" else rope
    partial = rope.get("partial_rotary_factor", 1.0)
    return {**config, "rope_theta": rope["rope_theta"], "rope_scaling": scaling, "partial_rotary_factor": partial}


def _dtype(module: Any) -> Any:
    """Of activations; `set_dtype` leaves packed integers alone."""
    if not on_gpu():
        return mx.float32
    stored = {one.dtype for one in _arrays(module)} & {mx.bfloat16, mx.float16}
    return stored.pop() if len(stored) == 1 else mx.bfloat16


def _arrays(module: Any) -> list[Any]:
    """Of all submodules, with those that are no parameters, such as frequencies: a lazy array is of use to the thread
    that made it only."""
    return [one for part in module.modules() for one in part.values() if isinstance(one, mx.array)]


@contextmanager
def _mapped(name: str) -> Iterator[None]:
    """Exceptions while loading as ours."""
    try:
        yield
    except FOREIGN as error:
        if out_of_memory(error):
            raise NotEnoughMemory(f"{name} does not fit into memory: {error}", hint="choose a smaller model") from error
        raise ModelUnavailable(f"{name} can't be loaded: {error}", hint=f"agentctx models check {name}") from error
