"""Options that several benchmarks take."""

from __future__ import annotations

from collections.abc import Callable

import click

from agentctx.cli.options import F, run_options

# Of a benchmark that selects for one main model, here or behind an address.
selection_options = run_options(
    "engine",
    "device",
    "dtype",
    "url",
    "served_model",
    "model",
    "drafter",
    "drafter_layers",
    "drafter_device",
    "drafter_dtype",
    "scorer",
    "calibration",
    "over_budget",
    "pins",
)
tokens_option = click.option("--tokens", type=click.IntRange(min=64), multiple=True, default=(4096,), show_default=True)


def keeps_option(*default: float) -> Callable[[F], F]:
    """Decorator: `keeps`, one or more keep rates."""
    return click.option(
        "--keep",
        "keeps",
        type=click.FloatRange(0, 1, min_open=True),
        multiple=True,
        default=default,
        show_default=True,
        help="Shares of the window that are kept.",
    )
