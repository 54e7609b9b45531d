"""What scores the units of a packed window in a benchmark: the ranking, or a drafter."""

from __future__ import annotations

from collections.abc import Callable

from agentctx.pipeline.fit import Fitter
from agentctx.spec.protocols import Drafter
from agentctx.spec.scorers.base import Scorer
from agentctx.spec.select import Float64, rank_scores
from agentctx.spec.windows import score_in_windows

Score = Callable[[Fitter], Float64]  # float64 (U,)


def by_rank(fitter: Fitter) -> Float64:
    return rank_scores(fitter.tokenized.document)


def by_drafter(drafter: Drafter, scorer: Scorer, say: Callable[[str], None]) -> Score:
    """The drafter knows nothing of a prompt when it reads it."""

    def score(fitter: Fitter) -> Float64:
        scores, findings = score_in_windows(drafter, fitter.tokenized, scorer, None)
        for finding in findings:
            say(finding.message)
        return scorer.aggregate(fitter.tokenized, scores.values)

    return score
