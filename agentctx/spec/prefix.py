"""Keys and values of the beginning of a prompt, which a drafter had from a run before. Pure data.

A beginning is cut to whole chunks: then the rest of the prompt runs in the same chunks as without it, and what is
read is the same to the last bit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from agentctx.prompt import Float32, Int32
from agentctx.spec.reading import Reading


@dataclass(frozen=True, slots=True, eq=False)
class KnownPrefix:
    """`ids`: int32 (P,). `keys`, `values`: of each layer, float32 (KVH, P, D). `states`: float32 (P, hidden) by
    depth, of those that were asked for."""

    ids: Int32
    keys: tuple[Float32, ...]
    values: tuple[Float32, ...]
    states: Mapping[int, Float32] = field(default_factory=dict)

    @property
    def n_layers(self) -> int:
        return len(self.keys)

    def first(self, n_tokens: int, n_layers: int) -> KnownPrefix:
        """Of the first tokens and layers."""
        keys = tuple(k[:, :n_tokens] for k in self.keys[:n_layers])
        values = tuple(v[:, :n_tokens] for v in self.values[:n_layers])
        states = {depth: own[:n_tokens] for depth, own in self.states.items() if depth <= n_layers}
        return KnownPrefix(self.ids[:n_tokens], keys, values, states)


class PrefixStore(Protocol):
    """Prefixes of one drafter's weights."""

    def find(self, ids: Int32, n_layers: int, *, chunk: int, states: tuple[int, ...]) -> KnownPrefix | None:
        """The longest one known of the beginning of `ids`, in whole chunks; with the states of these
        depths."""

    def keep(self, prefix: KnownPrefix) -> None: ...


def keepable(reading: Reading, n_tokens: int) -> int:
    """Tokens of a prompt that may come from a prefix: whole chunks before every query and the aside."""
    ends = [group.tokens[0] for group in reading.groups if len(group.tokens)]
    if reading.aside is not None:
        ends.append(reading.aside.at)
    end = int(min([*ends, n_tokens - 1]))
    return end // reading.chunk * reading.chunk


def common(a: Int32, b: Int32, chunk: int) -> int:
    """Tokens of the common beginning, in whole chunks."""
    n = min(len(a), len(b))
    different = np.flatnonzero(a[:n] != b[:n])
    return (int(different[0]) if len(different) else n) // chunk * chunk
