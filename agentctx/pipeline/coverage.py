"""Coverage reports of the tree, or those that the user names -> which lines tests ran. IO."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from agentctx.errors import TaskError
from agentctx.prompt import Finding
from agentctx.repo.coverage import Coverage, CoverageError, Row, coverage_of, merged, read_json, read_lcov
from agentctx.repo.coverage_db import read_database
from agentctx.repo.logs.paths import PathMap

# Where the tools put their reports; they are looked for whether git ignores them or not.
USUAL = (
    "coverage.json", ".coverage", "lcov.info", "coverage.lcov", "coverage.info",
    "coverage/lcov.info", "coverage/coverage.json", "build/lcov.info", "target/lcov.info",
)  # fmt: skip
NONE = "none"  # the value of the option that looks for nothing
MAX_BYTES = 128 * 1024 * 1024
LISTED = 3  # files that a finding names


def read_coverage(
    root: Path, names: Sequence[str], data: Mapping[str, bytes], tests: Sequence[str]
) -> tuple[Coverage | None, tuple[Finding, ...]]:
    """What the reports say of the indexed files, and of `tests` (symbol ids) where they tell tests apart.

    `names`: files, relative to `root`; () looks for those in the usual places, ('none',) for none.

    Raises:
        TaskError: a file that was named isn't there.
    """
    if tuple(names) == (NONE,):
        return None, ()
    files = [root / name for name in names] or [root / name for name in USUAL if (root / name).is_file()]
    missing = [name for name, file in zip(names, files, strict=False) if not file.is_file()]
    if missing:
        raise TaskError(f"there is no coverage file '{missing[0]}'", hint="--coverage FILE is seen from the repository")
    findings: list[Finding] = []
    found = [one for file in files if (one := _read(root, file, data, tests, findings)) is not None]
    if not found:
        return None, tuple(findings)
    whole = merged(found)
    findings += _aged(root, files, whole)
    return whole, tuple(findings)


def _read(
    root: Path, file: Path, data: Mapping[str, bytes], tests: Sequence[str], findings: list[Finding]
) -> Coverage | None:
    name = file.relative_to(root).as_posix() if file.is_relative_to(root) else str(file)
    try:
        rows = _rows(file)
    except (CoverageError, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        findings.append(Finding("coverage", "warning", f"{name} was not used: {reason}", name))
        return None
    made = coverage_of(rows, PathMap(frozenset(data)), lambda path: data[path].count(b"\n") + 1, tests)
    if not made.ran:
        message = f"{name} was not used: none of its {len(rows)} files is a file of this repository as it is now"
        findings.append(Finding("coverage", "warning", message, name))
        return None
    return made


def _rows(file: Path) -> list[Row]:
    if file.stat().st_size > MAX_BYTES:
        raise CoverageError(f"it is larger than {MAX_BYTES // 1024 // 1024} MiB")
    with file.open("rb") as stream:
        head = stream.read(16)
        if head.startswith(b"SQLite format 3"):
            return read_database(file)
        data = head + stream.read()
    return read_json(data) if data.lstrip()[:1] == b"{" else read_lcov(data)


def _aged(root: Path, files: Sequence[Path], found: Coverage) -> list[Finding]:
    """Files that the report is too old for: those that are shorter now, and those that were written after it."""
    oldest = min(file.stat().st_mtime for file in files)
    younger = [path for path in found.ran if (root / path).is_file() and (root / path).stat().st_mtime > oldest]
    out = []
    for paths, what in (
        (found.stale, "not used, they are shorter now"),
        (younger, "edited since, so its lines may be off"),
    ):
        if paths:
            named = ", ".join(paths[:LISTED]) + (" ..." if len(paths) > LISTED else "")
            out.append(Finding("coverage", "note", f"coverage of {len(paths)} files ({named}): {what}"))
    return out
