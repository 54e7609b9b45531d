"""The order of the stages from a task to a selection, with timings and every change of plan in the report.

scan, index -> evidence -> locate -> rank -> pack -> tokens -> [drafter] -> pins -> select -> repair -> report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import ceil
from pathlib import Path

from agentctx.config import DEFAULT_BUDGET, OnOmission, RunOptions
from agentctx.errors import BudgetError, UsageError
from agentctx.pipeline.changes import read_changes
from agentctx.pipeline.coverage import read_coverage
from agentctx.pipeline.decide import plan, refuse_tokenizers, text_plan, without_effect
from agentctx.pipeline.drafting import Scored, scores_of
from agentctx.pipeline.fit import Chosen, Fitter
from agentctx.pipeline.history import read_history
from agentctx.pipeline.index import Index, link, marked_files, read_tree
from agentctx.pipeline.rows import unit_rows
from agentctx.pipeline.services import Clock, Model, Services
from agentctx.prompt import (
    ChatFrame,
    Evidence,
    Finding,
    PromptDocument,
    Selection,
    Task,
    TokenizedPrompt,
    Tokenizer,
)
from agentctx.repo.coverage import Coverage
from agentctx.repo.history import History
from agentctx.repo.languages import comment_of
from agentctx.repo.locate import Located, locate
from agentctx.repo.logs import read_logs
from agentctx.repo.pack import Frame, Packed, pack
from agentctx.repo.packfiles import PackInput
from agentctx.repo.pin_comments import comment_pins
from agentctx.repo.rank import Ranked, rank
from agentctx.repo.ranking.model import load
from agentctx.repo.working_set import wanted_of
from agentctx.report import BudgetRow, Change, Decision, RunReport
from agentctx.report.model import dropped_names
from agentctx.spec.index import PromptIndex
from agentctx.spec.pins import collect
from agentctx.spec.select import Float64, rank_scores
from agentctx.spec.signatures import with_lines
from agentctx.spec.tokens import tokenize

SYSTEM = "You fix bugs. Read the code, the failing test and its output, then answer exactly as asked."
RECENT = 0.5  # recency from which on a file is likely to be edited again; see `repo.history`
ADVICES = 12  # budgets that are tried for one that is enough
DEFAULT_REQUEST = "Make the failing test pass."


@dataclass(frozen=True, slots=True)
class Understood:
    """The repository and the task, ranked; nothing packed yet."""

    index: Index
    task: Task
    evidence: Evidence
    located: Located
    ranking: tuple[Ranked, ...]
    history: History | None = None
    coverage: Coverage | None = None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Outcome:
    """A selection with its report. `text` is the contiguous prompt of what was kept.

    `tokenized`: the window and the signature lines that may be needed; `selection` is one of its units.
    """

    report: RunReport
    tokenized: TokenizedPrompt
    selection: Selection
    text: PromptDocument
    understood: Understood


@dataclass(frozen=True, slots=True)
class Server:
    """A server that will read the prompt as text. `context`: tokens, None where it doesn't say."""

    name: str
    context: int | None


@dataclass(frozen=True, slots=True)
class Sizes:
    limit: int
    window: int


