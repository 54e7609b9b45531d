"""Bug fixes of histories -> shots in files, one each; a run that was cut off goes on where it stopped.

Windows are filled by a ranking that saw no commit of the same repository, as it will be for a user's repository:
with the ranking's own training fixes every window would look better than it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from agentctx.bench.calibration.shoot import shoot
from agentctx.bench.calibration.shots import Shot, load, save
from agentctx.bench.ranking.evaluate import understood_as
from agentctx.bench.ranking.fixes import Fix, fixes
from agentctx.bench.ranking.mine import Example, Given, dressed, given
from agentctx.bench.ranking.train import Settings, fit
from agentctx.bench.ranking.train_rank import gather as gather_examples
from agentctx.bench.ranking.train_rank import name_of
from agentctx.bench.ranking.trees import Trees
from agentctx.bench.replay.cases import lines_of
from agentctx.config import RunOptions
from agentctx.errors import AgentctxError
from agentctx.pipeline.services import Clock, Model, Services
from agentctx.pipeline.window import frame_of, window_of
from agentctx.repo.ranking.text import Floats
from agentctx.spec.protocols import Drafter

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Wanted:
    """One task to shoot: example `number` of a repository, with the chances that an unseen ranking gives it."""

    repo: str
    number: int
    example: Example
    chances: tuple[Floats, Floats]

    @property
    def file(self) -> str:
        return f"{self.repo.replace('/', '+')}-{self.example.id[:12]}-{self.number:04}.npz"


@dataclass(frozen=True, slots=True)
class Pool:
    """The tasks in the order in which they are shot: every beginning of it holds as many of each repository."""

    clones: Mapping[str, Path]
    wanted: tuple[Wanted, ...]
    same: Mapping[tuple[str, str], tuple[int, ...]]  # the examples of each repository and fix
    history: int


def pool(repos: Sequence[Path], history: int, per_repo: int, work: Path, say: Say) -> Pool:
    """At most `per_repo` tasks of each repository, drawn from at most `history` fixes of it.

    Raises:
        UnavailableError: no LightGBM. UsageError, GitError: see `train_rank.gather`.
    """
    found = gather_examples(repos, history, work / "examples", say)
    fitted = fit(found.examples, found.names, Settings(), say)
    drawn: list[list[Wanted]] = []
    same: dict[tuple[str, str], tuple[int, ...]] = {}
    start = 0
    for repo in sorted(found.examples):
        examples = found.examples[repo]
        for number, one in enumerate(examples):
            same[repo, one.id] = (*same.get((repo, one.id), ()), number)
        order = np.random.default_rng(1).permutation(len(examples))[:per_repo].tolist()
        chances = [(fitted.unseen[0][start + n], fitted.unseen[1][start + n]) for n in order]
        drawn.append([Wanted(repo, n, examples[n], own) for n, own in zip(order, chances, strict=True)])
        start += len(examples)
    mixed = tuple(own[n] for n in range(per_repo) for own in drawn if n < len(own))
    return Pool({name_of(repo): repo for repo in repos}, mixed, same, history)


def shots(
    chosen: Pool, model: Model, n_layers: int, budget: int, work: Path, services: Services, say: Say
) -> Iterator[Shot]:
    """The shots of a pool, those of an earlier run read from `work`. A task that can't be packed is said and left out.

    Raises:
        ModelUnavailable, NotEnoughMemory, EngineUnavailable: the drafter can't be run.
        UsageError: a file in `work` is damaged.
    """
    drafter: Drafter | None = None
    known: dict[str, dict[str, Fix]] = {}
    for number, one in enumerate(chosen.wanted, 1):
        file = work / one.file
        if file.exists():
            yield load(file)
            continue
        if one.repo not in known:
            known[one.repo] = {fix.id: fix for fix in fixes(chosen.clones[one.repo], chosen.history)}
        fix = known[one.repo][one.example.id]
        drafter = drafter if drafter is not None else model.load_drafter(n_layers)
        try:
            shot = _shot(chosen, one, fix, model, drafter, n_layers, budget, services)
        except AgentctxError as error:
            say(f"{one.repo} {fix.id[:10]} is left out: {error.message}")
            continue
        save(shot, file)
        say(f"{number} of {len(chosen.wanted)}: {one.repo} {fix.id[:10]}, {shot.seconds:.0f} s")
        yield shot


def _shot(
    chosen: Pool,
    one: Wanted,
    fix: Fix,
    model: Model,
    drafter: Drafter,
    n_layers: int,
    budget: int,
    services: Services,
) -> Shot:
    made = _task(chosen, one, fix)
    if made.evidence.text and not made.evidence.excerpt:
        made = replace(made, evidence=replace(made.evidence, excerpt=made.evidence.text))
    understood = understood_as(made, one.example, *one.chances)
    options = RunOptions(budget=budget, cache=False)
    fitter = window_of(understood, frame_of(made.task), options, None, model.tokenizer, Clock())[1]
    return shoot(fix.id, one.repo, fitter.tokenized, lines_of(fix.gold), drafter, n_layers)


def _task(chosen: Pool, one: Wanted, fix: Fix) -> Given:
    """The task that the example was made of: of a fix with two of them the first has the tests."""
    clone = chosen.clones[one.repo]
    tasks = dressed(given(Trees(clone), fix.parent, fix.id, fix.tests, {}), fix)
    place = chosen.same[one.repo, fix.id].index(one.number)
    return tasks[min(place, len(tasks) - 1)]
