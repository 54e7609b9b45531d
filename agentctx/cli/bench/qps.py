"""`agentctx bench qps`."""

from __future__ import annotations

from typing import Any

import click

from agentctx.cli.bench.shared import selection_options
from agentctx.cli.options import setup, task_options
from agentctx.cli.output import echo_json

RATES = (0.25, 0.5, 1.0, 2.0, 4.0)


@click.command(short_help="The highest request rate that a vLLM server holds, sparse and dense.")
@task_options
@selection_options
@click.option("--tokens", type=click.IntRange(min=64), default=4096, show_default=True, help="Tokens of a window.")
@click.option(
    "--keep",
    type=click.FloatRange(0.001, 1),
    default=0.25,
    show_default=True,
    help="Share of the window that a sparse request keeps.",
)
@click.option(
    "--rate",
    "rates",
    type=click.FloatRange(min=0, min_open=True),
    multiple=True,
    default=RATES,
    show_default=True,
    help="Requests per second, may be repeated.",
)
@click.option(
    "--requests",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Requests that each way sends at each rate, at least.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0),
    default=60,
    show_default=True,
    help="Hold each rate for so long, at least: with more requests where --requests are sent sooner.",
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=30,
    show_default=True,
    help="Seconds for a whole answer, from when its request was due.",
)
@click.option(
    "--max-tokens", type=click.IntRange(min=1), default=16, show_default=True, help="New tokens of an answer."
)
@click.option(
    "--prompts",
    type=click.IntRange(min=1),
    default=4,
    show_default=True,
    help="Different windows, where no --test is given: one for each of the first files with tests.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def qps(
    tokens: int,
    keep: float,
    rates: tuple[float, ...],
    requests: int,
    seconds: float,
    timeout: float,
    max_tokens: int,
    prompts: int,
    form: str,
    **given: Any,
) -> None:
    """Send windows to a running vLLM server at fixed rates, whole and as selected, and count what isn't answered in
    time.

    One window per test file, packed for REQUEST and selected before the load begins. Requests are sent when they are
    due, whether or not earlier ones were answered; times count from then. Nothing comes from the server's prefix
    cache. A way that had a timeout or an error isn't tried at higher rates. --engine auto means vllm here.

    \b
    agentctx bench qps --url http://localhost:8000/v1 --model FOLDER
    agentctx bench qps --url http://localhost:8000/v1 --model FOLDER --rate 1 --rate 2 --timeout 20 --seconds 60
    """
    from agentctx.bench.speed import qps as bench
    from agentctx.bench.speed.qps_rows import as_json, table
    from agentctx.cli.services import CliServices

    made = setup(given)
    request = bench.Request(
        made.root, made.task, made.options, tokens, keep, rates, requests, seconds, timeout, max_tokens, prompts
    )
    with CliServices() as services:
        found = bench.measure(request, services, lambda text: click.echo(text, err=True))
    if form == "json":
        echo_json(as_json(found))
    else:
        click.echo(table(found))
