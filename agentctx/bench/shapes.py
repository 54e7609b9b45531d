"""Shapes of published models, for measurements with random weights: seconds depend on the shape, not on the weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentctx.errors import UsageError
from agentctx.prompt import ModelInfo
from agentctx.spec.engines.byte_tokenizer import ByteTokenizer

CONTEXT = 131_072  # as the models' long-context settings have it


@dataclass(frozen=True, slots=True)
class Shape:
    """A decoder of Qwen2's kind; field names follow its config.json."""

    name: str
    num_hidden_layers: int
    hidden_size: int
    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    vocab_size: int
    tie_word_embeddings: bool

    @property
    def head_dim(self) -> int:
        return self.hidden_size // self.num_attention_heads

    @property
    def n_params(self) -> int:
        width, kv = self.hidden_size, self.num_key_value_heads * self.head_dim
        attention = 2 * width * width + 2 * width * kv + width + 2 * kv  # with the biases of queries, keys and values
        layer = attention + 3 * width * self.intermediate_size + 2 * width
        outside = self.vocab_size * width * (1 if self.tie_word_embeddings else 2) + width
        return self.num_hidden_layers * layer + outside

    def config(self) -> Mapping[str, Any]:
        """A config.json."""
        return {
            "model_type": "qwen2",
            "architectures": ["Qwen2ForCausalLM"],
            "num_hidden_layers": self.num_hidden_layers,
            "hidden_size": self.hidden_size,
            "intermediate_size": self.intermediate_size,
            "num_attention_heads": self.num_attention_heads,
            "num_key_value_heads": self.num_key_value_heads,
            "vocab_size": self.vocab_size,
            "tie_word_embeddings": self.tie_word_embeddings,
            "max_position_embeddings": CONTEXT,
            "rope_theta": 1_000_000.0,
            "rms_norm_eps": 1e-6,
            "hidden_act": "silu",
            "use_sliding_window": False,
        }

    def info(self, n_layers: int | None = None) -> ModelInfo:
        return ModelInfo(
            name=f"{self.name} (random weights)",
            folder=f"random:{self.name}",
            n_layers=n_layers or self.num_hidden_layers,
            n_params=self.n_params,
            hidden_size=self.hidden_size,
            n_heads=self.num_attention_heads,
            n_kv_heads=self.num_key_value_heads,
            head_dim=self.head_dim,
            vocab_size=self.vocab_size,
            max_position=CONTEXT,
            tokenizer_digest=ByteTokenizer().digest,
            architecture="qwen2",
            tied=self.tie_word_embeddings,
        )


SHAPES: Mapping[str, Shape] = {
    shape.name: shape
    for shape in (
        Shape("tiny", 6, 64, 128, 4, 2, 512, tie_word_embeddings=True),
        Shape("qwen2.5-0.5b", 24, 896, 4864, 14, 2, 151_936, tie_word_embeddings=True),
        Shape("qwen2.5-1.5b", 28, 1536, 8960, 12, 2, 151_936, tie_word_embeddings=True),
        Shape("qwen2.5-3b", 36, 2048, 11_008, 16, 2, 151_936, tie_word_embeddings=True),
        Shape("qwen2.5-7b", 28, 3584, 18_944, 28, 4, 152_064, tie_word_embeddings=False),
        Shape("qwen2.5-14b", 48, 5120, 13_824, 40, 8, 152_064, tie_word_embeddings=False),
        Shape("qwen2.5-32b", 64, 5120, 27_648, 40, 8, 152_064, tie_word_embeddings=False),
    )
}
DRAFTER = "qwen2.5-0.5b"


def parse_shapes(text: str) -> tuple[Shape, Shape]:
    """Main model and drafter of `MAIN` or `MAIN:DRAFTER`.

    Raises:
        UsageError: a name that isn't in the table.
    """
    main, colon, drafter = text.partition(":")
    return _shape(main), _shape(drafter if colon else ("tiny" if main == "tiny" else DRAFTER))


def _shape(name: str) -> Shape:
    if name not in SHAPES:
        raise UsageError(f"--random-weights: there is no shape {name!r}", hint=f"choose of: {', '.join(SHAPES)}")
    return SHAPES[name]
