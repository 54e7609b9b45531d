"""`agentctx bench calibrate`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from agentctx import settings
from agentctx.cli.bench.shared import PLACES
from agentctx.cli.options import run_options

FOLDER = click.Path(path_type=Path, file_okay=False)
FILE = click.Path(path_type=Path, dir_okay=False)


@click.command(short_help="Learn which of a drafter's heads find the code to edit.")
@click.option("--drafter", required=True, metavar="NAME", help="A fetched model, a folder or a hub id.")
@click.option(
    "--repo", "repos", type=FOLDER, multiple=True, default=(Path("."),), help="A clone with history; several."
)
@click.option("--tasks", type=click.IntRange(min=1), default=40, show_default=True, help="Most tasks of each.")
@click.option("--history", type=click.IntRange(min=1), default=200, show_default=True, help="Most fixes of each.")
@click.option("--layers", type=click.IntRange(min=1), help="How deep the drafter is read (default: two thirds).")
@click.option("--budget", type=click.IntRange(min=64), default=2048, show_default=True, help="Half of the window.")
@click.option("--engine", default="torch", show_default=True, help="Library that runs the drafter.")
@run_options(*PLACES)
@click.option("--out", type=FILE, help="Where the file is written (default: calibration.json in the user's settings).")
@click.option("--work", type=FOLDER, help="Where what was read is kept for the next run (default: the user's cache).")
def calibrate(
    drafter: str,
    repos: tuple[Path, ...],
    tasks: int,
    history: int,
    layers: int | None,
    budget: int,
    engine: str,
    out: Path | None,
    work: Path | None,
    **given: Any,
) -> None:
    """Let a drafter read bug fixes of histories, and learn weights for its heads, a probe, and their fusion with the
    ranking.

    \b
    agentctx bench calibrate --drafter M --repo A --repo B     your own, or several
    agentctx select --drafter M --calibration FILE ...         uses the result; calibration in agentctx.toml does, too

    Takes half a minute for each task on two cores, for a drafter of 0.5B; a run that is cut off goes on where it
    stopped. No code is run. Needs LightGBM: pip install 'agentctx[train]'.
    """
    from agentctx.bench.calibration import calibrate as bench
    from agentctx.bench.ranking import train
    from agentctx.cli.services import CliServices

    def say(text: str) -> None:
        click.echo(text, err=True)

    train.require()
    work = work if work is not None else settings.cache_root(os.environ) / "calibration"
    out = out if out is not None else settings.user_file(os.environ).parent / "calibration.json"
    options = settings.load(None, {**given, "engine": engine}, os.environ).options
    request = bench.Request(repos, tasks, history, work, budget, layers, str(options.drafter_dtype))
    with CliServices() as services:
        model = services.model(drafter, options, 2 * budget)
        found, figures = bench.calibrate(model, request, services, say)
    click.echo(bench.table(figures))
    bench.write(found, out)
    click.echo(f"written to {out}; use it with --calibration, or calibration in agentctx.toml")
