"""Reports as text."""

from __future__ import annotations

from dataclasses import replace

import pytest

from agentctx.prompt import Finding, OmissionAction, OmissionReport, SymbolState
from agentctx.report import UnitRow
from agentctx.report.text import check_text, merged, render, render_edit, summary
from tests.reports import EDIT, REPORT

HEAD = """\
kept 4,000 of 7,000 packed tokens (limit 4,096, window 8,192, tokenizer smollm2)
mode sparse, drafter d: estimate: 0.5
estimate: dense 7,000, selection 500 + sparse 2,000 (in tokens of dense prefill; 0.36 of dense)
the drafter's scores brought in 3 units, put out 2, left 40
target a.py::f (guessed: no focus and no frame named one)
pins caller 2, request 1, target 1
"""
OMITTED = """\
omission check: 5 symbols referred to, 2 in the prompt (1 kept, 1 signature, 2 dropped, 1 ambiguous; 1 repaired)
  error   dropped   gone a.py:3 used in b.py:7, log
          no room in the budget; --pin 'a.py#gone' keeps it
  warning dropped   away far.py:3 used in b.py:7
          outside the window; --pin 'far.py#away' keeps it
  note    ambiguous twice used in b.py:1, :2, :3 and 2 more
"""
FINDINGS = """\
  warning budget: the pins need 5000 tokens
  error   signature-changed: a b/größe.py:12 use calls f
"""
SKIPPED = """\
skipped 7 files:
  s0.bin: binary: it holds NUL bytes
  s1.bin: binary: it holds NUL bytes
  s2.bin: binary: it holds NUL bytes
  s3.bin: binary: it holds NUL bytes
  s4.bin: binary: it holds NUL bytes
  and 2 more (--format json lists them all)
"""
TIMES = "seconds: scan 0.01, select 0.20; loading: main 1.23\n"
UNITS = """\
a.py
            1-4 header       10 tokens  tier 1  target: to be edited
b.py
            1-2 body         10 tokens  tier 2 reduced  text 0.50
"""


def test_the_whole_report() -> None:
    assert render(REPORT) == f"{HEAD}\n{UNITS}\n{OMITTED}{FINDINGS}{SKIPPED}\n{TIMES}"


def test_dropped_units_are_marked() -> None:
    lines = render(REPORT, all_units=True).splitlines()
    assert "  -         9-9 body         10 tokens  dropped  text 0.50" in lines
    assert lines.count("a.py") == 1


def test_what_must_be_seen() -> None:
    assert summary(REPORT) + "\n" == f"{HEAD}{OMITTED}{FINDINGS}{SKIPPED}"


def test_a_small_report_says_no_more_than_there_is() -> None:
    plain = replace(REPORT.decision, drafter=None, cost_dense=None, change=None, mode="text", reason="no drafter")
    small = replace(REPORT, decision=plain, units=(), omissions=OmissionReport(), findings=(), skipped=(), targets=())
    small = replace(small, timings={"scan": 0.1})
    assert summary(small).splitlines() == [
        "kept 4,000 of 7,000 packed tokens (limit 4,096, window 8,192, tokenizer smollm2)",
        "mode text: no drafter",
        "omission check: no symbol of the repository is referred to",
    ]
    assert render(small).endswith("\nseconds: scan 0.10\n")


def test_check() -> None:
    assert check_text(REPORT) + "\n" == f"{OMITTED}{FINDINGS}{SKIPPED}"
    assert check_text(replace(REPORT, omissions=OmissionReport(), findings=(), skipped=())) == "no findings"


