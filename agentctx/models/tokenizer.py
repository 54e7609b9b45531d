"""A tokenizer from a tokenizer.json.

Offsets are UTF-8 byte offsets. The `tokenizers` library is imported when a tokenizer is loaded.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from agentctx.errors import ModelUnavailable
from agentctx.models.tokenizer_digest import cached_digest, read_bytes

if TYPE_CHECKING:
    from tokenizers import AddedToken, Encoding
    from tokenizers import Tokenizer as Backend

_SURROGATE = re.compile("[\ud800-\udfff]")
# Bytes of one, two, three and four in UTF-8, a combining mark, white space, and text like a special token.
_PROBE = "aé日🎉 e\u0301\r\n\t x<|im_end|></s> ﬁ𝕏 ."


class FileTokenizer:
    """`agentctx.prompt.Tokenizer` over a tokenizer.json. Safe to use from several threads."""

    def __init__(self, name: str, digest: str, backend: Backend) -> None:
        """Takes over `backend`: switches truncation and padding off, and makes added tokens refusable."""
        self._name = name
        self._digest = digest
        self._backend = backend
        self._lock = threading.Lock()  # encode_special_tokens is a state of the backend
        backend.no_truncation()
        backend.no_padding()
        self._added = _make_added_special(backend)
        self._probe()

    @classmethod
    def load(cls, file: Path, *, name: str, digest: str | None = None, digests: Path | None = None) -> FileTokenizer:
        """Read a tokenizer.json.

        Args:
            digest: where it is known already (a fetched model's manifest).
            digests: folder that remembers digests (see `cached_digest`).

        Raises:
            ModelUnavailable: the file can't be read, or its offsets can't be trusted.
        """
        from tokenizers import Tokenizer as Backend

        raw = read_bytes(file)
        try:
            backend = Backend.from_buffer(raw)
        except Exception as error:  # the library raises plain Exception
            raise ModelUnavailable(f"{file} is no tokenizer.json that the tokenizers library reads: {error}") from error
        return cls(name, digest or cached_digest(file, digests), backend)

    @property
    def name(self) -> str:
        return self._name

    @property
    def digest(self) -> str:
        return self._digest

    @property
    def vocab_size(self) -> int:
        return self._backend.get_vocab_size(with_added_tokens=True)

    def encode(self, text: str, *, special: bool = False) -> tuple[list[int], list[int]]:
        """Ids and the byte offset where each starts; a lone surrogate counts as U+FFFD."""
        text = _SURROGATE.sub("\ufffd", text)
        with self._lock:
            self._backend.encode_special_tokens = not special
            encoding = self._backend.encode(text, add_special_tokens=False)
        return encoding.ids, self._starts(text, encoding)

    def count_batch(self, texts: Sequence[str]) -> list[int]:
        clean = [_SURROGATE.sub("\ufffd", text) for text in texts]
        with self._lock:
            self._backend.encode_special_tokens = True
            encodings = self._backend.encode_batch_fast(clean, add_special_tokens=False)
        return [len(encoding) for encoding in encodings]

    def decode(self, ids: Sequence[int]) -> str:
        """Special tokens come out as their text; ids without a token are skipped."""
        text: str = self._backend.decode(list(ids), skip_special_tokens=False)
        return text

    def _starts(self, text: str, encoding: Encoding) -> list[int]:
        """Byte-level tokens spell each byte as one character, so their lengths are exact, even where a
        character is split. Where that doesn't add up (another kind of tokenizer, or normalised text), the
        library's character offsets are translated.
        """
        n_bytes = len(text) if text.isascii() else len(text.encode("utf-8"))
        lengths = [self._added.get(token) or len(token) for token in encoding.tokens]
        if sum(lengths) == n_bytes:
            return list(accumulate(lengths, initial=0))[:-1]
        starts = _byte_offsets(text)[np.array([start for start, _ in encoding.offsets], dtype=np.int64)]
        starts[:1] = 0  # skipped leading white space belongs to the first token
        ascending: list[int] = np.maximum.accumulate(starts).tolist()
        return ascending

    def _probe(self) -> None:
        limit = len(_PROBE.encode())
        for special in (False, True):
            ids, starts = self.encode(_PROBE, special=special)
            ordered = starts == sorted(starts) and starts[:1] == [0] and starts[-1] < limit
            if not ids or len(ids) != len(starts) or not ordered:
                raise ModelUnavailable(f"tokenizer {self._name}: its byte offsets can't be trusted ({starts})")


def _make_added_special(backend: Backend) -> dict[str, int]:
    """Mark every added token as special, so that ordinary text can't produce it; text -> UTF-8 length."""
    added = backend.get_added_tokens_decoder()
    backend.add_special_tokens([_as_special(token) for _, token in sorted(added.items(), key=lambda item: item[0])])
    return {token.content: len(token.content.encode()) for token in added.values()}


def _as_special(token: AddedToken) -> AddedToken:
    from tokenizers import AddedToken as Added

    return Added(
        token.content,
        single_word=token.single_word,
        lstrip=token.lstrip,
        rstrip=token.rstrip,
        normalized=token.normalized,
        special=True,
    )


def _byte_offsets(text: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """int64 (len(text) + 1,): the UTF-8 offset of each character, and the length."""
    code = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    width = 1 + (code >= 0x80).astype(np.int64) + (code >= 0x800) + (code >= 0x10000)
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(width)])
