"""Scores of a prompt that is longer than the drafter's context: overlapping windows, each with the query's tail. Pure.

Every window is HEAD (the system prompt: without a real start of text, attention sinks elsewhere) + a slice of the
code + TAIL (tests, log, request, chat scaffolding: what the question is). Attention sums to 1 in each window, so a
longer window dilutes it: scores that are shares of it are multiplied by the window's length before the maximum.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from agentctx.errors import EngineUnavailable
from agentctx.prompt import (
    Finding,
    Float32,
    Int32,
    ModelInfo,
    PackFacts,
    PromptDocument,
    PromptUnit,
    Section,
    TokenizedPrompt,
    Tokenizer,
    TokenScores,
    readonly,
)
from agentctx.spans import ByteSpan, TokenSpan
from agentctx.spec.prefix import PrefixStore
from agentctx.spec.protocols import Drafter
from agentctx.spec.reading import ReadFacts, Reading
from agentctx.spec.scorers.base import Asked, Scorer
from agentctx.spec.scorers.queries import code_end, failing_units


@dataclass(frozen=True, slots=True)
class WindowShape:
    """Shares of the drafter's context."""

    head: float = 1 / 8  # the system prompt, left out where it is longer
    tail: float = 1 / 2  # at most; a longer log is cut at its start
    least_tail: float = 1 / 16  # where the prompt names no query
    overlap: float = 1 / 8  # of one window's code with the next one's


SHAPE = WindowShape()
SMALLEST = 16  # tokens of context below which windows make no sense


def score_in_windows(
    drafter: Drafter, tokenized: TokenizedPrompt, scorer: Scorer, store: PrefixStore | None = None
) -> tuple[TokenScores, tuple[Finding, ...]]:
    """Scores of all tokens: of the prompt as a whole where the drafter can read it, else by windows, with a finding.
    Windows don't use the store: what lies before their code is short.

    Raises:
        EngineUnavailable: the drafter's context holds no useful window, or the layers that the scorer reads
                slide over less than the prompt.
    """
    reading, scoring = scorer.begin(Asked.of(drafter, tokenized))
    if reading.room(tokenized.n_tokens) <= drafter.info.max_position:
        facts = drafter.read(tokenized.ids, reading, scoring, store)
        return _scores(drafter, scorer, scoring.values(), [facts]), ()
    windows = _planned(drafter.info, tokenized, reading)
    found: list[Float32] = []
    all_facts: list[ReadFacts] = []
    for window in windows:
        part = cut(tokenized, window)
        reading, scoring = scorer.begin(Asked.of(drafter, part))
        all_facts.append(drafter.read(part.ids, reading, scoring))
        found.append(scoring.values())
    values = combine(tokenized.n_tokens, windows, found, dilutes=scorer.dilutes)
    return _scores(drafter, scorer, values, all_facts), (_said(drafter.info, tokenized, windows),)


def windows_finding(info: ModelInfo, tokenizer: Tokenizer, tokenized: TokenizedPrompt, scorer: Scorer) -> list[Finding]:
    """What `score_in_windows` says of a prompt, without scoring it."""
    reading, _ = scorer.begin(Asked(tokenized, tokenizer, info.whole_layers))
    if reading.room(tokenized.n_tokens) <= info.max_position:
        return []
    return [_said(info, tokenized, _planned(info, tokenized, reading))]


Windows = tuple[tuple[TokenSpan, ...], ...]


def _planned(info: ModelInfo, tokenized: TokenizedPrompt, reading: Reading) -> Windows:
    room = info.max_position - reading.spare
    if room < SMALLEST:
        raise EngineUnavailable(f"{info.name} reads {info.max_position} tokens, too few to score with")
    return plan(tokenized, room)


def _said(info: ModelInfo, tokenized: TokenizedPrompt, windows: Windows) -> Finding:
    return Finding(
        "windows",
        "note",
        f"the prompt has {tokenized.n_tokens} tokens, the drafter reads {info.max_position} at a time: "
        f"scored in {len(windows)} overlapping windows",
    )


def _scores(drafter: Drafter, scorer: Scorer, values: Float32, facts: Sequence[ReadFacts]) -> TokenScores:
    n_blind = max(one.n_blind for one in facts)
    if n_blind and not values.any():
        raise EngineUnavailable(
            f"{scorer.name} found nothing: {n_blind} layers of {drafter.info.name} slide over less than the prompt, "
            "among them those that it reads",
            hint="take another --scorer or another drafter",
        )
    return TokenScores(
        values=readonly(values),
        drafter=drafter.info.name,
        scorer=scorer.name,
        n_layers=facts[0].n_layers,
        seconds=sum(one.seconds for one in facts),
        n_lookahead=max(one.n_steps for one in facts),
        n_known=sum(one.n_known for one in facts),
    )


