"""`agentctx bench train-rank`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import click

from agentctx import settings

FOLDER = click.Path(path_type=Path, file_okay=False)
FILE = click.Path(path_type=Path, dir_okay=False)
MODEL_FILE = "rank.json"


@click.command(short_help="Learn a ranking from bug fixes in histories.")
@click.option(
    "--repo", "repos", type=FOLDER, multiple=True, default=(Path("."),), help="A clone with history; several."
)
@click.option("--history", type=click.IntRange(min=1), default=200, show_default=True, help="Most fixes of each.")
@click.option("--out", type=FILE, help="Where the model is written (default: rank.json in the user's settings).")
@click.option("--work", type=FOLDER, help="Where examples are kept for the next run (default: the user's cache).")
@click.option("--anew", is_flag=True, help="Begin anew, instead of adding to the built-in model.")
@click.option("--rounds", type=click.IntRange(min=1), nargs=2, help="Trees for chunks and for their units.")
@click.option("--drop", multiple=True, metavar="PREFIX", help="Features that aren't used.")
@click.option("--evaluate", type=click.IntRange(min=0), default=0, help="Fixes of each to replay, at three budgets.")
@click.option("--mine-only", is_flag=True, help="Only make the examples.")
def train_rank(
    repos: tuple[Path, ...],
    history: int,
    out: Path | None,
    work: Path | None,
    anew: bool,
    rounds: tuple[int, int] | None,
    drop: tuple[str, ...],
    evaluate: int,
    mine_only: bool,
) -> None:
    """Learn which code a task is about from commits that edited tests and one to four files of code.

    \b
    agentctx bench train-rank --repo .            adds what your own history says to the built-in model
    agentctx select --rank-model FILE ...         uses the result; rank_model in agentctx.toml does, too

    No code is run. A commit's tests are laid into the tree of its parent, and what the commit edited there is what the
    ranking must find. Needs LightGBM: pip install 'agentctx[train]'.
    """
    from agentctx.bench.ranking import train, train_rank
    from agentctx.cli.services import CliServices
    from agentctx.repo.ranking.model import shipped_text

    def say(text: str) -> None:
        click.echo(text, err=True)

    train.require()
    work = work if work is not None else settings.cache_root(os.environ) / "rank-examples"
    found = train_rank.gather(repos, history, work, say)
    fixes = found.n_fixes
    click.echo(f"{sum(fixes.values())} fixes: " + ", ".join(f"{repo} {n}" for repo, n in sorted(fixes.items())))
    if mine_only:
        return
    base = None if anew else json.loads(shipped_text())
    chosen = rounds or ((150, 110) if anew else (30, 25))
    made = train_rank.train(found, train.Settings(rounds=chosen, dropped=drop, base=base), say)
    click.echo(train_rank.quality(found, made.fitted))
    if evaluate:
        with CliServices() as services:
            click.echo(train_rank.replayed(repos, found, made.fitted, evaluate, services, say))
    out = out if out is not None else settings.user_file(os.environ).parent / MODEL_FILE
    made.write(out)
    click.echo(f"written to {out}; use it with --rank-model, or rank_model in agentctx.toml")
