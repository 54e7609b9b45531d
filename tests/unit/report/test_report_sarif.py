"""Reports as SARIF."""

from __future__ import annotations

import json
from dataclasses import replace
from urllib.parse import unquote

import pytest

from agentctx import __version__
from agentctx.prompt import Finding, OmissionReport, SymbolState
from agentctx.report.sarif import to_sarif
from tests.reports import OMISSIONS, REPORT, omission
from tests.sarif import check_sarif


def test_it_is_sarif() -> None:
    log = json.loads(json.dumps(to_sarif(REPORT)))
    check_sarif(log)
    (run,) = log["runs"]
    assert run["tool"]["driver"]["version"] == __version__
    assert [(result["ruleId"], result["level"]) for result in run["results"]] == [
        ("dropped", "error"),
        ("dropped", "warning"),
        ("ambiguous", "note"),
        ("signature", "none"),
        ("budget", "warning"),
        ("signature-changed", "error"),
    ]


def test_a_result_stands_where_the_reference_is() -> None:
    dropped = to_sarif(REPORT)["runs"][0]["results"][0]
    assert dropped == {
        "ruleId": "dropped",
        "level": "error",
        "kind": "fail",
        "message": {"text": "'gone' is dropped (flagged)"},
        "locations": [{"physicalLocation": {"artifactLocation": {"uri": "b.py"}, "region": {"startLine": 7}}}],
        "relatedLocations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": "a.py"}, "region": {"startLine": 3}},
                "message": {"text": "definition of gone"},
            }
        ],
    }


@pytest.mark.parametrize(
    "path", ["a b/größe.py", "a#b.py", "100%.py", "what?.py", "c:d.py", "-x.py", "[x].py", "'q\".py"]
)
def test_paths_are_uris(path: str) -> None:
    log = to_sarif(replace(REPORT, findings=(Finding("code", "note", "said", path, 1),)))
    check_sarif(log)
    physical = log["runs"][0]["results"][-1]["locations"][0]["physicalLocation"]
    assert unquote(physical["artifactLocation"]["uri"]) == path


def test_a_finding_without_a_place() -> None:
    log = to_sarif(replace(REPORT, findings=(Finding("budget", "error", "said"), Finding("x", "note", "y", "a.py"))))
    check_sarif(log)
    results = log["runs"][0]["results"]
    assert "locations" not in results[-2]
    assert "region" not in results[-1]["locations"][0]["physicalLocation"]


@pytest.mark.parametrize("state", list(SymbolState))
def test_every_state_has_a_rule(state: SymbolState) -> None:
    (repaired,) = OMISSIONS.repaired
    made = OmissionReport((replace(repaired, state=state),))
    check_sarif(to_sarif(replace(REPORT, omissions=made)))


def test_an_omission_that_only_the_log_refers_to_has_no_place() -> None:
    made = OmissionReport((omission("a.py::f", SymbolState.DROPPED, referenced_from=(("log", None),)),))
    log = to_sarif(replace(REPORT, omissions=made))
    check_sarif(log)
    assert log["runs"][0]["results"][0]["locations"] == []


def test_nothing_found_is_a_valid_log() -> None:
    log = to_sarif(replace(REPORT, omissions=OmissionReport(), findings=()))
    check_sarif(log)
    assert log["runs"][0]["results"] == []
