"""Golden logs of tools for Go, Rust, Java, C, C++, Ruby, PHP and .NET: tests/cases/logs_others/*.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentctx.repo.logs import read_logs
from tests.casefile import case_paths, read_case
from tests.unit.repo.test_logs_cases import render


@pytest.mark.parametrize("path", case_paths("logs_others"), ids=lambda path: path.stem)
def test_case(path: Path) -> None:
    case = read_case(path)
    logs = [(name, text.encode()) for name, text in case.files.items()]
    evidence = read_logs(logs, case.options["repo"].split())
    case.check(render(evidence))
    assert len(evidence.excerpt.encode()) <= 16_100
    assert len(set(evidence.failing)) == len(evidence.failing)
