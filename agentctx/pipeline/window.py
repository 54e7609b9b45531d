"""The packed window of a task, how large it is, and what selects from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil

from agentctx.config import DEFAULT_BUDGET, RunOptions
from agentctx.errors import BudgetError
from agentctx.pipeline.fit import Fitter
from agentctx.pipeline.services import Clock, Model
from agentctx.pipeline.understand import Understood
from agentctx.prompt import ChatFrame, Task, Tokenizer
from agentctx.repo.languages import comment_of
from agentctx.repo.pack import Frame, Packed, pack
from agentctx.repo.packfiles import PackInput
from agentctx.spec.index import PromptIndex
from agentctx.spec.pins import collect
from agentctx.spec.select import rank_scores
from agentctx.spec.signatures import with_lines
from agentctx.spec.tokens import tokenize

SYSTEM = "You fix bugs. Read the code, the failing test and its output, then answer exactly as asked."
DEFAULT_REQUEST = "Make the failing test pass."
RECENT = 0.5  # recency from which on a file is likely to be edited again; see `repo.history`
ADVICES = 12  # budgets that are tried for one that is enough


@dataclass(frozen=True, slots=True)
class Sizes:
    limit: int
    window: int


def frame_of(task: Task) -> Frame:
    """What stands around the packed code, without a chat template."""
    return Frame(system=SYSTEM, request=task.request or DEFAULT_REQUEST)


def window_of(
    understood: Understood,
    frame: Frame,
    options: RunOptions,
    main: Model | None,
    tokenizer: Tokenizer,
    clock: Clock,
) -> tuple[Packed, Fitter]:
    """The packed window, and what selects from it. `main`: the model that will read the prompt, if there is one."""
    sizes = sizes_of(options, main)
    with clock.stage("pack"):
        packed = pack(pack_input(understood), frame, tokenizer, sizes.window, sizes.limit)
        tokenized = tokenize(packed.document, tokenizer)
    limit = sizes.limit if options.keep is None else max(1, ceil(options.keep * tokenized.n_tokens))
    with clock.stage("pins"):
        full = with_lines(tokenized, tokenizer)
        known = PromptIndex(full.document)
        pins = collect(full.document, full, index=known)
    chat = frame.chat != ChatFrame()
    return packed, Fitter(tokenized, full, tokenizer, options, limit, clock, known, pins, chat=chat)


def advised(
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


def wanted_window(options: RunOptions) -> int:
    """Tokens to pack, as far as no model's context is smaller: what was given, else twice the budget."""
    return options.window or 2 * (options.budget or DEFAULT_BUDGET)


def sizes_of(options: RunOptions, main: Model | None) -> Sizes:
    """The limit and the window: the window is twice the budget, within the model's context unless given."""
    budget = options.budget or DEFAULT_BUDGET
    context = main.info.max_position if main is not None else None
    window = wanted_window(options)
    if options.window is None and context is not None:
        window = min(window, max(context - options.max_new, budget))
    limit = budget if options.keep is None else max(1, ceil(options.keep * window))
    return Sizes(min(limit, window), window)


def pack_input(understood: Understood) -> PackInput:
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
