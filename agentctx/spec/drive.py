"""The order in which a drafter runs for a reading: prefix, aside, rest, look-ahead. Pure; engines bring the runner."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Protocol

import numpy as np

from agentctx.prompt import Float32, Int32
from agentctx.spec.prefix import KnownPrefix, PrefixStore, keepable
from agentctx.spec.reading import Group, Reading, Sink, ahead, tokens
from agentctx.spec.score import look_ahead


class Watch(Protocol):
    """Collects the attention of groups of queries while their tokens run; one per prompt, aside or step."""

    def see(self, layer: int, q: Any, keys: Any, scale: float) -> None:
        """q: (H, n, D) of the last n tokens of `keys`: (KVH, S, D), after RoPE; arrays of the engine's library."""

    def emit(self, sink: Sink) -> None:
        """Give the finished rows to a sink, group by group, layer by layer."""


class Runner(Protocol):
    """A drafter's first layers with a cache. Positions are those of the tokens in the cache."""

    @property
    def length(self) -> int:
        """Tokens in the cache."""

    @property
    def n_layers(self) -> int: ...

    def watch(self, groups: tuple[Group, ...], start: int, n_tokens: int) -> Watch:
        """A watch for queries that are `start` tokens further in the cache than their groups say.

        Rows are over the first `n_tokens` tokens; those of an aside and of look-ahead steps are cut to that.
        """

    def advance(
        self, ids: Int32, watch: Watch, *, chunk: int, stop: bool, hidden: tuple[int, ...]
    ) -> dict[int, Float32]:
        """Run tokens behind those in the cache. float32 (n, D) by depth of `hidden`; `stop`: nothing else is
        needed."""

    def step(self, token: int, watches: tuple[Watch, ...]) -> int:
        """Run one token; the most likely next one."""

    def rewind(self, length: int) -> None:
        """Forget the tokens behind the first `length`."""

    def load(self, prefix: KnownPrefix) -> None:
        """Take keys and values over, into an empty cache."""

    def known(self, ids: Int32, states: dict[int, Float32]) -> KnownPrefix:
        """Keys and values of the first tokens, which are `ids`."""


def drive(
    runner: Runner, ids: Int32, reading: Reading, eos: Collection[int], sink: Sink, store: PrefixStore | None = None
) -> tuple[int, int]:
    """Read a prompt, int32 (T,). Steps of look-ahead that ran, and tokens that the store knew.

    What the store doesn't know of the prompt's beginning is put into it.
    """
    n_tokens = len(ids)
    main = runner.watch(reading.groups, 0, n_tokens)
    states: dict[int, list[Float32]] = {depth: [] for depth in reading.hidden}
    most = keepable(reading, n_tokens) if store is not None else 0
    n_known = _loaded(runner, ids[:most], reading, store, states)

    def advance(end: int) -> None:
        part = ids[runner.length : end]
        if len(part):
            found = runner.advance(part, main, chunk=reading.chunk, stop=reading.stops, hidden=reading.hidden)
            for depth, own in found.items():
                states[depth].append(own)

    if store is not None and most > n_known:
        advance(most)
        whole = {depth: np.concatenate(own) for depth, own in states.items()}
        store.keep(runner.known(ids[:most].copy(), whole))
    if reading.aside is not None:
        advance(reading.aside.at)
        _aside(runner, reading, sink, n_tokens)
    advance(n_tokens - (1 if reading.n_lookahead else 0))
    n_steps = _look_ahead(runner, int(ids[-1]), reading, eos, sink, main, n_tokens) if reading.n_lookahead else 0
    main.emit(sink)
    for depth, own in states.items():
        sink.hidden(depth, np.concatenate(own))
    return n_steps, n_known


def _loaded(
    runner: Runner, ids: Int32, reading: Reading, store: PrefixStore | None, states: dict[int, list[Float32]]
) -> int:
    """Tokens that the runner has from the store."""
    if store is None or not len(ids):
        return 0
    found = store.find(ids, runner.n_layers, chunk=reading.chunk, states=reading.hidden)
    if found is None:
        return 0
    runner.load(found)
    for depth, own in states.items():
        own.append(found.states[depth])
    return len(found.ids)


def _aside(runner: Runner, reading: Reading, sink: Sink, n_tokens: int) -> None:
    aside = reading.aside
    assert aside is not None
    watch = runner.watch(aside.groups, aside.at, n_tokens)
    runner.advance(aside.ids, watch, chunk=reading.chunk, stop=True, hidden=())
    runner.rewind(aside.at)
    watch.emit(sink)


def _look_ahead(
    runner: Runner, last: int, reading: Reading, eos: Collection[int], sink: Sink, main: Watch, n_tokens: int
) -> int:
    first = runner.length

    def step(token: int, i: int) -> int:
        own = runner.watch((Group(ahead(i), tokens([first + i])),), 0, n_tokens)
        found = runner.step(token, (own, main) if i == 0 else (own,))
        own.emit(sink)
        return found

    return len(look_ahead(last, step, eos, reading.n_lookahead))
