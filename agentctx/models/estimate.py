"""Counting without a model: the merges of the Qwen2.5 tokenizer ship with the package.

Its counts are those of the default models, in any language and script: never under, and nothing over. For
another model they are an estimate, which is why this tokenizer is called 'estimate'.
"""

from __future__ import annotations

import hashlib
import lzma
from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

from agentctx.errors import DamagedState
from agentctx.models.tokenizer import FileTokenizer

ESTIMATE = "estimate"


class EstimateTokenizer(FileTokenizer):
    """`agentctx.prompt.Tokenizer` that needs no model. It has no special tokens."""

    def __init__(self) -> None:
        """Takes 0.4 s. Raises DamagedState when the installed package lacks its table."""
        from agentctx.models.bpe import byte_level_bpe

        raw = _table()
        merges = [(left, right) for left, right in map(str.split, raw.decode().splitlines())]
        digest = hashlib.sha256(b"estimate\n" + raw).hexdigest()
        super().__init__(ESTIMATE, digest, byte_level_bpe(vocabulary(merges), merges, "qwen2"))


def vocabulary(merges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """The bytes, then what each merge makes, numbered in that order."""
    from agentctx.models.bpe import byte_alphabet

    tokens = [*byte_alphabet(), *(left + right for left, right in merges)]
    return {token: index for index, token in enumerate(tokens)}


def merges_of(document: Mapping[str, Any]) -> bytes:
    """The shipped table's content, from a tokenizer.json."""
    merges = [merge if isinstance(merge, str) else " ".join(merge) for merge in document["model"]["merges"]]
    return ("\n".join(merges) + "\n").encode()


def _table() -> bytes:
    try:
        return lzma.decompress(files("agentctx.models").joinpath("data/merges.txt.xz").read_bytes())
    except (OSError, lzma.LZMAError) as error:
        raise DamagedState(f"the token table of this installation can't be read: {error}") from error
