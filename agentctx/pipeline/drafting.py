"""A drafter's scores of a packed prompt: from the cache where it knows them, else from the model."""

from __future__ import annotations

from dataclasses import dataclass

from agentctx.pipeline.decide import Plan
from agentctx.pipeline.fit import Fitter
from agentctx.pipeline.prefixes import FOLDER, DrafterStore, memo_key
from agentctx.pipeline.services import Model, Services
from agentctx.prompt import Finding
from agentctx.spec.select import Float64
from agentctx.spec.tokens import tokenize
from agentctx.spec.windows import score_in_windows, windows_finding


@dataclass(frozen=True, slots=True)
class Scored:
    """A drafter's scores, float64 (U,). `n_known`: tokens that it had read before; `hit`: all of it was known.

    `form`: what the drafter was held in, and where, when it computed them.
    """

    units: Float64
    findings: tuple[Finding, ...]
    n_known: int
    hit: bool
    form: str


def scores_of(chooser: Fitter, planned: Plan, model: Model, services: Services, same: bool) -> Scored:
    """Unit scores by the drafter, read with its own tokenizer when that differs; from the cache where it has them."""
    tokenized = chooser.tokenized if same else tokenize(chooser.tokenized.document, model.tokenizer)
    store, key = None, ""
    if chooser.options.cache and model.info.weights_digest:
        folder = services.cache_dir / FOLDER if services.cache_dir is not None else None
        store = DrafterStore(model.info.weights_digest, folder, services.prefixes)
        key = memo_key(tokenized, model.info, planned.identity, planned.n_layers)
        known = store.values(key)
        if known is not None and len(known[0]) == tokenized.n_tokens:
            said = windows_finding(model.info, model.tokenizer, tokenized, planned.scorer)
            return Scored(planned.scorer.aggregate(tokenized, known[0]), tuple(said), 0, True, known[1])
    services.progress(f"loading the drafter {model.info.name}")
    drafter = model.load_drafter(planned.n_layers)
    chooser.clock.seconds["load_drafter"] = drafter.load_seconds
    services.progress(f"scoring {tokenized.n_tokens} tokens with {model.info.name}")
    if store is not None:
        store.form = drafter.form
    with chooser.clock.stage("score"):
        scores, findings = score_in_windows(drafter, tokenized, planned.scorer, store)
    if store is not None:
        store.keep_values(key, scores.values)
        findings = (*findings, *(Finding("cache", "note", problem) for problem in dict.fromkeys(store.problems)))
    return Scored(planned.scorer.aggregate(tokenized, scores.values), findings, scores.n_known, False, drafter.form)
