"""Options that several benchmarks take."""

from __future__ import annotations

from collections.abc import Callable

import click

from agentctx.cli.options import F, run_options

_SELECTION = (
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
_OF_SERVERS = ("url", "served_model")
# Of a benchmark that selects for one main model, here or behind an address; and for one that runs here.
selection_options = run_options(*_SELECTION)
local_selection_options = run_options(*(name for name in _SELECTION if name not in _OF_SERVERS))
PLACES = ("drafter_device", "drafter_dtype")  # of a benchmark that runs a drafter alone
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
