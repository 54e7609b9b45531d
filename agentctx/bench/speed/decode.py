"""What `agentctx bench decode` measures: whether a model writes slower after a sparse prefill than after a dense one.

Both prompts hold the same tokens: at their original positions, and without gaps, as a dense prompt of that length. So
whatever differs comes from the gaps. Pairs are interleaved, and each prefills both anew; which comes first alternates.
Answers don't end where the model would end them: all are of one length.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from agentctx.bench.bootstrap import interval
from agentctx.bench.machine import machine
from agentctx.bench.scores import scores_of
from agentctx.bench.speed.ttft import Request
from agentctx.errors import EngineUnavailable, UsageError
from agentctx.pipeline.services import Clock, Model, Services
from agentctx.pipeline.understand import understand
from agentctx.pipeline.window import frame_of, window_of
from agentctx.prompt import SparsePrompt, readonly
from agentctx.spec.protocols import Engine, SampleParams
from agentctx.spec.sparse import to_sparse

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Pair:
    """Seconds by token of the answer, after each kind of prefill."""

    sparse_s: float
    dense_s: float

    @property
    def ratio(self) -> float:
        return self.sparse_s / self.dense_s


@dataclass(frozen=True, slots=True)
class Row:
    """Medians of seconds by token. `ratio`: sparse / dense, the mean over pairs, with its 95 % bootstrap interval."""

    engine: str
    model: str
    tokens: int
    keep: float
    kept: int
    pairs: int
    written: int
    sparse_s: float
    dense_s: float
    ratio: float
    low: float
    high: float


def measure(request: Request, answer: int, services: Services, say: Say) -> list[Row]:
    """`request.repeats` pairs for every length and keep rate; `answer`: tokens that are written.

    Raises:
        UsageError: no model, or two tokenizers.
        ModelUnavailable, NotEnoughMemory, EngineUnavailable: a model can't be loaded, or can't read or write so much.
        BudgetError: what must stay is more than a keep rate leaves.
        RepoError, TaskError: see `pipeline.understand.understand`.
    """
    options, most = request.options, max(request.tokens)
    if options.model is None:
        raise UsageError("bench decode needs --model")
    main, load_score, _ = scores_of("bench decode", options.model, options, most, services, say)
    engine, score = main.load_engine(), load_score()
    understood = understand(request.root, request.task, services, Clock(), options=options)
    found = []
    for tokens in request.tokens:
        for keep in request.keeps:
            own = replace(options, window=tokens, keep=keep, budget=None)
            fitter = window_of(understood, frame_of(request.task), own, main, main.tokenizer, Clock())[1]
            units = fitter.at_positions(score(fitter)).selection.units
            prompt, compacted = to_sparse(fitter.full, units, max_position=engine.caps.max_position - answer)
            for finding in compacted:
                say(finding.message)
            pairs = list(_pairs(engine, prompt, request.repeats, answer, say))
            found.append(_row(main, engine, fitter.tokenized.n_tokens, keep, len(prompt.ids), answer, pairs))
    return found


def without_gaps(prompt: SparsePrompt) -> SparsePrompt:
    n = len(prompt.ids)
    return SparsePrompt(prompt.ids, readonly(np.arange(n, dtype=np.int32)), n)


def _pairs(engine: Engine, sparse: SparsePrompt, n: int, answer: int, say: Say) -> Iterator[Pair]:
    ways = (sparse, without_gaps(sparse))
    _written(engine, ways[1], answer)  # warm-up
    for turn in range(n):
        order = (0, 1) if turn % 2 == 0 else (1, 0)
        found = {way: _written(engine, ways[way], answer) for way in order}
        pair = Pair(found[0], found[1])
        say(f"{len(sparse.ids)} tokens kept, pair {turn + 1} of {n}: sparse / dense {pair.ratio:.3f}")
        yield pair


def _written(engine: Engine, prompt: SparsePrompt, answer: int) -> float:
    """Seconds by token of an answer.

    Raises EngineUnavailable: the context has no room for it.
    """
    session = engine.prefill(prompt)
    started = time.perf_counter()
    n_tokens = session.sample(1, SampleParams(max_new=answer, past_eos=True))[0].n_tokens
    seconds = time.perf_counter() - started
    if n_tokens < answer:
        raise EngineUnavailable(
            f"{engine.info.name} has room for {n_tokens} of {answer} tokens behind {prompt.total} positions",
            hint="lower --tokens or --answer",
        )
    return seconds / n_tokens


def _row(main: Model, engine: Engine, tokens: int, keep: float, kept: int, answer: int, pairs: Sequence[Pair]) -> Row:
    mean, low, high = interval([pair.ratio for pair in pairs])
    return Row(
        engine=main.engine.engine,
        model=engine.info.name,
        tokens=tokens,
        keep=keep,
        kept=kept,
        pairs=len(pairs),
        written=answer,
        sparse_s=round(statistics.median(pair.sparse_s for pair in pairs), 6),
        dense_s=round(statistics.median(pair.dense_s for pair in pairs), 6),
        ratio=round(mean, 4),
        low=round(low, 4),
        high=round(high, 4),
    )


def as_json(rows: Sequence[Row]) -> dict[str, Any]:
    return {"rows": [asdict(row) for row in rows], "machine": machine()}


def table(rows: Sequence[Row]) -> str:
    lines = ["  tokens  keep  kept  pairs  written  sparse ms  dense ms  ratio  95 %"]
    lines += [
        f"  {row.tokens:6}  {row.keep:<4g}  {row.kept:4}  {row.pairs:5}  {row.written:7}  {row.sparse_s * 1e3:9.2f}  "
        f"{row.dense_s * 1e3:8.2f}  {row.ratio:5.3f}  [{row.low:.3f}, {row.high:.3f}]"
        for row in rows
    ]
    return "\n".join([*lines, "by token of the answer; dense: the same tokens without gaps"])
