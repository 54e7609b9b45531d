"""What `agentctx bench fidelity` measures: whether the main model still expects the fix when it reads a part only.

The window of a bug fix is packed as the product packs it, and the fix follows as an answer of SEARCH/REPLACE blocks.
Its mean negative log likelihood by token, and the next-token divergence KL(dense || other) by token of the answer, when
the model has read

- `dense`: the whole window;
- `ours`: the product's selection (pins, whole units, repair), at the original positions;
- `tokens`: as many tokens as SpecPrefill takes (arXiv 2502.02789: chunks of 32 tokens, mean of the specprefill scores,
  the best ceil(chunks x keep)), at the original positions;
- `text`: the units of `ours` as contiguous text, with the comments that stand for what is left out.

Cases are those whose window holds all lines that the fix edited, in turn from each repository.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agentctx import vcs
from agentctx.assemble import restrict
from agentctx.bench.bootstrap import interval, shown
from agentctx.bench.pair import pair_of
from agentctx.bench.replay.cases import Case, mirror
from agentctx.bench.replay.packed import packed
from agentctx.bench.replay.scored import lines_of
from agentctx.config import RunOptions
from agentctx.errors import AgentctxError
from agentctx.pipeline.fit import Fitter
from agentctx.pipeline.services import Services
from agentctx.prompt import Float32, Int32, SparsePrompt, TokenizedPrompt, readonly
from agentctx.spec.protocols import Drafter, Engine
from agentctx.spec.scorers import make
from agentctx.spec.scorers.base import Asked, Scorer
from agentctx.spec.scorers.joint import read_jointly
from agentctx.spec.sparse import dense, to_sparse
from agentctx.spec.tokens import tokenize

DENSE, OURS, TOKENS, TEXT = "dense", "ours", "tokens", "text"
PAPER = "specprefill"
CHUNK = 32  # of the paper
AROUND = 3  # lines before and after a change in a SEARCH block
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Row:
    """One case, way of reading and keep rate. `kept`: tokens that the model read."""

    case: str
    repo: str
    way: str
    keep: float
    kept: int
    answer: int  # tokens
    nll: float
    kl: float


@dataclass(frozen=True, slots=True)
class Request:
    """`count` cases; `answer`: most tokens of a fix that are looked at."""

    cases: tuple[Case, ...]
    clones: Path
    options: RunOptions
    keeps: tuple[float, ...]
    window: int
    count: int
    answer: int


def measure(request: Request, services: Services, say: Say) -> Iterator[Row]:
    """The rows of each case as it is done.

    Raises:
        UsageError: no model, no drafter, two tokenizers, or no clone.
        ModelUnavailable, NotEnoughMemory, EngineUnavailable: a model can't be loaded.
    """
    options = request.options
    main, small, scorer = pair_of("bench fidelity", options, request.window, services, say)
    engine = main.load_engine()
    reader = _Reader(engine, small.load_drafter(None), scorer, request)
    done = 0
    for case in in_turn(request.cases):
        if done == request.count:
            return
        try:
            clone = mirror(request.clones, case.repo)
            fitter = packed(case, clone, request.window, options, services, main.tokenizer, main)[1]
            if not case.gold_lines <= lines_of(
                fitter.tokenized, frozenset(range(len(fitter.tokenized.document.units)))
            ):
                continue
            answer = answer_of(clone, case)
            ids = np.asarray(engine.tokenizer.encode(answer)[0][: request.answer], np.int32)
            rows = list(reader.rows(case, fitter, ids))
        except AgentctxError as error:
            say(f"{case.id}: {error.message}")
            continue
        done += 1
        say(f"{done} of {request.count}: {case.id}, " + ", ".join(f"{r.way} {r.keep:g} {r.nll:.3f}" for r in rows))
        yield from rows


def in_turn(cases: Sequence[Case]) -> list[Case]:
    """The first of each repository, then the second of each, ..."""
    seen: dict[str, int] = {}
    turns = []
    for case in cases:
        turns.append(seen.setdefault(case.repo, 0))
        seen[case.repo] += 1
    return [case for _, case in sorted(zip(turns, cases, strict=True), key=lambda pair: pair[0])]


def answer_of(clone: Path, case: Case) -> str:
    """The fix of the edited files, as SEARCH/REPLACE blocks."""
    parts: list[str] = []
    for path in sorted({path for path, _, _ in case.gold}):
        parts += blocks(path, *(_text(clone, revision, path) for revision in (case.base, case.fix)))
    return "\n".join(parts)


def _text(clone: Path, revision: str, path: str) -> str:
    """'' where the file isn't there. The clone may be a bare one."""
    try:
        return vcs.run(clone, "cat-file", "blob", f"{revision}:{path}").decode("utf-8", "replace")
    except vcs.GitError:
        return ""


