"""`agentctx bench ttft`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from agentctx.cli.bench.shared import keeps_option, local_selection_options, tokens_option
from agentctx.cli.options import setup, task_options
from agentctx.cli.output import echo_json
from agentctx.config import RunOptions
from agentctx.errors import UsageError

if TYPE_CHECKING:
    from agentctx.bench.speed.random_pair import RandomPair


@click.command(short_help="Time to the first token with selection, as a share of dense prefill.")
@task_options
@local_selection_options
@tokens_option
@keeps_option(0.1, 0.2, 0.3)
@click.option("--repeats", type=click.IntRange(min=1), default=3, show_default=True)
@click.option(
    "--random-weights",
    "shapes",
    metavar="SHAPE",
    help="Instead of --model and --drafter: random weights of published shapes (torch only), MAIN or MAIN:DRAFTER, of "
    "qwen2.5-0.5b, -1.5b, -7b, -14b, -32b, and tiny. Seconds mean something then, what is kept does not.",
)
@click.option(
    "--warm-up/--no-warm-up",
    default=None,
    help="Run every length once before it is timed (default: with --random-weights on a GPU).",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def ttft(
    tokens: tuple[int, ...],
    keeps: tuple[float, ...],
    repeats: int,
    shapes: str | None,
    warm_up: bool | None,
    form: str,
    **given: Any,
) -> None:
    """Pack a window for REQUEST, prefill all of it, then what a drafter selects of it: seconds, and their ratio.

    Both models are loaded first. Each is timed cold, and again after a line was added to the code file that is packed
    last, when the drafter knows what it has read before. Medians; compare only figures of one run.

    \b
    agentctx bench ttft --model qwen2.5-coder-1.5b --drafter qwen2.5-coder-0.5b --test tests/test_api.py
    agentctx bench ttft --random-weights qwen2.5-32b:qwen2.5-0.5b --tokens 32768 --test tests/test_api.py
    """
    from agentctx.bench.speed import ttft as bench
    from agentctx.cli.services import CliServices

    pair = _random(shapes, given) if shapes is not None else None
    made = setup(given)
    options = _of_pair(pair, made.options) if pair is not None else made.options
    warm_up = _on_gpu(pair, options) if warm_up is None else warm_up
    request = bench.Request(made.root, made.task, options, tokens, keeps, repeats, warm_up, pair)
    with CliServices() as services:
        found = bench.measure(request, services, lambda text: click.echo(text, err=True))
    if form == "json":
        echo_json(bench.as_json(found))
    else:
        click.echo(bench.table(found))


def _random(shapes: str, given: Mapping[str, Any]) -> RandomPair:
    """Raises UsageError: an unknown shape, or options that name other models or another engine."""
    from agentctx.bench.speed.random_pair import ENGINE, RandomPair
    from agentctx.bench.speed.shapes import parse_shapes
    from agentctx.spec.engines.choice import AUTO

    for name in ("model", "drafter"):
        if given[name] is not None:
            raise UsageError(f"--random-weights makes its own models: leave --{name} out")
    if given["engine"] not in (None, AUTO, ENGINE):
        raise UsageError(f"--random-weights runs on {ENGINE} only, not on {given['engine']}")
    return RandomPair(*parse_shapes(shapes))


def _of_pair(pair: RandomPair, options: RunOptions) -> RunOptions:
    """What is configured of models, and of a drafter that isn't here, doesn't count."""
    from agentctx.bench.speed.random_pair import ENGINE

    return replace(options, engine=ENGINE, model=pair.main.name, drafter=pair.drafter.name)


def _on_gpu(pair: RandomPair | None, options: RunOptions) -> bool:
    from agentctx.bench.speed.random_pair import places_of

    return pair is not None and places_of(options)[0].free_bytes is not None
