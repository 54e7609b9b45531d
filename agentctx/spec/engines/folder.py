"""What a Hugging Face model folder says besides its weights: the configuration and where generation stops."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agentctx.errors import EngineUnavailable, ModelUnavailable
from agentctx.prompt import Tokenizer

FULL_ATTENTION = "full_attention"
# They end a text or a turn in every model that has them, whether its files say so or not.
END_TOKENS = ("<|endoftext|>", "<|im_end|>", "<|eot_id|>", "<|end_of_text|>")


def read_config(folder: Path) -> dict[str, Any]:
    """config.json. Raises ModelUnavailable."""
    config = _read(folder / "config.json")
    if config is None:
        raise ModelUnavailable(f"{folder} holds no config.json", hint="agentctx models list")
    return config


def refuse(config: dict[str, Any], name: str, supported: frozenset[str]) -> None:
    """Raise EngineUnavailable for anything that would run and give wrong positions or wrong scores."""
    reason = _unsupported(config, supported)
    if reason is not None:
        raise EngineUnavailable(
            f"{name} can't be prefilled sparsely here: {reason}",
            hint=f"models of these types work: {', '.join(sorted(supported))}",
        )


def _unsupported(config: dict[str, Any], supported: frozenset[str]) -> str | None:
    kind = config.get("model_type")
    if kind not in supported:
        return f"model type {kind!r} is unknown to this engine (recurrent, hybrid and gated layers lose dropped tokens)"
    layers = sorted(set(config.get("layer_types") or ()) - {FULL_ATTENTION})
    if layers:
        return f"it has {', '.join(layers)} layers, whose window would count kept tokens only"
    window, context = config.get("sliding_window"), config.get("max_position_embeddings")
    if window and config.get("use_sliding_window", True) and (context is None or window < context):
        return f"its attention slides over {window} tokens, which would count kept tokens only"
    if config.get("quantization_config"):
        return "its weights are quantised"
    rope = rope_type(config)
    if rope in ("dynamic", "longrope"):
        return f"its rotary embedding ({rope}) changes with the prompt's length"
    return None


def rope_type(config: dict[str, Any]) -> str:
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    return str(rope.get("rope_type") or rope.get("type") or "default")


def rope_theta(config: dict[str, Any]) -> float:
    rope = config.get("rope_parameters") or {}
    return float(rope.get("rope_theta") or config.get("rope_theta") or 10_000.0)


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
