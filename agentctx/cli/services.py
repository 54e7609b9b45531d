"""The pipeline's services for a person at a terminal: real models, the user's cache, progress on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self

from agentctx import settings
from agentctx.config import RunOptions
from agentctx.errors import UsageError
from agentctx.pipeline.prefixes import PrefixMemory
from agentctx.prompt import ChatFrame, ModelInfo, Tokenizer
from agentctx.repo.store import IndexMemory
from agentctx.spec.engines.address import Address
from agentctx.spec.engines.choice import Choice, choose
from agentctx.spec.engines.modules import Device
from agentctx.spec.engines.wishes import NO_WISHES, Wishes, wishes_of
from agentctx.spec.protocols import Drafter, Engine, TextEngine

if TYPE_CHECKING:
    from rich.status import Status

    from agentctx.models.folder import ModelFolder


class LocalModel:
    """A model folder; weights are loaded when they are needed, and once."""

    def __init__(
        self,
        folder: ModelFolder,
        engine: str,
        n_tokens: int,
        cache: Path,
        say: Callable[[str], None],
        wishes: Wishes = NO_WISHES,
    ) -> None:
        self._folder = folder
        self._wishes = wishes
        self._asked = engine
        self._n_tokens = max(n_tokens, 1)
        self._cache = cache
        self._say = say
        self._engine: Engine | None = None

    @property
    def address(self) -> Address | None:
        return None

    @cached_property
    def engine(self) -> Choice:
        from agentctx.models.exports import exported

        return choose(self._asked, self.info, lambda engine: exported(self._folder.path, engine) is not None)

    @cached_property
    def info(self) -> ModelInfo:
        from agentctx.models.info import info
        from agentctx.models.tokenizer_digest import digests_of

        return info(self._folder, digests=digests_of(self._cache))

    @cached_property
    def tokenizer(self) -> Tokenizer:
        from agentctx.models.counting import tokenizer_of

        return tokenizer_of(self._folder, cache=self._cache)

    @cached_property
    def chat(self) -> ChatFrame:
        from agentctx.models.info import chat_of

        return chat_of(self._folder)[0]

    def load_drafter(self, n_layers: int | None) -> Drafter:
        from agentctx.spec.engines import drafter_engine, load_drafting, place_of

        drafting = drafter_engine(self.engine.engine)
        module = load_drafting(drafting)
        place = place_of(drafting, self._wishes.drafter, drafts=True)
        if self._shares(drafting, place):
            return module.drafter_from(self._engine, n_layers)
        self._require_memory(n_layers, "the drafter", drafting, place)
        return module.load_drafter(
            self._folder.path,
            self._folder.name,
            tokenizer=self.tokenizer,
            info=self.info,
            n_layers=n_layers,
            **_where(place),
        )

    def load_engine(self) -> Engine:
        from agentctx.spec.engines import load, place_of

        if self._engine is None:
            engine = self.engine.engine
            place = place_of(engine, self._wishes.main)
            self._require_memory(None, "the model", engine, place)
            self._engine = load(engine).load_engine(
                self._folder.path,
                self._folder.name,
                tokenizer=self.tokenizer,
                chat=self.chat,
                info=self.info,
                **_where(place),
            )
        return self._engine

    def _shares(self, drafting: str, place: Device | None) -> bool:
        """Whether a drafter can run on the weights that the engine has loaded."""
        if self._engine is None or drafting != self.engine.engine:
            return False
        return place is None or place.form == self._engine.form

    def _require_memory(self, n_layers: int | None, what: str, engine: str, place: Device | None) -> None:
        """Refuse before loading what can't fit; say so where that can't be known."""
        from agentctx.models import memory

        weight_bytes = self._weight_bytes(engine)
        if weight_bytes is None:
            self._say(f"loading {what} {self.info.name}: {engine} sees to memory by itself")
            return
        loaded = replace(self.info, n_layers=n_layers, n_params=self._params(n_layers)) if n_layers else self.info
        if place is None:
            need = memory.needed_bytes(loaded, n_tokens=self._n_tokens, weight_bytes=weight_bytes)
            have = memory.available()
        else:
            width = place.width
            need = memory.needed_bytes(loaded, n_tokens=self._n_tokens, weight_bytes=width, cache_bytes=width)
            have = memory.available_on(place.name, place.free_bytes)
        notes = memory.require(need, have, f"{what} {self.info.name}")
        free = f"{have.n_bytes / 1e9:.1f} GB are free" if have.n_bytes is not None else "; ".join(notes)
        self._say(f"loading {what} {self.info.name}: it needs {need / 1e9:.1f} GB of memory, {free}")

    def _weight_bytes(self, engine: str) -> float | None:
        """Per parameter as the engine loads it; None: on devices that we don't see.

        Raises ModelUnavailable: the engine runs exports, and there is none.
        """
        from agentctx.exports import WEIGHTS, find_export
        from agentctx.spec.engines import exporting, weight_bytes

        if engine in exporting():
            return WEIGHTS[find_export(self._folder.path, engine, self._folder.name).weights]
        return weight_bytes(engine)

    def _params(self, n_layers: int) -> int:
        """Parameters of an early exit: embedding and head stay whole."""
        outside = self.info.vocab_size * self.info.hidden_size * (1 if self.info.tied else 2)
        return outside + (self.info.n_params - outside) * n_layers // self.info.n_layers


def _where(place: Device | None) -> dict[str, Device]:
    return {} if place is None else {"place": place}


class ServedModel(LocalModel):
    """A model that a server runs on token ids; its folder here gives the tokenizer and what is known of it."""

    def __init__(
        self,
        folder: ModelFolder,
        engine: str,
        n_tokens: int,
        cache: Path,
        say: Callable[[str], None],
        *,
        url: str,
        served_model: str | None,
        key: str | None,
        wishes: Wishes = NO_WISHES,
    ) -> None:
        from agentctx.spec.engines.address import parse_address

        super().__init__(folder, engine, n_tokens, cache, say, wishes)
        self._address = parse_address(url)
        self._served_model = served_model
        self._key = key

    @property
    def address(self) -> Address | None:
        return self._address

    @cached_property
    def info(self) -> ModelInfo:
        from agentctx.models.folder import has_weights
        from agentctx.models.info import info
        from agentctx.models.tokenizer_digest import digests_of

        return info(self._folder, digests=digests_of(self._cache), served=not has_weights(self._folder.path))

    def load_engine(self) -> Engine:
        from agentctx.spec.engines import load_connecting, place_of

        if self._engine is None:
            place_of(self.engine.engine, self._wishes.main)  # a server has no choice that we could make
            self._say(f"asking {self._address.host} for its models")
            self._engine = load_connecting(self.engine.engine).connect(
                self._address.base,
                self._served_model,
                tokenizer=self.tokenizer,
                chat=self.chat,
                info=self.info,
                api_key=self._key,
            )
        return self._engine


@dataclass(slots=True)
class RemoteModel:
    """A model behind a server. Implements `pipeline.services.TextModel`."""

    engine: str
    url: str
    model: str | None
    tokenizer: Tokenizer
    _key: str | None = field(repr=False)
    _connected: TextEngine | None = field(default=None, repr=False)

    def connect(self) -> TextEngine:
        from agentctx.spec.engines import load_text

        if self._connected is None:
            self._connected = load_text(self.engine).connect(self.url, self.model, key=self._key)
        return self._connected


API_KEYS = ("AGENTCTX_API_KEY", "OPENAI_API_KEY")  # only from the environment: files get committed, flags get logged


@dataclass(slots=True)
class CliServices:
    """Implements `pipeline.services.Services`."""

    quiet: bool = False
    memory: IndexMemory | None = None  # kept by a process that lives on
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    prefixes: PrefixMemory = field(default_factory=PrefixMemory)
    _counters: dict[str | None, Tokenizer] = field(default_factory=dict)
    _models: dict[tuple[str, str, Wishes], LocalModel] = field(default_factory=dict)
    _status: Status | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def cache_dir(self) -> Path | None:
        return settings.cache_root(self.environment)

    def tokenizer(self, options: RunOptions) -> Tokenizer:
        """Loading takes longer than a selection: a process that lives on does it once per model."""
        from agentctx.models.counting import tokenizer_for

        cache = settings.cache_root(self.environment)
        if options.tokenizer is not None:
            return tokenizer_for(None, options.tokenizer, cache)
        name = self.default_model()
        if name not in self._counters:
            self._counters[name] = tokenizer_for(name, None, cache)
        return self._counters[name]

    def model(self, name: str, options: RunOptions, n_tokens: int) -> LocalModel:
        from agentctx.models.store import resolve, resolve_served
        from agentctx.spec.engines import connects

        cache = settings.cache_root(self.environment)
        served = options.url is not None and connects(options.engine) and name == (options.model or name)
        folder = (resolve_served if served else resolve)(name, cache)
        key = (str(folder.path.resolve()), options.engine, wishes_of(options))
        if key not in self._models:
            make = self._served if served else self._local
            self._models[key] = make(folder, options, n_tokens, cache)
        return self._models[key]

    def _local(self, folder: ModelFolder, options: RunOptions, n_tokens: int, cache: Path) -> LocalModel:
        return LocalModel(folder, options.engine, n_tokens, cache, self.progress, wishes_of(options))

    def _served(self, folder: ModelFolder, options: RunOptions, n_tokens: int, cache: Path) -> ServedModel:
        assert options.url is not None, "asked for"
        return ServedModel(
            folder,
            options.engine,
            n_tokens,
            cache,
            self.progress,
            url=options.url,
            served_model=options.served_model,
            key=self._api_key(),
            wishes=wishes_of(options),
        )

    def _api_key(self) -> str | None:
        return next((self.environment[name] for name in API_KEYS if self.environment.get(name)), None)

    def text_model(self, options: RunOptions) -> RemoteModel | None:
        from agentctx.models.counting import tokenizer_or_estimate
        from agentctx.spec.engines import place_of, takes_text

        if not takes_text(options.engine):
            return None
        place_of(options.engine, wishes_of(options).main)
        if options.url is None:
            raise UsageError(
                f"--engine {options.engine} needs the address of a server", hint="--url http://localhost:8000/v1"
            )
        counter = tokenizer_or_estimate(options.tokenizer, settings.cache_root(self.environment))
        return RemoteModel(options.engine, options.url, options.model, counter, self._api_key())

    def default_model(self) -> str | None:
        from agentctx.models.store import default_model

        return default_model(settings.cache_root(self.environment))

    def progress(self, message: str) -> None:
        """A status line on stderr, on a terminal only."""
        if self.quiet or not sys.stderr.isatty():
            return
        from rich.text import Text

        text = Text(message)  # a line of code may look like markup
        if self._status is None:
            from rich.console import Console

            self._status = Console(stderr=True).status(text)
            self._status.start()
        self._status.update(text)

    def close(self) -> None:
        """Take the status line away: what follows is the result."""
        if self._status is not None:
            self._status.stop()
            self._status = None
