"""Run a check in a worktree, and prove that it looked at the worktree's code and not at the user's."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from agentctx.edit.process import Finished, run_command
from agentctx.errors import CheckInvalid

_HOOKS = Path(__file__).with_name("hooks")
_KEEP_OUTPUT = 64 * 1024
_KEEP_LOG = 4 * 1024 * 1024
_LAYOUTS = ("", "src")  # roots that imports come from, in the order of PYTHONPATH
_NO_SUCH_COMMAND = (126, 127)  # what shells answer
_PYTEST_DID_NOT_RUN = (2, 3, 4, 5)  # interrupted, internal error, usage, nothing collected


class CheckStatus(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"  # it could not run: says nothing about the code
    TIMEOUT = "timeout"
    NOT_RUN = "not-run"


@dataclass(frozen=True, slots=True)
class Check:
    """A command, run at the worktree's root. `source_roots` (from the root) are added to `.` and `src`."""

    command: tuple[str, ...]
    timeout: float = 600.0  # seconds
    env: Mapping[str, str] = field(default_factory=dict)
    source_roots: tuple[str, ...] = ()
    is_pytest: bool = False  # ours: then a proof of origin must be there


def pytest_check(python: str, ids: Sequence[str], *, timeout: float = 600.0, source_roots: Sequence[str] = ()) -> Check:
    """The default check: these tests, up to the first failure."""
    command = (python, "-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider", *ids)
    return Check(command, timeout, source_roots=tuple(source_roots), is_pytest=True)


def pytest_guard(python: str, ids: Sequence[str], *, timeout: float = 600.0) -> Check:
    """The other tests of the same files: what an edit that passes its own test must not break."""
    files = list(dict.fromkeys(test.partition("::")[0] for test in ids))
    left_out = [word for test in ids for word in ("--deselect", test)]
    command = (python, "-m", "pytest", "-q", "-x", "--no-header", "-p", "no:cacheprovider", *left_out, *files)
    return Check(command, timeout, is_pytest=True)


def shell_check(line: str, *, timeout: float = 600.0, source_roots: Sequence[str] = ()) -> Check:
    """The user's own command line, as the shell reads it."""
    shell = ("cmd", "/c", line) if os.name == "nt" else ("/bin/sh", "-c", line)
    return Check(shell, timeout, source_roots=tuple(source_roots))


@dataclass(frozen=True, slots=True)
class Origins:
    """Files of the modules that the check's Python processes imported; paths from the root, sorted.

    `user_tree` must be empty. `binaries` are compiled modules of the user's tree that the worktree lacks.
    """

    n_processes: int = 0  # that left a proof
    worktree: tuple[str, ...] = ()
    user_tree: tuple[str, ...] = ()
    binaries: tuple[str, ...] = ()
    collect_errors: int = 0
    pytest_exits: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckResult:
    status: CheckStatus
    exit_code: int | None = None  # None: not run, or timeout
    seconds: float = 0.0
    output: str = ""  # the last 64 KiB, the worktree's path replaced by the repository's
    origins: Origins = Origins()

    def require_proof(self, check: Check) -> None:
        """Stop where the result says nothing about the worktree.

        Raises:
            CheckInvalid: the check imported the user's own tree, or pytest left no proof.
        """
        if self.origins.user_tree:
            named = ", ".join(self.origins.user_tree[:5])
            more = f" and {len(self.origins.user_tree) - 5} more" if len(self.origins.user_tree) > 5 else ""
            raise CheckInvalid(
                f"the check imported your own tree instead of the edited copy: {named}{more}",
                hint="name the folder that holds the package as a source root, or use a relative path in the check",
            )
        done = self.status in (CheckStatus.PASSED, CheckStatus.FAILED)
        if check.is_pytest and done and not self.origins.n_processes:
            raise CheckInvalid(
                "the check left no proof of where its modules came from",
                hint="the Python must read PYTHONPATH (no -I or -E)",
            )


@dataclass(frozen=True, slots=True)
class Place:
    """Where a check runs: a worktree of `tree`; `dependencies` are the folders that both share."""

    worktree: Path
    tree: Path
    dependencies: tuple[Path, ...] = ()


