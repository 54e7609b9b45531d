"""Checks that every embedded engine makes before it runs anything."""

from __future__ import annotations

from agentctx.errors import ConfigError, EngineUnavailable
from agentctx.prompt import Int32, SparsePrompt
from agentctx.spec.protocols import EngineCaps, ModelInfo
from agentctx.spec.reading import Reading


def check_sparse(info: ModelInfo, prompt: SparsePrompt) -> None:
    """Raises EngineUnavailable: beyond the trained context nothing fails, the answers are only wrong."""
    if prompt.total > info.max_position:
        raise EngineUnavailable(
            f"the prompt spans {prompt.total} positions, {info.name} was trained on {info.max_position}",
            hint=f"compact it to {info.max_position} positions or choose a model with a longer context",
        )
    _check_ids(info, prompt.ids)


def check_read(info: ModelInfo, ids: Int32, reading: Reading) -> None:
    """Raises EngineUnavailable when the reading exceeds the drafter's context, ConfigError for bad options."""
    if reading.n_lookahead < 0 or reading.chunk < 1:
        raise ConfigError(f"look-ahead ({reading.n_lookahead}) is at least 0, chunk ({reading.chunk}) at least 1")
    if not len(ids):
        raise EngineUnavailable("an empty prompt can't be scored", hint="pack something first")
    needed = reading.room(len(ids))
    if needed > info.max_position:
        raise EngineUnavailable(
            f"prompt and look-ahead are {needed} tokens, {info.name} reads {info.max_position}",
            hint="score it in windows",
        )
    _check_ids(info, ids)


def embedded_caps(info: ModelInfo) -> EngineCaps:
    """What every engine can do that runs a model's graph in this process."""
    return EngineCaps(True, True, True, info.max_position, info.tokenizer_digest)


def layers_to_run(info: ModelInfo, n_layers: int | None) -> int:
    if n_layers is None:
        return info.n_layers
    if not 1 <= n_layers <= info.n_layers:
        raise ConfigError(
            f"can't run {n_layers} layers of {info.name}", hint=f"it has {info.n_layers}: choose 1 to that many"
        )
    return n_layers


def room_to_decode(info: ModelInfo, total: int) -> int:
    """Tokens that can be generated after `total`: the last one needs no position, it is never read."""
    return info.max_position - total + 1


def check_room(info: ModelInfo, total: int, n: int, room: int) -> None:
    """Raises EngineUnavailable where `n` tokens don't fit into the `room` behind a prompt of `total` positions."""
    if n > room:
        raise EngineUnavailable(
            f"{n} tokens don't fit behind the {total} positions of the prompt",
            hint=f"{info.name} has room for {room}",
        )


def _check_ids(info: ModelInfo, ids: Int32) -> None:
    worst = int(ids.max())
    if worst >= info.vocab_size or int(ids.min()) < 0:
        raise EngineUnavailable(
            f"token id {worst} is outside the {info.vocab_size} that {info.name} knows",
            hint="the prompt was tokenized for another model",
        )
