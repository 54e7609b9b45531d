"""Where the plugin touches vLLM, and in which versions these places were tried.

A name alone says little: a parameter that moved or a new one would let a patch apply and do the wrong thing. So every
seam is compared with the signature that it had, before any of them is touched.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

TRIED = ("0.32.0",)  # the versions that the tests of this plugin were run with


@dataclass(frozen=True, slots=True)
class Seam:
    module: str
    name: str  # a function, or Class.method
    parameters: tuple[str, ...]

    def owner(self) -> tuple[Any, str]:
        """(module or class, attribute). Raises ImportError or AttributeError."""
        owner: Any = import_module(self.module)
        *path, last = self.name.split(".")
        for part in path:
            owner = getattr(owner, part)
        return owner, last


@dataclass(frozen=True, slots=True, eq=False)
class Patch:
    """A replacement of an attribute that can be put in and taken out."""

    owner: Any
    name: str
    old: Any
    new: Any

    def apply(self) -> None:
        setattr(self.owner, self.name, self.new)

    def undo(self) -> None:
        setattr(self.owner, self.name, self.old)


PROCESS_INPUTS = Seam(
    "vllm.v1.engine.input_processor",
    "InputProcessor.process_inputs",
    (
        *("self", "request_id", "prompt", "params", "supported_tasks", "arrival_time", "lora_request"),
        *("tokenization_kwargs", "trace_headers", "priority", "data_parallel_rank", "resumable", "session_id"),
        "kv_hints",
    ),
)
INPUT_PROCESSOR = Seam(
    "vllm.v1.engine.input_processor", "InputProcessor.__init__", ("self", "vllm_config", "renderer", "mm_registry")
)
BEAM_COMPLETION = Seam(
    "vllm.entrypoints.openai.completion.protocol",
    "CompletionRequest.to_beam_search_params",
    ("self", "max_tokens", "default_sampling_params"),
)
BEAM_CHAT = Seam(
    "vllm.entrypoints.openai.chat_completion.protocol",
    "ChatCompletionRequest.to_beam_search_params",
    ("self", "max_tokens", "default_sampling_params"),
)
BLOCK_KEYS = Seam(
    "vllm.v1.core.kv_cache_utils",
    "generate_block_hash_extra_keys",
    ("request", "start_token_idx", "end_token_idx", "start_mm_idx"),
)
ENGINE_CORE = Seam(
    "vllm.v1.engine.core",
    "EngineCore.__init__",
    ("self", "vllm_config", "executor_class", "log_stats", "executor_fail_callback", "include_finished_set"),
)
CORE_RPC = Seam("vllm.v1.engine.core", "EngineCore.collective_rpc", ("self", "method", "timeout", "args", "kwargs"))
V1_FORWARD = Seam(
    "vllm.v1.worker.gpu_model_runner",
    "GPUModelRunner._model_forward",
    ("self", "input_ids", "positions", "intermediate_tensors", "inputs_embeds", "model_kwargs"),
)
V2_STATE = Seam("vllm.v1.worker.gpu.model_states", "resolve_model_state_cls", ("vllm_config", "model"))
_STATE = "vllm.v1.worker.gpu.model_states.interface"
V2_METHODS = (
    Seam(_STATE, "ModelState.__init__", ("self", "vllm_config", "model", "encoder_cache", "device")),
    Seam(_STATE, "ModelState.add_request", ("self", "req_index", "new_req_data")),
    Seam(_STATE, "ModelState.remove_request", ("self", "req_id")),
    Seam(_STATE, "ModelState.prepare_inputs", ("self", "input_batch", "req_states")),
    Seam(_STATE, "ModelState.prepare_dummy_inputs", ("self", "num_reqs", "num_tokens")),
)
FRONT_END = (PROCESS_INPUTS, INPUT_PROCESSOR, BEAM_COMPLETION, BEAM_CHAT)
ALL = (*FRONT_END, BLOCK_KEYS, ENGINE_CORE, CORE_RPC, V1_FORWARD, V2_STATE, *V2_METHODS)

# Attributes that the patches read: (module, class, names). vLLM declares them as annotations.
FIELDS = (
    ("vllm.v1.core.sched.output", "NewRequestData", ("req_id", "sampling_params")),
    ("vllm.v1.worker.gpu_input_batch", "CachedRequestState", ("sampling_params",)),
    (
        "vllm.v1.worker.gpu.input_batch",
        "InputBatch",
        (
            *("num_reqs", "num_tokens", "num_tokens_after_padding", "idx_mapping", "idx_mapping_np"),
            *("num_scheduled_tokens", "query_start_loc", "query_start_loc_np", "num_computed_tokens_np", "positions"),
        ),
    ),
)


def changed(seams: tuple[Seam, ...]) -> str | None:
    """The first seam that isn't as it was tried, in words; None when all are."""
    for seam in seams:
        try:
            owner, name = seam.owner()
            found = tuple(inspect.signature(getattr(owner, name)).parameters)
        except (ImportError, AttributeError, TypeError, ValueError) as error:
            return f"{seam.module}.{seam.name} can't be found ({error})"
        if found != seam.parameters:
            return f"{seam.module}.{seam.name} takes ({', '.join(found)}), tried was ({', '.join(seam.parameters)})"
    return None


def missing_fields() -> str | None:
    for module, cls, names in FIELDS:
        try:
            annotations = getattr(import_module(module), cls).__annotations__
        except (ImportError, AttributeError) as error:
            return f"{module}.{cls} can't be found ({error})"
        gone = [name for name in names if name not in annotations]
        if gone:
            return f"{module}.{cls} has no {', '.join(gone)}"
    return None


def patch(seam: Seam, make: Callable[[Any], Any]) -> Patch:
    """Replace what is at the seam by `make(it)`; nothing is touched before `apply`."""
    owner, name = seam.owner()
    old = owner.__dict__[name]
    return Patch(owner, name, old, make(old))
