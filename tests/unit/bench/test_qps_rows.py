"""What `bench qps` makes of outcomes: percentiles, rows, the highest rates, their ratio, the table."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from agentctx.bench.speed.open_loop import ANSWERED, TIMEOUT, Outcome, schedule
from agentctx.bench.speed.qps import climb
from agentctx.bench.speed.qps_rows import (
    DENSE,
    SPARSE,
    Errors,
    Highest,
    Measured,
    Prompt,
    Row,
    Setting,
    as_json,
    percentile,
    row_of,
    table,
)

SETTING = Setting("tiny", "localhost:8000", None, 4096, 0.25, 16, 10.0, 4, 0.0)
PROMPT = Prompt(("tests/test_a.py",), 4000, 1000, 7, 0.02)


def row(way: str, rate: float, answered: int = 4, sent: int = 4) -> Row:
    return Row(way, rate, sent=sent, answered=answered, timeouts=sent - answered)


def skipped(way: str, rate: float) -> Row:
    return Row(way, rate, not_tried="it failed at 1/s")


def measured(*rows: Row, **changes: object) -> Measured:
    return replace(Measured(SETTING, (PROMPT,), rows), **changes)  # type: ignore[arg-type]


def answer(due: float, first: float, whole: float, **more: object) -> Outcome:
    return Outcome(due, 0.0, ANSWERED, first=first, whole=whole, **more)  # type: ignore[arg-type]


def test_requests_are_evenly_spaced() -> None:
    assert schedule(4.0, 5) == (0.0, 0.25, 0.5, 0.75, 1.0)
    assert schedule(0.5, 2) == (0.0, 2.0)


def test_a_percentile_is_one_of_the_values() -> None:
    values = [float(i) for i in range(20, 0, -1)]
    assert (percentile(values, 50), percentile(values, 95), percentile(values, 100)) == (10.0, 19.0, 20.0)
    assert percentile([3.0], 95) == 3.0
    assert percentile([], 95) is None


def test_a_row_counts_every_request_once() -> None:
    outcomes = [
        answer(0.0, 1.0, 2.0),
        answer(1.0, 3.0, 5.0),
        Outcome(2.0, 0.25, TIMEOUT),
        Outcome(3.0, 0.0, "HTTP 500", "first"),
        Outcome(4.0, 0.0, "HTTP 500", "second"),
        Outcome(5.0, 0.0, "connection", "gone"),
    ]
    made = row_of(DENSE, 1.0, outcomes)
    assert (made.sent, made.answered, made.timeouts, made.n_errors) == (6, 2, 1, 3)
    assert made.errors == (Errors("HTTP 500", 2, "first"), Errors("connection", 1, "gone"))
    assert (made.ttft_median_s, made.ttft_p95_s, made.latency_median_s, made.latency_p95_s) == (1.0, 3.0, 2.0, 5.0)
    assert made.answered_per_s == round(2 / 6, 4)
    assert (made.late_s, made.n_cached, made.is_clean) == (0.25, None, False)
    nothing = row_of(DENSE, 1.0, [Outcome(0.0, 0.0, TIMEOUT)])
    assert (nothing.ttft_median_s, nothing.answered_per_s, nothing.is_clean) == (None, None, False)
    clean = row_of(DENSE, 1.0, [answer(0.0, 1.0, 2.0, n_cached=0), answer(1.0, 1.0, 2.0, n_cached=64)])
    assert (clean.n_cached, clean.is_clean) == (64, True)


def test_the_highest_rates_and_their_ratio() -> None:
    found = measured(row(DENSE, 1), row(SPARSE, 1), row(DENSE, 2, 3), row(SPARSE, 2), skipped(DENSE, 4), row(SPARSE, 4))
    assert found.highest(DENSE) == Highest(1, open=False)
    assert found.highest(SPARSE) == Highest(4, open=True)
    assert found.ratio == 4.0
    shown = table(found)
    assert "dense 1/s, sparse 4/s (the highest that was tried); sparse / dense at least 4.00" in shown
    closed = measured(row(DENSE, 1), row(SPARSE, 1), row(DENSE, 2, 3), row(SPARSE, 2), row(SPARSE, 3, 0))
    assert closed.ratio == 2.0
    assert "dense 1/s, sparse 2/s; sparse / dense 2.00" in table(closed)


def test_there_is_no_ratio_where_a_rate_is_missing_or_not_the_highest() -> None:
    both = measured(row(DENSE, 1), row(SPARSE, 1))
    assert both.ratio is None
    assert "no ratio: give a higher --rate" in table(both)
    none = measured(row(DENSE, 1, 0), row(SPARSE, 1))
    assert (none.highest(DENSE), none.ratio) == (Highest(None, open=False), None)
    assert "dense none, sparse 1/s (the highest that was tried); no ratio: give a lower --rate" in table(none)


def test_the_table_and_the_notes() -> None:
    failed = replace(row(DENSE, 1, 1), errors=(Errors("HTTP 500", 1, "out of memory"),), timeouts=2, late_s=0.3)
    found = measured(failed, replace(row(SPARSE, 1), n_cached=32), skipped(DENSE, 2), stopped="the server is gone")
    lines = table(found).splitlines()
    assert "1 prompts of 4000 tokens, sparse keeps 1000 (mean); 16 new tokens, timeout 10 s" in lines[0]
    assert "by rank, no drafter" in lines[1]
    assert [line.split()[:2] for line in lines[3:6]] == [["dense", "1"], ["sparse", "1"], ["dense", "2"]]
    assert lines[5].endswith("not tried: it failed at 1/s")
    assert lines[6] == "  dense at 1/s: 1 x HTTP 500: out of memory"
    notes = "\n".join(lines[7:])
    assert "32 prompt tokens came from the server's prefix cache" in notes
    assert "sent up to 0.30 s too late" in notes
    assert "stopped: the server is gone" in notes
    assert "shorter than --tokens" not in notes
    small = table(measured(row(DENSE, 1), prompts=(replace(PROMPT, tokens=700), PROMPT)))
    assert "1 prompts of" not in small
    assert "1 windows are shorter than --tokens 4096 (the shortest has 700)" in small
    assert "scored by small" in table(replace(found, setting=replace(SETTING, drafter="small")))


@pytest.mark.parametrize(("sent", "said"), [(10, True), (11, False)])
def test_a_rate_that_is_too_short_to_time_out_is_said(sent: int, said: bool) -> None:
    """At 1/s and a timeout of 10 s the eleventh request is due when the first times out."""
    found = measured(row(DENSE, 1, sent, sent))
    assert found.too_short == ((1,) if said else ())
    assert ("--seconds 20 holds each rate for longer" in table(found)) is said


def test_json_holds_all_of_it() -> None:
    found = measured(row(DENSE, 1), row(SPARSE, 1), row(DENSE, 2, 3), row(SPARSE, 2))
    data = json.loads(json.dumps(as_json(found)))
    assert data["highest"] == {"dense": {"rate": 1, "open": False}, "sparse": {"rate": 2, "open": True}}
    assert (data["ratio"], data["kept_mean"], data["too_short"]) == (2.0, 1000.0, [1, 2])
    assert len(data["rows"]) == 4
    assert {"machine", "setting", "prompts", "selection_median_s", "stopped"} <= {*data}


# ---------------------------------------------------------------- the order of ways and rates


class Server:
    """Holds up to `holds[way]` requests a second; `settles`: whether it answers alone after it failed."""

    def __init__(self, settles: str = "", **holds: float) -> None:
        self.holds, self.settles = holds, settles
        self.done: list[str] = []

    async def attempt(self, way: str, rate: float) -> Row:
        self.done.append(f"{way} {rate:g}")
        return row(way, rate, 4 if rate <= self.holds[way] else 1)

    async def settle(self, way: str) -> str:
        self.done.append(f"settle {way}")
        return self.settles


async def test_a_way_that_failed_is_not_tried_at_higher_rates() -> None:
    server = Server(dense=1, sparse=2)
    rows, stopped = await climb([1, 2, 4, 8], server.attempt, server.settle)
    expected = ["dense 1", "sparse 1", "dense 2", "settle sparse", "sparse 2", "sparse 4"]
    assert server.done == expected  # nothing follows sparse 4: no need to settle
    assert [one.not_tried for one in rows] == [
        "",
        "",
        "",
        "",
        "it failed at 2/s",
        "",
        *["it failed at 2/s", "it failed at 4/s"],
    ]
    assert stopped == ""


async def test_a_server_that_does_not_recover_ends_it() -> None:
    server = Server("it is gone", dense=1, sparse=9)
    rows, stopped = await climb([2, 4], server.attempt, server.settle)
    assert server.done == ["dense 2", "settle sparse"]
    assert [one.not_tried for one in rows] == ["", "stopped", "it failed at 2/s", "stopped"]
    assert stopped == "it is gone"
