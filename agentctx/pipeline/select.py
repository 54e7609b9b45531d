"""The order of the stages from a task to a selection, with timings and every change of plan in the report.

scan, index -> evidence -> locate -> rank -> pack -> tokens -> [drafter] -> pins -> select -> repair -> report.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from agentctx.config import DEFAULT_BUDGET, OnOmission, RunOptions
from agentctx.errors import BudgetError
from agentctx.pipeline.choosing import Server, decide
from agentctx.pipeline.decide import without_effect
from agentctx.pipeline.rows import unit_rows
from agentctx.pipeline.services import Clock, Model, Services
from agentctx.pipeline.understand import Understood, understand
from agentctx.pipeline.window import advised, frame_of, sizes_of, wanted_window, window_of
from agentctx.prompt import Finding, PromptDocument, Section, Selection, Task, TokenizedPrompt, Tokenizer
from agentctx.repo.pack import Frame
from agentctx.report import BudgetRow, RunReport
from agentctx.report.model import dropped_names
from agentctx.spec.select import rank_scores


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
    sizes = sizes_of(options, main)
    packed, chosen = window_of(understood, frame, options, main, tokenizer, clock)
    document, tokenized = chosen.tokenized.document, chosen.full
    notes = [*understood.index.notes, *understood.evidence.notes, *understood.located.notes, *packed.notes]
    findings = [*(Finding("note", "note", note) for note in notes), *understood.findings]
    try:
        decided = decide(chosen, drafter, main, services, server[0] if server is not None else None)
    except BudgetError as error:
        raise advised(error, understood, frame, options, main, tokenizer) from error
    decision, best, extra = decided.decision, decided.chosen, decided.findings
    if options.on_omission is OnOmission.DENSE and any(o.severity == "error" for o in best.omissions.findings):
        names = ", ".join(dropped_names(best.omissions.findings)[:5])
        best = chosen.whole(rank_scores(document))
        decision = replace(decision, mode="dense", reason=f"--on-omission dense: the selection had dropped {names}")
    findings += [*without_effect(options), *_guessed(document), *best.selection.findings, *extra]
    kept, lines = best.n_tokens, _line_tokens(tokenized, best.selection)
    report = RunReport(
        command=command,
        repo=understood.index.row,
        task=understood.task,
        budget=BudgetRow(best.selection.limit, sizes.window, chosen.tokenized.n_tokens + lines, kept, tokenizer.name),
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


def _line_tokens(tokenized: TokenizedPrompt, selection: Selection) -> int:
    """Tokens of the signature lines that are kept, with their headings: they are no part of the window."""
    units = tokenized.document.units
    lines = [unit for unit in selection.units if units[unit].section is Section.SIGNATURES]
    return sum(len(tokenized.unit_tokens(unit)) for unit in lines)


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


def _guessed(document: PromptDocument) -> list[Finding]:
    facts = document.facts
    if not (facts.targets and facts.targets_guessed):
        return []
    names = ", ".join(facts.targets)
    message = f"no focus, and no frame in code but tests: the best ranked definitions stand for the target ({names})"
    return [Finding("guessed-target", "note", message)]
