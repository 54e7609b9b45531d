"""What can be said of a model without loading it. Pure data."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What can be said of a model without loading its weights."""

    name: str  # as the user knows it
    folder: str
    n_layers: int
    n_params: int
    hidden_size: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    vocab_size: int
    max_position: int
    tokenizer_digest: str
    architecture: str
    weights_digest: str = ""  # tells one set of weights from another; '' where there are no files
    tied: bool = True  # the output head is the embedding; else `n_params` counts both
    of_layers: int = 0  # of the model that this is the beginning of; 0: it is whole

    @property
    def whole_layers(self) -> int:
        """Of the whole model: shares of a model's depth count from them."""
        return self.of_layers or self.n_layers

    def beginning(self, n_layers: int, n_params: int) -> ModelInfo:
        """Of its first layers."""
        return replace(self, n_layers=n_layers, n_params=n_params, of_layers=self.whole_layers)


@dataclass(frozen=True, slots=True)
class ChatFrame:
    """The chat template around one system and one user message, as text with special tokens.

    A prompt is `before_system + SYSTEM + before_user + USER + after_user`; empty strings for a model
    without a template.
    """

    before_system: str = ""
    before_user: str = ""
    after_user: str = ""
