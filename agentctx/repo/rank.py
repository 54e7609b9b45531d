"""Graph + evidence + text -> the chance that each chunk must be edited, with reasons; also of its units. Pure.

A *chunk* is what people would read as one thing. The chances come from a small model that was trained on bug fixes
of public repositories (`repo.ranking`, `agentctx bench train-rank`); they are rough, but calibrated: of the chunks
with a chance of 0.3, about a third were edited.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentctx.prompt import Evidence, Task
from agentctx.repo.locate import Located
from agentctx.repo.ranking.chunks import Chunk, chunks_of, owners
from agentctx.repo.ranking.features import History, Table, table
from agentctx.repo.ranking.model import RankModel, shipped
from agentctx.repo.ranking.queries import test_text
from agentctx.repo.ranking.score import Scores, score
from agentctx.repo.terms import query_terms
from agentctx.source import FileSyntax, RepoGraph

__all__ = ["Chunk", "Ranked", "chunks_of", "owners", "rank", "task_query", "test_text", "unit_scores"]

SAID = 3  # reasons that are told


@dataclass(frozen=True, slots=True)
class Ranked:
    """A chunk with its score, the chance (0 to 1) that it must be edited, and what spoke for it, strongest first.

    `units`: the chance of each of `chunk.units`. Reasons are in log odds.
    """

    chunk: Chunk
    score: float
    reasons: tuple[tuple[str, float], ...]
    units: tuple[float, ...] = ()

    @property
    def why(self) -> str:
        return ", ".join(f"{name} {value:.2f}" for name, value in self.reasons[:SAID]) or "no signal"


def rank(
    graph: RepoGraph,
    data: Mapping[str, bytes],
    task: Task,
    evidence: Evidence,
    located: Located,
    model: RankModel | None = None,
    history: History | None = None,
) -> tuple[Ranked, ...]:
    """Every chunk outside of tests, best first; ties by path and position.

    Args:
        model: The built-in one when there is none.
        history: What git knows; the model can do without.

    Raises:
        ModelUnavailable: the built-in model is damaged.
    """
    made = table(graph, data, task, evidence, located, history)
    scores = (
        score(graph, made, located, model if model is not None else shipped()) if _is_asked(made, located) else None
    )
    ranked = _ranked(made, scores)
    ranked.sort(key=lambda one: -one.score)  # stable: chunks come by path and position
    return tuple(ranked)


def _is_asked(made: Table, located: Located) -> bool:
    """Whether there is any evidence at all; without, no chunk is better than another."""
    return bool(made.queries.wanted or located.frames or located.targets)


def _ranked(made: Table, scores: Scores | None) -> list[Ranked]:
    units: list[list[int]] = [[] for _ in range(len(made.rows))]
    for number, row in enumerate(made.unit_rows.tolist()):
        units[row].append(number)
    out = []
    for row, node in enumerate(made.rows.tolist()):
        chunk = made.nodes.chunks[node]
        value = float(scores.chunk[row]) if scores is not None else 0.0
        parts = tuple(scores.units.get(unit, value) if scores is not None else 0.0 for unit in units[row])
        out.append(Ranked(chunk, value, scores.reasons.get(row, ()) if scores is not None else (), parts))
    return out


def task_query(task: Task, evidence: Evidence, tests: str) -> frozenset[str]:
    """What the task speaks of: log, failing tests (`test_text`) and request."""
    return query_terms("\n".join((evidence.text, tests, task.request)))


def unit_scores(chunk: Ranked, file: FileSyntax, data: bytes, query: frozenset[str]) -> dict[int, float]:
    """The chance of each unit of the chunk. A part of a large function never comes without its signature: its spine
    brings it."""
    return dict(zip(chunk.chunk.units, chunk.units or [chunk.score] * len(chunk.chunk.units), strict=True))