def plan(tokenized: TokenizedPrompt, room: int) -> tuple[tuple[TokenSpan, ...], ...]:
    """The windows as token spans (head, slice, tail; empty ones left out), each of at most `room` tokens."""
    total = tokenized.n_tokens
    head = _head(tokenized, room)
    query = min(code_end(tokenized), total - max(1, int(room * SHAPE.least_tail)))
    tail = max(query, total - int(room * SHAPE.tail))
    width = room - head - (total - tail)
    step = width - max(1, int(width * SHAPE.overlap))
    n_windows = max(1, -(-(tail - head - width) // step) + 1)
    last = max(head, tail - width)
    # Evenly spread, so that the last window is no shorter than the others.
    starts = [head + round((last - head) * i / max(1, n_windows - 1)) for i in range(n_windows)]
    spans = [(TokenSpan(0, head), TokenSpan(a, min(a + width, tail)), TokenSpan(tail, total)) for a in starts]
    return tuple(tuple(span for span in window if len(span)) for window in spans)


def combine(
    n_tokens: int, windows: Sequence[Sequence[TokenSpan]], values: Sequence[Float32], *, dilutes: bool = True
) -> Float32:
    """float32 (T,): the maximum over the windows; where values are shares of attention (`dilutes`) each is scaled by
    its share of the prompt's length."""
    out = np.full(n_tokens, -np.inf, np.float32)
    for window, found in zip(windows, values, strict=True):
        at = _indices(window)
        scaled = found * np.float32(len(found) / n_tokens) if dilutes else found
        out[at] = np.maximum(out[at], scaled)
    return out


def cut(tokenized: TokenizedPrompt, window: Sequence[TokenSpan]) -> TokenizedPrompt:
    """A prompt of these spans; units at their edges are cut. It knows its failing tests, but carries no links: it is
    for scoring alone."""
    text, starts, edges = b"", [0], [0]
    pieces: list[Int32] = []
    units: list[PromptUnit] = []
    asks = failing_units(tokenized.document)
    failing: list[int] = []
    for span in window:
        begin = int(tokenized.starts[span.start])
        offsets = tokenized.starts[span.start + 1 : span.end + 1] - begin + len(text)
        text += tokenized.document.text[begin : int(tokenized.starts[span.end])]
        starts.extend(offsets.tolist())
        pieces.append(tokenized.ids[span.start : span.end])
        base = edges[-1] - span.start
        for unit, end in _units_in(tokenized, span):
            bytes_of = ByteSpan(starts[edges[-1]], starts[end + base])
            if unit.index in asks:
                failing.append(len(units))
            units.append(PromptUnit(len(units), unit.section, unit.kind, bytes_of, unit.path))
            edges.append(end + base)
    return TokenizedPrompt(
        PromptDocument(text, tuple(units), facts=PackFacts(test_units=tuple(failing))),
        readonly(np.concatenate(pieces).astype(np.int32)),
        readonly(np.asarray(starts, np.int32)),
        readonly(np.asarray(edges, np.int32)),
        tokenized.tokenizer,
        tokenized.tokenizer_digest,
    )


def _units_in(tokenized: TokenizedPrompt, span: TokenSpan) -> Iterator[tuple[PromptUnit, int]]:
    """The units with tokens in a span, each with the end of its part of it."""
    edges = tokenized.unit_starts
    first = int(np.searchsorted(edges, span.start, side="right")) - 1
    for unit in range(first, len(tokenized.document.units)):
        if edges[unit] >= span.end:
            return
        if edges[unit + 1] > max(int(edges[unit]), span.start):
            yield tokenized.document.units[unit], min(int(edges[unit + 1]), span.end)


def _head(tokenized: TokenizedPrompt, room: int) -> int:
    """Tokens of the leading system section, 0 when it would take too much of a window."""
    n_tokens = 0
    for unit in tokenized.document.units:
        if unit.section is not Section.SYSTEM:
            break
        n_tokens = tokenized.unit_tokens(unit.index).end
    return n_tokens if n_tokens <= room * SHAPE.head else 0


def _indices(window: Sequence[TokenSpan]) -> Int32:
    return np.concatenate([np.arange(span.start, span.end, dtype=np.int32) for span in window])
