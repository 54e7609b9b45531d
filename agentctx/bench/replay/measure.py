"""Replays bug fixes through the selection, in one process: which of the lines that the fix edited are kept.

The figures are those of a script outside that runs `agentctx select` case by case; this is the quick way.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agentctx.bench.replay.cases import Case, checked_out, mirror, needed
from agentctx.config import RunOptions
from agentctx.errors import AgentctxError
from agentctx.pipeline.refs import parse_test
from agentctx.pipeline.select import select_for
from agentctx.pipeline.services import Clock, Services
from agentctx.pipeline.understand import Understood, understand
from agentctx.pipeline.window import DEFAULT_REQUEST, SYSTEM
from agentctx.prompt import Task
from agentctx.repo.pack import Frame
from agentctx.report import RunReport

ROUNDS = 1000


@dataclass(frozen=True, slots=True)
class Row:
    """One case at one budget. `have` of `need` definitions that the fix calls are kept."""

    case: str
    repo: str
    budget: int
    recall: float = 0.0
    all: bool = False
    need: int = 0
    have: int = 0
    kept: int = 0
    seconds: float = 0.0
    error: str | None = None


def replay(
    cases: Sequence[Case],
    clones: Path,
    budgets: Sequence[int],
    services: Services,
    options: RunOptions,
    say: Callable[[str], None],
) -> Iterator[Row]:
    """The rows of every case, one per budget. A case that fails is a row with its error.

    Raises:
        UsageError: a repository has no clone.
    """
    for case in cases:
        clone = mirror(clones, case.repo)
        say(case.id)
        try:
            with checked_out(clone, case) as tree:
                understood = understand(tree, task_of(case, tree), services, Clock(), options=options)
                closure = needed(clone, case, understood.index.data) if case.language == "py" else {}
                for budget in budgets:
                    yield one_row(case, understood, closure, replace(options, budget=budget), services)
        except AgentctxError as error:
            for budget in budgets:
                yield Row(case.id, case.repo, budget, error=error.message)


def task_of(case: Case, tree: Path) -> Task:
    logs = ((case.log.name, case.log.read_bytes()),) if case.log is not None else ()
    return Task(tests=tuple(parse_test(text, tree) for text in case.failing or case.tests), logs=logs)


def one_row(
    case: Case,
    understood: Understood,
    closure: Mapping[str, Sequence[tuple[str, int]]],
    options: RunOptions,
    services: Services,
) -> Row:
    """Select within `options.budget` and compare with the gold lines."""
    start = time.monotonic()
    frame = Frame(system=SYSTEM, request=DEFAULT_REQUEST)
    report = select_for("select", understood, frame, options, services, Clock(), None).report
    kept = kept_lines(report)
    hits = len(case.gold_lines & kept)
    return Row(
        case=case.id,
        repo=case.repo,
        budget=options.budget or 0,
        recall=hits / len(case.gold_lines),
        all=hits == len(case.gold_lines),
        need=len(closure),
        have=sum(not kept.isdisjoint(places) for places in closure.values()),
        kept=report.budget.kept,
        seconds=time.monotonic() - start,
    )


def kept_lines(report: RunReport) -> frozenset[tuple[str, int]]:
    return frozenset(
        (unit.path, line)
        for unit in report.units
        if unit.kept and unit.path is not None and unit.start_line is not None and unit.end_line is not None
        for line in range(unit.start_line, unit.end_line + 1)
    )


# ---------------------------------------------------------------- figures


@dataclass(frozen=True, slots=True)
class Figures:
    """Means over cases; `interval`: 95 % of `all`, by bootstrap. A case with an error counts as nothing kept."""

    n: int
    recall: float
    all: float
    interval: tuple[float, float]
    closure: float | None
    kept: float
    over: int
    errors: int


def figures(rows: Sequence[Row]) -> Figures:
    good = [row for row in rows if row.error is None]
    need = sum(row.need for row in good)
    return Figures(
        n=len(rows),
        recall=_mean([row.recall for row in rows]),
        all=_mean([float(row.all) for row in rows]),
        interval=_interval([float(row.all) for row in rows]),
        closure=sum(row.have for row in good) / need if need else None,
        kept=_mean([float(row.kept) for row in good]),
        over=sum(row.kept > row.budget for row in good),
        errors=len(rows) - len(good),
    )


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _interval(values: Sequence[float]) -> tuple[float, float]:
    if not values:
        return 0.0, 0.0
    rng = random.Random(0)
    means = sorted(_mean(rng.choices(values, k=len(values))) for _ in range(ROUNDS))
    return means[int(0.025 * ROUNDS)], means[int(0.975 * ROUNDS)]
