"""agentctx/setTask and agentctx/status: the current task in, what the session does out."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from agentctx.errors import TaskError
from agentctx.lsp.job import TaskRequest
from agentctx.lsp.view import View
from agentctx.report.model import SEVERITIES


def task_request(params: object, root: Path | None = None) -> TaskRequest:
    """A task from a request's parameters or the initialization options; every field may be left out.

    Raises:
        TaskError: a field of the wrong type, or (with `root`) a log file that isn't there.
    """
    fields = plain(params)
    request, budget = fields.get("request") or "", fields.get("budget")
    if not isinstance(request, str):
        raise TaskError(f"'request' must be text, not {request!r}")
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int) or budget < 1):
        raise TaskError(f"'budget' must be a positive whole number or null, not {budget!r}")
    tests, logs, focus = _texts(fields, "tests"), _texts(fields, "logs"), _texts(fields, "focus")
    task = TaskRequest(request.strip(), tests, logs, focus, budget)
    for log in task.logs if root is not None else ():
        if root is not None and not (root / log).is_file():
            raise TaskError(f"there is no log file '{log}'")
    return task


def plain(params: object) -> Mapping[str, Any]:
    """Parameters of a custom request as a mapping: the server library hands them over as named tuples.

    Raises:
        TaskError: they are neither an object nor null.
    """
    if params is None:
        return {}
    if isinstance(params, Mapping):
        return params
    if hasattr(params, "_asdict"):
        made = params._asdict()
        assert isinstance(made, dict)
        return made
    raise TaskError(f"the parameters must be an object, not {params!r}")


def _texts(fields: Mapping[str, Any], name: str) -> tuple[str, ...]:
    value = fields.get(name) or []
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) and one for one in value):
        raise TaskError(f"'{name}' must be a list of text, not {value!r}")
    return tuple(value)


def status(view: View) -> dict[str, Any]:
    """The state for a status bar. Tokens are 0 and findings none until a selection is there."""
    report = view.selected.report if view.selected is not None else None
    counts = dict.fromkeys(SEVERITIES, 0)
    if report is not None:
        for severity in [o.severity for o in report.omissions.findings] + [f.severity for f in report.findings]:
            if severity in counts:
                counts[severity] += 1
    return {
        "state": view.state.value,
        "message": view.message,
        "request": view.task.request,
        "kept": report.budget.kept if report is not None else 0,
        "limit": report.budget.limit if report is not None else 0,
        "findings": counts,
    }
