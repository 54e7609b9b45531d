"""Sparse, dense or text: the choice, its reason and its estimate. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from agentctx.config import RunOptions
from agentctx.errors import UsageError
from agentctx.prompt import ModelInfo, Tokenizer
from agentctx.report import Decision
from agentctx.spec.cost import estimate
from agentctx.spec.protocols import ScoreOptions


@dataclass(frozen=True, slots=True)
class Plan:
    """`score`: whether the drafter runs at all."""

    decision: Decision
    score: bool
    options: ScoreOptions


def default_layers(main: ModelInfo, drafter: ModelInfo) -> int | None:
    """A model that drafts for itself stops after a third of its layers: all of them would save nothing."""
    return max(1, main.n_layers // 3) if main.folder == drafter.folder else None


def plan(
    options: RunOptions, main: ModelInfo, drafter: ModelInfo, *, packed: int, kept: int, same_tokenizer: bool
) -> Plan:
    """What to do with a drafter. Without one the caller says 'text' by itself.

    Sparse only when selection and sparse prefill together are cheaper than dense prefill of the window.
    """
    layers = options.drafter_layers or default_layers(main, drafter)
    if layers is not None and layers > drafter.n_layers:
        raise UsageError(f"--drafter-layers {layers}: {drafter.name} has {drafter.n_layers}")
    score = ScoreOptions(n_layers=layers)
    shared = main.folder == drafter.folder
    cost = estimate(main, drafter, n_packed=packed, n_kept=kept, options=score, shared_weights=shared)
    said = f"selection + sparse prefill is {cost.ratio:.2f} of dense prefill"
    mode, reason, runs = "sparse", f"estimate: {said}", True
    if options.force_dense:
        mode, reason, runs = "dense", f"--force-dense ({said})", False
    elif options.force_sparse:
        reason = f"--force-sparse ({said})"
    elif not cost.pays:
        mode, reason, runs = "dense", f"estimate: {said}; the drafter was not run", False
    if runs and not same_tokenizer:
        mode, reason = "text", f"--text-level: the drafter's tokenizer differs ({reason})"
    return Plan(
        Decision(
            mode=mode,
            reason=reason,
            drafter=drafter.name if runs else None,
            drafter_layers=(layers or drafter.n_layers) if runs else None,
            scorer=("specprefill" if layers is None else "early-exit") if runs else None,
            cost_dense=float(packed),
            cost_selection=round(cost.selection / cost.dense * packed, 1),
            cost_sparse=round(cost.sparse / cost.dense * packed, 1),
        ),
        runs,
        score,
    )


def refuse_tokenizers(options: RunOptions, main: Tokenizer, drafter: Tokenizer) -> bool:
    """Whether the two tokenizers are the same; two different ones need `--text-level`.

    Raises:
        UsageError: they differ and the user did not ask for text-level selection.
    """
    if main.digest == drafter.digest:
        return True
    if not options.text_level:
        raise UsageError(
            f"{drafter.name} can't select for {main.name} at token positions: their tokenizers differ "
            f"({drafter.digest[:12]} and {main.digest[:12]})",
            hint="--text-level lets it select text instead; or take a drafter of the same family",
        )
    return False
