"""Half-open byte and token spans, inclusive line spans, and their algebra. Pure.

The three are different types on purpose: equal numbers in different units never compare equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar


@dataclass(frozen=True, slots=True, order=True)
class _Span:
    start: int
    end: int

    def __post_init__(self) -> None:
        if not 0 <= self.start <= self.end:
            raise ValueError(f"not a span: {self.start}..{self.end}")

    def __len__(self) -> int:
        return self.end - self.start

    def contains(self, other: Self) -> bool:
        return self.start <= other.start and other.end <= self.end

    def overlaps(self, other: Self) -> bool:
        return self.start < other.end and other.start < self.end

    def shift(self, by: int) -> Self:
        return type(self)(self.start + by, self.end + by)


@dataclass(frozen=True, slots=True, order=True)
class ByteSpan(_Span):
    """Bytes `start <= i < end` of one text (UTF-8 or the file's own encoding)."""


@dataclass(frozen=True, slots=True, order=True)
class TokenSpan(_Span):
    """Tokens `start <= i < end` of one prompt."""


@dataclass(frozen=True, slots=True, order=True)
class LineSpan:
    """Lines `start <= i <= end` of one file: 1-based, inclusive."""

    start: int
    end: int

    def __post_init__(self) -> None:
        if not 1 <= self.start <= self.end:
            raise ValueError(f"not a line span: {self.start}..{self.end}")

    def __len__(self) -> int:
        return self.end - self.start + 1

    def holds(self, line: int) -> bool:
        return self.start <= line <= self.end

    def overlaps(self, other: LineSpan) -> bool:
        return self.start <= other.end and other.start <= self.end


S = TypeVar("S", bound=_Span)


def merge(spans: Iterable[S]) -> tuple[S, ...]:
    """Sorted, disjoint spans that cover the same positions; touching spans become one."""
    out: list[S] = []
    for span in sorted(spans):
        if not len(span):
            continue
        if out and span.start <= out[-1].end:
            last = out.pop()
            out.append(type(span)(last.start, max(last.end, span.end)))
        else:
            out.append(span)
    return tuple(out)


def subtract(spans: Iterable[S], holes: Iterable[S]) -> tuple[S, ...]:
    """What `spans` cover and `holes` don't: sorted and disjoint."""
    left = list(merge(spans))
    for hole in merge(holes):
        rest: list[S] = []
        for span in left:
            if not span.overlaps(hole):
                rest.append(span)
                continue
            if span.start < hole.start:
                rest.append(type(span)(span.start, hole.start))
            if hole.end < span.end:
                rest.append(type(span)(hole.end, span.end))
        left = rest
    return tuple(left)


def tiles(spans: Sequence[_Span], length: int) -> bool:
    """Whether `spans`, in order, partition `0..length` without gap or overlap."""
    at = 0
    for span in spans:
        if span.start != at:
            return False
        at = span.end
    return at == length
