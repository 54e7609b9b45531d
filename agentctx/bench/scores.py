"""What scores the units of a packed window in a benchmark: the ranking, or a drafter."""

from __future__ import annotations

from collections.abc import Callable

from agentctx.bench.pair import pair_of
from agentctx.config import RunOptions
from agentctx.pipeline.fit import Fitter
from agentctx.pipeline.services import Model, Services
from agentctx.spec.protocols import Drafter
from agentctx.spec.scorers.base import Scorer
from agentctx.spec.select import Float64, rank_scores
from agentctx.spec.windows import score_in_windows

Score = Callable[[Fitter], Float64]  # float64 (U,)
Say = Callable[[str], None]


def scores_of(
    command: str, model: str, options: RunOptions, n_tokens: int, services: Services, say: Say
) -> tuple[Model, Callable[[], Score], str | None]:
    """The main model, what loads the source of the scores when it is needed, and the drafter's name (None: by rank).

    Raises as `pair_of`.
    """
    if options.drafter == "none":
        return services.model(model, options, n_tokens), lambda: by_rank, None
    main, drafter, scorer = pair_of(command, options, n_tokens, services, say)
    layers = scorer.depth(drafter.info.n_layers)
    return main, lambda: by_drafter(drafter.load_drafter(layers), scorer, say), drafter.info.name


def by_rank(fitter: Fitter) -> Float64:
    return rank_scores(fitter.tokenized.document)


def by_drafter(drafter: Drafter, scorer: Scorer, say: Say) -> Score:
    """The drafter knows nothing of a prompt when it reads it."""

    def score(fitter: Fitter) -> Float64:
        scores, findings = score_in_windows(drafter, fitter.tokenized, scorer, None)
        for finding in findings:
            say(finding.message)
        return scorer.aggregate(fitter.tokenized, scores.values)

    return score
