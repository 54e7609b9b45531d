"""Bug fixes in a history, found without running anything: commits that edit tests and a little code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from agentctx import vcs
from agentctx.bench.replay.cases import Gold
from agentctx.repo.languages import is_test_path, language_of

MAX_SOURCES = 4
MAX_TESTS = 6
MAX_GOLD = 120  # lines; more is a rewrite, not a fix
_ASIDE = re.compile(r"(^|/)(docs?|examples?|benchmarks?)/|(^|/)(setup|noxfile|conf)\.py$")


@dataclass(frozen=True, slots=True)
class Fix:
    """A commit with its parent. `tests`: paths -> object ids as the fix has them; `gold`: lines of the parent."""

    id: str
    parent: str
    time: int
    subject: str
    tests: tuple[tuple[str, str], ...]
    gold: tuple[Gold, ...]


def fixes(clone: Path, limit: int, head: str = "HEAD") -> Iterator[Fix]:
    """At most `limit` fixes along first parents, newest first: 1 to 6 test files and 1 to 4 files of code edited,
    nothing else of code added, deleted or renamed.

    Raises:
        GitError: no commits, or not a repository.
    """
    shape = ("--first-parent", "-m", "--raw", "--no-abbrev", "-z", "--no-renames", "--format=%x01%H%x02%P%x02%ct%x02%s")
    found = 0
    for block in vcs.text(clone, "log", *shape, head).split("\x01")[1:]:
        fix = _candidate(block)
        if fix is None:
            continue
        gold = _gold(clone, fix.parent, fix.id, [path for path, _, _ in fix.gold])
        if not gold or sum(last - first + 1 for _, first, last in gold) > MAX_GOLD:
            continue
        yield Fix(fix.id, fix.parent, fix.time, fix.subject, fix.tests, gold)
        found += 1
        if found == limit:
            return


def _candidate(block: str) -> Fix | None:
    """The commit, with its edited code as gold of no lines yet; None where it has not the shape of a fix."""
    head, _, rest = block.partition("\0")
    fields = head.rstrip("\n").split("\x02")
    if len(fields) != 4 or not fields[1]:
        return None
    tests, sources = [], []
    entries = rest.strip("\n").split("\0")
    for info, path in zip(entries[::2], entries[1::2], strict=False):
        parts = info.split()
        if len(parts) != 5 or language_of(path) is None or _ASIDE.search(path):
            continue
        status, new = parts[4], parts[3]
        if is_test_path(path):
            if status != "D":
                tests.append((path, new))
        elif status != "M":
            return None
        else:
            sources.append((path, 0, 0))
    if not (1 <= len(tests) <= MAX_TESTS and 1 <= len(sources) <= MAX_SOURCES):
        return None
    return Fix(fields[0], fields[1].split()[0], int(fields[2]), fields[3], tuple(sorted(tests)), tuple(sources))


_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? ", re.MULTILINE)


def _gold(clone: Path, old: str, new: str, paths: list[str]) -> tuple[Gold, ...]:
    """Edited lines of the old side; of what is only added, the line before it."""
    out: list[Gold] = []
    for path in sorted(paths):
        diff = vcs.text(clone, "diff", "-U0", "--no-color", "--no-ext-diff", old, new, "--", path)
        for match in _HUNK.finditer(diff):
            first, count = int(match[1]), int(match[2]) if match[2] is not None else 1
            out.append((path, max(first, 1), max(first, 1) + max(count, 1) - 1))
    return tuple(out)
