"""The JSON form of a report and its schema."""

from __future__ import annotations

import copy
import json
import tomllib
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from agentctx import report as package
from agentctx.edit.candidates import CandidateStatus
from agentctx.edit.checks import CheckStatus
from agentctx.prompt import NeedKind, OmissionAction, OmissionReport, PinReason, Section, SymbolState
from agentctx.report import RunReport, exit_code
from agentctx.report.model import SCHEMA_VERSION, SEVERITIES, dropped_names, worst
from agentctx.report.schema import load_schema
from agentctx.source import SymbolKind, UnitKind
from tests.reports import EDIT, OMISSIONS, REPORT, check_json
from tests.trees import ROOT

SCHEMA = load_schema()
DEFS = SCHEMA["$defs"]


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA["properties"]["schema_version"] == {"const": SCHEMA_VERSION}


def test_every_object_is_closed() -> None:
    def walk(node: Any) -> None:
        if isinstance(node, dict):
            if node.get("type") == "object":
                assert "additionalProperties" in node
                assert set(node.get("required", ())) <= set(node.get("properties", ()))
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    walk(SCHEMA)
    assert SCHEMA["additionalProperties"] is False


@pytest.mark.parametrize("report", [REPORT, replace(REPORT, edit=EDIT), replace(REPORT, omissions=OmissionReport())])
@pytest.mark.parametrize("all_units", [False, True])
def test_reports_are_valid(report: RunReport, all_units: bool) -> None:
    check_json(json.loads(json.dumps(report.to_dict(all_units=all_units))))


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("schema_version",), 2),
        (("more",), 1),
        (("budget", "limit"), "4096"),
        (("budget", "more"), 1),
        (("units", 0, "pins", 0), "favourite"),
        (("units", 0, "start_line"), 0),
        (("units", 0, "tier"), 4),
        (("units", 0, "kind"), "file"),
        (("omissions", 0, "state"), "lost"),
        (("omissions", 0, "referenced_from", 0, "column"), 3),
        (("pins", "favourite"), 1),
        (("omission_counts", "dropped"), None),
        (("findings", 0, "severity"), "fatal"),
        (("decision", "mode"), "magic"),
        (("cache", "index"), "lukewarm"),
        (("timings", "scan"), -1),
        (("edit", "outcome"), "fine"),
        (("edit", "checks", 0, "status"), "maybe"),
    ],
)
def test_what_is_wrong_is_refused(where: tuple[str | int, ...], value: object) -> None:
    data: Any = copy.deepcopy(json.loads(json.dumps(replace(REPORT, edit=EDIT).to_dict())))
    at = data
    for key in where[:-1]:
        at = at[key]
    at[where[-1]] = value
    with pytest.raises(AssertionError):
        check_json(data)


NO_ROW = (UnitKind.FILE, UnitKind.ELISION, UnitKind.HEADING)


def test_the_schema_knows_the_words_of_the_code() -> None:
    unit, omission = DEFS["unit"]["properties"], DEFS["omission"]["properties"]
    edit = DEFS["edit"]["properties"]
    assert DEFS["pin"]["enum"] == [reason.value for reason in PinReason]
    assert unit["kind"]["enum"] == [kind.value for kind in UnitKind if kind not in NO_ROW]
    assert unit["section"]["enum"] == [section.value for section in Section]
    assert omission["state"]["enum"] == [state.value for state in SymbolState]
    assert omission["action"]["enum"] == [action.value for action in OmissionAction]
    statements = ["import", *(kind.value for kind in NeedKind), "config"]
    assert omission["kind"]["enum"] == [*(kind.value for kind in SymbolKind), *statements, "unknown"]
    assert DEFS["severity"]["enum"] == list(SEVERITIES)
    assert edit["candidates"]["items"]["properties"]["status"]["enum"] == [status.value for status in CandidateStatus]
    assert edit["checks"]["items"]["properties"]["status"]["enum"] == [status.value for status in CheckStatus]


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (package.RepoRow, DEFS["repo"]),
        (package.BudgetRow, DEFS["budget"]),
        (package.Decision, DEFS["decision"]),
        (package.UnitRow, DEFS["unit"]),
        (package.EditRow, DEFS["edit"]),
        (package.CandidateRow, DEFS["edit"]["properties"]["candidates"]["items"]),
        (package.CheckRow, DEFS["edit"]["properties"]["checks"]["items"]),
    ],
)
def test_the_schema_knows_every_field(kind: Any, schema: dict[str, Any]) -> None:
    assert list(schema["properties"]) == [field.name for field in fields(kind)]
    assert schema["required"] == list(schema["properties"])


def test_the_contract_by_hand() -> None:
    data = replace(REPORT, edit=EDIT).to_dict()
    assert list(data) == [
        "schema_version", "command", "repo", "task", "budget", "decision", "pins", "units", "omissions",
        "omission_counts", "findings", "skipped", "timings", "cache", "edit",
    ]  # fmt: skip
    assert data["task"] == {
        "request": "make it right",
        "tests": ["t.py::T::t[1]"],
        "focus": ["a.py#f", "a.py:3"],
        "pins": ["a b.py"],
        "logs": ["pytest.log"],
        "failing_tests": ["t.py::T.t"],
        "targets": ["a.py::f"],
        "targets_guessed": True,
    }
    assert data["pins"] == {"caller": 2, "request": 1, "target": 1}
    assert data["omission_counts"] == {"kept": 1, "signature": 1, "dropped": 2, "ambiguous": 1, "unknown": 0}
    assert [one["symbol"] for one in data["omissions"]] == ["a.py::gone", "far.py::away", "twice", "a.py::sig"]
    assert data["timings"] == {"load_main": 1.2346, "scan": 0.01, "select": 0.2}
    assert [unit["start_line"] for unit in data["units"]] == [1, 1, None]
    assert data["decision"]["change"] == {"added": 3, "removed": 2, "same": 40}


def test_dropped_units_come_on_request() -> None:
    dropped = [unit for unit in REPORT.to_dict(all_units=True)["units"] if not unit["kept"]]
    assert [(unit["start_line"], unit["tier"], unit["score"]) for unit in dropped] == [(9, None, 0.123457)]


@pytest.mark.parametrize(
    ("severities", "expected"),
    [
        ((), {"error": 0, "warning": 0, "note": 0, "never": 0}),
        (("note",), {"error": 0, "warning": 0, "note": 1, "never": 0}),
        (("note", "warning"), {"error": 0, "warning": 1, "note": 1, "never": 0}),
        (("error",), {"error": 1, "warning": 1, "note": 1, "never": 0}),
    ],
)
def test_exit_codes(severities: tuple[str, ...], expected: dict[str, int]) -> None:
    findings = tuple(replace(REPORT.findings[0], severity=severity) for severity in severities)
    report = replace(REPORT, omissions=OmissionReport(), findings=findings)
    assert {level: exit_code(report, level) for level in expected} == expected


def test_omissions_count_for_the_exit_code_unless_repaired() -> None:
    report = replace(REPORT, findings=())
    assert worst(report) == "error"
    repaired = replace(report, omissions=OmissionReport(OMISSIONS.repaired))
    assert worst(repaired) is None
    assert dropped_names(OMISSIONS.omissions) == ("gone", "away")


def test_the_schema_is_packaged() -> None:
    """Hatch puts every file below the package into the wheel, unless git ignores it or something excludes it."""
    target = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert target == {"packages": ["agentctx"]}
    assert (Path(package.__file__).parent / "schema.json").is_file()
