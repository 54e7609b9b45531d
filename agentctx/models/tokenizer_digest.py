"""A digest of what makes a tokenizer's ids: equal digests mean equal ids for every text."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentctx.errors import ModelUnavailable

_VERSION = 1  # of the canonical form

# These change offsets or speed, never ids.
_IRRELEVANT = frozenset({"trim_offsets", "cache_capacity"})


def digest_of(document: Mapping[str, Any]) -> str:
    """SHA-256 (hex) over vocabulary, merges, normalizer, pre-tokenizer and added tokens of a tokenizer.json.

    The same tokenizer is published in several spellings (special tokens inside or outside the vocabulary,
    merges as texts or pairs); they get one digest.
    """
    added = sorted(
        [
            [
                int(token["id"]),
                token["content"],
                *(bool(token.get(flag)) for flag in ("lstrip", "rstrip", "single_word")),
            ]
            for token in document.get("added_tokens") or ()
        ]
    )
    canonical = {
        "model": _model(document["model"], {content for _, content, *_ in added}),
        "normalizer": _plain(document.get("normalizer")),
        "pre_tokenizer": _plain(document.get("pre_tokenizer")),
        "added": added,
    }
    raw = json.dumps(canonical, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(raw.encode("utf-8", "surrogatepass")).hexdigest()


def _model(model: Mapping[str, Any], added: set[str]) -> dict[str, Any]:
    out = {key: value for key, value in model.items() if value and key not in ("vocab", "merges", *_IRRELEVANT)}
    vocab = model.get("vocab")
    if isinstance(vocab, Mapping):
        out["vocab"] = {token: index for token, index in vocab.items() if token not in added}
    else:
        out["vocab"] = vocab
    out["merges"] = [merge if isinstance(merge, str) else " ".join(merge) for merge in model.get("merges") or ()]
    return out


def _plain(value: Any) -> Any:
    """Without what can't change ids, recursively."""
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items() if key not in _IRRELEVANT}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def digests_of(cache: Path | None) -> Path | None:
    """The folder of the user's cache that remembers digests; None without a cache."""
    return cache / "tokenizers" if cache is not None else None


def cached_digest(file: Path, digests: Path | None) -> str:
    """The digest of a tokenizer.json, remembered in the folder `digests` under the file's own SHA-256.

    Canonical form takes 0.4 s for 150,000 tokens, hashing the file 10 ms.
    """
    raw = read_bytes(file)
    if digests is None:
        return _digest_of_bytes(file, raw)
    memo = digests / f"{hashlib.sha256(raw).hexdigest()}.v{_VERSION}"
    try:
        known = memo.read_text("ascii")
    except (OSError, UnicodeDecodeError):
        known = ""
    if re.fullmatch(r"[0-9a-f]{64}", known):
        return known
    digest = _digest_of_bytes(file, raw)
    _remember(memo, digest)
    return digest


def read_bytes(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise ModelUnavailable(f"{file} can't be read: {error.strerror or error}") from error


def _digest_of_bytes(file: Path, raw: bytes) -> str:
    try:
        return digest_of(json.loads(raw))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelUnavailable(f"{file} is no tokenizer.json: {error!r}") from error


def _remember(memo: Path, digest: str) -> None:
    """Best effort: a read-only cache costs time, nothing else."""
    with contextlib.suppress(OSError):
        memo.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=memo.parent)
        with os.fdopen(handle, "w", encoding="ascii") as file:
            file.write(digest)
        os.replace(name, memo)