def blocks(path: str, old: str, new: str) -> Iterator[str]:
    """One for each group of changes that lie near each other."""
    before, after = old.splitlines(), new.splitlines()
    matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
    for group in matcher.get_grouped_opcodes(AROUND):
        search, replacement = before[group[0][1] : group[-1][2]], after[group[0][3] : group[-1][4]]
        lines = [path, "<<<<<<< SEARCH", *search, "=======", *replacement, ">>>>>>> REPLACE", ""]
        yield "\n".join(lines)


# ---------------------------------------------------------------- reading


@dataclass(frozen=True, slots=True)
class _Reader:
    engine: Engine
    drafter: Drafter
    scorer: Scorer
    request: Request

    def rows(self, case: Case, fitter: Fitter, answer: Int32) -> Iterator[Row]:
        tokenized = fitter.tokenized
        whole = self._logs(dense(tokenized), answer)
        yield self._row(case, DENSE, 1.0, tokenized.n_tokens, answer, whole, whole)
        paper = make(PAPER, None)
        scorers = [self.scorer] if self.scorer.name == PAPER else [self.scorer, paper]
        values = read_jointly(self.drafter, scorers, Asked.of(self.drafter, tokenized))
        scores = self.scorer.aggregate(tokenized, values[self.scorer.name])
        for keep in self.request.keeps:
            units = fitter.select(scores, max(1, math.ceil(keep * tokenized.n_tokens)))[0].units
            text = tokenize(restrict(fitter.full.document, units)[0], self.engine.tokenizer)
            ways = {
                OURS: to_sparse(fitter.full, units, max_position=None)[0],
                TOKENS: best_chunks(tokenized, values[PAPER], keep),
                TEXT: dense(text),
            }
            for way, prompt in ways.items():
                yield self._row(case, way, keep, len(prompt.ids), answer, self._logs(prompt, answer), whole)

    def _logs(self, prompt: SparsePrompt, answer: Int32) -> Float32:
        """float32 (len(answer), V): log probabilities of what follows the prompt, then each token but the last."""
        session = self.engine.prefill(prompt)
        first = session.logits[None]
        rest = session.extend(answer[:-1].tolist()) if len(answer) > 1 else first[:0]
        return log_softmax(np.concatenate([first, rest]))

    def _row(self, case: Case, way: str, keep: float, kept: int, answer: Int32, logs: Float32, whole: Float32) -> Row:
        nll = -float(logs[np.arange(len(answer)), answer].mean())
        return Row(case.id, case.repo, way, keep, kept, len(answer), nll, divergence(whole, logs))


def best_chunks(tokenized: TokenizedPrompt, values: Float32, keep: float) -> SparsePrompt:
    """SpecPrefill's choice (section 3.2), and the prompt's last token."""
    n = tokenized.n_tokens
    starts = np.arange(0, n, CHUNK)
    means = np.add.reduceat(values, starts) / np.diff(np.append(starts, n))
    chosen = np.argsort(-means, kind="stable")[: math.ceil(len(starts) * keep)]
    mask = np.zeros(n, bool)
    for chunk in chosen.tolist():
        mask[starts[chunk] : starts[chunk] + CHUNK] = True
    mask[-1] = True
    positions = np.flatnonzero(mask).astype(np.int32)
    return SparsePrompt(readonly(tokenized.ids[positions]), readonly(positions), n)


def log_softmax(logits: Float32) -> Float32:
    """By row."""
    shifted = logits - logits.max(axis=1, keepdims=True)
    found: Float32 = shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))
    return found


def divergence(whole: Float32, other: Float32) -> float:
    """Mean over rows of KL(whole || other), in nats."""
    return float(np.mean([np.sum(np.exp(p) * (p - q), dtype=np.float64) for p, q in zip(whole, other, strict=True)]))


# ---------------------------------------------------------------- figures


def table(rows: Sequence[Row]) -> str:
    """Means over cases, and how much less likely fixes are than by our way, with 95 % bootstrap intervals."""
    cells = _cells(rows)
    lines = ["  keep  way     kept    nll     kl     nll - ours"]
    for (keep, way), own in cells.items():
        ours = cells.get((keep, OURS))
        farther = "" if way in (DENSE, OURS) or ours is None else _difference(own, ours)
        kept, nll, kl = (float(np.mean([getattr(row, name) for row in own])) for name in ("kept", "nll", "kl"))
        lines.append(f"  {keep:<4g}  {way:<6}  {kept:5.0f}  {nll:.3f}  {kl:.3f}  {farther}".rstrip())
    lines.append(f"{len({row.case for row in rows})} cases")
    return "\n".join(lines)


def _cells(rows: Sequence[Row]) -> Mapping[tuple[float, str], list[Row]]:
    found: dict[tuple[float, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row.keep, row.way), []).append(row)
    return dict(sorted(found.items(), key=lambda item: (-item[0][0], (DENSE, OURS, TOKENS, TEXT).index(item[0][1]))))


def _difference(rows: Sequence[Row], others: Sequence[Row]) -> str:
    by_case = {row.case: row.nll for row in others}
    return shown(interval([row.nll - by_case[row.case] for row in rows]))


def data(rows: Sequence[Row]) -> dict[str, Any]:
    return {"rows": [asdict(row) for row in rows]}
