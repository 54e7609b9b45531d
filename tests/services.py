"""The pipeline's services for tests: a tokenizer that needs no file, no model, no cache unless one is given."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn

from agentctx.config import RunOptions
from agentctx.errors import ModelUnavailable
from agentctx.pipeline.prefixes import PrefixMemory
from agentctx.prompt import Tokenizer
from agentctx.repo.store import IndexMemory

_TOKEN = re.compile(r"\w{1,6}|\n+|[^\S\n]+|[^\w\s]")


class WordTokenizer:
    """Tokens of about the size that models have: short words, runs of blanks, signs."""

    name = "words"
    digest = hashlib.sha256(b"words").hexdigest()

    def encode(self, text: str, *, special: bool = False) -> tuple[list[int], list[int]]:
        found = list(_TOKEN.finditer(text))
        ids = [int.from_bytes(hashlib.sha256(match[0].encode()).digest()[:2]) for match in found]
        return ids, [len(text[: match.start()].encode()) for match in found]

    def count_batch(self, texts: Sequence[str]) -> list[int]:
        return [len(_TOKEN.findall(text)) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        raise NotImplementedError("its ids are hashes")


@dataclass(frozen=True)
class PlainServices:
    """Implements `pipeline.services.Services` without any model."""

    cache_dir: Path | None = None
    memory: IndexMemory | None = None
    prefixes: PrefixMemory = field(default_factory=PrefixMemory)

    def tokenizer(self, options: RunOptions) -> Tokenizer:
        return WordTokenizer()

    def model(self, name: str, options: RunOptions, n_tokens: int) -> NoReturn:
        raise ModelUnavailable(f"no model {name}")

    def text_model(self, options: RunOptions) -> None:
        return None

    def default_model(self) -> None:
        return None

    def progress(self, message: str) -> None:
        pass
