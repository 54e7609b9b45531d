"""What `agentctx bench qps` found: rows of rates, the highest one of each way, their ratio; as a table and as JSON."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from agentctx.bench.machine import machine
from agentctx.bench.speed.open_loop import ANSWERED, TIMEOUT, Outcome

DENSE, SPARSE = "dense", "sparse"
WAYS = (DENSE, SPARSE)
LATE = 0.1  # seconds: a client that sends later than this is too busy to measure a server


@dataclass(frozen=True, slots=True)
class Errors:
    """Errors of one kind; the message is that of the first."""

    kind: str
    count: int
    message: str


@dataclass(frozen=True, slots=True)
class Row:
    """One way at one rate; seconds from when a request was due, of those that were answered (None: none was).

    Args:
        not_tried: why nothing was sent; '' for a rate that was tried.
        errors: without timeouts.
        answered_per_s: answers by the seconds from when the first request was due to when the last answer ended.
        late_s: most seconds by which a request was sent too late.
        n_cached: prompt tokens that came from the server's prefix cache, None where it doesn't tell.
    """

    way: str
    rate: float
    not_tried: str = ""
    sent: int = 0
    answered: int = 0
    timeouts: int = 0
    errors: tuple[Errors, ...] = ()
    ttft_median_s: float | None = None
    ttft_p95_s: float | None = None
    latency_median_s: float | None = None
    latency_p95_s: float | None = None
    answered_per_s: float | None = None
    late_s: float = 0.0
    n_cached: int | None = None

    @property
    def n_errors(self) -> int:
        return sum(one.count for one in self.errors)

    @property
    def is_clean(self) -> bool:
        return not self.not_tried and self.answered == self.sent


@dataclass(frozen=True, slots=True)
class Prompt:
    """A window and what is selected of it. `selection_s`: scores, choice, repair and check, on this machine."""

    tests: tuple[str, ...]
    tokens: int
    kept: int
    spans: int
    selection_s: float


@dataclass(frozen=True, slots=True)
class Setting:
    """`drafter`: None where units are chosen by rank. Seconds."""

    model: str
    host: str
    drafter: str | None
    tokens: int
    keep: float
    max_tokens: int
    timeout_s: float
    requests: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Highest:
    """The highest rate without timeouts or errors, None where there was none; `open`: no higher one was tried."""

    rate: float | None
    open: bool


@dataclass(frozen=True, slots=True)
class Measured:
    """`stopped`: why the measurement ended early, '' where it didn't."""

    setting: Setting
    prompts: tuple[Prompt, ...]
    rows: tuple[Row, ...]
    stopped: str = ""

    @property
    def kept_mean(self) -> float:
        return statistics.mean(one.kept for one in self.prompts)

    @property
    def selection_median_s(self) -> float:
        return statistics.median(one.selection_s for one in self.prompts)

    def highest(self, way: str) -> Highest:
        own = [row for row in self.rows if row.way == way]
        clean = [row.rate for row in own if row.is_clean]
        return Highest(max(clean, default=None), bool(clean) and max(clean) == max(row.rate for row in own))

    @property
    def ratio(self) -> float | None:
        """Sparse by dense; at least that where sparse is open. None where one has no rate, or dense is open."""
        dense, sparse = self.highest(DENSE), self.highest(SPARSE)
        if dense.rate is None or sparse.rate is None or dense.open:
            return None
        return round(sparse.rate / dense.rate, 4)

    @property
    def too_short(self) -> tuple[float, ...]:
        """Clean rates at which the last request was due before the first could time out: a server that falls behind
        may answer all of them in time there."""
        clean = {row.rate for row in self.rows if row.is_clean and (row.sent - 1) / row.rate < self.setting.timeout_s}
        return tuple(sorted(clean))


def row_of(way: str, rate: float, outcomes: Sequence[Outcome]) -> Row:
    """Raises: ValueError: there are no outcomes."""
    answered = [one for one in outcomes if one.kind == ANSWERED]
    first = [one.first for one in answered if one.first is not None]
    whole = [one.whole for one in answered if one.whole is not None]
    cached = [one.n_cached for one in answered if one.n_cached is not None]
    end = max((one.due + one.whole for one in answered if one.whole is not None), default=None)
    return Row(
        way,
        rate,
        sent=len(outcomes),
        answered=len(answered),
        timeouts=sum(one.kind == TIMEOUT for one in outcomes),
        errors=_errors(outcomes),
        ttft_median_s=percentile(first, 50),
        ttft_p95_s=percentile(first, 95),
        latency_median_s=percentile(whole, 50),
        latency_p95_s=percentile(whole, 95),
        answered_per_s=None if not end else round(len(answered) / end, 4),
        late_s=round(max(one.late for one in outcomes), 4),
        n_cached=sum(cached) if cached else None,
    )


