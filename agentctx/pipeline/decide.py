"""Sparse, dense or text: the choice, its reason and its estimate; and how the drafter's tokens are scored."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agentctx.config import RunOptions
from agentctx.errors import UsageError
from agentctx.prompt import Finding, ModelInfo, Tokenizer
from agentctx.report import Decision
from agentctx.spec.cost import estimate
from agentctx.spec.scorers import make
from agentctx.spec.scorers.base import Scorer, Shallow
from agentctx.spec.scorers.calibration import Calibration, load, shipped


@dataclass(frozen=True, slots=True)
class Plan:
    """`score`: whether the drafter runs at all. `n_layers`: as deep as it runs then."""

    decision: Decision
    score: bool
    scorer: Scorer
    n_layers: int
    identity: str  # of the scorer, with what it was learned from


CALIBRATED = "hybrid"
UNCALIBRATED = "selective-icr"
UNCALIBRATED_ITSELF = "early-exit"  # a model that drafts for itself must stop early, or it saves nothing


def scorer_of(options: RunOptions, drafter: ModelInfo, *, itself: bool = False) -> tuple[Scorer, str, str]:
    """The scorer, why it is this one, and a digest of what was learned of the drafter ('' for nothing).

    `itself`: the drafter is the main model.

    Raises:
        UsageError: no such scorer, or more layers than the drafter has.
        EngineUnavailable, ModelUnavailable: it is learned, and nothing (or something damaged) is known of the drafter.
    """
    known = calibration_of(options, drafter)
    unknown = UNCALIBRATED_ITSELF if itself else UNCALIBRATED
    name = options.scorer or (CALIBRATED if known is not None else unknown)
    scorer = make(name, known)
    if options.scorer is not None:
        why = "--scorer"
    else:
        why = "calibrated for this drafter" if known is not None else "this drafter isn't calibrated"
    layers = options.drafter_layers
    learned = known.digest_of_all if known is not None else ""
    if layers is None:
        return scorer, why, learned
    if layers > drafter.n_layers:
        raise UsageError(f"--drafter-layers {layers}: {drafter.name} has {drafter.n_layers}")
    return Shallow(scorer, layers), why, learned


def calibration_of(options: RunOptions, drafter: ModelInfo) -> Calibration | None:
    """What was learned of a drafter: the file that was given, else what ships for it.

    Raises:
        ModelUnavailable: the file is not there, damaged, or of another drafter.
    """
    digest = drafter.weights_digest
    return shipped(digest) if options.calibration is None else load(Path(options.calibration).expanduser(), digest)


def identity(scorer: str, options: RunOptions, learned: str) -> str:
    """All that a drafter's values depend on beside its weights and the prompt. `learned`: a digest."""
    place = f"{options.drafter_device} {options.drafter_dtype}"
    return f"{scorer} {options.drafter_layers} {learned} {place}"


def plan(
    options: RunOptions, main: ModelInfo, drafter: ModelInfo, *, packed: int, kept: int, same_tokenizer: bool
) -> Plan:
    """What to do with a drafter. Without one the caller says 'text' by itself.

    Sparse only when selection and sparse prefill together are cheaper than dense prefill of the window.

    Raises:
        UsageError, EngineUnavailable, ModelUnavailable: see `scorer_of`.
    """
    itself = main.folder == drafter.folder
    scorer, why, known = scorer_of(options, drafter, itself=itself)
    depth = scorer.depth(drafter.n_layers)
    cost = estimate(
        main,
        drafter,
        n_packed=packed,
        n_kept=kept,
        n_layers=depth,
        n_lookahead=scorer.n_lookahead,
        shared_weights=itself,
    )
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
    if runs:
        reason = f"{reason}; scorer {scorer.name} ({why})"
    return Plan(
        Decision(
            mode=mode,
            reason=reason,
            drafter=drafter.name if runs else None,
            drafter_layers=depth if runs else None,
            scorer=scorer.name if runs else None,
            cost_dense=float(packed),
            cost_selection=round(cost.selection / cost.dense * packed, 1),
            cost_sparse=round(cost.sparse / cost.dense * packed, 1),
        ),
        runs,
        scorer,
        depth,
        identity(scorer.name, options, known),
    )


def text_plan(options: RunOptions, drafter: ModelInfo, server: str) -> Plan:
    """What to do with a drafter whose selection goes to a server as text: what it saves there isn't known here.

    Raises:
        UsageError: it was not asked for with --text-level.
        UsageError, EngineUnavailable, ModelUnavailable: see `scorer_of`.
    """
    if not options.text_level:
        raise UsageError(
            f"{drafter.name} can't select for {server} at token positions: a server takes text",
            hint="--text-level lets it select text instead; or leave --drafter out",
        )
    scorer, why, known = scorer_of(options, drafter)
    depth = scorer.depth(drafter.n_layers)
    reason = f"{server} takes text (--text-level); scorer {scorer.name} ({why})"
    decision = Decision("text", reason, drafter=drafter.name, drafter_layers=depth, scorer=scorer.name)
    return Plan(decision, True, scorer, depth, identity(scorer.name, options, known))


OF_DRAFTERS = ("scorer", "calibration", "drafter_layers", "drafter_device", "drafter_dtype", "text_level")


def without_effect(options: RunOptions) -> tuple[Finding, ...]:
    """What was set of a drafter that isn't there: a note, since it may stand in a file of options for another time."""
    usual = RunOptions()
    idle = [name for name in OF_DRAFTERS if getattr(options, name) != getattr(usual, name)]
    if options.drafter != "none" or not idle:
        return ()
    flags = ", ".join(f"--{name.replace('_', '-')}" for name in idle)
    verb = "has" if len(idle) == 1 else "have"
    return (Finding("without-effect", "note", f"{flags} {verb} no effect without a drafter (--drafter none)"),)


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
