"""`agentctx bench calibrate`: a drafter and histories -> a calibration file, with figures of what it is worth."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from agentctx.bench.calibration import gather
from agentctx.bench.calibration.features import Task, task
from agentctx.bench.calibration.learn import KEEPS, Figures, learn
from agentctx.bench.written import write_text
from agentctx.errors import UsageError
from agentctx.pipeline.services import Model, Services
from agentctx.spec.scorers.calibration import Calibration, from_json

DEPTH = 2 / 3  # of the drafter: deeper heads add little, and cost a third
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Request:
    """`per_repo`: tasks of each repository; `n_layers`: None = DEPTH of the drafter; `budget`: half of the window;
    `dtype`: what the drafter was asked to be held in."""

    repos: tuple[Path, ...]
    per_repo: int
    history: int
    work: Path
    budget: int = 2048
    n_layers: int | None = None
    dtype: str = "auto"


def calibrate(model: Model, request: Request, services: Services, say: Say) -> tuple[Calibration, dict[str, Figures]]:
    """Shoots what `work` doesn't hold yet, and learns from all of it.

    Raises:
        UnavailableError: no LightGBM. UsageError: too little history, or a damaged file in `work`.
        ModelUnavailable, NotEnoughMemory, EngineUnavailable: the drafter can't be run.
    """
    info = model.info
    n_layers = request.n_layers or max(1, round(info.n_layers * DEPTH))
    if n_layers > info.n_layers:
        raise UsageError(f"--layers {n_layers}: {info.name} has {info.n_layers}")
    chosen = gather.pool(request.repos, request.history, request.per_repo, request.work, say)
    folder = request.work / f"{info.weights_digest[:16]}-{n_layers}-{request.budget}-{request.dtype}"
    tasks: dict[int, list[Task]] = {}
    counts: dict[str, int] = {}
    for shot in gather.shots(chosen, model, n_layers, request.budget, folder, services, say):
        for depth in shot.states:
            tasks.setdefault(depth, []).append(task(shot, depth))  # the shot itself is large
        counts[shot.repo] = counts.get(shot.repo, 0) + 1
    about = {"fixes": dict(sorted(counts.items())), "window": 2 * request.budget, "layers": n_layers}
    return learn(tasks, info.n_heads, info.name, info.weights_digest, about, say)


def write(found: Calibration, out: Path) -> None:
    """Raises: UsageError: the file can't be written."""
    text = found.to_json()
    from_json(text, str(out))  # what can't be read back must not be written
    write_text(text, out)


def table(figures: Mapping[str, Figures]) -> str:
    """A line for each scorer: on repositories that it didn't learn from."""
    head = f"{'recall of edited lines at keep':32} {' '.join(f'{keep:5g}' for keep in KEEPS)}    auc"
    lines = [
        f"{name:32} {' '.join(f'{one:.3f}' for one in found.recall)}  {found.auc:.3f}"
        for name, found in figures.items()
    ]
    return "\n".join([head, *lines])
