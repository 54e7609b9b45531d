"""A main model and a drafter with random weights of published shapes: seconds without a download.

What the drafter selects means nothing then; how long it takes to select does, because the default scorer of the product
runs (where a calibration ships for a drafter of that shape) or the nearest that needs no calibration.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from agentctx.bench.speed.shapes import Shape
from agentctx.config import RunOptions
from agentctx.errors import UsageError
from agentctx.models import memory
from agentctx.models.estimate import EstimateTokenizer
from agentctx.pipeline.decide import scorer_of
from agentctx.pipeline.services import Model
from agentctx.prompt import ModelInfo, Tokenizer
from agentctx.spec.engines import load_device, load_random
from agentctx.spec.engines.address import Address
from agentctx.spec.engines.byte_tokenizer import BYTE_CHAT
from agentctx.spec.engines.choice import Choice
from agentctx.spec.engines.modules import Device, RandomModule
from agentctx.spec.engines.wishes import wishes_of
from agentctx.spec.protocols import Drafter, Engine
from agentctx.spec.scorers.base import Scorer
from agentctx.spec.scorers.calibration import shipped

ENGINE = "torch"
WARNING = "weights are random: seconds mean something, what is kept does not"


@dataclass(frozen=True, slots=True)
class RandomPair:
    """`seed`: of the main model's weights; the drafter's is the next."""

    main: Shape
    drafter: Shape
    seed: int = 0


class RandomModel:
    """A shape, and weights that are made when they are needed. Implements `pipeline.services.Model`."""

    def __init__(
        self, shape: Shape, role: str, seed: int, module: RandomModule, tokenizer: Tokenizer, place: Device
    ) -> None:
        self._shape = shape
        self._place = place
        self._role = role
        self._seed = seed
        self._module = module
        self._engine: Engine | None = None
        self.tokenizer = tokenizer
        self.chat = BYTE_CHAT
        self.address: Address | None = None
        self.engine = Choice(ENGINE, "--random-weights")

    @cached_property
    def info(self) -> ModelInfo:
        shape = self._shape
        name = f"random {shape.name}"
        return ModelInfo(
            name=name,
            folder=f"{name} ({self._role})",
            n_layers=shape.n_layers,
            n_params=shape.n_params,
            hidden_size=shape.hidden,
            n_heads=shape.n_heads,
            n_kv_heads=shape.n_kv_heads,
            head_dim=shape.head_dim,
            vocab_size=shape.vocab,
            max_position=int(shape.config["max_position_embeddings"]),
            tokenizer_digest=self.tokenizer.digest,
            architecture="Qwen2ForCausalLM",
            weights_digest=f"random {shape.name} {self._seed}",
            tied=shape.tied,
        )

    def load_drafter(self, n_layers: int | None) -> Drafter:
        return self._module.random_drafter(
            self._shape.config,
            info=self.info,
            tokenizer=self.tokenizer,
            n_layers=n_layers,
            seed=self._seed,
            place=self._place,
        )

    def load_engine(self) -> Engine:
        if self._engine is None:
            self._engine = self._module.random_engine(
                self._shape.config,
                info=self.info,
                tokenizer=self.tokenizer,
                chat=self.chat,
                seed=self._seed,
                place=self._place,
            )
        return self._engine


def random_pair_of(
    pair: RandomPair, options: RunOptions, n_tokens: int, say: Callable[[str], None]
) -> tuple[Model, Model, Scorer]:
    """The main model, the drafter and the scorer; weights aren't made yet, but there is memory for them.

    Raises:
        UsageError: more layers, or more tokens, than the shapes have, or no such scorer.
        EngineUnavailable: torch is missing, or the scorer is learned.
        NotEnoughMemory: weights and the longest prompt don't fit.
    """
    most = int(pair.main.config["max_position_embeddings"])
    if n_tokens > most:
        raise UsageError(f"--tokens {n_tokens}: the shapes read {most}")
    module, tokenizer = load_random(ENGINE), EstimateTokenizer()
    place, aside = places_of(options)
    main = RandomModel(pair.main, "main", pair.seed, module, tokenizer, place)
    drafter = RandomModel(pair.drafter, "drafter", pair.seed + 1, module, tokenizer, aside)
    scorer, why = random_scorer(pair.drafter, options, drafter.info)
    layers = scorer.depth(pair.drafter.n_layers)
    say(f"{WARNING}; {place.dtype} on {place.name}, the drafter {aside.dtype} on {aside.name}")
    say(f"scorer {scorer.name} ({why}), {layers} of {pair.drafter.n_layers} layers of {drafter.info.name}")
    _require_memory(((main.info, place), (drafter.info, aside)), n_tokens, say)
    return main, drafter, scorer


def random_scorer(shape: Shape, options: RunOptions, info: ModelInfo) -> tuple[Scorer, str]:
    """The scorer, and why. Without `--scorer`: what would run on trained weights of the shape, and costs the same here.

    Raises UsageError or EngineUnavailable, see `scorer_of`.
    """
    if options.scorer is not None or options.calibration is not None:
        return scorer_of(options, info)[:2]
    scorer, _, _ = scorer_of(options, replace(info, weights_digest=shape.calibrated or info.weights_digest))
    known = shipped(shape.calibrated) if shape.calibrated is not None else None
    if known is None:
        return scorer, "it needs no calibration, and none ships for this shape"
    return scorer, f"calibrated for {known.drafter}, a drafter of this shape: it reads the same and costs the same"


def places_of(options: RunOptions) -> tuple[Device, Device]:
    """Of the main model, and of the drafter. Raises UsageError or EngineUnavailable: there is no such place."""
    devices = load_device(ENGINE)
    wishes = wishes_of(options)
    return devices.device(wishes.main), devices.device(wishes.drafter, drafts=True)


def _require_memory(models: Sequence[tuple[ModelInfo, Device]], n_tokens: int, say: Callable[[str], None]) -> None:
    """All stay loaded. Raises NotEnoughMemory."""
    on: dict[str, list[tuple[ModelInfo, Device]]] = {}
    for info, place in models:
        on.setdefault(place.kind, []).append((info, place))
    for own in on.values():
        place = own[0][1]
        need = sum(
            memory.needed_bytes(info, n_tokens=n_tokens, weight_bytes=one.width, cache_bytes=one.width)
            for info, one in own
        )
        have = memory.available_on(place.name, place.free_bytes)
        names = " and ".join(f"{info.name} in {one.dtype}" for info, one in own)
        what = f"{names} with {n_tokens} tokens"
        for note in memory.require(need, have, what):
            say(note)
        if have.n_bytes is not None:
            free = f"{have.n_bytes / 1e9:.1f} GB are free ({have.source})"
            say(f"{what}: {need / 1e9:.1f} GB of memory are needed, {free}")


def as_facts(pair: RandomPair, scorer: Scorer, options: RunOptions) -> dict[str, Any]:
    """For the JSON report."""
    devices = load_device(ENGINE)
    place, aside = places_of(options)
    return {
        "main": {"shape": pair.main.name, "n_params": pair.main.n_params, **pair.main.config},
        "drafter": {"shape": pair.drafter.name, "n_params": pair.drafter.n_params, **pair.drafter.config},
        "seed": pair.seed,
        "dtype": place.dtype,
        "device": place.kind,
        "device_name": place.name,
        "drafter_dtype": aside.dtype,
        "drafter_device": aside.kind,
        "scorer": scorer.name,
        "peak_device_bytes": devices.peak_device_bytes(),
        "note": WARNING,
    }


def said(facts: dict[str, Any]) -> tuple[str, ...]:
    """For the text report."""
    peak = facts["peak_device_bytes"]
    held = f"; {peak / 1e9:.1f} GB of its memory at most" if peak is not None else ""
    drafter = f"drafter {facts['drafter']['shape']} {facts['drafter_dtype']} on {facts['drafter_device']}"
    shapes = f"{facts['main']['shape']} {facts['dtype']} on {facts['device_name']}, {drafter}"
    return (f"{facts['note']} ({shapes}, seed {facts['seed']}{held})",)
