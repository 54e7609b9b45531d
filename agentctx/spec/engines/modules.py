"""What the module of an engine offers, whichever library it stands for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from agentctx.prompt import ChatFrame, ModelInfo, Tokenizer
from agentctx.spec.engines.wishes import Wish
from agentctx.spec.protocols import Drafter, Engine, TextEngine


class EngineModule(Protocol):
    """What an engine's module offers."""

    def load_engine(
        self, folder: Path, name: str, *, tokenizer: Tokenizer, chat: ChatFrame, info: ModelInfo, **where: Device
    ) -> Engine:
        """`where`: `place`, for an engine that has a choice of devices.

        Raises ModelUnavailable, NotEnoughMemory or EngineUnavailable.
        """


class DraftingModule(EngineModule, Protocol):
    """What the module of an engine offers that also shows what a model attends to."""

    def load_drafter(
        self,
        folder: Path,
        name: str,
        *,
        tokenizer: Tokenizer,
        info: ModelInfo,
        n_layers: int | None = None,
        **where: Device,
    ) -> Drafter:
        """The first `n_layers` layers (None = all) of the model in `folder`, as a drafter.

        `where`: see `load_engine`.
        """

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


def form_of(held: object, where: object) -> str:
    """What weights are held in, and where: the same for two models that could share them."""
    return f"{held} on {where}"


@dataclass(frozen=True, slots=True)
class Device:
    """What an engine runs a model on. `kind`: as torch calls it. `width`: bytes of a weight and of a cached value.
    `free_bytes`: of the GPU's own memory; None: it is the system's."""

    kind: str
    name: str
    dtype: str
    width: int
    free_bytes: int | None

    @property
    def form(self) -> str:
        return form_of(self.dtype, self.kind)


class DeviceModule(Protocol):
    """What the module offers that knows where an engine runs models."""

    def device(self, wish: Wish = ..., *, drafts: bool = False) -> Device:
        """Where one would run here. `drafts`: it is a drafter, whose scores need less precision than an answer.

        Raises:
            UsageError: the wish isn't understood.
            EngineUnavailable: there is no such device here.
        """

    def peak_device_bytes(self) -> int | None:
        """The most that was taken of the memory of GPUs; None where there is none."""


class RandomModule(Protocol):
    """What the module offers that makes an engine's models with random weights, for measurements."""

    def random_engine(
        self,
        config: Mapping[str, Any],
        *,
        info: ModelInfo,
        tokenizer: Tokenizer,
        chat: ChatFrame,
        seed: int,
        place: Device,
    ) -> Engine:
        """`config`: as in `config.json`. Raises EngineUnavailable or NotEnoughMemory."""

    def random_drafter(
        self,
        config: Mapping[str, Any],
        *,
        info: ModelInfo,
        tokenizer: Tokenizer,
        n_layers: int | None,
        seed: int,
        place: Device,
    ) -> Drafter:
        """The first `n_layers` layers (None = all)."""
