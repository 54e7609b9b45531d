"""A causal language model of transformers: loading, refusing, running, and cutting after the first layers.

A loaded model is never changed. `first_layers` makes a second shell around the same weights instead.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from safetensors import SafetensorError

from agentctx.errors import EngineUnavailable, ModelUnavailable, NotEnoughMemory
from agentctx.prompt import Float32
from agentctx.spec.engines.cpus import physical_cores
from agentctx.spec.engines.folder import read_config, refuse
from agentctx.spec.engines.modules import Device, form_of
from agentctx.spec.engines.torch_cache import fork, new_cache
from agentctx.spec.engines.torch_capture import ATTENTION, DeepEnough, Tap, register
from agentctx.spec.engines.torch_device import device, torch_dtype
from agentctx.spec.engines.torch_layers import MASKS_BY_TYPE, LayerKind, attention_masks, layer_kinds
from agentctx.spec.engines.torch_rope import held, short_reach
from agentctx.spec.engines.transformers_quiet import quiet

# Decoders with attention to single tokens and rotary embeddings only; each is compared with a masked dense forward in
# the tests, sliding layers, soft caps and sinks included.
SUPPORTED = frozenset(
    {
        "gemma2",
        "gemma3_text",
        "gpt_oss",
        "granite",
        "llama",
        "ministral",
        "mistral",
        "olmo2",
        "phi3",
        "qwen2",
        "qwen3",
        "smollm3",
        "starcoder2",
    }
)


@dataclass(frozen=True, slots=True, eq=False)
class TorchModel:
    """A model (or its first layers) and how to call it."""

    name: str
    module: Any  # the PreTrainedModel
    kinds: tuple[LayerKind, ...]  # of its layers
    cache_argument: str  # what this version of transformers calls it
    takes_cache_position: bool

    @property
    def n_layers(self) -> int:
        return len(self.kinds)

    @property
    def form(self) -> str:
        return form_of(str(self.module.dtype).removeprefix("torch."), self.module.device)

    @property
    def n_params(self) -> int:
        return sum(parameter.numel() for parameter in self.module.parameters())

    @property
    def bytes_per_token(self) -> int:
        """Keys and values of one token in all layers."""
        config, width = self.module.config, torch.finfo(self.module.dtype).bits // 8
        heads = config.num_key_value_heads or config.num_attention_heads
        head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        return int(2 * self.n_layers * heads * head_dim * width)

    def new_cache(self, capacity: int) -> Any:
        return new_cache(self.n_layers, capacity)

    def fork(self, cache: Any, rows: int, extra: int) -> Any:
        """`rows` copies of a cache of one row, each with room for `extra` more tokens."""
        with mapped(self.name), torch.inference_mode():
            return fork(cache, rows, extra)

    def forward(self, ids: Any, positions: Any, cache: Any, *, last: int = 1) -> Float32:
        """float32 (rows, last, V): logits after the last `last` of the ids (rows, n) at `positions`,
        (1, n). Mutates `cache`.

        The cache object is what keeps transformers from reading gaps in the positions as packed sequences, between
        which it would cut attention.
        """
        ids, positions = self._tensor(ids), np.asarray(positions, dtype=np.int64)
        arguments = self._with_cache(cache, ids, positions[0])
        with mapped(self.name), torch.inference_mode():
            out = self.module(
                input_ids=ids,
                position_ids=self._tensor(positions).expand(ids.shape[0], -1),
                use_cache=True,
                logits_to_keep=last,
                **arguments,
            )
            logits: Float32 = out.logits.float().cpu().numpy()
            return logits

    def advance(self, ids: Any, positions: Any, cache: Any) -> None:
        """Run `ids` without logits, as deep as the watcher wants. Mutates `cache`."""
        ids, positions = self._tensor([ids]), np.asarray(positions, dtype=np.int64)
        with mapped(self.name), torch.inference_mode(), suppress(DeepEnough):
            arguments = self._with_cache(cache, ids, positions)
            self.module.model(input_ids=ids, position_ids=self._tensor([positions]), use_cache=True, **arguments)

    def normed(self, states: Any) -> Any:
        """States of any layer under the final norm."""
        return self.module.model.norm(states)

    def prefill(self, ids: Any, positions: Any, cache: Any, chunk: int) -> Float32:
        """float32 (V,): logits after the last id. Mutates `cache`."""
        logits: Float32 = np.zeros(0, np.float32)
        for start in range(0, len(ids), chunk):
            part = slice(start, start + chunk)
            logits = self.forward([ids[part]], [positions[part]], cache)[0, -1]
        return logits

    def forward_size(self, n_tokens: int, least: int) -> int:
        """Tokens per forward for a prompt of `n_tokens`: `least` on a CPU; on CUDA all of them where that fits.

        A GPU is idle between small forwards. And a whole prompt needs no mask: its attention is causal by itself, for
        which torch has its fastest kernel; a later chunk has a mask, which that kernel doesn't take.
        """
        if self.module.device.type != "cuda" or any(kind != LayerKind() for kind in self.kinds):
            return least
        return forward_size(
            n_tokens,
            least,
            free=_free_bytes(self.module.device) - n_tokens * self.bytes_per_token,
            per_token=_activation_bytes(self.module.config, torch.finfo(self.module.dtype).bits // 8),
        )

    def first_layers(self, n_layers: int) -> TorchModel:
        """The first `n_layers` layers, the final norm and the head, on the same weights; shows states to a watcher."""
        shell, inner = _shell(self.module), _shell(self.module.model)
        config = copy.copy(inner.config)
        config.num_hidden_layers = n_layers
        layers = (layer.layer if isinstance(layer, Tap) else layer for layer in list(inner.layers)[:n_layers])
        inner.layers = torch.nn.ModuleList(Tap(layer, depth) for depth, layer in enumerate(layers, 1))
        inner.config = shell.config = config
        shell.model = inner
        return replace(self, module=shell, kinds=self.kinds[:n_layers])

    @property
    def short_reach(self) -> int | None:
        """See `torch_rope.short_reach`."""
        return short_reach(self.module.model.rotary_emb)

    def for_length(self, n_positions: int) -> TorchModel:
        """The model as it turns prompts of that length, on the same weights."""
        if self.short_reach is None:
            return self
        shell, inner = _shell(self.module), _shell(self.module.model)
        inner.rotary_emb = held(inner.rotary_emb, n_positions)
        shell.model = inner
        return replace(self, module=shell)

    def _with_cache(self, cache: Any, ids: Any, positions: Any) -> dict[str, Any]:
        """Arguments that go with a cache, which remembers the positions (n,) of the ids (rows, n)."""
        past = cache.get_seq_length()
        whole = cache.place(positions)
        arguments: dict[str, Any] = {self.cache_argument: cache}
        if any(kind.window is not None for kind in self.kinds):
            by_type = self.module.config.model_type in MASKS_BY_TYPE
            arguments |= attention_masks(self.kinds, self._tensor(whole), len(positions), by_type=by_type)
        if self.takes_cache_position:
            arguments["cache_position"] = torch.arange(past, past + ids.shape[1], device=ids.device)
        return arguments

    def _tensor(self, values: Any) -> Any:
        return torch.as_tensor(np.asarray(values, dtype=np.int64), device=self.module.device)


def load_model(folder: Path, name: str, *, n_layers: int | None = None, place: Device | None = None) -> TorchModel:
    """The model in `folder`; with `n_layers` only those weights are read. `place` None: `torch_device.device()`.

    Raises EngineUnavailable (unsupported), ModelUnavailable (missing, damaged), NotEnoughMemory.
    """
    refuse(read_config(folder), name, SUPPORTED, windows=True, longrope=True)
    if int(transformers.__version__.split(".")[0]) < 5:
        raise EngineUnavailable(
            f"transformers {transformers.__version__} is too old, 5 is needed", hint='pip install "agentctx[torch]"'
        )
    place = place or device()
    ready(place)
    return wrap(_read_weights(folder, name, n_layers, place).eval(), name)


def ready(place: Device) -> None:
    """What must be set before a model is made."""
    register()
    if place.kind == "cpu":
        torch.set_num_threads(physical_cores())


def wrap(module: Any, name: str) -> TorchModel:
    """A loaded model of transformers, and how to call it."""
    parameters = inspect.signature(type(module).forward).parameters
    return TorchModel(
        name,
        module,
        layer_kinds(module, name),
        "cache" if "cache" in parameters else "past_key_values",
        "cache_position" in parameters,
    )


def _read_weights(folder: Path, name: str, n_layers: int | None, place: Device) -> Any:
    options: dict[str, Any] = {} if n_layers is None else {"num_hidden_layers": n_layers}
    with mapped(name, loading=True), quiet():
        config = transformers.AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=False)
        # As transformers understands it: it fills in what isn't said, and takes some types for others.
        refuse(config.to_dict(), name, SUPPORTED, windows=True, longrope=True)
        if n_layers is not None and getattr(config, "layer_types", None):
            options["layer_types"] = config.layer_types[:n_layers]
        for key, value in options.items():
            setattr(config, key, value)
        module, report = transformers.AutoModelForCausalLM.from_pretrained(
            folder,
            config=config,
            dtype=torch_dtype(place),
            attn_implementation=ATTENTION,
            local_files_only=True,
            trust_remote_code=False,
            output_loading_info=True,
        )
        module.to(place.kind)
    missing = sorted(report["missing_keys"])
    if missing:  # transformers fills these with random numbers
        raise ModelUnavailable(
            f"{folder} lacks {len(missing)} weights, first {missing[0]}", hint=f"agentctx models check {name}"
        )
    return module


_SHARE = 0.5  # of the free memory, for activations: the rest is for what this counts roughly, and for fragments
_MOST_MASKED = 4096  # tokens per forward where there are several: each has a mask over everything before it
_MASK_BYTES = 12  # per query and key, while a mask is made and made into one of numbers


def forward_size(n_tokens: int, least: int, *, free: int, per_token: int) -> int:
    """`n_tokens` where the activations of so many fit into a share of the `free` bytes; else as many as fit beside
    the masks, but never under `least`."""
    room = int(free * _SHARE)
    if n_tokens * per_token <= room:
        return max(n_tokens, least)
    return max(least, min(_MOST_MASKED, room // (per_token + _MASK_BYTES * n_tokens)))


def _activation_bytes(config: Any, width: int) -> int:
    """Per token of one forward: states and projections of a layer, and its feed-forward part."""
    return int(width * (10 * config.hidden_size + 4 * config.intermediate_size))


def _free_bytes(gpu: Any) -> int:
    """Of that GPU: what nobody has, and what torch holds without use."""
    unused = torch.cuda.memory_reserved(gpu) - torch.cuda.memory_allocated(gpu)
    return int(torch.cuda.mem_get_info(gpu)[0] + unused)


def _shell(module: Any) -> Any:
    """A shallow copy whose submodules can be replaced without touching the original's."""
    shell = copy.copy(module)
    shell.__dict__["_modules"] = dict(module._modules)
    return shell


@contextmanager
def mapped(name: str, *, loading: bool = False) -> Iterator[None]:
    """Foreign exceptions as ours."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        raise NotEnoughMemory(f"{name} does not fit into memory: {error}", hint="choose a smaller model") from error
    except (RuntimeError, IndexError, MemoryError) as error:
        if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
            raise NotEnoughMemory(f"{name} does not fit into memory: {error}", hint="choose a smaller model") from error
        if loading:
            raise _damaged(name, error) from error
        raise EngineUnavailable(f"torch failed while running {name}: {error}") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, SafetensorError) as error:
        if not loading:
            raise
        raise _damaged(name, error) from error


def _damaged(name: str, error: Exception) -> ModelUnavailable:
    return ModelUnavailable(f"{name} can't be loaded: {error}", hint=f"agentctx models check {name}")
