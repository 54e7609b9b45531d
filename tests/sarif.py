"""What SARIF 2.1.0 (OASIS, errata 01) asks of the part of the format that we write: sections named in comments."""

from __future__ import annotations

import re
from typing import Any

_URI = re.compile(r"(?:[A-Za-z0-9._~!$&'()*+,;=@/-]|%[0-9A-F]{2})+")  # RFC 3986: a relative reference without ':'
_LEVELS = ("none", "note", "warning", "error")  # 3.27.10


def check_sarif(log: Any) -> None:
    assert set(log) == {"$schema", "version", "runs"}  # 3.13
    assert log["version"] == "2.1.0"
    assert log["$schema"].startswith("https://")
    for run in log["runs"]:  # 3.14
        assert set(run) == {"tool", "columnKind", "results"}
        assert run["columnKind"] == "utf16CodeUnits"
        driver = run["tool"]["driver"]  # 3.19
        assert set(driver) == {"name", "version", "rules"}
        ids = [rule["id"] for rule in driver["rules"]]
        assert len(set(ids)) == len(ids)  # 3.19.23
        for rule in driver["rules"]:  # 3.49
            assert set(rule) == {"id", "shortDescription"}
            assert rule["shortDescription"]["text"]
        for result in run["results"]:
            _check_result(result, set(ids))


def _check_result(result: Any, rules: set[str]) -> None:
    """3.27."""
    assert {"ruleId", "level", "message"} <= set(result)
    assert set(result) <= {"ruleId", "level", "kind", "message", "locations", "relatedLocations"}
    assert result["ruleId"] in rules
    assert result["level"] in _LEVELS
    assert result.get("kind", "fail") in ("fail", "informational")
    assert result.get("kind", "fail") == "fail" or result["level"] == "none"  # 3.27.9
    assert result["message"]["text"]
    for location in (*result.get("locations", ()), *result.get("relatedLocations", ())):
        _check_location(location)


def _check_location(location: Any) -> None:
    """3.28."""
    assert set(location) <= {"physicalLocation", "message"}
    physical = location["physicalLocation"]  # 3.29
    assert set(physical) <= {"artifactLocation", "region"}
    assert set(physical["artifactLocation"]) == {"uri"}  # 3.4
    assert _URI.fullmatch(physical["artifactLocation"]["uri"])
    assert not physical["artifactLocation"]["uri"].startswith("/")
    if "region" in physical:  # 3.30
        assert set(physical["region"]) == {"startLine"}
        assert isinstance(physical["region"]["startLine"], int)
        assert physical["region"]["startLine"] >= 1