def test_warnings_of_one_file_are_said_together_and_errors_alone() -> None:
    """Together: dropped for one reason. Every name and its line is there, and how to pin it."""
    gone, away = (next(o for o in REPORT.omissions.omissions if o.name == name) for name in ("gone", "away"))
    near = replace(away, symbol="far.py::near", name="near", line=9, referenced_from=(("b.py", 12), ("b.py", 7)))
    unclear = replace(away, symbol="x", name="x", state=SymbolState.AMBIGUOUS, path=None)
    here = replace(near, symbol="far.py::here", name="here", action=OmissionAction.FLAGGED)
    errors = (gone, replace(gone, symbol="a.py::lost", name="lost"))
    said = check_text(
        replace(REPORT, omissions=OmissionReport((*errors, away, unclear, near, here)), findings=(), skipped=())
    )
    assert said.splitlines()[1:] == [
        "  error   dropped   gone a.py:3 used in b.py:7, log",
        "          no room in the budget; --pin 'a.py#gone' keeps it",
        "  error   dropped   lost a.py:3 used in b.py:7, log",
        "          no room in the budget; --pin 'a.py#lost' keeps it",
        "  warning dropped   2 of far.py: away :3, near :9",
        "          used in b.py:7, :12; outside the window; --pin 'far.py:LINE' keeps one",
        "  warning ambiguous x used in b.py:7",
        "  warning dropped   here far.py:9 used in b.py:12, :7",
        "          no room in the budget; --pin 'far.py#here' keeps it",
    ]


def test_places_of_findings() -> None:
    findings = (Finding("c", "note", "m"), Finding("c", "note", "m", "a.py"), Finding("c", "note", "m", "a.py", 3))
    said = check_text(replace(REPORT, omissions=OmissionReport(), findings=findings, skipped=REPORT.skipped[:1]))
    assert said.splitlines() == [
        "  note    c: m",
        "  note    c: a.py m",
        "  note    c: a.py:3 m",
        "skipped 1 file:",
        "  s0.bin: binary: it holds NUL bytes",
    ]


def test_check_says_that_there_are_no_findings_beside_what_was_skipped() -> None:
    said = check_text(replace(REPORT, omissions=OmissionReport(), findings=()))
    assert said + "\n" == f"no findings\n{SKIPPED}"


@pytest.mark.parametrize(
    ("outcome", "patch", "line"),
    [
        ("landed", "/p", f"landed: the edit is in your tree; undo it with: agentctx edit --undo {EDIT.run}; patch: /p"),
        ("shown", "/p", "not applied: --apply would land it; patch: /p"),
        ("failed", "/p", "nothing landed: no candidate passed the check; the best one's patch: /p"),
        ("failed", None, "nothing landed: no candidate passed the check"),
    ],
)
def test_the_outcome_of_an_edit_is_the_last_line(outcome: str, patch: str | None, line: str) -> None:
    text = render_edit(replace(REPORT, edit=replace(EDIT, outcome=outcome, patch=patch)))
    assert text.splitlines()[-1] == line


def test_an_edit() -> None:
    text = render_edit(replace(REPORT, edit=EDIT))
    assert text == (
        f"{HEAD}{OMITTED}{FINDINGS}{SKIPPED}{TIMES}\n"
        "answer: function for a.py#f\n"
        "before the edit: the check failed in 0.5 s\n"
        "candidate 0: failed (12 tokens) the check failed\n"
        "candidate 1: passed (9 tokens)\n"
        "note: matched up to whitespace\n"
        f"\n{EDIT.diff}\n"
        f"landed: the edit is in your tree; undo it with: agentctx edit --undo {EDIT.run}; patch: {EDIT.patch}\n"
    )


def row(start: int, end: int, why: str = "a caller", *, kind: str = "body", kept: bool = True) -> UnitRow:
    return UnitRow("a.py", start, end, kind, None, "code", 10, kept, 1 if kept else None, (), 0.0, why)


def test_neighbours_with_one_reason_are_one_line() -> None:
    rows = [row(1, 2, kind="header"), row(3, 4), row(5, 5), row(7, 8), row(9, 9, "score 0.5"), row(10, 11, kept=False)]
    got = [(one.start_line, one.end_line, one.kind, one.tokens) for one in merged(rows)]
    assert got == [(1, 5, "code", 30), (7, 8, "body", 10), (9, 9, "body", 10), (10, 11, "body", 10)]
