"""Omissions and findings as SARIF 2.1.0 (OASIS), for code scanning and editors."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from agentctx import __version__
from agentctx.prompt import Finding, Omission
from agentctx.report.model import RunReport, reported

SCHEMA_URI = "https://json.schemastore.org/sarif-2.1.0.json"
_RULES = {
    "dropped": "A definition that kept code refers to is not in the prompt",
    "signature": "A definition was added by its signature",
    "kept": "A definition or an import was added",
    "ambiguous": "A reference has several candidates, not all of which are in the prompt",
    "unknown": "A reference could not be resolved",
}


def to_sarif(report: RunReport) -> dict[str, Any]:
    """One run. A result stands where the reference is; the definition is a related location."""
    omissions = reported(report.omissions)
    results = [_omission(omission) for omission in omissions] + [_finding(finding) for finding in report.findings]
    rules = [{"id": rule, "shortDescription": {"text": text}} for rule, text in _RULES.items()]
    rules += [{"id": code, "shortDescription": {"text": code}} for code in sorted({f.code for f in report.findings})]
    driver = {"name": "agentctx", "version": __version__, "rules": rules}
    return {
        "$schema": SCHEMA_URI,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "columnKind": "utf16CodeUnits", "results": results}],
    }


def _level(severity: str) -> str:
    return severity if severity in ("error", "warning", "note") else "none"


def _location(path: str, line: int | None) -> dict[str, Any]:
    physical: dict[str, Any] = {"artifactLocation": {"uri": quote(path)}}
    if line:
        physical["region"] = {"startLine": line}
    return {"physicalLocation": physical}


def _omission(omission: Omission) -> dict[str, Any]:
    places = [(path, line) for path, line in omission.referenced_from if line is not None]
    result: dict[str, Any] = {
        "ruleId": omission.state.value,
        "level": _level(omission.severity) if omission.is_finding else "none",  # the severity it had before
        "kind": "fail" if omission.is_finding else "informational",
        "message": {"text": f"'{omission.name}' is {omission.state.value} ({omission.action.value})"},
        "locations": [_location(*place) for place in places[:1]],
    }
    if omission.path:
        result["relatedLocations"] = [
            {**_location(omission.path, omission.line), "message": {"text": f"definition of {omission.name}"}}
        ]
    return result


def _finding(finding: Finding) -> dict[str, Any]:
    result = {"ruleId": finding.code, "level": _level(finding.severity), "message": {"text": finding.message}}
    return {**result, "locations": [_location(finding.path, finding.line)]} if finding.path else result
