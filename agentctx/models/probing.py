"""Two tokenizers side by side on a few telling texts. Equal digests promise equal ids; this looks."""

from __future__ import annotations

from dataclasses import dataclass

from agentctx.prompt import Tokenizer

TEXTS: tuple[tuple[str, str], ...] = (
    ("code", "def load(self, *, path: Path | None = None) -> dict[str, int]:\n    return {**self._known, 'a': 0x1F}\n"),
    ("indentation", "if x:\n\tif y:\n\t\treturn\n        # eight\n   # three\n\n\n\r\nend\n"),
    ("operators", "a ||= b ?? c; d <<= 3; e?.f!.g; h => i; /* j */ <!-- k --> @l #m $n \\o `p`"),
    ("numbers", "0 1 12 123 1234 12345 3.14159 1e-9 0b1010 1_000_000"),
    ("Unicode", "aé日本語 🎉 e\u0301 ﬁ 𝕏 Ελληνικά Русский العربية हिन्दी"),
    ("white space", " \u00a0\u2003\u200b\ufeff\x0c\t  \n \n"),
    ("text like special tokens", "<|im_start|>system<|im_end|><s></s><|endoftext|>[INST]<think>"),
)


@dataclass(frozen=True, slots=True)
class Probed:
    """`differ`: names of the texts that the two encode differently."""

    n_probes: int
    differ: tuple[str, ...]


def probe(a: Tokenizer, b: Tokenizer, frames: tuple[str, ...]) -> Probed:
    """Every text as ordinary text and with special tokens, and the chat scaffolding of both models."""
    texts = (*TEXTS, *(("chat template", frame) for frame in frames if frame))
    differ = [name for name, text in texts for special in (False, True) if not _same(a, b, text, special)]
    return Probed(2 * len(texts), tuple(dict.fromkeys(differ)))


def _same(a: Tokenizer, b: Tokenizer, text: str, special: bool) -> bool:
    return a.encode(text, special=special)[0] == b.encode(text, special=special)[0]
