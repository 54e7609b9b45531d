"""What of a window is kept: by a drafter's scores or by rank, at positions or as text."""

from __future__ import annotations

from dataclasses import dataclass, replace

from agentctx.errors import UsageError
from agentctx.pipeline.decide import plan, refuse_tokenizers, text_plan
from agentctx.pipeline.drafting import Scored, scores_of
from agentctx.pipeline.fit import Chosen, Fitter
from agentctx.pipeline.services import Model, Services
from agentctx.prompt import Finding
from agentctx.report import Change, Decision
from agentctx.spec.select import Float64, rank_scores


@dataclass(frozen=True, slots=True)
class Server:
    """A server that will read the prompt as text. `context`: tokens, None where it doesn't say."""

    name: str
    context: int | None


@dataclass(frozen=True, slots=True)
class Decided:
    """The decision, the selection that follows from it, findings about the way there, and what the drafter did."""

    decision: Decision
    chosen: Chosen
    findings: tuple[Finding, ...] = ()
    scored: Scored | None = None

    @property
    def cache(self) -> dict[str, int | str]:
        """Rows of the report: what was known of the drafter's work."""
        n_known, hit = (self.scored.n_known, self.scored.hit) if self.scored is not None else (0, False)
        return {"drafter_prefix_tokens": n_known, "selection": "hit" if hit else "miss"}


def decide(
    chooser: Fitter, drafter: Model | None, main: Model | None, services: Services, server: Server | None = None
) -> Decided:
    by_rank = rank_scores(chooser.tokenized.document)
    if server is not None:
        return _decide_text(chooser, drafter, services, server)
    if drafter is None or main is None:
        if chooser.options.force_sparse:
            raise UsageError("--force-sparse needs a drafter, and there is none", hint="name one: --drafter NAME")
        decision = Decision("text", "no drafter (--drafter none): units are kept by rank, the prompt is contiguous")
        return Decided(decision, chooser.as_text(by_rank))
    options = chooser.options
    same = refuse_tokenizers(options, main.tokenizer, drafter.tokenizer)
    packed = chooser.tokenized.n_tokens
    planned = plan(
        options, main.info, drafter.info, packed=packed, kept=min(chooser.limit, packed), same_tokenizer=same
    )
    if not planned.score:
        return Decided(planned.decision, _dense(chooser, by_rank))
    scored = scores_of(chooser, planned, drafter, services, same)
    sparse = planned.decision.mode == "sparse"
    chosen = chooser.at_positions(scored.units) if sparse else chooser.as_text(scored.units)
    return _by_drafter(planned.decision, scored, chosen, by_rank, chooser)


def _decide_text(chooser: Fitter, drafter: Model | None, services: Services, server: Server) -> Decided:
    """For a server the prompt is text whoever chooses its units."""
    by_rank, options = rank_scores(chooser.tokenized.document), chooser.options
    if drafter is None or options.force_dense:
        why = "no drafter (--drafter none)" if drafter is None else "--force-dense"
        decision = Decision("text", f"{server.name} takes text; {why}: units are kept by rank")
        return Decided(decision, chooser.as_text(by_rank))
    planned = text_plan(options, drafter.info, server.name)
    same = drafter.tokenizer.digest == chooser.tokenizer.digest
    scored = scores_of(chooser, planned, drafter, services, same)
    chosen = chooser.as_text(scored.units)
    return _by_drafter(planned.decision, scored, chosen, by_rank, chooser)


def _by_drafter(decision: Decision, scored: Scored, chosen: Chosen, by_rank: Float64, chooser: Fitter) -> Decided:
    decision = replace(decision, drafter_weights=scored.form)
    return Decided(_with_change(decision, chosen, by_rank, chooser), chosen, scored.findings, scored)


def _dense(chooser: Fitter, by_rank: Float64) -> Chosen:
    """Without a drafter's scores the budget binds all the same; only `--keep` may keep the whole window."""
    if chooser.options.keep is None:
        return chooser.as_text(by_rank)
    return chooser.whole(by_rank)


def _with_change(decision: Decision, chosen: Chosen, by_rank: Float64, chooser: Fitter) -> Decision:
    """What the scores changed against ranking alone, in the same mode."""
    text = decision.mode == "text"
    alone = chooser.as_text(by_rank).selection if text else chooser.select(by_rank, chooser.limit)[0]
    document = chooser.full.document
    code = {unit.index for unit in document.units if unit.lines is not None}
    ours, theirs = chosen.selection.units & code, alone.units & code
    return replace(decision, change=Change(len(ours - theirs), len(theirs - ours), len(ours & theirs)))