def understand(
    root: Path,
    task: Task,
    services: Services,
    clock: Clock,
    overlay: Mapping[str, bytes] | None = None,
    *,
    options: RunOptions | None = None,
    withheld: Callable[[str], str | None] = lambda path: None,
) -> Understood:
    """Index the repository, read logs and changes, find what the task is about and rank everything else.

    `withheld`: why a file must not be in the prompt; it is skipped then.

    Raises:
        RepoError, TaskError, UsageError: see `read_tree`, `locate` and `read_changes`.
        ModelUnavailable: the ranking model can't be read.
    """
    options = options or RunOptions()
    tree = read_tree(root, services, clock, overlay, cached=options.cache).without(withheld)
    with clock.stage("evidence"):
        evidence = read_logs(task.logs, frozenset(tree.data))
        made = read_changes(root, tree, options, [ref.path for ref in task.tests], overlay)
        evidence = replace(evidence, changes=made.changes, notes=(*evidence.notes, *made.notes))
    changed = [change.path for change in made.changes]
    index = link(tree, services, clock, wanted_of(task, evidence, [*marked_files(root, tree), *changed]))
    with clock.stage("evidence"):
        marked = comment_pins(index.graph.files, index.data)
        located = locate(task, evidence, index.graph, index.skipped, marked)
    with clock.stage("history"):
        past, notes = read_history(root, index.row.head)
        evidence = replace(evidence, notes=(*evidence.notes, *notes))
        covered, findings = read_coverage(root, options.coverage, index.data, located.failing_tests)
    with clock.stage("rank"):
        model = load(Path(options.rank_model).expanduser()) if options.rank_model is not None else None
        said = (f"ranked by the model {options.rank_model}",) if options.rank_model is not None else ()
        evidence = replace(evidence, notes=(*evidence.notes, *said))
        ranking = rank(index.graph, index.data, task, evidence, located, model, past)
    return Understood(index, task, evidence, located, ranking, past, covered, findings)


def run(
    command: str,
    root: Path,
    task: Task,
    options: RunOptions,
    services: Services,
    overlay: Mapping[str, bytes] | None = None,
) -> Outcome:
    """Select for a task: what `agentctx select`, `pack` and `check` do, and the editor."""
    clock = Clock()
    understood = understand(root, task, services, clock, overlay, options=options)
    frame = frame_of(task)
    served = services.text_model(options) if options.model else None  # then --model is a server's name for it
    main = services.model(options.model, options, 0) if options.model and served is None else None
    return select_for(command, understood, frame, options, services, clock, main)


def frame_of(task: Task) -> Frame:
    """What stands around the packed code, without a chat template."""
    return Frame(system=SYSTEM, request=task.request or DEFAULT_REQUEST)


def select_for(
    command: str,
    understood: Understood,
    frame: Frame,
    options: RunOptions,
    services: Services,
    clock: Clock,
    main: Model | None,
    server: tuple[Server, Tokenizer] | None = None,
) -> Outcome:
    """Pack, score, pin, select, repair. `main` is the model that will read the prompt, if there is one.

    `server`: what reads the prompt as text in its stead, and what counts for it.
    """
    if server is not None:
        options = _for_server(options, server[0])
    drafter = _drafter(options, services)
    main = None if server is not None else main or drafter
    tokenizer = _counter(options, services, main, server)
    services.progress("packing")
    sizes = _sizes(options, main)
    packed, chosen = window_of(understood, frame, options, main, tokenizer, clock)
    document, tokenized = chosen.tokenized.document, chosen.full
    notes = [*understood.index.notes, *understood.evidence.notes, *understood.located.notes, *packed.notes]
    findings = [*(Finding("note", "note", note) for note in notes), *understood.findings]
    try:
        decided = _decide(chosen, drafter, main, services, server[0] if server is not None else None)
    except BudgetError as error:
        raise _advised(error, understood, frame, options, main, tokenizer) from error
    decision, best, extra = decided.decision, decided.chosen, decided.findings
    if options.on_omission is OnOmission.DENSE and any(o.severity == "error" for o in best.omissions.findings):
        names = ", ".join(dropped_names(best.omissions.findings)[:5])
        best = chosen.whole(rank_scores(document))
        decision = replace(decision, mode="dense", reason=f"--on-omission dense: the selection had dropped {names}")
    findings += [*without_effect(options), *_guessed(document), *best.selection.findings, *extra]
    kept = best.n_tokens
    report = RunReport(
        command=command,
        repo=understood.index.row,
        task=understood.task,
        budget=BudgetRow(best.selection.limit, sizes.window, chosen.tokenized.n_tokens, kept, tokenizer.name),
        decision=decision,
        units=unit_rows(tokenized, best.selection, chosen.pins, chosen.index),
        omissions=best.omissions,
        findings=tuple(dict.fromkeys(findings)),
        skipped=understood.index.skipped,
        timings=dict(clock.seconds),
        cache={**understood.index.cache, **decided.cache},
        failing_tests=understood.located.failing_tests,
        targets=document.facts.targets,
        targets_guessed=document.facts.targets_guessed,
    )
    return Outcome(report, tokenized, best.selection, best.text, understood)


