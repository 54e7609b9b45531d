"""A main model and the drafter that selects for it, as a benchmark is asked for them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from agentctx.config import RunOptions
from agentctx.errors import UsageError
from agentctx.pipeline.decide import refuse_tokenizers, scorer_of
from agentctx.pipeline.services import Model, Services
from agentctx.spec.scorers.base import Scorer


def pair_of(
    command: str, options: RunOptions, n_tokens: int, services: Services, say: Callable[[str], None]
) -> tuple[Model, Model, Scorer]:
    """The main model, the drafter, and the scorer that the drafter is asked with; nothing is loaded yet.

    Raises:
        UsageError: no model, no drafter, or two tokenizers.
        ModelUnavailable, EngineUnavailable: a model, or what was learned of the drafter, is not there.
    """
    if options.model is None or options.drafter == "none":
        raise UsageError(f"{command} needs --model and --drafter")
    main, drafter = (services.model(name, options, n_tokens) for name in (options.model, options.drafter))
    refuse_tokenizers(replace(options, text_level=False), main.tokenizer, drafter.tokenizer)
    scorer, why, _ = scorer_of(options, drafter.info, itself=main.info.folder == drafter.info.folder)
    layers = scorer.depth(drafter.info.n_layers)
    say(f"scorer {scorer.name} ({why}), {layers} of {drafter.info.n_layers} layers of {drafter.info.name}")
    return main, drafter, scorer