def run_check(check: Check, place: Place, environment: Mapping[str, str]) -> CheckResult:
    """Run `check`; on Ctrl-C its processes are ended first.

    `environment` is what the command starts with, without GIT_* of hooks (`vcs.clean_environment`).
    """
    with tempfile.TemporaryDirectory(prefix="agentctx-origin-") as proof:
        env = check_environment(check, place, environment, Path(proof))
        try:
            done = run_command(check.command, cwd=place.worktree, env=env, timeout=check.timeout, keep=_KEEP_OUTPUT)
        except OSError as error:
            return CheckResult(CheckStatus.ERROR, output=f"{check.command[0]}: {error.strerror}")
        origins = _read_origins(Path(proof))
    return CheckResult(_status(done, origins, check), done.exit_code, done.seconds, _text(done.output, place), origins)


def check_environment(check: Check, place: Place, environment: Mapping[str, str], proof: Path) -> dict[str, str]:
    """The environment in which Python imports from the worktree and writes where its modules came from."""
    roots = [str(place.worktree / root) for root in (*_LAYOUTS, *check.source_roots)]
    present = [str(Path(root)) for root in dict.fromkeys(roots) if os.path.isdir(root)]
    inherited = [entry for entry in environment.get("PYTHONPATH", "").split(os.pathsep) if entry]
    skip = [str(place.tree / name) for name in (".venv", "venv", "node_modules")]
    origin = {
        "tree": str(place.tree),
        "worktree": str(place.worktree),
        "skip": sorted({*skip, *map(str, place.dependencies)}),
        "out": str(proof),
    }
    addopts = [*filter(None, [environment.get("PYTEST_ADDOPTS", "")]), "-p agentctx_origin"]
    return {
        **environment,
        **check.env,
        "PYTHONPATH": os.pathsep.join([str(_HOOKS), *present, *inherited]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTEST_ADDOPTS": " ".join(addopts),
        "AGENTCTX_ORIGIN": json.dumps(origin),
    }


def make_log(python: str, ids: Sequence[str], place: Place, environment: Mapping[str, str]) -> bytes:
    """What pytest says about these tests on the unedited tree, for a request that comes without a log.

    Raises:
        CheckInvalid: the tests imported the user's own tree, so the log is not about the snapshot.
        OSError: `python` can't be started.
    """
    check = pytest_check(python, ids)
    command = tuple(part for part in check.command if part != "-x")
    with tempfile.TemporaryDirectory(prefix="agentctx-origin-") as proof:
        env = check_environment(check, place, environment, Path(proof))
        done = run_command(command, cwd=place.worktree, env=env, timeout=check.timeout, keep=_KEEP_LOG)
        origins = _read_origins(Path(proof))
    CheckResult(_status(done, origins, check), done.exit_code, origins=origins).require_proof(check)
    return done.output.replace(os.fsencode(place.worktree), os.fsencode(place.tree))


def _status(done: Finished, origins: Origins, check: Check) -> CheckStatus:
    """A collection error is a failure (the tests' imports fail); tests that don't exist are an error."""
    if done.exit_code is None:
        return CheckStatus.TIMEOUT
    if done.exit_code == 0:
        return CheckStatus.PASSED
    if origins.collect_errors:
        return CheckStatus.FAILED
    exits = {done.exit_code} if check.is_pytest else set(origins.pytest_exits)
    if exits & set(_PYTEST_DID_NOT_RUN) or (done.exit_code in _NO_SUCH_COMMAND and not origins.pytest_exits):
        return CheckStatus.ERROR
    return CheckStatus.FAILED


def _read_origins(folder: Path) -> Origins:
    records = [json.loads(path.read_text()) for path in sorted(folder.glob("*.json"))]

    def all_of(key: str) -> tuple[str, ...]:
        return tuple(sorted({item for record in records for item in record[key]}))

    exits = {record["pytest_exit"] for record in records if record["pytest_exit"] is not None}
    return Origins(
        n_processes=len(records),
        worktree=all_of("worktree"),
        user_tree=all_of("tree"),
        binaries=all_of("binaries"),
        collect_errors=sum(record["collect_errors"] for record in records),
        pytest_exits=tuple(sorted(exits)),
    )


def _text(output: bytes, place: Place) -> str:
    return output.decode("utf-8", "replace").replace(str(place.worktree), str(place.tree))
