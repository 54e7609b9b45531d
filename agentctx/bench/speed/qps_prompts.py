"""The prompts that `agentctx bench qps` sends: windows of one repository, one per test file, whole and selected."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from agentctx.bench.scores import Score
from agentctx.bench.speed.qps_rows import DENSE, SPARSE, Prompt
from agentctx.config import RunOptions
from agentctx.errors import UsageError
from agentctx.pipeline.index import read_tree
from agentctx.pipeline.redaction import refuse_secrets
from agentctx.pipeline.secret_rules import file_reason
from agentctx.pipeline.services import Clock, Model, Services
from agentctx.pipeline.understand import understand
from agentctx.pipeline.window import frame_of, window_of
from agentctx.prompt import Task, TestRef
from agentctx.spec.engines.vllm_requests import Ask, ask_for
from agentctx.spec.protocols import SampleParams
from agentctx.spec.sparse import to_sparse


@dataclass(frozen=True, slots=True)
class Ready:
    """A prompt that can be sent: by way, what is asked."""

    prompt: Prompt
    asks: dict[str, Ask]


def groups_of(root: Path, task: Task, count: int, services: Services) -> tuple[tuple[TestRef, ...], ...]:
    """The tests of each prompt: those that the task names, by file; else the first `count` files with tests, by path.

    Raises:
        UsageError: the repository has no tests.
        RepoError: see `read_tree`.
    """
    if task.tests:
        by_file: dict[str, list[TestRef]] = {}
        for ref in task.tests:
            by_file.setdefault(ref.path, []).append(ref)
        return tuple(tuple(refs) for refs in by_file.values())
    tree = read_tree(root, services, Clock())
    found: list[tuple[TestRef, ...]] = []
    for path, entry in sorted(tree.survey.entries.items()):
        if len(found) == count:
            break
        if entry.is_test and any(symbol.is_test for symbol in tree.loader.load([path])[0].symbols):
            found.append((TestRef(path),))
    if not found:
        raise UsageError("no test files: a prompt is packed for each", hint="name them: --test PATH")
    return tuple(found)


def make_ready(
    root: Path,
    task: Task,
    groups: Sequence[tuple[TestRef, ...]],
    options: RunOptions,
    main: Model,
    score: Score,
    services: Services,
) -> list[Ready]:
    """Pack and select. `options`: with the window, the keep rate and the new tokens.

    Raises:
        UsageError: the server is another machine, and a prompt holds what looks like a secret.
        BudgetError: what must stay is more than the keep rate leaves.
        RepoError, TaskError: see `understand`.
    """
    return [_ready(root, replace(task, tests=group), options, main, score, services) for group in groups]


def _ready(root: Path, task: Task, options: RunOptions, main: Model, score: Score, services: Services) -> Ready:
    address = main.address
    leaves = address is not None and not address.is_local
    withheld = file_reason if leaves else _nothing
    understood = understand(root, task, services, Clock(), options=options, withheld=withheld)
    _, fitter = window_of(understood, replace(frame_of(task), chat=main.chat), options, main, main.tokenizer, Clock())
    tokenized = fitter.tokenized
    if address is not None and leaves:
        refuse_secrets(fitter.full.document, understood.index.data.__getitem__, address.host)
    started = time.perf_counter()
    chosen = fitter.at_positions(score(fitter))
    kept, _ = to_sparse(fitter.full, chosen.selection.units, max_position=None)
    seconds = time.perf_counter() - started
    params = SampleParams(max_new=options.max_new, past_eos=True)  # no way has less to decode
    asks = {
        DENSE: Ask(tuple(np.asarray(tokenized.ids).tolist()), {}, (), params),
        SPARSE: replace(ask_for(kept, frozenset()), params=params),
    }
    tests = tuple(ref.id for ref in task.tests)
    prompt = Prompt(tests, tokenized.n_tokens, len(kept.ids), len(kept.runs()), round(seconds, 4))
    return Ready(prompt, asks)


def _nothing(path: str) -> None:
    """Why a file must not be sent to this machine."""
