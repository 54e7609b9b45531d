"""`agentctx edit`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from agentctx import vcs
from agentctx.cli.options import EDITING, SELECTION, find_root, finish_interrupted, run_options, setup, task_options
from agentctx.cli.output import echo_json
from agentctx.errors import UsageError


@click.command(short_help="Make an edit, check it, and show or apply it.")
@task_options
@run_options(*SELECTION, *EDITING)
@click.option("--diff", "show", is_flag=True, help="show the edit that passes (the default)")
@click.option("--apply", is_flag=True, help="land the edit that passes in your tree (never commits)")
@click.option("--baseline", is_flag=True, help="prefill the same request dense, too, and compare")
@click.option("--undo", is_flag=True, help="take back the last run that landed, or the run named instead of REQUEST")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def edit(show: bool, apply: bool, baseline: bool, undo: bool, form: str, **given: Any) -> int:
    """Make the edit that REQUEST asks for with a local model or a server's, and check it with the failing test.

    \b
    agentctx edit "mean of an empty list is 0" --test tests/test_stats.py::test_empty
    agentctx edit "fix it" --log pytest.log --samples 8 --temperature 0.7 --apply
    agentctx edit --undo

    Every candidate is tried in a worktree of its own; your tree is written only with --apply, only when the check
    passes, and only where nothing changed meanwhile. Exit 1: no candidate passed.
    """
    if show and apply:
        raise UsageError("--diff and --apply contradict each other", hint="give one of them")
    if undo:
        return _undo(given, form)
    from agentctx.cli.services import CliServices
    from agentctx.pipeline.edit import EditRequest, run_edit

    made = setup(given)
    if not (made.task.request or made.task.logs or made.task.tests):
        raise UsageError("nothing to do", hint="give REQUEST, --test or --log")
    request = EditRequest(made.root, made.task, made.options, apply, baseline)
    with CliServices() as services:
        report = run_edit(request, services, _checks_environment())
    if form == "json":
        echo_json(report.to_dict())
    else:
        from agentctx.report.text import render_edit

        click.echo(render_edit(report), nl=False)
    return 1 if report.edit is not None and report.edit.outcome == "failed" else 0


def _checks_environment() -> dict[str, str]:
    """What checks run with: code that a server wrote has no use for the server's key."""
    return {name: value for name, value in vcs.clean_environment().items() if name != "AGENTCTX_API_KEY"}


def _undo(given: dict[str, Any], form: str) -> int:
    from agentctx.edit.transaction import undo
    from agentctx.settings import cache_root

    root: Path = find_root(given["repo"])
    finish_interrupted(root)
    landed = undo(root, cache_root(os.environ), given["request"] or None)
    if form == "json":
        echo_json({"schema_version": 1, "undone": landed.run, "paths": list(landed.paths)})
    else:
        click.echo(f"undone: run {landed.run} ({', '.join(landed.paths)})")
    return 0
