"""Golden logs: tests/cases/logs/*.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentctx.prompt import Evidence
from agentctx.repo.logs import read_logs
from tests.casefile import case_paths, read_case


def render(evidence: Evidence) -> str:
    """Everything but `text`, for people."""
    return "\n".join(
        [
            "failing:",
            *(f"  {test.id}" for test in evidence.failing),
            "frames:",
            *(f"  {f.path}:{f.line} {f.function}{'' if f.in_repo else ' (foreign)'}" for f in evidence.frames),
            "errors:",
            *(f"  {line}" for line in evidence.error_lines),
            f"mentions: {' '.join(evidence.mentions)}",
            "notes:",
            *(f"  {note}" for note in evidence.notes),
            "excerpt:",
            *(f"  {line}".rstrip() for line in evidence.excerpt.splitlines()),
        ]
    )


@pytest.mark.parametrize("path", case_paths("logs"), ids=lambda path: path.stem)
def test_case(path: Path) -> None:
    case = read_case(path)
    logs = [(name, text.encode()) for name, text in case.files.items()]
    evidence = read_logs(logs, case.options["repo"].split())
    case.check(render(evidence))
    assert len(evidence.excerpt.encode()) <= 16_100
    assert len(set(evidence.failing)) == len(evidence.failing)
    assert len(set(evidence.error_lines)) == len(evidence.error_lines)
    for frame in evidence.frames:
        assert frame.in_repo == (frame.path in case.options["repo"].split())