def percentile(values: Sequence[float], percent: float) -> float | None:
    """The least value that so many percent are not above; one of the values. None of nothing."""
    return round(float(np.percentile(values, percent, method="inverted_cdf")), 4) if values else None


def _errors(outcomes: Iterable[Outcome]) -> tuple[Errors, ...]:
    found: dict[str, list[str]] = {}
    for one in outcomes:
        if one.kind not in (ANSWERED, TIMEOUT):
            found.setdefault(one.kind, []).append(one.message)
    return tuple(Errors(kind, len(messages), messages[0]) for kind, messages in sorted(found.items()))


def as_json(found: Measured) -> dict[str, Any]:
    return {
        "setting": asdict(found.setting),
        "prompts": [asdict(one) for one in found.prompts],
        "kept_mean": round(found.kept_mean, 1),
        "selection_median_s": round(found.selection_median_s, 4),
        "rows": [asdict(row) for row in found.rows],
        "highest": {way: asdict(found.highest(way)) for way in WAYS},
        "ratio": found.ratio,
        "too_short": list(found.too_short),
        "stopped": found.stopped,
        "machine": machine(),
    }


def table(found: Measured) -> str:
    head = (
        "  way     rate/s  sent  answered  timeouts  errors  ttft median     p95  latency median     p95  answered/s  "
        "late"
    )
    lines = [_about(found), head, *(_line(row) for row in found.rows)]
    for row in found.rows:
        lines += [f"  {row.way} at {row.rate:g}/s: {one.count} x {one.kind}: {one.message}" for one in row.errors]
    return "\n".join([*lines, *_notes(found), _result(found)])


def _about(found: Measured) -> str:
    setting, tokens = found.setting, sorted(one.tokens for one in found.prompts)
    lengths = f"{tokens[0]}" if tokens[0] == tokens[-1] else f"{tokens[0]} to {tokens[-1]}"
    who = f"scored by {setting.drafter}" if setting.drafter is not None else "by rank, no drafter"
    return (
        f"{setting.model} at {setting.host}: {len(found.prompts)} prompts of {lengths} tokens, sparse keeps "
        f"{found.kept_mean:.0f} (mean); {setting.max_tokens} new tokens, timeout {setting.timeout_s:g} s\n"
        f"selection ({who}), on the clients' machine, before the load: {found.selection_median_s:.3f} s per prompt "
        "(median); it is in no figure below"
    )


def _line(row: Row) -> str:
    if row.not_tried:
        return f"  {row.way:<6}  {row.rate:6g}  not tried: {row.not_tried}"
    return (
        f"  {row.way:<6}  {row.rate:6g}  {row.sent:4}  {row.answered:8}  {row.timeouts:8}  {row.n_errors:6}  "
        f"{_figure(row.ttft_median_s):>11}  {_figure(row.ttft_p95_s):>6}  {_figure(row.latency_median_s):>14}  "
        f"{_figure(row.latency_p95_s):>6}  {_figure(row.answered_per_s):>10}  {row.late_s:.2f}"
    )


def _figure(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _notes(found: Measured) -> list[str]:
    notes = []
    short = [one.tokens for one in found.prompts if one.tokens < found.setting.tokens * 0.9]
    if short:
        notes.append(
            f"{len(short)} windows are shorter than --tokens {found.setting.tokens} (the shortest has {min(short)}): "
            "the repository has no more to pack for them"
        )
    if found.too_short:
        rates = ", ".join(f"{rate:g}" for rate in found.too_short)
        notes.append(
            f"at {rates}/s the last request was due before the first could time out: a server that falls behind may "
            f"answer them all in time; --seconds {2 * found.setting.timeout_s:g} holds each rate for longer"
        )
    if any(row.n_cached for row in found.rows):
        n_cached = sum(row.n_cached or 0 for row in found.rows)
        notes.append(f"{n_cached} prompt tokens came from the server's prefix cache: it doesn't heed cache_salt")
    if any(row.late_s > LATE for row in found.rows):
        most = max(row.late_s for row in found.rows)
        notes.append(f"requests were sent up to {most:.2f} s too late: this machine was too busy to send them")
    if found.stopped:
        notes.append(f"stopped: {found.stopped}")
    return [f"note: {note}" for note in notes]


def _result(found: Measured) -> str:
    said = ", ".join(f"{way} {_rate(found.highest(way))}" for way in WAYS)
    if found.ratio is not None:
        least = "at least " if found.highest(SPARSE).open else ""
        ratio = f"; sparse / dense {least}{found.ratio:.2f}"
    else:
        ratio = "; no ratio: give a higher --rate" if found.highest(DENSE).open else "; no ratio: give a lower --rate"
    return f"highest rate without timeouts or errors: {said}{ratio}"


def _rate(one: Highest) -> str:
    if one.rate is None:
        return "none"
    return f"{one.rate:g}/s" + (" (the highest that was tried)" if one.open else "")
