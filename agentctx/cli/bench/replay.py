"""`agentctx bench replay`."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agentctx import settings
from agentctx.cli.bench.shared import PLACES
from agentctx.cli.options import run_options
from agentctx.cli.output import echo_json
from agentctx.errors import UsageError

if TYPE_CHECKING:
    from agentctx.bench.replay.cases import Case
    from agentctx.config import RunOptions

FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)


@click.command(short_help="How many lines of real fixes a selection keeps.")
@click.option("--cases", type=FILE, required=True, help="JSON lines: id, repo, lang, base, fix, tests, failing, gold.")
@click.option("--mirrors", type=FOLDER, required=True, help="Folder of clones with history: owner+name.")
@click.option("--logs", type=FOLDER, help="Folder of failing logs, ID.log (default: logs beside the cases).")
@click.option("--budget", "budgets", type=click.IntRange(min=1), multiple=True, default=(4096,), show_default=True)
@click.option("--repo", "repos", multiple=True, metavar="OWNER/NAME", help="Only these.")
@click.option("--lang", "languages", multiple=True, help="Only cases of these languages.")
@click.option("--rank-model", metavar="FILE", help="A ranking model of train-rank.")
@click.option("--drafter", metavar="NAME", help="Compare scorers on this model, instead of budgets.")
@click.option("--scorer", "scorers", multiple=True, help="With --drafter: only these (default: all that it can run).")
@click.option(
    "--keep",
    "keeps",
    type=click.FloatRange(0, 1, min_open=True),
    multiple=True,
    default=(0.1, 0.2, 0.3, 0.5),
    show_default=True,
    help="With --drafter: shares that are kept.",
)
@click.option(
    "--way",
    "ways",
    type=click.Choice(["code", "prompt"]),
    multiple=True,
    default=("code",),
    show_default=True,
    help="The scorer alone on the packed code, or the whole selection.",
)
@click.option("--window", type=click.IntRange(min=64), default=4096, show_default=True, help="With --drafter: tokens.")
@click.option("--calibration", metavar="FILE", help="With --drafter: a file of `bench calibrate`.")
@click.option(
    "--timed", type=click.IntRange(min=0), default=1, show_default=True, help="Cases on which each scorer is timed."
)
@click.option(
    "--work", type=click.Path(path_type=Path, file_okay=False), help="Keeps what the drafter said (default: the cache)."
)
@click.option("--engine", default="torch", show_default=True, help="Library that runs the drafter.")
@run_options(*PLACES)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def replay(
    cases: Path,
    mirrors: Path,
    logs: Path | None,
    budgets: tuple[int, ...],
    repos: tuple[str, ...],
    languages: tuple[str, ...],
    rank_model: str | None,
    drafter: str | None,
    scorers: tuple[str, ...],
    keeps: tuple[float, ...],
    ways: tuple[str, ...],
    window: int,
    calibration: str | None,
    timed: int,
    work: Path | None,
    engine: str,
    form: str,
    **placed: Any,
) -> None:
    """Select for bug fixes of public repositories as they were before the fix, with its tests staged.

    Recall: of the lines that the fix edited, those that are kept, mean over cases. All: the share of cases with every
    such line. Closure: of the definitions that the fix calls, those that are kept.

    With --drafter the window is packed once, and scorers choose from it: see `agentctx select --scorer`.
    """
    from agentctx.bench.replay.cases import read_cases
    from agentctx.bench.replay.measure import replay as run
    from agentctx.bench.replay.table import data, table
    from agentctx.cli.services import CliServices

    chosen = [
        case
        for case in read_cases(cases, logs)
        if (not repos or case.repo in repos) and (not languages or case.language in languages)
    ]
    if drafter is None:
        _refuse_without_drafter()
    given = {"rank_model": rank_model, "calibration": calibration, "engine": engine, **placed}
    options = settings.load(None, given, os.environ).options
    if drafter is not None:
        work = work if work is not None else settings.cache_root(os.environ) / "replay"
        _scorers(chosen, mirrors, drafter, Shares(scorers, keeps, ways, window, timed), options, work, form)
        return
    with CliServices() as services:
        rows = list(run(chosen, mirrors, budgets, services, options, services.progress))
    if form == "json":
        echo_json(data(rows, budgets))
        return
    click.echo(table(rows, budgets))
    for row in rows:
        if row.error is not None:
            click.echo(f"  {row.case} at {row.budget}: {row.error}", err=True)


_OF_DRAFTERS = ("scorers", "keeps", "ways", "window", "calibration", "timed", "work", "engine", *PLACES)


def _refuse_without_drafter() -> None:
    """Raises: UsageError: an option was given that says nothing without --drafter."""
    context = click.get_current_context()
    for option in context.command.params:
        given = context.get_parameter_source(option.name or "") is click.core.ParameterSource.COMMANDLINE
        if given and option.name in _OF_DRAFTERS:
            raise UsageError(f"{option.opts[0]} needs --drafter")


@dataclass(frozen=True, slots=True)
class Shares:
    """What is compared."""

    scorers: tuple[str, ...]
    keeps: tuple[float, ...]
    ways: tuple[str, ...]
    window: int
    timed: int


def _scorers(
    cases: list[Case], mirrors: Path, drafter: str, shares: Shares, options: RunOptions, work: Path, form: str
) -> None:
    from agentctx.bench.replay.scored import Setting, scored, seconds_of
    from agentctx.bench.replay.scored_table import data, table
    from agentctx.cli.services import CliServices
    from agentctx.pipeline.decide import calibration_of
    from agentctx.spec.scorers import LEARNED, SCORERS

    with CliServices() as services:
        model = services.model(drafter, options, shares.window)
        known = calibration_of(options, model.info)
        names = shares.scorers or tuple(name for name in SCORERS if known is not None or name not in LEARNED)
        setting = Setting(model, names, known, shares.keeps, shares.ways, shares.window, work)
        rows = list(scored(cases, mirrors, setting, services, options, lambda text: click.echo(text, err=True)))
        seconds = seconds_of(cases[: shares.timed], mirrors, setting, services, options)
    if form == "json":
        echo_json(data(rows, seconds))
    else:
        click.echo(table(rows, seconds))
