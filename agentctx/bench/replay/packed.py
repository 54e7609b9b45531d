"""The window of a bug fix, packed as the product packs it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from agentctx.bench.replay.cases import Case, checked_out
from agentctx.bench.replay.measure import task_of
from agentctx.config import RunOptions
from agentctx.pipeline.fit import Fitter
from agentctx.pipeline.services import Clock, Model, Services
from agentctx.pipeline.understand import Understood, understand
from agentctx.pipeline.window import DEFAULT_REQUEST, SYSTEM, window_of
from agentctx.prompt import Tokenizer
from agentctx.repo.pack import Frame


def packed(
    case: Case,
    clone: Path,
    window: int,
    options: RunOptions,
    services: Services,
    tokenizer: Tokenizer,
    main: Model | None = None,
) -> tuple[Understood, Fitter]:
    """What is known of the case, and its window of so many tokens, half of which are the budget.

    Args:
        main: the model that will read the prompt, if there is one.

    Raises:
        GitError: the clone doesn't have the commits.
        RepoError, TaskError, UsageError, BudgetError: see `understand` and `window_of`.
    """
    options = replace(options, budget=max(1, window // 2), window=window)
    with checked_out(clone, case) as tree:
        understood = understand(tree, task_of(case, tree), services, Clock(), options=options)
    frame = Frame(system=SYSTEM, request=DEFAULT_REQUEST)
    return understood, window_of(understood, frame, options, main, tokenizer, Clock())[1]
