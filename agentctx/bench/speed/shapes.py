"""Shapes of published models, for measurements with random weights: seconds depend on shapes alone. Pure data.

The figures are those of each model's `config.json`, but for two: `max_position` is that of the variants for long
prompts (131072 for all), and the attention has no sliding windows (the published files have `use_sliding_window` off).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentctx.errors import UsageError

MAX_POSITION = 131072
CODER_05B = "a0e01e80ce8886e4cc049881d54f4662e7b094b0398d79a00f2da4a974b50687"  # weights of qwen2.5-coder-0.5b


@dataclass(frozen=True, slots=True)
class Shape:
    """A decoder of the Qwen2 kind: full attention, rotary positions, biases of queries, keys and values.

    `calibrated`: the weights (a digest) of a drafter of this very shape for which a calibration ships: its default
    scorer can be run on random weights, and costs what it costs there.
    """

    name: str
    n_layers: int
    hidden: int
    intermediate: int
    n_heads: int
    n_kv_heads: int
    vocab: int
    tied: bool
    calibrated: str | None = None

    @property
    def head_dim(self) -> int:
        return self.hidden // self.n_heads

    @property
    def n_params(self) -> int:
        kv = self.n_kv_heads * self.head_dim
        attention = 2 * self.hidden * (self.hidden + kv) + self.hidden + 2 * kv  # projections, and biases of q, k, v
        layer = attention + 3 * self.hidden * self.intermediate + 2 * self.hidden
        return self.n_layers * layer + (1 if self.tied else 2) * self.vocab * self.hidden + self.hidden

    @property
    def config(self) -> Mapping[str, Any]:
        """The fields of `config.json` that say the shape."""
        return {
            "model_type": "qwen2",
            "hidden_size": self.hidden,
            "intermediate_size": self.intermediate,
            "num_hidden_layers": self.n_layers,
            "num_attention_heads": self.n_heads,
            "num_key_value_heads": self.n_kv_heads,
            "vocab_size": self.vocab,
            "max_position_embeddings": MAX_POSITION,
            "rope_theta": 1_000_000.0,
            "rms_norm_eps": 1e-6,
            "use_sliding_window": False,
            "tie_word_embeddings": self.tied,
        }


SHAPES: Mapping[str, Shape] = {
    shape.name: shape
    for shape in (
        Shape("qwen2.5-0.5b", 24, 896, 4864, 14, 2, 151936, tied=True, calibrated=CODER_05B),
        Shape("qwen2.5-1.5b", 28, 1536, 8960, 12, 2, 151936, tied=True),
        Shape("qwen2.5-7b", 28, 3584, 18944, 28, 4, 152064, tied=False),
        Shape("qwen2.5-14b", 48, 5120, 13824, 40, 8, 152064, tied=False),
        Shape("qwen2.5-32b", 64, 5120, 27648, 40, 8, 152064, tied=False),
        Shape("tiny", 3, 32, 48, 4, 2, 151936, tied=True),  # of no published model: to try the command
    )
}
DRAFTERS = {"tiny": "tiny"}  # of a main model, where none is named
DEFAULT_DRAFTER = "qwen2.5-0.5b"


def parse_shapes(text: str) -> tuple[Shape, Shape]:
    """`MAIN` or `MAIN:DRAFTER`, by name. Raises UsageError: no such shape."""
    main, colon, drafter = text.partition(":")
    found = _shape(main)
    return found, _shape(drafter if colon else DRAFTERS.get(main, DEFAULT_DRAFTER))


def _shape(name: str) -> Shape:
    if name not in SHAPES:
        raise UsageError(f"there is no shape {name!r}", hint=f"MAIN or MAIN:DRAFTER, of: {', '.join(SHAPES)}")
    return SHAPES[name]
