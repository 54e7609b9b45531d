"""A local Hugging Face folder (config.json, *.safetensors) -> Decoder, with numpy alone."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np

from agentctx.errors import EngineUnavailable, ModelUnavailable
from agentctx.rotary import rope_base, rope_type
from agentctx.spec.engines.folder import read_config, refuse
from agentctx.spec.engines.reference_model import Array, Decoder, DecoderConfig, shapes

SUPPORTED = frozenset({"llama", "qwen2", "qwen3"})
_DTYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "BF16": np.uint16}


def load_decoder(folder: Path, name: str, dtype: Any = np.float32) -> Decoder:
    """The model in `folder`. Raises ModelUnavailable (missing, damaged) or EngineUnavailable (unsupported)."""
    raw = read_config(folder)
    refuse(raw, name, SUPPORTED)
    found: dict[str, Array] = {}
    for path in sorted(folder.glob("*.safetensors")):
        found |= read_safetensors(path, dtype)
    try:
        config = decoder_config({"tie_word_embeddings": "lm_head.weight" not in found, **raw}, name)
    except KeyError as error:
        raise ModelUnavailable(f"{folder}/config.json names no {error}", hint="agentctx models list") from error
    weights: dict[str, Array] = {}
    for weight, shape in shapes(config).items():
        if weight not in found or found[weight].shape != shape:
            raise ModelUnavailable(f"{folder} holds no {weight} of shape {shape}", hint=f"agentctx models check {name}")
        weights[weight] = found[weight]
    return Decoder(config, weights)


def decoder_config(raw: dict[str, Any], name: str) -> DecoderConfig:
    if rope_type(raw) != "default" or raw.get("hidden_act", "silu") != "silu" or raw.get("mlp_bias"):
        raise EngineUnavailable(
            f"the reference engine runs plain RoPE and SwiGLU, {name} has something else", hint="use --engine torch"
        )
    heads, hidden = raw["num_attention_heads"], raw["hidden_size"]
    qwen2, biased = raw["model_type"] == "qwen2", bool(raw.get("attention_bias"))
    eos = raw.get("eos_token_id")
    return DecoderConfig(
        vocab_size=raw["vocab_size"],
        hidden_size=hidden,
        n_layers=raw["num_hidden_layers"],
        n_heads=heads,
        n_kv_heads=raw.get("num_key_value_heads") or heads,
        head_dim=raw.get("head_dim") or hidden // heads,
        intermediate_size=raw["intermediate_size"],
        rope_theta=rope_base(raw) or 10_000.0,
        norm_eps=raw.get("rms_norm_eps", 1e-6),
        qkv_bias=qwen2 or biased,
        out_bias=biased and not qwen2,
        qk_norm=raw["model_type"] == "qwen3",
        tied=bool(raw["tie_word_embeddings"]),
        max_position=raw["max_position_embeddings"],
        eos=tuple(eos) if isinstance(eos, list) else () if eos is None else (eos,),
    )


def read_safetensors(path: Path, dtype: Any) -> dict[str, Array]:
    """Every tensor of one file, as `dtype`. The format: u64 length, JSON header, raw little-endian data."""
    try:
        with path.open("rb") as file:
            (size,) = struct.unpack("<Q", file.read(8))
            header = json.loads(file.read(size))
            data = file.read()
        entries = {key: value for key, value in header.items() if key != "__metadata__"}
        return {key: _tensor(data, entry).astype(dtype) for key, entry in entries.items()}
    except (OSError, ValueError, KeyError, struct.error) as error:
        raise ModelUnavailable(f"{path} is damaged: {error}", hint="agentctx models fetch NAME") from error


def _tensor(data: bytes, entry: dict[str, Any]) -> Array:
    start, end = entry["data_offsets"]
    stored = np.frombuffer(data[start:end], dtype=np.dtype(_DTYPES[entry["dtype"]]).newbyteorder("<"))
    if entry["dtype"] == "BF16":  # the upper half of a float32
        stored = (stored.astype(np.uint32) << 16).view(np.float32)
    return stored.reshape(entry["shape"])
