"""What can be said of a model folder without loading its weights: ModelInfo and the chat frame."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agentctx.errors import UnavailableError
from agentctx.models.chat import chat_frame
from agentctx.models.folder import ModelFolder, read_json, weight_files
from agentctx.models.safetensors_file import damaged, read_entries
from agentctx.models.tokenizer_digest import cached_digest
from agentctx.prompt import ChatFrame, ModelInfo
from agentctx.weights_digest import weights_digest


def info(folder: ModelFolder, *, digests: Path | None = None, served: bool = False) -> ModelInfo:
    """Read config.json and the safetensors headers. Raises ModelUnavailable naming the key that is missing.

    Args:
        digests: folder that remembers tokenizer digests (see `cached_digest`).
        served: a server holds the weights: parameters are estimated from the configuration, there is no digest.
    """
    path = folder.path / "config.json"
    config = _text_config(read_json(path))

    def integer(key: str, default: int | None = None) -> int:
        value = config.get(key, default)
        value = default if value is None else value
        if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
            raise damaged(path, f"{key} is {value!r}, not a positive integer")
        return value

    hidden, n_heads = integer("hidden_size"), integer("num_attention_heads")
    architectures = config.get("architectures")
    named = architectures[0] if isinstance(architectures, list) and architectures else None
    return ModelInfo(
        name=folder.name,
        folder=str(folder.path),
        n_layers=integer("num_hidden_layers"),
        n_params=_estimated(integer) if served else n_params(folder),
        hidden_size=hidden,
        n_heads=n_heads,
        n_kv_heads=integer("num_key_value_heads", n_heads),
        head_dim=integer("head_dim", hidden // n_heads),
        vocab_size=integer("vocab_size"),
        max_position=integer("max_position_embeddings"),
        tokenizer_digest=tokenizer_digest(folder, digests=digests),
        architecture=str(named or config.get("model_type", "unknown")),
        tied=served
        or not any(
            entry.name == "lm_head.weight" for file in weight_files(folder.path) for entry in read_entries(file)
        ),
        weights_digest="" if served else weights_digest(weight_files(folder.path)),
    )


def _estimated(integer: Callable[..., int]) -> int:
    """Parameters of a dense decoder with gated feed-forward layers: enough to tell what its prefill costs."""
    hidden, heads = integer("hidden_size"), integer("num_attention_heads")
    head_dim = integer("head_dim", hidden // heads)
    attention = 2 * hidden * head_dim * (heads + integer("num_key_value_heads", heads))
    layer = attention + 3 * hidden * integer("intermediate_size", 4 * hidden)
    return integer("num_hidden_layers") * layer + integer("vocab_size") * hidden


def _text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Models with several modalities keep the decoder's settings under `text_config`."""
    text = config.get("text_config")
    return {**text, "architectures": config.get("architectures")} if isinstance(text, Mapping) else config


def n_params(folder: ModelFolder) -> int:
    """Number of stored values, from the safetensors headers."""
    return sum(entry.n_values for file in weight_files(folder.path) for entry in read_entries(file))


def tokenizer_digest(folder: ModelFolder, *, digests: Path | None = None) -> str:
    if folder.manifest is not None:
        return folder.manifest.tokenizer_digest
    return cached_digest(folder.path / "tokenizer.json", digests)


def chat_of(folder: ModelFolder) -> tuple[ChatFrame, tuple[str, ...]]:
    """The chat frame, and notes for the report when there is none."""
    if folder.manifest is not None:
        return folder.manifest.chat, ()
    try:
        frame = chat_frame(_tokenizer_config(folder.path))
    except UnavailableError as error:
        return ChatFrame(), (f"{folder.name}: {error.message}; prompts are sent without chat markers",)
    if frame == ChatFrame():
        return frame, (f"{folder.name} has no chat template; prompts are sent without chat markers",)
    return frame, ()


def _tokenizer_config(path: Path) -> Mapping[str, Any]:
    """tokenizer_config.json; newer folders keep the template in a file of its own."""
    file, template = path / "tokenizer_config.json", path / "chat_template.jinja"
    config = dict(read_json(file)) if file.is_file() else {}
    if template.is_file():
        config["chat_template"] = template.read_text("utf-8", errors="replace")
    return config
