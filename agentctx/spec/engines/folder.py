"""What a Hugging Face model folder says besides its weights: the configuration and where generation stops."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agentctx.errors import EngineUnavailable, ModelUnavailable
from agentctx.prompt import Tokenizer
from agentctx.rotary import rope_types

FULL_ATTENTION = "full_attention"
SLIDING_ATTENTION = "sliding_attention"
# Rotary embeddings whose frequencies are the same for prompts of every length.
STATIC_ROPES = frozenset({"default", "linear", "llama3", "yarn"})
LONGROPE = "longrope"
CHANGING_ROPES = frozenset({"dynamic", LONGROPE, "su"})  # su: the old name of longrope

_RECURRENT = "runs a recurrent state through all tokens: dropped ones would be missing in it"
_HYBRID = "has recurrent layers among those with attention: dropped tokens would be missing in their state"
_CONVOLUTIONS = "mixes neighbouring tokens by convolutions: a kept token would be mixed with the wrong neighbours"
_LATENT = "keeps latent vectors instead of keys and values, which was not compared with a masked dense forward here"
_SPARSE = "chooses by itself which tokens it attends to, which was not compared with a masked dense forward here"
_PLACES = "has no rotary embeddings: its positions are learned, or none, which was not compared here"
_CHUNKED = "attends in chunks of positions, which was not compared with a masked dense forward here"
# Why models of these types are refused. A type that is in no engine's list is refused anyway; this is for the message.
REASONS: dict[str, str] = {
    **dict.fromkeys(("falcon_mamba", "mamba", "mamba2", "rwkv", "xlstm"), _RECURRENT),
    **dict.fromkeys(
        (
            "bailing_hybrid",
            "bamba",
            "falcon_h1",
            "granitemoehybrid",
            "jamba",
            "kimi_linear",
            "minimax",
            "nemotron_h",
            "olmo_hybrid",
            "qwen3_5_moe_text",
            "qwen3_5_text",
            "qwen3_next",
            "recurrent_gemma",
            "zamba",
            "zamba2",
        ),
        _HYBRID,
    ),
    **dict.fromkeys(("lfm2", "lfm2_moe"), _CONVOLUTIONS),
    **dict.fromkeys(("deepseek_v2", "deepseek_v3", "glm4_moe_lite", "longcat_flash", "minicpm3"), _LATENT),
    **dict.fromkeys(("deepseek_v32", "glm_moe_dsa"), _SPARSE),
    **dict.fromkeys(("bloom", "gpt2", "gpt_bigcode", "gpt_neo", "mpt", "opt"), _PLACES),
    "llama4_text": _CHUNKED,
}
# They end a text or a turn in every model that has them, whether its files say so or not.
END_TOKENS = ("<|endoftext|>", "<|im_end|>", "<|eot_id|>", "<|end_of_text|>")


def read_config(folder: Path) -> dict[str, Any]:
    """config.json. Raises ModelUnavailable."""
    config = _read(folder / "config.json")
    if config is None:
        raise ModelUnavailable(f"{folder} holds no config.json", hint="agentctx models list")
    return config


def refuse(
    config: dict[str, Any], name: str, supported: frozenset[str], *, windows: bool = False, longrope: bool = False
) -> None:
    """Raise EngineUnavailable for anything that would run and give wrong positions or wrong scores.

    Args:
        windows: the engine's sliding windows count original positions, not kept tokens.
        longrope: the engine chooses its frequencies by the original length, and holds them.
    """
    reason = _unsupported(config, supported, windows=windows, longrope=longrope)
    if reason is not None:
        raise EngineUnavailable(
            f"{name} can't be prefilled sparsely here: {reason}",
            hint=f"models of these types work: {', '.join(sorted(supported))}",
        )


def _unsupported(config: dict[str, Any], supported: frozenset[str], *, windows: bool, longrope: bool) -> str | None:
    if config.get("model_type") not in supported:
        return _unknown(config)
    layers = set(config.get("layer_types") or ()) - {FULL_ATTENTION}
    other = sorted(layers - {SLIDING_ATTENTION})
    if other:
        return f"it has {', '.join(other)} layers, which are unknown to this engine"
    if not windows and (reason := _sliding(config, layers)):
        return reason
    if config.get("use_bidirectional_attention"):
        return "its tokens attend to later ones"
    if config.get("quantization_config"):
        return "its weights are quantised"
    return _turned(config, longrope=longrope)


def _unknown(config: dict[str, Any]) -> str:
    kind = config.get("model_type")
    if kind in REASONS:
        return f"model type {kind!r} {REASONS[kind]}"
    if "text_config" in config:
        return f"model type {kind!r} reads more than text: its decoder lies in a part of the model"
    return f"model type {kind!r} was not compared with a masked dense forward in this engine"


def _sliding(config: dict[str, Any], layers: set[str]) -> str | None:
    if layers:
        return f"it has {', '.join(sorted(layers))} layers, whose window would count kept tokens only"
    window, context = config.get("sliding_window"), config.get("max_position_embeddings")
    if window and config.get("use_sliding_window", True) and (context is None or window < context):
        return f"its attention slides over {window} tokens, which would count kept tokens only"
    return None


def _turned(config: dict[str, Any], *, longrope: bool) -> str | None:
    ropes = rope_types(config)
    if longrope and ropes == [LONGROPE]:
        return None
    for rope in ropes:
        if rope in CHANGING_ROPES:
            return f"its rotary embedding ({rope}) changes with the prompt's length"
        if rope not in STATIC_ROPES:
            return f"its rotary embedding ({rope}) was not compared with a masked dense forward"
    return None


def eos_ids(folder: Path, config: dict[str, Any], tokenizer: Tokenizer) -> frozenset[int]:
    """Every id that ends generation, by generation_config.json, config.json, the tokenizer's eos and END_TOKENS."""
    found: set[int] = set()
    for source in (_read(folder / "generation_config.json") or {}, config):
        value = source.get("eos_token_id")
        found.update(value if isinstance(value, list) else [] if value is None else [value])
    token = (_read(folder / "tokenizer_config.json") or {}).get("eos_token")
    text = token.get("content") if isinstance(token, dict) else token
    for word in (*END_TOKENS, *([text] if text else [])):
        ids, _ = tokenizer.encode(word, special=True)
        found.update(ids if len(ids) == 1 else [])
    return frozenset(int(i) for i in found)


def _read(path: Path) -> dict[str, Any] | None:
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelUnavailable(f"{path} is damaged: {error}", hint="agentctx models fetch NAME") from error
    if not isinstance(content, dict):
        raise ModelUnavailable(f"{path} is damaged: not an object", hint="agentctx models fetch NAME")
    return content
