"""What `agentctx bench ttft` measures: the time to the first token with selection, as a share of dense prefill.

Both models are loaded before anything is timed, and have read a short prompt. What is packed, and the ranking that it
is packed by, is the same for both ways and isn't timed. Selection is all that comes then: the drafter's scores, the
choice within the budget, repair and omission check. The main model's prefix cache is empty in both.

With random weights of given shapes (`random_pair`) nothing is loaded from disk, and what is kept means nothing.

`cold`: the drafter knows nothing of the prompt. `repeat`: it has read the prompt before a line was added to the code
file that is packed last, and has that prefix in memory (DESIGN 6).
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from agentctx.bench.machine import machine
from agentctx.bench.pair import pair_of
from agentctx.bench.speed.random_pair import RandomPair, as_facts, random_pair_of, said
from agentctx.config import RunOptions
from agentctx.errors import UsageError
from agentctx.pipeline.fit import Fitter
from agentctx.pipeline.prefixes import DrafterStore, PrefixMemory
from agentctx.pipeline.services import Clock, Model, Services
from agentctx.pipeline.understand import understand
from agentctx.pipeline.window import frame_of, window_of
from agentctx.prompt import PromptDocument, Section, SparsePrompt, Task
from agentctx.repo.languages import comment_of
from agentctx.spec.protocols import Drafter, Engine
from agentctx.spec.scorers.base import Scorer
from agentctx.spec.sparse import dense, to_sparse
from agentctx.spec.windows import score_in_windows

COLD, REPEAT = "cold", "repeat"
WARM_UP = 64  # tokens
ENOUGH = 0.9  # of the tokens that are asked for: a window is cut at whole units
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Row:
    """Medians over the repeats. `spread`: of the ratio, lowest and highest. `known`: tokens that the drafter knew."""

    engine: str
    drafter: str
    model: str
    tokens: int
    keep: float
    state: str
    dense_s: float
    selection_s: float
    prefill_s: float
    ttft_s: float
    ratio: float
    spread: tuple[float, float]
    kept: int
    known: int
    layers: int


@dataclass(frozen=True, slots=True)
class Request:
    root: Path
    task: Task
    options: RunOptions  # model, drafter, engine, scorer, calibration
    tokens: tuple[int, ...]
    keeps: tuple[float, ...]
    repeats: int
    warm_up: bool = False  # every length once before it is timed
    random: RandomPair | None = None  # instead of the options' models


@dataclass(frozen=True, slots=True)
class Measured:
    """`load_s`: seconds that the main model and the drafter took to load, by name. `random`: what there is to say of
    random weights."""

    rows: tuple[Row, ...]
    load_s: dict[str, float]
    random: dict[str, Any] | None = None
    weights: dict[str, str | None] = field(default_factory=dict)  # of both: what they are held in, and where


@dataclass(frozen=True, slots=True)
class _Loaded:
    engine: Engine
    drafter: Drafter
    scorer: Scorer
    main: Model
    digest: str  # of the drafter's weights


@dataclass(frozen=True, slots=True)
class _Timed:
    dense_s: float
    selection_s: float
    prefill_s: float
    kept: int
    known: int

    @property
    def ttft_s(self) -> float:
        return self.selection_s + self.prefill_s

    @property
    def ratio(self) -> float:
        return self.ttft_s / self.dense_s


def measure(request: Request, services: Services, say: Say) -> Measured:
    """Loads both models, then times every length and keep rate.

    Raises:
        UsageError: no model, no drafter, or two tokenizers.
        ModelUnavailable, NotEnoughMemory, EngineUnavailable: a model can't be loaded or can't read so much.
        BudgetError: what must stay is more than a keep rate leaves.
        RepoError, TaskError: see `understand`.
    """
    loaded = _load(request, services, say)
    rows = tuple(row for tokens in request.tokens for row in _of_length(request, tokens, loaded, services, say))
    load_s = {"main": loaded.engine.load_seconds, "drafter": loaded.drafter.load_seconds}
    facts = as_facts(request.random, loaded.scorer, request.options) if request.random is not None else None
    forms = {"main": loaded.engine.form, "drafter": loaded.drafter.form}
    return Measured(rows, {name: round(seconds, 2) for name, seconds in load_s.items()}, facts, forms)


def _load(request: Request, services: Services, say: Say) -> _Loaded:
    most = max(request.tokens)
    if request.random is not None:
        main, drafter, scorer = random_pair_of(request.random, request.options, most, say)
    else:
        main, drafter, scorer = pair_of("bench ttft", request.options, most, services, say)
    layers = scorer.depth(drafter.info.n_layers)
    made = _Loaded(main.load_engine(), drafter.load_drafter(layers), scorer, main, drafter.info.weights_digest)
    ids = np.asarray(made.engine.tokenizer.encode("x = 1\n" * WARM_UP)[0][:WARM_UP], np.int32)
    made.engine.prefill(SparsePrompt(ids, np.arange(len(ids), dtype=np.int32), len(ids)))
    return made


def _of_length(request: Request, tokens: int, loaded: _Loaded, services: Services, say: Say) -> Iterator[Row]:
    found: dict[tuple[float, str], list[_Timed]] = {}
    packed = 0
    for turn in range(-1 if request.warm_up else 0, request.repeats):
        dense_s = 0.0
        for keep in request.keeps:
            options = replace(request.options, window=tokens, keep=keep, budget=None)
            first = _window(request, options, services, loaded.main, None)
            if not dense_s:
                dense_s = _seconds(lambda made=first: loaded.engine.prefill(dense(made.tokenized)))  # type: ignore[misc]
                packed = first.tokenized.n_tokens
                if packed < tokens * ENOUGH:
                    say(f"warning: the repository gives {packed} tokens only, {tokens} were asked for")
                which = f"{turn + 1} of {request.repeats}" if turn >= 0 else "to warm up"
                say(f"{packed} tokens, {which}: dense {dense_s:.1f} s")
            store = DrafterStore(loaded.digest, None, PrefixMemory(), form=loaded.drafter.form)
            edited = _with_a_line(first.tokenized.document, request.root)
            second = _window(request, options, services, loaded.main, edited)
            for state, fitter in ((COLD, first), (REPEAT, second)):
                timed = _timed(fitter, loaded, store, dense_s)
                if turn >= 0:
                    found.setdefault((keep, state), []).append(timed)
                say(f"  keep {keep}, {state}: selection {timed.selection_s:.1f} s, prefill {timed.prefill_s:.1f} s")
    for (keep, state), own in sorted(found.items()):
        yield _row(request, loaded, packed, keep, state, own)


def _row(request: Request, loaded: _Loaded, tokens: int, keep: float, state: str, own: Sequence[_Timed]) -> Row:
    info = loaded.drafter.info
    ratios = [one.ratio for one in own]
    return Row(
        engine=loaded.main.engine.engine,
        drafter=info.name,
        model=loaded.engine.info.name,
        tokens=tokens,
        keep=keep,
        state=state,
        dense_s=_median(one.dense_s for one in own),
        selection_s=_median(one.selection_s for one in own),
        prefill_s=_median(one.prefill_s for one in own),
        ttft_s=_median(one.ttft_s for one in own),
        ratio=round(statistics.median(ratios), 4),
        spread=(round(min(ratios), 4), round(max(ratios), 4)),
        kept=own[0].kept,
        known=own[0].known,
        layers=loaded.scorer.depth(info.whole_layers),
    )


def _median(values: Iterator[float]) -> float:
    return round(statistics.median(values), 4)


def _window(
    request: Request, options: RunOptions, services: Services, main: Model, edited: tuple[str, bytes] | None
) -> Fitter:
    overlay = dict([edited]) if edited is not None else None
    understood = understand(request.root, request.task, services, Clock(), overlay, options=options)
    return window_of(understood, frame_of(request.task), options, main, main.tokenizer, Clock())[1]


def _with_a_line(document: PromptDocument, root: Path) -> tuple[str, bytes]:
    """The code file that is packed last, with a comment after the last of its packed lines.

    Raises:
        UsageError: no code is packed.
    """
    code = [one for one in document.units if one.section in (Section.CODE, Section.EDITED) and one.lines is not None]
    if not code or code[-1].path is None or code[-1].lines is None:
        raise UsageError("no code is packed")
    path, last = code[-1].path, code[-1].lines.end
    lines = (root / path).read_bytes().splitlines(keepends=True)
    start, end = comment_of(path)
    lines.insert(last, f"{start} a line more{end}\n".encode())
    return path, b"".join(lines)


def _timed(fitter: Fitter, loaded: _Loaded, store: DrafterStore, dense_s: float) -> _Timed:
    started = time.perf_counter()
    scores, _ = score_in_windows(loaded.drafter, fitter.tokenized, loaded.scorer, store)
    chosen = fitter.at_positions(loaded.scorer.aggregate(fitter.tokenized, scores.values))
    context = loaded.engine.caps.max_position
    prompt, _ = to_sparse(fitter.full, chosen.selection.units, max_position=context)
    selection_s = time.perf_counter() - started
    prefill_s = _seconds(lambda: loaded.engine.prefill(prompt))
    return _Timed(dense_s, selection_s, prefill_s, len(prompt.ids), scores.n_known)


def _seconds(act: Callable[[], object]) -> float:
    started = time.perf_counter()
    act()
    return time.perf_counter() - started


def as_json(found: Measured) -> dict[str, Any]:
    rows = [asdict(row) for row in found.rows]
    made = {"rows": rows, "load_s": found.load_s, "weights": found.weights, "machine": machine()}
    return made if found.random is None else {**made, "random_weights": found.random}


def table(found: Measured) -> str:
    lines = [
        "  tokens  keep  kept  state   known  dense s  selection  prefill    ttft  ratio  (lowest, highest)",
    ]
    for row in found.rows:
        lines.append(
            f"  {row.tokens:6}  {row.keep:<4}  {row.kept:4}  {row.state:<6}  {row.known:5}  {row.dense_s:7.2f}  "
            f"{row.selection_s:9.2f}  {row.prefill_s:7.2f}  {row.ttft_s:6.2f}  {row.ratio:5.2f}  "
            f"({row.spread[0]:.2f}, {row.spread[1]:.2f})  selection/dense {row.selection_s / row.dense_s:.2f}"
        )
    loads = ", ".join(f"{name} {seconds:.1f} s ({found.weights[name]})" for name, seconds in found.load_s.items())
    return "\n".join([*lines, f"loaded apart: {loads}", *(said(found.random) if found.random is not None else ())])
