"""Which engine configurations take sparse requests. Everything that could go wrong unseen is refused, by name."""

from __future__ import annotations

from typing import Any

from agentctx.errors import EngineUnavailable
from agentctx.rotary import rope_type
from agentctx.spec.engines.folder import refuse
from agentctx.spec.engines.speculation import refusal

# Model types that were compared with transformers inside vLLM; position goes to every layer in each of them.
MODELS = frozenset({"granite", "llama", "mistral", "phi3", "qwen2", "qwen3"})


def refused(vllm_config: Any) -> str | None:
    """Why an engine with this `VllmConfig` takes no sparse requests; None when it does."""
    from vllm.platforms import current_platform

    parallel = vllm_config.parallel_config
    if not (current_platform.is_cuda_alike() or current_platform.is_cpu()):
        return "this platform has a model runner of its own, which the plugin doesn't know"
    if vllm_config.kv_transfer_config is not None:
        return "a KV connector keeps keys and values under hashes that know no positions"
    if parallel.prefill_context_parallel_size > 1 or parallel.decode_context_parallel_size > 1:
        return "context parallelism was not tried"
    if parallel.data_parallel_size > parallel.data_parallel_size_local:
        return "data parallelism over several nodes was not tried (tensor and pipeline parallelism work)"
    return _speculation(vllm_config.speculative_config) or _model(vllm_config.model_config)


def position_limit(model_config: Any) -> int:
    """Positions that the model was trained on. Beyond them the rotary table may be read out of bounds."""
    config = model_config.hf_text_config.to_dict()
    trained = config.get("max_position_embeddings")
    if trained and rope_type(config) == "default":
        return int(trained)
    return int(model_config.max_model_len)  # vLLM derives it from the scaled rotary embedding


def _speculation(config: Any) -> str | None:
    return refusal(None if config is None else config.method)


def _model(model_config: Any) -> str | None:
    if model_config.runner_type != "generate":
        return f"the server runs {model_config.runner_type!r} models, which generate nothing"
    if model_config.is_hybrid or model_config.is_attention_free or model_config.is_encoder_decoder:
        return "recurrent, hybrid and encoder-decoder models lose what was dropped"
    config = model_config.hf_text_config.to_dict()
    config.pop("quantization_config", None)  # weights of any kind will do here
    try:
        refuse(config, "the model", MODELS)
    except EngineUnavailable as error:
        return error.message
    return None
