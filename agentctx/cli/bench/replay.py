"""`agentctx bench replay`."""

from __future__ import annotations

import os
from pathlib import Path

import click

from agentctx import settings
from agentctx.cli.output import echo_json

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
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def replay(
    cases: Path,
    mirrors: Path,
    logs: Path | None,
    budgets: tuple[int, ...],
    repos: tuple[str, ...],
    languages: tuple[str, ...],
    rank_model: str | None,
    form: str,
) -> None:
    """Select for bug fixes of public repositories as they were before the fix, with its tests staged.

    Recall: of the lines that the fix edited, those that are kept, mean over cases. All: the share of cases with every
    such line. Closure: of the definitions that the fix calls, those that are kept.
    """
    from agentctx.bench.cases import read_cases
    from agentctx.bench.replay import replay as run
    from agentctx.bench.replay_table import data, table
    from agentctx.cli.services import CliServices

    chosen = [
        case
        for case in read_cases(cases, logs)
        if (not repos or case.repo in repos) and (not languages or case.language in languages)
    ]
    options = settings.load(None, {"rank_model": rank_model}, os.environ).options
    with CliServices() as services:
        rows = list(run(chosen, mirrors, budgets, services, options, services.progress))
    if form == "json":
        echo_json(data(rows, budgets))
        return
    click.echo(table(rows, budgets))
    for row in rows:
        if row.error is not None:
            click.echo(f"  {row.case} at {row.budget}: {row.error}", err=True)
