"""GGUF metadata -> tokenizer.json (Hugging Face `tokenizers` format) and tokenizer_config.json."""

from __future__ import annotations

import json
from typing import Any

from tokenizers import AddedToken, Tokenizer

from agentctx.models.bpe import SPLIT_RULES, byte_level_bpe
from agentctx.models.gguf_file import GgufHeader

# token types in GGUF: what is in the vocabulary but is no ordinary token
_CONTROL, _USER_DEFINED, _UNUSED = 3, 4, 5


def tokenizer_json(header: GgufHeader) -> dict[str, Any]:
    """Raises ModelUnavailable for a tokenizer that is neither SmolLM's nor Qwen2's."""
    kind, rule = header.text("tokenizer.ggml.model"), header.text("tokenizer.ggml.pre", "")
    if kind != "gpt2" or rule not in SPLIT_RULES:
        raise header.refuse(
            f"its tokenizer is {kind!r} with rule {rule!r}; known rules of 'gpt2': {', '.join(sorted(SPLIT_RULES))}"
        )
    tokens, types = header.texts("tokenizer.ggml.tokens"), header.integers("tokenizer.ggml.token_type")
    if len(tokens) != len(types):
        raise header.refuse(f"{len(tokens)} tokens but {len(types)} token types")
    merges = header.texts("tokenizer.ggml.merges")
    # Padding entries can't be produced; the published tokenizers don't list them either.
    vocab = {token: index for index, (token, type_) in enumerate(zip(tokens, types, strict=True)) if type_ != _UNUSED}
    try:
        tokenizer = byte_level_bpe(vocab, [_pair(merge) for merge in merges], rule)
    except Exception as error:
        raise header.refuse(f"its vocabulary and merges don't fit together ({error})") from error
    _add_special(tokenizer, tokens, types)
    document: dict[str, Any] = json.loads(tokenizer.to_str())
    document["model"]["merges"] = merges  # as texts, not pairs: loads in 0.25 s instead of 0.38
    return document


def _pair(merge: str) -> tuple[str, str]:
    left, _, right = merge.partition(" ")
    return left, right


def _add_special(tokenizer: Tokenizer, tokens: list[str], types: list[int]) -> None:
    for token, kind in zip(tokens, types, strict=True):
        if kind == _CONTROL:
            tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False)])
        elif kind == _USER_DEFINED:
            tokenizer.add_tokens([AddedToken(token, special=False, normalized=False)])


def tokenizer_config(header: GgufHeader) -> dict[str, Any]:
    """What transformers needs beside tokenizer.json: special tokens by name and the chat template."""
    tokens = header.texts("tokenizer.ggml.tokens")
    config: dict[str, Any] = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "clean_up_tokenization_spaces": False,
        "model_max_length": header.integer(f"{header.text('general.architecture')}.context_length"),
    }
    names = {"bos_token": "bos", "eos_token": "eos", "unk_token": "unknown", "pad_token": "padding"}
    for name, key in names.items():
        index = header.metadata.get(f"tokenizer.ggml.{key}_token_id")
        if isinstance(index, int) and 0 <= index < len(tokens):
            config[name] = tokens[index]
    if "tokenizer.chat_template" in header.metadata:
        config["chat_template"] = header.text("tokenizer.chat_template")
    return config
