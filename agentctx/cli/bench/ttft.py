"""`agentctx bench ttft`."""

from __future__ import annotations

from typing import Any

import click

from agentctx.cli.options import run_options, setup, task_options
from agentctx.cli.output import echo_json


@click.command(short_help="Time to the first token with selection, as a share of dense prefill.")
@task_options
@run_options("engine", "model", "drafter", "drafter_layers", "scorer", "calibration", "over_budget", "pins")
@click.option("--tokens", type=click.IntRange(min=64), multiple=True, default=(4096,), show_default=True)
@click.option(
    "--keep",
    "keeps",
    type=click.FloatRange(0, 1, min_open=True),
    multiple=True,
    default=(0.1, 0.2, 0.3),
    show_default=True,
    help="Shares of the window that are kept.",
)
@click.option("--repeats", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def ttft(tokens: tuple[int, ...], keeps: tuple[float, ...], repeats: int, form: str, **given: Any) -> None:
    """Pack a window for REQUEST, prefill all of it, then what a drafter selects of it: seconds, and their ratio.

    Both models are loaded first. Each is timed cold, and again after a line was added to the code file that is packed
    last, when the drafter knows what it has read before. Medians; compare only figures of one run.

    \b
    agentctx bench ttft --model qwen2.5-coder-1.5b --drafter qwen2.5-coder-0.5b --test tests/test_api.py
    """
    from agentctx.bench import ttft as bench
    from agentctx.cli.services import CliServices

    made = setup(given)
    request = bench.Request(made.root, made.task, made.options, tokens, keeps, repeats)
    with CliServices() as services:
        found = bench.measure(request, services, lambda text: click.echo(text, err=True))
    if form == "json":
        echo_json(bench.as_json(found))
    else:
        click.echo(bench.table(found))
