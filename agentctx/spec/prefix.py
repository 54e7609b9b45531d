"""Keys and values of the beginning of a prompt, which a drafter had from a run before. Pure data.

A beginning is cut to whole chunks: then the rest of the prompt runs in the same chunks as without it, and what is
read is the same to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from agentctx.prompt import Float32, Int32
from agentctx.spec.reading import Reading


@dataclass(frozen=True, slots=True, eq=False)
class KnownPrefix:
    """`ids`: int32 (P,). `keys`, `values`: of each layer, float32 (KVH, P, D). `states`: float32 (P, hidden) after the
    last of these layers, None where they weren't asked for."""

    ids: Int32
    keys: tuple[Float32, ...]
    values: tuple[Float32, ...]
    states: Float32 | None = None

    @property
    def n_layers(self) -> int:
        return len(self.keys)

    def first(self, n_tokens: int, n_layers: int) -> KnownPrefix:
        """Of the first tokens and layers."""
        keys = tuple(k[:, :n_tokens] for k in self.keys[:n_layers])
        values = tuple(v[:, :n_tokens] for v in self.values[:n_layers])
        states = self.states[:n_tokens] if self.states is not None and n_layers == self.n_layers else None
        return KnownPrefix(self.ids[:n_tokens], keys, values, states)


class PrefixStore(Protocol):
    """Prefixes of one drafter's weights."""

    def find(self, ids: Int32, n_layers: int, *, chunk: int, states: bool) -> KnownPrefix | None:
        """The longest one known of the beginning of `ids`, in whole chunks; with states if those are needed."""

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
