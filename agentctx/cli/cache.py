"""`agentctx cache show` and `agentctx cache clear`."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import click

from agentctx import settings
from agentctx.cli.output import echo_json
from agentctx.errors import UsageError
from agentctx.pipeline.prefixes import FOLDER as DRAFTER_FOLDER
from agentctx.repo.cache import INDEX_FILE, SyntaxCache
from agentctx.repo.tree_cache import clear_trees, show_trees

# Models are not cache entries: `agentctx models remove` is for them.
PARTS = {"index": INDEX_FILE, "drafter": DRAFTER_FOLDER, "runs": "runs", "logs": "logs"}


@click.group(short_help="Show or clear the cache.")
def cache() -> None:
    """The cache: parsed files, what drafters have read, and the runs of `agentctx edit` (patches, reports). Models have
    their own command."""


@cache.command()
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def show(form: str) -> None:
    """Where the cache is and how much it holds."""
    root = settings.cache_root(os.environ)
    sizes = {name: size_of(root, name) for name in PARTS}
    trees = show_trees(root)
    if form == "json":
        rows = {name: {"path": str(root / PARTS[name]), "bytes": size} for name, size in sizes.items()}
        known = [{"root": tree.root, "path": str(tree.path), "bytes": tree.n_bytes} for tree in trees]
        echo_json({"schema_version": 1, "root": str(root), "parts": rows, "trees": known})
        return
    click.echo(str(root))
    for name, size in sizes.items():
        click.echo(f"  {name:<7} {size / 1e6:8.1f} MB")
    for tree in trees:
        click.echo(f"  of the index, files of {tree.root}: {tree.n_bytes / 1e6:.1f} MB")


@cache.command()
@click.argument("parts", nargs=-1, type=click.Choice(list(PARTS)))
def clear(parts: tuple[str, ...]) -> None:
    """Remove PARTS (index, drafter, runs, logs); without any, the index. Runs are what `edit --undo` needs."""
    root = settings.cache_root(os.environ)
    for name in parts or ("index",):
        freed = size_of(root, name)
        _remove(root, name)
        click.echo(f"removed {name}: {freed / 1e6:.1f} MB")


def size_of(root: Path, name: str) -> int:
    """Bytes on disk of a part. The index is one file for all repositories, and one per repository."""
    if name == "index":
        return SyntaxCache(root / PARTS[name]).show().n_bytes + sum(tree.n_bytes for tree in show_trees(root))
    return sum(file.stat().st_size for file in (root / PARTS[name]).rglob("*") if file.is_file())


def _remove(root: Path, name: str) -> None:
    if name == "index":
        SyntaxCache(root / PARTS[name]).clear()
        clear_trees(root)
        return
    path = root / PARTS[name]
    try:
        if path.exists():
            shutil.rmtree(path)
    except OSError as error:
        raise UsageError(f"can't remove {path}: {error.strerror}") from error
