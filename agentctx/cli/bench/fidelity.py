"""`agentctx bench fidelity`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import click

from agentctx import settings
from agentctx.cli.bench.shared import keeps_option
from agentctx.cli.options import run_options
from agentctx.cli.output import echo_json

FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)


@click.command(short_help="How well a model still expects real fixes when it reads a part of the prompt.")
@click.option("--cases", type=FILE, required=True, help="JSON lines: id, repo, lang, base, fix, tests, failing, gold.")
@click.option("--mirrors", type=FOLDER, required=True, help="Folder of clones with history: owner+name.")
@click.option("--logs", type=FOLDER, help="Folder of failing logs, ID.log (default: logs beside the cases).")
@click.option("--repo", "repos", multiple=True, metavar="OWNER/NAME", help="Only these.")
@run_options(
    "engine", "device", "dtype", "model", "drafter", "drafter_device", "drafter_dtype", "scorer", "calibration"
)
@keeps_option(0.2, 0.3)
@click.option("--window", type=click.IntRange(min=64), default=4096, show_default=True)
@click.option("--count", type=click.IntRange(min=1), default=30, show_default=True, help="Cases.")
@click.option("--answer", type=click.IntRange(min=1), default=256, show_default=True, help="Most tokens of a fix.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def fidelity(
    cases: Path,
    mirrors: Path,
    logs: Path | None,
    repos: tuple[str, ...],
    keeps: tuple[float, ...],
    window: int,
    count: int,
    answer: int,
    form: str,
    **given: Any,
) -> None:
    """Negative log likelihood of real fixes, and next-token KL divergence from dense prefill: the whole window; what is
    selected, at its positions; the paper's chunks of tokens; what is selected, as contiguous text.

    \b
    agentctx bench fidelity --cases dev.jsonl --mirrors DIR --model qwen2.5-coder-1.5b --drafter qwen2.5-coder-0.5b
    """
    from agentctx.bench.replay import fidelity as bench
    from agentctx.bench.replay.cases import read_cases
    from agentctx.cli.services import CliServices

    chosen = tuple(case for case in read_cases(cases, logs) if not repos or case.repo in repos)
    options = settings.load(None, given, os.environ).options
    request = bench.Request(chosen, mirrors, options, keeps, window, count, answer)
    with CliServices() as services:
        rows = list(bench.measure(request, services, lambda text: click.echo(text, err=True)))
    if form == "json":
        echo_json(bench.data(rows))
    else:
        click.echo(bench.table(rows))
