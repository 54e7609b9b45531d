"""What a ranking is worth on commits of repositories that it didn't learn from, through the real packer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from agentctx.bench.ranking.fixes import Fix, fixes
from agentctx.bench.ranking.mine import Example, Given, dressed, given
from agentctx.bench.ranking.trees import Trees
from agentctx.bench.replay.cases import Case
from agentctx.bench.replay.measure import Row, one_row
from agentctx.config import RunOptions
from agentctx.errors import AgentctxError
from agentctx.pipeline.index import Index
from agentctx.pipeline.services import Services
from agentctx.pipeline.understand import Understood
from agentctx.repo.rank import Ranked
from agentctx.repo.ranking.nodes import build_nodes
from agentctx.repo.ranking.text import Floats
from agentctx.report import RepoRow
from agentctx.source import FileSyntax


def evaluate(
    clones: Mapping[str, Path],
    examples: Mapping[str, Sequence[Example]],
    unseen: Sequence[Sequence[Floats]],
    per_repo: int,
    budgets: Sequence[int],
    services: Services,
    say: Callable[[str], None],
) -> Iterator[Row]:
    """Rows of at most `per_repo` fixes of each repository, spread over its examples.

    `unseen`: of both stages, in the order of sorted repositories and their examples.
    """
    start = 0
    for repo in sorted(examples):
        first: dict[str, int] = {}
        for number, one in enumerate(examples[repo]):
            first.setdefault(one.id, start + number)  # the first of a fix is the one with its tests
        start += len(examples[repo])
        wanted = sorted(first)[:: max(1, len(first) // per_repo)][:per_repo]
        yield from _of_repository(repo, clones[repo], wanted, first, examples, unseen, budgets, services, say)


def _of_repository(
    repo: str,
    clone: Path,
    wanted: Sequence[str],
    place: Mapping[str, int],
    examples: Mapping[str, Sequence[Example]],
    unseen: Sequence[Sequence[Floats]],
    budgets: Sequence[int],
    services: Services,
    say: Callable[[str], None],
) -> Iterator[Row]:
    flat = [one for name in sorted(examples) for one in examples[name]]
    trees = Trees(clone)
    memory: dict[str, FileSyntax] = {}
    for fix in fixes(clone, len(examples[repo])):
        if fix.id not in wanted:
            continue
        say(f"{repo} {fix.id[:10]}")
        at = place[fix.id]
        try:
            made = dressed(given(trees, fix.parent, fix.id, fix.tests, memory), fix)[0]
            understood = understood_as(made, flat[at], unseen[0][at], unseen[1][at])
            case = _case(repo, fix)
            rows = [one_row(case, understood, {}, RunOptions(budget=b, cache=False), services) for b in budgets]
        except AgentctxError as error:
            rows = [Row(fix.id, repo, budget, error=error.message) for budget in budgets]
        yield from (replace(row, case=fix.id) for row in rows)


def _case(repo: str, fix: Fix) -> Case:
    return Case(fix.id, repo, "", fix.parent, fix.id, tuple(path for path, _ in fix.tests), (), fix.gold)


def understood_as(made: Given, example: Example, chances: Floats, of_units: Floats) -> Understood:
    """As the pipeline makes it, with these chances of the example's candidates."""
    chunks = build_nodes(made.graph, made.data).chunks
    ranking = []
    for row, node in enumerate(example.nodes.tolist()):
        parts = tuple(of_units[np.flatnonzero(example.unit_of == row)].tolist())
        ranking.append(Ranked(chunks[node], float(chances[row]), (), parts))
    ranking.sort(key=lambda one: -one.score)
    index = Index(
        row=RepoRow("", None, dirty=True),
        graph=made.graph,
        data=made.data,
        skipped=(),
        changed=frozenset(change.path for change in made.evidence.changes),
        cache={},
        notes=(),
    )
    return Understood(index, made.task, made.evidence, made.located, tuple(ranking))
