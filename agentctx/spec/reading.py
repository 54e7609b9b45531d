"""What to read out of a drafter while it prefills a prompt, and where it goes. Pure data.

Attention is read as rows: for a *group* of query tokens one row per layer and head, reduced over the group while it is
made, so that nothing of the size of tokens x tokens is ever held. An *aside* is a suffix that is laid behind the first
tokens of the prompt, read, and taken away again: the null query of in-context re-ranking (arXiv 2410.02642).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import numpy as np

from agentctx.prompt import Float32, Int32, readonly


class Reduce(StrEnum):
    """How the rows of a group become one."""

    MEAN = "mean"
    MAX = "max"  # of each row times its weight


@dataclass(frozen=True, slots=True, eq=False)
class Group:
    """Query tokens: int32 (Q,), sorted, counted from the start of the prompt (in an aside: of the aside).

    `weights`: float32 (Q,), which the rows are multiplied with; None = ones. `raw`: scaled products instead of their
    softmax, 0 for tokens that a query doesn't see. `local`: also of layers whose window is shorter than the prompt;
    otherwise the rows of these are 0, since they see the prompt's end only and would vote for it.
    """

    name: str
    tokens: Int32
    reduce: Reduce = Reduce.MEAN
    weights: Float32 | None = None
    raw: bool = False
    local: bool = False

    def __post_init__(self) -> None:
        if self.tokens.ndim != 1 or (np.diff(self.tokens) <= 0).any():
            raise ValueError(f"the tokens of the group {self.name} are not in order")
        if self.weights is not None and self.weights.shape != self.tokens.shape:
            raise ValueError(f"the group {self.name} has {len(self.tokens)} tokens and {self.weights.shape} weights")


@dataclass(frozen=True, slots=True, eq=False)
class Aside:
    """`ids`, laid behind the first `at` tokens of the prompt. Its rows are over those tokens alone."""

    at: int
    ids: Int32
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """`n_layers`: how deep the drafter runs, None = all of it.

    `n_lookahead`: greedy queries after the prompt; the first is that of the last prompt token, step i gives the rows
    of the group `ahead(i)`, softmax over the prompt's tokens only. `hidden`: also the states after these layers (1 is
    the first), sorted.
    """

    groups: tuple[Group, ...] = ()
    n_layers: int | None = None
    aside: Aside | None = None
    n_lookahead: int = 0
    hidden: tuple[int, ...] = ()
    chunk: int = 256  # tokens per forward; a prefix that is known is cut to whole ones

    def __post_init__(self) -> None:
        if self.hidden and self.n_lookahead:
            raise ValueError("states of the last prompt token are not read where it begins the look-ahead")

    @property
    def stops(self) -> bool:
        """Whether nothing is needed behind the last layer's attention (but for states that are asked for)."""
        return not self.n_lookahead

    @property
    def spare(self) -> int:
        """Tokens that may lie behind those of the prompt."""
        return max(self.n_lookahead - 1, len(self.aside.ids) if self.aside is not None else 0, 0)

    def room(self, n_tokens: int) -> int:
        """Tokens that the drafter holds at most, for a prompt of `n_tokens`."""
        aside = self.aside.at + len(self.aside.ids) if self.aside is not None else 0
        return max(n_tokens + max(self.n_lookahead - 1, 0), aside)


_AHEAD = "ahead."


def ahead(step: int) -> str:
    """The name of the group of a look-ahead step."""
    return f"{_AHEAD}{step}"


def is_ahead(group: str) -> bool:
    """Whether a group is that of a look-ahead step."""
    return group.startswith(_AHEAD)


class Sink(Protocol):
    """Takes what is read."""

    def rows(self, group: str, layer: int, rows: Float32) -> None:
        """float32 (H, T), 0 for tokens that the queries don't see. Each group and layer comes once."""

    def hidden(self, depth: int, states: Float32) -> None:
        """float32 (T, D): the states of the prompt's tokens after so many layers, under the model's final norm."""


@dataclass(frozen=True, slots=True)
class ReadFacts:
    """`n_steps`: look-ahead steps that ran (an end of text ends them). `n_known`: tokens known from a run before.
    `n_blind`: layers whose window is shorter than the prompt; their rows are 0 (see `Group.local`)."""

    n_layers: int
    n_steps: int
    seconds: float
    n_known: int = 0
    n_blind: int = 0


@dataclass(slots=True)
class Rows:
    """A sink that keeps everything: for tests, and for several scorers on the same capture."""

    found: dict[str, list[Float32]] = field(default_factory=dict)  # by group: (H, T) of each layer
    states: dict[int, Float32] = field(default_factory=dict)  # by depth

    def rows(self, group: str, layer: int, rows: Float32) -> None:
        own = self.found.setdefault(group, [])
        if len(own) != layer:
            raise ValueError(f"layer {layer} of {group} came out of order")
        own.append(rows)

    def hidden(self, depth: int, states: Float32) -> None:
        self.states[depth] = states


def tokens(values: Sequence[int] | Int32) -> Int32:
    return readonly(np.asarray(values, dtype=np.int32))
