"""`agentctx check`: the omission check of a task, and the callers of changed signatures."""

from __future__ import annotations

from typing import Any

import click

from agentctx.cli.options import SELECTION, Setup, run_options, setup, task_options
from agentctx.cli.output import echo_json
from agentctx.cli.services import CliServices
from agentctx.errors import UsageError
from agentctx.report import RunReport, exit_code


@click.command(short_help="Report what the prompt, or a change, leaves out.")
@task_options
@run_options(*SELECTION, "fail_on")
@click.option("--staged", is_flag=True, help="check the staged change: callers of changed signatures")
@click.option("--format", "form", type=click.Choice(["text", "json", "sarif"]), default="text", show_default=True)
def check(staged: bool, form: str, **given: Any) -> int:
    """Report what is left out, and exit 1 when a finding is as grave as --fail-on.

    \b
    With a task (REQUEST, --log, --test, --focus): definitions that the prompt refers to and doesn't hold.
    With --staged, or with --since REV and no task: calls of definitions whose signature the change alters or
    removes, where the call itself is not part of the change. Needs no model.
    """
    if staged and given["since"]:
        raise UsageError("--staged and --since contradict each other", hint="give one of them")
    made = setup(given)
    has_task = bool(made.task.request or made.task.logs or made.task.tests or made.task.focus)
    since = None if staged else made.options.since
    if not (staged or since or has_task):
        raise UsageError(
            "nothing to check", hint="give a task (REQUEST, --log, --test, --focus), or --staged, or --since REV"
        )
    whole_change = staged or not has_task
    with CliServices() as services:
        report = _change_report(made, services, since) if whole_change else _task_report(made, services)
    _print(report, form)
    return exit_code(report, made.options.fail_on.value)


def _change_report(made: Setup, services: CliServices, since: str | None) -> RunReport:
    from agentctx.pipeline.change import check_change

    return check_change(made.root, made.task, made.options, services, since=since)


def _task_report(made: Setup, services: CliServices) -> RunReport:
    from agentctx.pipeline.select import run

    return run("check", made.root, made.task, made.options, services).report


def _print(report: RunReport, form: str) -> None:
    if form == "json":
        echo_json(report.to_dict())
    elif form == "sarif":
        from agentctx.report.sarif import to_sarif

        echo_json(to_sarif(report))
    else:
        from agentctx.report.text import check_text

        click.echo(check_text(report))
