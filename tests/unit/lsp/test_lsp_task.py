"""What a client may send as a task, and what it may not."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path

import pytest

from agentctx.errors import TaskError
from agentctx.lsp.features.task import task_request
from agentctx.lsp.job import TaskRequest

Object = namedtuple("Object", ["request", "tests", "budget"])


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        (None, TaskRequest()),
        ({}, TaskRequest()),
        ({"request": " fix it ", "budget": None, "tests": None}, TaskRequest("fix it")),
        (Object("fix", ["t.py::test_a"], 900), TaskRequest("fix", ("t.py::test_a",), budget=900)),
        ({"focus": ["a.py:3"], "later": 1}, TaskRequest(focus=("a.py:3",))),
    ],
)
def test_tasks(params: object, expected: TaskRequest) -> None:
    assert task_request(params) == expected


def test_a_budget_alone_is_no_task() -> None:
    assert not TaskRequest(budget=900)
    assert TaskRequest(logs=("failure.log",))


@pytest.mark.parametrize(
    ("params", "said"),
    [
        (["fix"], "must be an object"),
        ({"request": 1}, "'request' must be text, not 1"),
        ({"tests": "t.py"}, "'tests' must be a list of text"),
        ({"focus": [""]}, "'focus' must be a list"),
        ({"budget": True}, "'budget' must be a positive whole number"),
        ({"budget": 0}, "not 0"),
        ({"logs": ["none.log"]}, "no log file 'none.log'"),
    ],
)
def test_not_tasks(params: object, said: str, tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=said):
        task_request(params, tmp_path)
