"""Bug fixes from public histories as cases: a tree, its failing tests and log, and the lines that the fix edited."""

from __future__ import annotations

import ast
import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agentctx import vcs
from agentctx.errors import UsageError

Gold = tuple[str, int, int]  # path, first and last line of the parent that the fix edited


@dataclass(frozen=True, slots=True)
class Case:
    """`base`: the fix's parent. `failing`: ids of failing tests; without them the test files stand for them."""

    id: str
    repo: str
    language: str
    base: str
    fix: str
    tests: tuple[str, ...]
    failing: tuple[str, ...]
    gold: tuple[Gold, ...]
    log: Path | None = None

    @property
    def gold_lines(self) -> frozenset[tuple[str, int]]:
        return lines_of(self.gold)


def lines_of(gold: Iterable[Gold]) -> frozenset[tuple[str, int]]:
    """(path, line) of every edited line."""
    return frozenset((path, line) for path, first, last in gold for line in range(first, last + 1))


def read_cases(file: Path, logs: Path | None = None) -> tuple[Case, ...]:
    """One JSON object a line; the log of a case is `logs/ID.log` beside the file (or in `logs`) where there is one.

    Raises:
        UsageError: the file can't be read, or a line of it is no case.
    """
    folder = logs if logs is not None else file.parent / "logs"
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"can't read the cases in {file}: {error}") from error
    return tuple(_case(line, n, file, folder) for n, line in enumerate(lines, 1) if line.strip())


def _case(line: str, number: int, file: Path, folder: Path) -> Case:
    try:
        raw = json.loads(line)
        log = folder / f"{raw['id']}.log"
        return Case(
            id=raw["id"],
            repo=raw["repo"],
            language=raw["lang"],
            base=raw["base"],
            fix=raw["fix"],
            tests=tuple(raw["tests"]),
            failing=tuple(raw.get("failing", ())),
            gold=tuple((str(path), int(first), int(last)) for path, first, last in raw["gold"]),
            log=log if log.is_file() else None,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{file}:{number} is no case: {error!r}") from error


def mirror(root: Path, repo: str) -> Path:
    """The clone of `owner/name` in a folder of clones: `owner+name/repo`, `owner+name`, or the folder itself.

    Raises:
        UsageError: there is none.
    """
    name = repo.replace("/", "+")
    for path in (root / name / "repo", root / name):
        if path.is_dir():
            return path
    raise UsageError(f"no clone of {repo} in {root}", hint=f"clone it into {root / name}")


@contextmanager
def checked_out(clone: Path, case: Case) -> Iterator[Path]:
    """A work tree of the parent with the fix's tests in place, staged; removed afterwards.

    Raises:
        GitError: the clone doesn't have the commits.
    """
    work = Path(tempfile.mkdtemp(prefix="agentctx-replay-"))
    tree = work / "tree"
    try:
        vcs.run(clone, "worktree", "add", "--detach", "--force", str(tree), case.base)
        vcs.run(tree, "checkout", case.fix, "--", *case.tests)
        yield tree.resolve()
    finally:
        shutil.rmtree(work, ignore_errors=True)
        vcs.run(clone, "worktree", "prune")


_ASIDE = re.compile(r"(^|/)(tests?|docs|examples)/|(^|/)test_")
MAX_PLACES = 3


def needed(clone: Path, case: Case, data: Mapping[str, bytes]) -> dict[str, list[tuple[str, int]]]:
    """Python: the functions and classes that the fix's added lines call, each with its (path, line) in the parent."""
    paths = sorted({path for path, _, _ in case.gold})
    diff = vcs.text(clone, "diff", "-U0", case.base, case.fix, "--", *paths)
    added = "\n".join(line[1:] for line in diff.splitlines() if line.startswith("+") and not line.startswith("+++"))
    calls = set(re.findall(r"([A-Za-z_]\w*)\s*\(", added))
    where: dict[str, list[tuple[str, int]]] = {}
    for path in sorted(data):
        if path.endswith(".py") and not _ASIDE.search(path):
            for name, line in _definitions(data[path]):
                if name in calls:
                    where.setdefault(name, []).append((path, line))
    return {name: places for name, places in sorted(where.items()) if len(places) <= MAX_PLACES}


def _definitions(data: bytes) -> Sequence[tuple[str, int]]:
    try:
        nodes = list(ast.walk(ast.parse(data)))
    except (SyntaxError, ValueError, RecursionError):
        return ()
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return [(node.name, node.lineno) for node in nodes if isinstance(node, kinds)]
