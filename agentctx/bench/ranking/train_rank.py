"""`agentctx bench train-rank`: histories -> examples -> a ranking model, with figures of what it is worth."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agentctx import vcs
from agentctx.bench.ranking.evaluate import evaluate
from agentctx.bench.ranking.examples import load, save
from agentctx.bench.ranking.mine import Example, mine
from agentctx.bench.ranking.train import Fitted, Settings, fit, to_json
from agentctx.bench.replay.table import table
from agentctx.bench.written import write_text
from agentctx.errors import UsageError
from agentctx.pipeline.services import Services
from agentctx.repo.ranking.model import from_json

EARLY = 10
BLOCK = 40  # fixes in a file
BUDGETS = (4096, 8192, 16384)

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Gathered:
    """Examples by repository, and how many fixes they are of."""

    names: tuple[str, ...]
    examples: Mapping[str, Sequence[Example]]

    @property
    def n_fixes(self) -> dict[str, int]:
        return {repo: len({one.id for one in found}) for repo, found in self.examples.items()}


def gather(repos: Sequence[Path], limit: int, work: Path, say: Say) -> Gathered:
    """The examples of at most `limit` fixes of each repository, a file for each BLOCK of them in `work`; those that
    an earlier run made are read.

    Raises:
        UsageError, GitError: a repository has no history; a file in `work` is damaged, or of another version.
    """
    names = feature_names()
    examples: dict[str, list[Example]] = {}
    for repo in repos:
        name = name_of(repo)
        if name in examples:
            raise UsageError(f"two repositories are named {name}", hint="give each of them once")
        head = vcs.commit(repo, "HEAD")
        examples[name] = []
        for start in range(0, limit, BLOCK):
            file = work / f"{name.replace('/', '+')}-{head[:12]}-{start:05}.npz"
            if not file.exists():
                save(list(mine(repo, start, start + BLOCK, say)), names, file)
            own, found = load(file)
            if own != names:
                raise UsageError(f"{file} is of a version with other features", hint="remove it, and it is made again")
            examples[name] += found
            if not found:
                break
        say(f"{name}: {len(examples[name])} examples")
    return Gathered(names, {name: found for name, found in examples.items() if found})


def name_of(repo: Path) -> str:
    """`owner/name` for a folder `owner+name/repo`, else the folder's name."""
    path = repo.resolve()
    path = path.parent if path.name in ("repo", ".git") else path
    return path.name.removesuffix(".git").replace("+", "/")


def feature_names() -> tuple[str, ...]:
    """Of the first stage, as this version makes them."""
    from agentctx.prompt import Evidence, Task
    from agentctx.repo.graph import build_graph
    from agentctx.repo.locate import Located
    from agentctx.repo.ranking.features import table as features

    return features(build_graph(()), {}, Task(), Evidence(), Located()).names


@dataclass(frozen=True, slots=True)
class Trained:
    fitted: Fitted
    model: Mapping[str, Any]

    def write(self, out: Path) -> None:
        """Raises: UsageError: the file can't be written."""
        text = json.dumps(self.model, separators=(",", ":")) + "\n"
        from_json(text, str(out))  # what can't be read back must not be written
        write_text(text, out)


def train(found: Gathered, settings: Settings, say: Say) -> Trained:
    """Fit a model on all examples.

    Raises:
        UnavailableError: no LightGBM. UsageError: too few examples.
    """
    fitted = fit(found.examples, found.names, settings, say)
    about = {
        "fixes": found.n_fixes,
        "rounds": list(settings.rounds),
        "leaves": settings.leaves,
        "rate": settings.rate,
        "dropped": list(settings.dropped),
        "tuned": settings.base is not None,
    }
    return Trained(fitted, to_json(fitted, found.names, settings, about))


def quality(found: Gathered, fitted: Fitted) -> str:
    """How well fixes are found by scores that saw no commit of their repository (of one repository: no commit near)."""
    flat = [one for repo in sorted(found.examples) for one in found.examples[repo]]
    places = []
    for one, chances in zip(flat, fitted.unseen[0], strict=True):
        order = np.argsort(-chances, kind="stable")
        places.append(np.flatnonzero(one.gold[order] > 0))
    first = [1.0 / (1 + int(place[0])) for place in places]
    early = [float((place < EARLY).mean()) for place in places]
    return (
        f"of {len(flat)} tasks: mean reciprocal rank of the first edited chunk {np.mean(first):.3f}, "
        f"edited chunks among the first {EARLY} {np.mean(early):.3f}"
    )


def replayed(
    repos: Sequence[Path], found: Gathered, fitted: Fitted, per_repo: int, services: Services, say: Say
) -> str:
    """The table of `agentctx bench replay` for fixes of these repositories, ranked by scores that saw none of them."""
    clones = {name_of(repo): repo for repo in repos}
    rows = list(evaluate(clones, found.examples, fitted.unseen, per_repo, BUDGETS, services, say))
    return table(rows, BUDGETS)
