"""`agentctx select` and `agentctx pack`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from agentctx.cli.options import SELECTION, run_options, setup, task_options
from agentctx.cli.output import echo_json
from agentctx.config import OnOmission, RunOptions
from agentctx.report import RunReport

if TYPE_CHECKING:
    from agentctx.pipeline.select import Outcome


@click.command(short_help="Choose what goes into the prompt, and say why.")
@task_options
@run_options(*SELECTION)
@click.option("--all-units", is_flag=True, help="list what was dropped, too")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def select(all_units: bool, form: str, **given: Any) -> int:
    """Choose what of the repository goes into the prompt for REQUEST, and say why.

    \b
    agentctx select "fix the crash" --log pytest.log
    agentctx select --test tests/test_api.py::test_empty --budget 8192 --format json
    """
    outcome, options = select_outcome("select", given)
    print_report(outcome.report, form, all_units=all_units)
    return _failed(outcome.report, options)


@click.command(short_help="Print the prompt's text.")
@task_options
@run_options(*SELECTION)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def pack(form: str, **given: Any) -> int:
    """Print the prompt for REQUEST: kept code, with a comment where lines are left out.

    The report goes to stderr; with --format json both are in one object on stdout.
    """
    outcome, options = select_outcome("pack", given)
    if form == "json":
        text = outcome.text.text.decode("utf-8", "replace")
        echo_json({**outcome.report.to_dict(), "prompt": text})
    else:
        sys.stdout.buffer.write(outcome.text.text)
        sys.stdout.buffer.flush()
        from agentctx.report.text import summary

        click.echo(summary(outcome.report), err=True)
    return _failed(outcome.report, options)


def select_outcome(command: str, given: dict[str, Any]) -> tuple[Outcome, RunOptions]:
    """Run the selection for a command's arguments."""
    from agentctx.cli.services import CliServices
    from agentctx.pipeline.select import run

    made = setup(given)
    with CliServices() as services:
        return run(command, made.root, made.task, made.options, services), made.options


def _failed(report: RunReport, options: RunOptions) -> int:
    """`--on-omission fail` makes an omission of severity error the command's failure."""
    if options.on_omission is not OnOmission.FAIL:
        return 0
    return 1 if any(omission.severity == "error" for omission in report.omissions.findings) else 0


def print_report(report: RunReport, form: str, *, all_units: bool = False) -> None:
    """The report on stdout, as text or JSON."""
    if form == "json":
        echo_json(report.to_dict(all_units=all_units))
    else:
        from agentctx.report.text import render

        click.echo(render(report, all_units=all_units), nl=False)
