"""Scores of a prompt that is longer than the drafter's context: overlapping windows, each with the query's tail. Pure.

Every window is HEAD (the system prompt: without a real start of text, attention sinks elsewhere) + a slice of the
code + TAIL (log, request, chat scaffolding: what the question is). Attention sums to 1 in each window, so a longer
window dilutes it: every window's scores are multiplied by its length before the maximum is taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from agentctx.errors import EngineUnavailable
from agentctx.prompt import (
    Finding,
    Float32,
    Int32,
    PromptDocument,
    PromptUnit,
    Section,
    TokenizedPrompt,
    TokenScores,
    readonly,
)
from agentctx.source import UnitKind
from agentctx.spans import ByteSpan, TokenSpan
from agentctx.spec.protocols import Drafter, ScoreOptions


@dataclass(frozen=True, slots=True)
class WindowShape:
    """Shares of the drafter's context."""

    head: float = 1 / 8  # the system prompt, left out where it is longer
    tail: float = 1 / 2  # at most; a longer log is cut at its start
    least_tail: float = 1 / 16  # where the prompt names no query
    overlap: float = 1 / 8  # of one window's code with the next one's


SHAPE = WindowShape()
SMALLEST = 16  # tokens of context below which windows make no sense
_QUERY = (Section.LOG, Section.REQUEST, Section.TAIL)


def score_in_windows(
    drafter: Drafter, tokenized: TokenizedPrompt, options: ScoreOptions
) -> tuple[TokenScores, tuple[Finding, ...]]:
    """Scores of all tokens; exactly `drafter.score` where the prompt fits, else by windows, with a finding.

    Raises:
        EngineUnavailable: the drafter's context holds no useful window.
    """
    room = drafter.info.max_position - (options.n_lookahead - 1)
    if tokenized.n_tokens <= room:
        return drafter.score(tokenized, options), ()
    if room < SMALLEST:
        raise EngineUnavailable(f"{drafter.info.name} reads {drafter.info.max_position} tokens, too few to score with")
    windows = plan(tokenized, room)
    parts = [drafter.score(cut(tokenized, window), options) for window in windows]
    finding = Finding(
        "windows",
        "note",
        f"the prompt has {tokenized.n_tokens} tokens, the drafter reads {drafter.info.max_position} at a time: "
        f"scored in {len(windows)} overlapping windows",
    )
    values = combine(tokenized.n_tokens, windows, [part.values for part in parts])
    seconds = sum(part.seconds for part in parts)
    steps = max(part.n_lookahead for part in parts)
    return replace(parts[0], values=readonly(values), seconds=seconds, n_lookahead=steps), (finding,)


def plan(tokenized: TokenizedPrompt, room: int) -> tuple[tuple[TokenSpan, ...], ...]:
    """The windows as token spans (head, slice, tail; empty ones left out), each of at most `room` tokens."""
    total = tokenized.n_tokens
    head = _head(tokenized, room)
    query = min(_query_start(tokenized), total - max(1, int(room * SHAPE.least_tail)))
    tail = max(query, total - int(room * SHAPE.tail))
    width = room - head - (total - tail)
    step = width - max(1, int(width * SHAPE.overlap))
    n_windows = max(1, -(-(tail - head - width) // step) + 1)
    last = max(head, tail - width)
    # Evenly spread, so that the last window is no shorter than the others.
    starts = [head + round((last - head) * i / max(1, n_windows - 1)) for i in range(n_windows)]
    spans = [(TokenSpan(0, head), TokenSpan(a, min(a + width, tail)), TokenSpan(tail, total)) for a in starts]
    return tuple(tuple(span for span in window if len(span)) for window in spans)


def combine(n_tokens: int, windows: Sequence[Sequence[TokenSpan]], values: Sequence[Float32]) -> Float32:
    """float32 (T,): the maximum over the windows, each scaled by its share of the prompt's length."""
    out = np.zeros(n_tokens, np.float32)
    for window, found in zip(windows, values, strict=True):
        at = _indices(window)
        out[at] = np.maximum(out[at], found * np.float32(len(found) / n_tokens))
    return out


def cut(tokenized: TokenizedPrompt, window: Sequence[TokenSpan]) -> TokenizedPrompt:
    """A prompt of these spans, one unit per span. It carries no links: it is for scoring alone."""
    text, ends, starts = b"", [0], [0]
    pieces: list[Int32] = []
    for span in window:
        begin = int(tokenized.starts[span.start])
        offsets = tokenized.starts[span.start + 1 : span.end + 1] - begin + len(text)
        text += tokenized.document.text[begin : int(tokenized.starts[span.end])]
        starts.extend(offsets.tolist())
        pieces.append(tokenized.ids[span.start : span.end])
        ends.append(ends[-1] + len(span))
    units = tuple(
        PromptUnit(i, _section(tokenized, window[i]), UnitKind.TEXT, ByteSpan(starts[ends[i]], starts[ends[i + 1]]))
        for i in range(len(window))
    )
    return TokenizedPrompt(
        PromptDocument(text, units),
        readonly(np.concatenate(pieces).astype(np.int32)),
        readonly(np.asarray(starts, np.int32)),
        readonly(np.asarray(ends, np.int32)),
        tokenized.tokenizer,
        tokenized.tokenizer_digest,
    )


def _head(tokenized: TokenizedPrompt, room: int) -> int:
    """Tokens of the leading system section, 0 when it would take too much of a window."""
    n_tokens = 0
    for unit in tokenized.document.units:
        if unit.section is not Section.SYSTEM:
            break
        n_tokens = tokenized.unit_tokens(unit.index).end
    return n_tokens if n_tokens <= room * SHAPE.head else 0


def _query_start(tokenized: TokenizedPrompt) -> int:
    """The token where the trailing log, request and tail sections begin."""
    start = tokenized.n_tokens
    for unit in reversed(tokenized.document.units):
        if unit.section not in _QUERY:
            break
        start = tokenized.unit_tokens(unit.index).start
    return start


def _section(tokenized: TokenizedPrompt, span: TokenSpan) -> Section:
    unit = int(np.searchsorted(tokenized.unit_starts, span.start, side="right")) - 1
    return tokenized.document.units[min(unit, len(tokenized.document.units) - 1)].section


def _indices(window: Sequence[TokenSpan]) -> Int32:
    return np.concatenate([np.arange(span.start, span.end, dtype=np.int32) for span in window])
