"""`agentctx bench ttft`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from agentctx.cli.options import run_options, setup, task_options
from agentctx.cli.output import echo_json
from agentctx.errors import UsageError


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
@click.option(
    "--random-weights",
    metavar="MAIN[:DRAFTER]",
    help="Instead of --model and --drafter: models of these shapes with random weights, on torch (a GPU where there "
    "is one). Nothing is downloaded. Shapes: tiny, qwen2.5-0.5b, -1.5b, -3b, -7b, -14b, -32b.",
)
@click.option("--warm-up", is_flag=True, help="Run each length once before it is timed: a GPU's first run is slow.")
@click.option("--repeats", type=click.IntRange(min=1), default=3, show_default=True)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def ttft(
    tokens: tuple[int, ...],
    keeps: tuple[float, ...],
    random_weights: str | None,
    warm_up: bool,
    repeats: int,
    form: str,
    **given: Any,
) -> None:
    """Pack a window for REQUEST, prefill all of it, then what a drafter selects of it: seconds, and their ratio.

    Both models are loaded first. Each is timed cold, and again after a line was added to the code file that is packed
    last, when the drafter knows what it has read before. Medians; compare only figures of one run.

    \b
    agentctx bench ttft --model qwen2.5-coder-1.5b --drafter qwen2.5-coder-0.5b --test tests/test_api.py
    """
    from agentctx.bench import ttft as bench
    from agentctx.bench.shapes import parse_shapes
    from agentctx.cli.services import CliServices

    if random_weights is not None:
        _refuse_beside_random(given)
    shapes = parse_shapes(random_weights) if random_weights is not None else None
    made = setup(given)
    request = bench.Request(made.root, made.task, made.options, tokens, keeps, repeats, shapes, warm_up)
    with CliServices() as services:
        found = bench.measure(request, services, lambda text: click.echo(text, err=True))
    if form == "json":
        echo_json(bench.as_json(found))
    else:
        click.echo(bench.table(found))


def _refuse_beside_random(given: Mapping[str, Any]) -> None:
    """Raises UsageError: what random weights leave no choice of."""
    for name in ("model", "drafter", "calibration"):
        if given[name] is not None:
            raise UsageError(f"--random-weights and --{name} exclude each other")
    if given["engine"] not in (None, "auto", "torch"):
        raise UsageError(f"--random-weights runs on torch, not on {given['engine']}")
