"""`agentctx bench fuzz`."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path

import click

from agentctx.bench.fuzz import files as bench
from agentctx.bench.fuzz import logs as fuzz_logs
from agentctx.cli.output import echo_json
from agentctx.errors import UsageError

FOLDER = click.Path(path_type=Path, file_okay=False, exists=True)


@click.command(short_help="Whether broken files and logs are read without a fault.")
@click.argument("folders", nargs=-1, required=True, type=FOLDER)
@click.option("--files", type=click.IntRange(min=0), default=2000, help="Source files to check.", show_default=True)
@click.option("--logs", type=click.IntRange(min=0), default=0, help="Mutated logs to read.", show_default=True)
@click.option("--seed", type=int, default=0, show_default=True)
@click.option("--language", multiple=True, metavar="NAME", help="Only files of this language.")
@click.option("--show", type=click.IntRange(min=0), default=10, help="How many failures to list.", show_default=True)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def fuzz(
    folders: tuple[Path, ...], files: int, logs: int, seed: int, language: tuple[str, ...], show: int, form: str
) -> None:
    """Parse source files of FOLDERS, most of them mutated, and random parts of them as a prompt shows them.

    Logs are made of the *.log and *.txt below FOLDERS, and of code blocks so named in *.md.

    Counts crashes, files whose units don't tile them, and kept parts with more syntax errors than the file.
    Exits with 1 when there is one in a file that had no syntax error, a crash, or a wrong unit; or a log that
    can't be read, is read differently twice, slowly, or to something impossible.
    """
    found = bench.corpus(folders)
    unknown = sorted({*language} - {*found})
    if unknown:
        known = ", ".join(found) or "none"
        raise UsageError(f"no files in {', '.join(unknown)} below these folders", hint=f"There are: {known}.")
    chosen = {name: paths for name, paths in found.items() if not language or name in language}
    seeds = fuzz_logs.seeds_below(folders) if logs else []
    if logs and not seeds:
        raise UsageError("no logs (*.log, *.txt, or code blocks so named in *.md) below these folders")
    done = bench.fuzz(chosen, files, seed)
    if form == "text" and done.n_files:
        click.echo(_text(done, show))
    read = fuzz_logs.run(logs, seed, seeds)
    if form == "json":
        echo_json({"files": asdict(done), "logs": asdict(read)})
    elif logs:
        click.echo(_logs_text(read, show))
    if read.failures or any(failure.whole or failure.kind != "errors" for failure in done.failures):
        raise SystemExit(1)


def _logs_text(read: fuzz_logs.LogFuzz, show: int) -> str:
    lines = [
        f"{read.n} mutated logs, {read.seconds:.0f} s of CPU, the slowest {read.slowest:.2f} s per MB",
        f"{read.n_failing_tests} failing tests found in them",
        f"{len(read.failures)} failures",
        *(f"  case {case}: {text}" for case, text in read.failures[:show]),
    ]
    return "\n".join(lines)


def _text(result: bench.FuzzResult, show: int) -> str:
    counts = Counter((failure.kind, failure.whole) for failure in result.failures)
    speed = result.seconds / max(result.n_bytes, 1) * 1e7
    names = ", ".join(f"{name} {count}" for name, count in sorted(result.by_language.items()))
    lines = [
        f"{result.n_files} files, {result.n_bytes / 1e6:.1f} MB, {speed:.1f} ms of CPU per 10 KB",
        f"{names}; {result.n_whole} without syntax errors, {result.n_plain} as plain text",
        f"{result.n_kept} kept texts",
    ]
    for kind, words in (("crash", "crashes"), ("units", "with wrong units")):
        lines.append(f"{sum(n for (found, _), n in counts.items() if found == kind)} {words}")
    lines.append(f"{counts[('errors', True)]} with an error in kept text and none in the file")
    lines.append(f"{counts[('errors', False)]} with more errors in kept text than in a file that has some")
    for failure in result.failures[:show]:
        lines.append(f"  {failure.kind} {failure.language} {failure.path} (number {failure.seed}): {failure.detail}")
    return "\n".join(lines)
