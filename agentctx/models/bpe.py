"""Byte-level BPE tokenizers built from a vocabulary, merges and the name of a split rule.

A GGUF file names its split rule and does not hold it; the rules of the known models are spelled out here, as
in the tokenizer.json that their makers publish.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

_QWEN2_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def byte_level_bpe(vocab: Mapping[str, int], merges: Sequence[tuple[str, str]], rule: str) -> Tokenizer:
    """A tokenizer without special tokens. `rule` is a key of `SPLIT_RULES`."""
    tokenizer = Tokenizer(models.BPE(vocab=dict(vocab), merges=list(merges), fuse_unk=False, byte_fallback=False))
    SPLIT_RULES[rule](tokenizer)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def byte_alphabet() -> list[str]:
    """The characters that stand for the 256 bytes, in the order of their ids."""
    return sorted(pre_tokenizers.ByteLevel.alphabet())


def _smollm(tokenizer: Tokenizer) -> None:
    digits = pre_tokenizers.Digits(individual_digits=True)
    rest = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([digits, rest])


def _qwen2(tokenizer: Tokenizer) -> None:
    tokenizer.normalizer = normalizers.NFC()
    split = pre_tokenizers.Split(Regex(_QWEN2_SPLIT), behavior="isolated", invert=False)
    rest = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, rest])


SPLIT_RULES: Mapping[str, Callable[[Tokenizer], None]] = MappingProxyType({"qwen2": _qwen2, "smollm": _smollm})
