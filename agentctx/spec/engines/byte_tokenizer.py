"""A tokenizer that needs no file: one token per byte, plus the chat markers of ChatML."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

from agentctx.prompt import ChatFrame

SPECIALS = ("<|bos|>", "<|eos|>", "<|im_start|>", "<|im_end|>")
VOCAB_SIZE = 256 + len(SPECIALS)
EOS = 256 + SPECIALS.index("<|eos|>")
END_OF_TURN = 256 + SPECIALS.index("<|im_end|>")

BYTE_CHAT = ChatFrame(
    before_system="<|im_start|>system\n",
    before_user="<|im_end|>\n<|im_start|>user\n",
    after_user="<|im_end|>\n<|im_start|>assistant\n",
)


class ByteTokenizer:
    """Ids 0..255 are UTF-8 bytes, then SPECIALS. Implements `prompt.Tokenizer`."""

    @property
    def name(self) -> str:
        return "bytes"

    @property
    def digest(self) -> str:
        return hashlib.sha256("\n".join(("bytes", *SPECIALS)).encode()).hexdigest()

    def encode(self, text: str, *, special: bool = False) -> tuple[list[int], list[int]]:
        pieces = re.split(f"({'|'.join(map(re.escape, SPECIALS))})", text) if special else [text]
        ids: list[int] = []
        starts: list[int] = []
        at = 0
        for piece in pieces:
            data = piece.encode()
            if special and piece in SPECIALS:
                ids.append(256 + SPECIALS.index(piece))
                starts.append(at)
            else:
                ids.extend(data)
                starts.extend(range(at, at + len(data)))
            at += len(data)
        return ids, starts

    def count_batch(self, texts: Sequence[str]) -> list[int]:
        return [len(text.encode()) for text in texts]

    def decode(self, ids: Sequence[int]) -> str:
        data = b"".join(SPECIALS[i - 256].encode() if i >= 256 else bytes((i,)) for i in ids)
        return data.decode("utf-8", "replace")
