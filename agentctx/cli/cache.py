"""`agentctx cache show` and `agentctx cache clear`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import click

from agentctx import settings
from agentctx.cli.output import echo_json
from agentctx.errors import UsageError

# Models are not cache entries: `agentctx models remove` is for them.
PARTS = {"index": "index.sqlite3", "runs": "runs", "logs": "logs"}


@click.group(short_help="Show or clear the cache.")
def cache() -> None:
    """The cache: parsed files, and the runs of `agentctx edit` (patches, reports). Models have their own command."""


@cache.command()
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def show(form: str) -> None:
    """Where the cache is and how much it holds."""
    root = settings.cache_root(os.environ)
    sizes = {name: size_of(root, file) for name, file in PARTS.items()}
    if form == "json":
        rows = {name: {"path": str(root / PARTS[name]), "bytes": size} for name, size in sizes.items()}
        echo_json({"schema_version": 1, "root": str(root), "parts": rows})
        return
    click.echo(str(root))
    for name, size in sizes.items():
        click.echo(f"  {name:<6} {size / 1e6:8.1f} MB")


@cache.command()
@click.argument("parts", nargs=-1, type=click.Choice(list(PARTS)))
def clear(parts: tuple[str, ...]) -> None:
    """Remove PARTS (index, runs, logs); without any, the index. Runs are what `edit --undo` needs."""
    root = settings.cache_root(os.environ)
    for name in parts or ("index",):
        freed = size_of(root, PARTS[name])
        for path in _files(root, PARTS[name]):
            _remove(path)
        click.echo(f"removed {name}: {freed / 1e6:.1f} MB")


def _files(root: Path, name: str) -> list[Path]:
    """The part itself and, for a database, the files beside it."""
    return [path for path in (root / name, root / f"{name}-wal", root / f"{name}-shm") if path.exists()]


def size_of(root: Path, name: str) -> int:
    """Bytes on disk."""
    total = 0
    for path in _files(root, name):
        files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
        total += sum(file.stat().st_size for file in files)
    return total


def _remove(path: Path) -> None:
    try:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    except OSError as error:
        raise UsageError(f"can't remove {path}: {error.strerror}") from error
