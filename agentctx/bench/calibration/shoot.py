"""A task, packed as the product packs it, under the eyes of a drafter -> a Shot."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from agentctx.bench.calibration.shots import Shot
from agentctx.prompt import Float32, Int32, TokenizedPrompt
from agentctx.spans import LineSpan
from agentctx.spec.index import PromptIndex
from agentctx.spec.protocols import Drafter
from agentctx.spec.reading import Reading
from agentctx.spec.scorers.contrast import unit_features
from agentctx.spec.scorers.queries import code_end, evidence_groups, null_aside

Lines = frozenset[tuple[str, int]]


@dataclass(slots=True)
class _Camera:
    """A sink for rows over the first `end` tokens."""

    end: int
    found: dict[str, list[Float32]] = field(default_factory=dict)
    states: dict[int, Float32] = field(default_factory=dict)

    def rows(self, group: str, layer: int, rows: Float32) -> None:
        self.found.setdefault(group, []).append(rows[:, : self.end] * np.float32(self.end))

    def hidden(self, depth: int, states: Float32) -> None:
        self.states[depth] = states


def shoot(id: str, repo: str, tokenized: TokenizedPrompt, gold: Lines, drafter: Drafter, n_layers: int) -> Shot:
    """Raises: EngineUnavailable: the prompt exceeds the drafter's context."""
    end = code_end(tokenized)
    n_units = int(np.searchsorted(tokenized.unit_starts, end))
    groups = evidence_groups(tokenized)
    aside = null_aside(tokenized, drafter.tokenizer)
    camera = _Camera(end)
    facts = drafter.read(tokenized.ids, Reading(groups, n_layers, aside, hidden=depths_of(n_layers)), camera)
    units = tokenized.document.units[:n_units]
    starts = tokenized.unit_starts[: n_units + 1]
    return Shot(
        id=id,
        repo=repo,
        starts=starts,
        rank=np.array([unit.score for unit in units], np.float32),
        gold=np.array([_lines(unit.path, unit.lines, gold) for unit in units], np.float32),
        support=np.array(PromptIndex(tokenized.document).is_support[:n_units]),
        lines=len(gold),
        rows={name: np.stack(rows) for name, rows in camera.found.items()},
        states={depth: _means(states, starts) for depth, states in camera.states.items()},
        asked={
            depth: {group.name: states[group.tokens].mean(axis=0) for group in groups}
            for depth, states in camera.states.items()
        },
        seconds=facts.seconds,
        n_tokens=tokenized.n_tokens,
    )


def depths_of(n_layers: int) -> tuple[int, ...]:
    """The depths at which states are looked at: each quarter of what is read."""
    return tuple(sorted({max(1, n_layers * quarter // 4) for quarter in (1, 2, 3, 4)}))


def _lines(path: str | None, lines: LineSpan | None, gold: Lines) -> int:
    if path is None or lines is None:
        return 0
    return sum((path, line) in gold for line in range(lines.start, lines.end + 1))


def _means(states: Float32, starts: Int32) -> Float32:
    """float32 (U, D): the mean state of each unit."""
    return unit_features(states[: starts[-1]].T, starts, 1.0).T
