"""`agentctx bench decode`."""

from __future__ import annotations

from typing import Any

import click

from agentctx.cli.bench.shared import keeps_option, selection_options, tokens_option
from agentctx.cli.options import setup, task_options
from agentctx.cli.output import echo_json


@click.command(short_help="Whether a model writes slower after a sparse prefill.")
@task_options
@selection_options
@tokens_option
@keeps_option(0.2)
@click.option("--pairs", type=click.IntRange(min=2), default=10, show_default=True)
@click.option("--answer", type=click.IntRange(min=2), default=64, show_default=True, help="Tokens that are written.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def decode(tokens: tuple[int, ...], keeps: tuple[float, ...], pairs: int, answer: int, form: str, **given: Any) -> None:
    """Pack a window for REQUEST, prefill what is selected of it, and let the model write; then the same tokens without
    gaps, as a dense prompt of that length. Interleaved pairs; seconds by token of the answer, and their ratio with its
    95 % interval.

    \b
    agentctx bench decode --model smollm2 --test tests/test_api.py
    """
    from agentctx.bench.speed import decode as bench
    from agentctx.bench.speed.ttft import Request
    from agentctx.cli.services import CliServices

    made = setup(given)
    request = Request(made.root, made.task, made.options, tokens, keeps, pairs)
    with CliServices() as services:
        rows = bench.measure(request, answer, services, lambda text: click.echo(text, err=True))
    if form == "json":
        echo_json(bench.as_json(rows))
    else:
        click.echo(bench.table(rows))
