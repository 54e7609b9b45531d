"""The contract of a sparse request: which original positions the tokens of a prompt come from. Pure.

A request carries two extra arguments (`SamplingParams.extra_args`, over HTTP `vllm_xargs`) beside the kept tokens:

    specprefill_spans   [start, end, start, end, ...]: half open, ascending, disjoint, the last one ends the prompt
    specprefill_len     the original length; decoding continues at this position
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from agentctx.prompt import SparsePrompt

SPANS = "specprefill_spans"
LENGTH = "specprefill_len"
VERSION = 1

# The two texts by which a client tells a server with the plugin from one that ignores extra arguments.
ACTIVE = f"agentctx sparse prefill (contract {VERSION})"
OFF = "agentctx sparse prefill is off"

MAX_SPANS = 2**16
MAX_LENGTH = 2**24

Int64 = npt.NDArray[np.int64]


class BadSpans(ValueError):
    """The extra arguments of a request don't say clearly where its tokens come from."""


@dataclass(frozen=True)
class Spans:
    """Checked spans. Key-value slot i of the request belongs to original position `positions(i, i + 1)[0]`."""

    pairs: tuple[tuple[int, int], ...]
    total: int

    @cached_property
    def n_kept(self) -> int:
        return sum(end - start for start, end in self.pairs)

    @property
    def shift(self) -> int:
        """Original position minus slot, for every generated token."""
        return self.total - self.n_kept

    @cached_property
    def kept(self) -> Int64:
        """int64 (n_kept,): original positions of the prompt's tokens."""
        return np.concatenate([np.arange(start, end, dtype=np.int64) for start, end in self.pairs])

    def positions(self, start: int, end: int) -> Int64:
        """int64 (end - start,): original positions of the slots start..end, of the prompt and behind it."""
        out = np.arange(start, end, dtype=np.int64) + self.shift
        n_prompt = max(0, min(end, self.n_kept) - start)
        out[:n_prompt] = self.kept[start : start + n_prompt]
        return out

    def block_key(self, start: int, end: int) -> tuple[str, str] | None:
        """What a block of the prefix cache must be told apart by, None where its positions are those of a dense prompt.

        Positions ascend, so when the last one of a block equals its slot, all before it do too: such a block (and
        everything in front of it) holds what an ordinary request would have put there.
        """
        if end <= start:
            return None
        places = self.positions(start, end)
        if int(places[-1]) == end - 1:
            return None
        return ("agentctx", hashlib.sha256(places.tobytes()).hexdigest())


def has_spans(extra: Mapping[str, Any] | None) -> bool:
    return bool(extra) and (SPANS in extra or LENGTH in extra)  # type: ignore[operator]


def parse(extra: Mapping[str, Any] | None) -> Spans | None:
    """The spans that a request carries, None for an ordinary request. Raises BadSpans."""
    if not has_spans(extra):
        return None
    assert extra is not None
    for name in (SPANS, LENGTH):
        if name not in extra:
            raise BadSpans(f"{name} is missing")
    flat, total = extra[SPANS], extra[LENGTH]
    if not isinstance(flat, (list, tuple)):
        raise BadSpans(f"{SPANS} is a list of integers, not {_kind(flat)}")
    if len(flat) > 2 * MAX_SPANS:
        raise BadSpans(f"{len(flat) // 2} spans, at most {MAX_SPANS} are taken")
    for value in (total, *flat):
        if type(value) is not int:  # a bool is an int, and 1.0 equals 1: neither is a position
            raise BadSpans(f"positions are integers, not {_kind(value)}")
    return _checked(tuple(flat), total)


def encode(prompt: SparsePrompt) -> dict[str, Any]:
    """The extra arguments of a sparse prompt. Raises BadSpans where its last token isn't the original's last one."""
    flat: list[int] = []
    for first, end, position in prompt.runs():
        flat += [position, position + end - first]
    extra = {SPANS: flat, LENGTH: prompt.total}
    parse(extra)
    return extra


@lru_cache(maxsize=64)  # n samples of one prompt are n requests with the same spans
def _checked(flat: tuple[int, ...], total: int) -> Spans:
    if not 1 <= total <= MAX_LENGTH:
        raise BadSpans(f"the original length is {_number(total)}, it must be 1 to {MAX_LENGTH}")
    if not flat or len(flat) % 2:
        raise BadSpans(f"spans are pairs of a start and an end, there are {len(flat)} numbers")
    pairs = tuple(zip(flat[::2], flat[1::2], strict=True))
    for start, end in pairs:
        if not 0 <= start < end <= total:
            raise BadSpans(f"span {_number(start)}..{_number(end)} isn't within 0..{total}, or is empty")
    for (_, end), (start, _) in pairwise(pairs):
        if start < end:
            raise BadSpans(f"a span starts at {start}, before {end}, where the one before it ends")
    if pairs[-1][1] != total:
        raise BadSpans(f"the spans end at {pairs[-1][1]}, the last token ({total - 1}) must be kept")
    return Spans(pairs, total)


def check_request(spans: Spans, *, n_tokens: int, max_new: int, limit: int) -> None:
    """Raise BadSpans when the spans don't fit the prompt of `n_tokens`, or when positions go beyond `limit`.

    The last generated token needs no position: it is never read.
    """
    if spans.n_kept != n_tokens:
        raise BadSpans(f"the spans hold {spans.n_kept} positions, the prompt has {n_tokens} tokens")
    if spans.total + max(0, max_new - 1) > limit:
        raise BadSpans(
            f"{spans.total} original positions and {max_new} new tokens go beyond the {limit} that the model was "
            f"trained on"
        )


def _kind(value: object) -> str:
    return type(value).__name__


def _number(value: int) -> str:
    """Nobody needs the digits of a number that fills a page."""
    return str(value) if abs(value) < 10**12 else "a huge number"
