"""What the module of an engine offers, whichever library it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from agentctx.prompt import ChatFrame, ModelInfo, Tokenizer
from agentctx.spec.protocols import Drafter, Engine, TextEngine


class EngineModule(Protocol):
    """What an engine's module offers."""

    def load_engine(self, folder: Path, name: str, *, tokenizer: Tokenizer, chat: ChatFrame, info: ModelInfo) -> Engine:
        """Raises ModelUnavailable, NotEnoughMemory or EngineUnavailable."""


class DraftingModule(EngineModule, Protocol):
    """What the module of an engine offers that also shows what a model attends to."""

    def load_drafter(
        self, folder: Path, name: str, *, tokenizer: Tokenizer, info: ModelInfo, n_layers: int | None = None
    ) -> Drafter:
        """The first `n_layers` layers (None = all) of the model in `folder`, as a drafter."""

    def drafter_from(self, engine: Any, n_layers: int | None = None) -> Drafter:
        """A drafter on the weights of an engine that this module loaded."""


class TextEngineModule(Protocol):
    """What the module of an engine for servers offers."""

    def connect(self, url: str, model: str | None, *, key: str | None) -> TextEngine:
        """Ask the server for its models. `model` None = the only one. `key`: never shown anywhere.

        Raises:
            ConfigError: the address, or the key, is malformed.
            EngineUnavailable: nobody answers there, or not as such a server does.
            ModelUnavailable: there is no model, or it isn't clear which.
        """


class ConnectingModule(Protocol):
    """What the module of an engine offers that also speaks to servers which take token ids."""

    def connect(
        self,
        url: str,
        served_model: str | None,
        *,
        tokenizer: Tokenizer,
        chat: ChatFrame,
        info: ModelInfo,
        api_key: str | None,
    ) -> Engine:
        """`served_model`: as the server calls it; None = its only one. `info`: of the same model's folder here.

        Raises EngineUnavailable: no server, no such model, or it can't place tokens.
        """


@dataclass(frozen=True, slots=True)
class Device:
    """What an engine runs models on. `width`: bytes of a weight and of a cached value. `free_bytes`: of the GPU's own
    memory; None: it is the system's."""

    kind: str
    name: str
    dtype: str
    width: int
    free_bytes: int | None


class DeviceModule(Protocol):
    """What the module offers that knows where an engine runs models."""

    def device(self) -> Device:
        """Where they would run here."""

    def peak_device_bytes(self) -> int | None:
        """The most that was taken of the GPU's memory; None on a CPU."""


class RandomModule(Protocol):
    """What the module offers that makes an engine's models with random weights, for measurements."""

    def random_engine(
        self, config: Mapping[str, Any], *, info: ModelInfo, tokenizer: Tokenizer, chat: ChatFrame, seed: int
    ) -> Engine:
        """`config`: as in `config.json`. Raises EngineUnavailable or NotEnoughMemory."""

    def random_drafter(
        self, config: Mapping[str, Any], *, info: ModelInfo, tokenizer: Tokenizer, n_layers: int | None, seed: int
    ) -> Drafter:
        """The first `n_layers` layers (None = all)."""
