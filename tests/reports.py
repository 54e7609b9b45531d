"""A report that has something of everything, and checks of the forms that reports are given out in."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from jsonschema import Draft202012Validator

from agentctx.prompt import Finding, FocusRef, Omission, OmissionAction, OmissionReport, SymbolState, Task, TestRef
from agentctx.report import BudgetRow, CandidateRow, Change, CheckRow, Decision, EditRow, RepoRow, RunReport, UnitRow
from agentctx.report.schema import load_schema
from agentctx.source import Skipped

_VALIDATOR = Draft202012Validator(load_schema())


def check_json(data: Any) -> None:
    """Fails with what is wrong and where."""
    written = json.loads(json.dumps(data))  # tuples become lists
    errors = [f"{error.json_path}: {error.message}" for error in _VALIDATOR.iter_errors(written)]
    assert errors == []


def unit(path: str | None, first: int | None, last: int | None, **more: Any) -> UnitRow:
    made = UnitRow(path, first, last, "body", f"{path}::f" if path else None, "code", 10, True, 3, (), 0.5, "text 0.50")
    return replace(made, **more)


def omission(symbol: str, state: SymbolState, **more: Any) -> Omission:
    path, _, name = symbol.partition("::")
    made = Omission(symbol, name, "function", path, 3, state, "warning", OmissionAction.FLAGGED, (("b.py", 7),))
    return replace(made, **more)


OMISSIONS = OmissionReport(
    (
        omission("a.py::gone", SymbolState.DROPPED, severity="error", referenced_from=(("b.py", 7), ("log", None))),
        omission("far.py::away", SymbolState.DROPPED, action=OmissionAction.NOT_PACKED),
        omission(
            "twice",
            SymbolState.AMBIGUOUS,
            name="twice",
            path=None,
            line=None,
            kind="unknown",
            severity="note",
            candidates=("a.py::twice", "b.py::twice"),
            referenced_from=tuple(("b.py", n) for n in range(1, 6)),
        ),
        omission("a.py::kept", SymbolState.KEPT, severity="none", action=OmissionAction.NONE),
        omission("a.py::sig", SymbolState.SIGNATURE, severity="error", action=OmissionAction.REPAIRED),
    )
)

EDIT = EditRow(
    outcome="landed",
    run="20260102-030405-abcd",
    patch="/cache/runs/x/edit.patch",
    diff="--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-1\n+2\n",
    format="function",
    target="a.py#f",
    candidates=(CandidateRow(0, "failed", "the check failed", 12, "stop"), CandidateRow(1, "passed", "", 9, "length")),
    checks=(CheckRow("baseline", "failed", 1, 0.51, "E assert"), CheckRow("candidate 1", "passed", 0, 0.4, "")),
    notes=("matched up to whitespace",),
)

REPORT = RunReport(
    command="select",
    repo=RepoRow("/home/dev/x", "0" * 40, dirty=True),
    task=Task(
        request="make it right",
        tests=(TestRef("t.py", ("T", "t"), "1"),),
        focus=(FocusRef("a.py", symbol="f"), FocusRef("a.py", line=3)),
        pins=(FocusRef("a b.py"),),
        logs=(("pytest.log", b"raw"),),
    ),
    budget=BudgetRow(4096, 8192, 7000, 4000, "smollm2"),
    decision=Decision("sparse", "estimate: 0.5", "d", 10, "early-exit", 7000.0, 500.1, 2000.0, Change(3, 2, 40)),
    units=(
        unit("a.py", 1, 4, kind="header", tier=1, pins=("target", "caller"), why="target: to be edited"),
        unit("a.py", 9, 9, kept=False, tier=None, score=0.1234567),
        unit("b.py", 1, 2, tier=2, pins=("caller",), reduced=True),
        unit(None, None, None, kind="request", section="request", tier=0, pins=("request",)),
    ),
    omissions=OMISSIONS,
    findings=(
        Finding("budget", "warning", "the pins need 5000 tokens"),
        Finding("signature-changed", "error", "use calls f", "a b/größe.py", 12),
    ),
    skipped=tuple(Skipped(f"s{n}.bin", "binary: it holds NUL bytes") for n in range(7)),
    timings={"load_main": 1.23456, "scan": 0.01, "select": 0.2},
    cache={
        "index": "warm", "index_hits": 3, "index_misses": 0, "drafter_prefix_tokens": 0, "selection": "miss",
    },
    failing_tests=("t.py::T.t",),
    targets=("a.py::f",),
    targets_guessed=True,
)  # fmt: skip
