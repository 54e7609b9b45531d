"""What the pipeline is given by a shell: models, tokenizer, cache, progress. No library is chosen here."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from agentctx.config import RunOptions
from agentctx.pipeline.prefixes import PrefixMemory
from agentctx.prompt import ChatFrame, ModelInfo, Tokenizer
from agentctx.repo.store import IndexMemory
from agentctx.spec.engines.address import Address
from agentctx.spec.engines.choice import Choice
from agentctx.spec.protocols import Drafter, Engine, TextEngine


class Model(Protocol):
    """A model that can be spoken of before its weights are loaded."""

    @property
    def info(self) -> ModelInfo: ...

    @property
    def tokenizer(self) -> Tokenizer: ...

    @property
    def chat(self) -> ChatFrame: ...

    @property
    def address(self) -> Address | None:
        """The server that runs it on token ids; None: it runs in this process."""

    @property
    def engine(self) -> Choice:
        """What runs it, and why that."""

    def load_drafter(self, n_layers: int | None) -> Drafter:
        """Its first `n_layers` layers (None = all) as a drafter; on the engine's weights where those are loaded."""

    def load_engine(self) -> Engine:
        """The model itself; loaded once."""


class TextModel(Protocol):
    """A model behind a server that takes text."""

    @property
    def engine(self) -> str:
        """The engine's name."""

    @property
    def tokenizer(self) -> Tokenizer:
        """To count with: the server tokenizes by itself."""

    def connect(self) -> TextEngine:
        """Ask the server for what it serves; once."""


class IndexServices(Protocol):
    """What indexing needs of a shell."""

    @property
    def cache_dir(self) -> Path | None:
        """Folder of the index cache and of runs; None = no cache."""

    @property
    def memory(self) -> IndexMemory | None:
        """What the index of the run before leaves to this one, in a process that lives on (an editor's server)."""

    def progress(self, message: str) -> None:
        """Tell the user what is going on (stderr, a progress notification, nothing)."""


class Services(IndexServices, Protocol):
    """Implemented by the shells (`agentctx.cli.services`); tests give small ones of their own."""

    def tokenizer(self, options: RunOptions) -> Tokenizer:
        """The tokenizer to count with when there is no `--model`."""

    def model(self, name: str, options: RunOptions, n_tokens: int) -> Model:
        """A model by name, folder or hub id. `n_tokens`: the prompt that it must have memory for."""

    def text_model(self, options: RunOptions) -> TextModel | None:
        """The server's model that `--engine` means; None: an engine that runs models itself. Connects to nothing yet.

        Raises:
            UsageError: the engine needs an address, and none was given.
        """

    @property
    def prefixes(self) -> PrefixMemory:
        """What drafters have read in this process."""

    def default_model(self) -> str | None:
        """The first model of the default order that is in the cache."""


@dataclass(slots=True)
class Clock:
    """Seconds per stage, in the order in which stages first ran."""

    seconds: dict[str, float] = field(default_factory=dict)
    now: Callable[[], float] = time.perf_counter

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        start = self.now()
        try:
            yield
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + self.now() - start