def window_of(
    understood: Understood,
    frame: Frame,
    options: RunOptions,
    main: Model | None,
    tokenizer: Tokenizer,
    clock: Clock,
) -> tuple[Packed, Fitter]:
    """The packed window, and what selects from it. `main`: the model that will read the prompt, if there is one."""
    sizes = _sizes(options, main)
    with clock.stage("pack"):
        packed = pack(_pack_input(understood), frame, tokenizer, sizes.window, sizes.limit)
        tokenized = tokenize(packed.document, tokenizer)
    limit = sizes.limit if options.keep is None else max(1, ceil(options.keep * tokenized.n_tokens))
    with clock.stage("pins"):
        full = with_lines(tokenized, tokenizer)
        known = PromptIndex(full.document)
        pins = collect(full.document, full, index=known)
    chat = frame.chat != ChatFrame()
    return packed, Fitter(tokenized, full, tokenizer, options, limit, clock, known, pins, chat=chat)


def _advised(
    error: BudgetError,
    understood: Understood,
    frame: Frame,
    options: RunOptions,
    main: Model | None,
    tokenizer: Tokenizer,
) -> BudgetError:
    """The error with a budget that was tried: a larger one packs more, and more may have to be kept then."""
    if error.need is None:
        return error
    need = error.need
    for _ in range(ADVICES):
        window = max(options.window, need) if options.window is not None else None
        tried = replace(options, budget=need, keep=None, window=window)
        try:
            _, fitter = window_of(understood, frame, tried, main, tokenizer, Clock())
            fitter.as_text(rank_scores(fitter.tokenized.document))
        except BudgetError as again:
            if again.need is None or again.need <= need:
                break  # the window is as large as the model's context
            need = again.need
        else:
            return error.with_need(need)
    return error


def _for_server(options: RunOptions, server: Server) -> RunOptions:
    """The window within the server's context, where that is known."""
    if options.window is not None or server.context is None:
        return options
    room = max(server.context - options.max_new, options.budget or DEFAULT_BUDGET)
    return replace(options, window=min(wanted_window(options), room))


def _counter(
    options: RunOptions, services: Services, main: Model | None, server: tuple[Server, Tokenizer] | None
) -> Tokenizer:
    if server is not None:
        return server[1]
    return main.tokenizer if main is not None else services.tokenizer(options)


def _drafter(options: RunOptions, services: Services) -> Model | None:
    if options.drafter == "none":
        return None
    return services.model(options.drafter, options, wanted_window(options))


def wanted_window(options: RunOptions) -> int:
    """Tokens to pack, as far as no model's context is smaller: what was given, else twice the budget."""
    return options.window or 2 * (options.budget or DEFAULT_BUDGET)


def _sizes(options: RunOptions, main: Model | None) -> Sizes:
    """The limit and the window: the window is twice the budget, within the model's context unless given."""
    budget = options.budget or DEFAULT_BUDGET
    context = main.info.max_position if main is not None else None
    window = wanted_window(options)
    if options.window is None and context is not None:
        window = min(window, max(context - options.max_new, budget))
    limit = budget if options.keep is None else max(1, ceil(options.keep * window))
    return Sizes(min(limit, window), window)


def _pack_input(understood: Understood) -> PackInput:
    index, past = understood.index, understood.history
    return PackInput(
        graph=index.graph,
        data=index.data,
        task=understood.task,
        evidence=understood.evidence,
        located=understood.located,
        ranking=understood.ranking,
        changed=index.changed,
        comment=comment_of,
        recent=frozenset(path for path in index.data if past is not None and past.recency(path) >= RECENT),
    )


def _guessed(document: PromptDocument) -> list[Finding]:
    facts = document.facts
    if not (facts.targets and facts.targets_guessed):
        return []
    names = ", ".join(facts.targets)
    message = f"no focus, and no frame in code but tests: the best ranked definitions stand for the target ({names})"
    return [Finding("guessed-target", "note", message)]


# ---------------------------------------------------------------- choosing


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


def _decide(
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
