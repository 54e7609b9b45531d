"""Bug fixes -> examples to learn from: features of the chunks and units of the parent, and which the fix edited.

No code is run, so there is no log. Half of the examples get what a log might say instead (`pseudo_log`): the changed
lines of the tests that assert something; a quarter get the commit's subject as the request. A sixth of the commits
make a second example, of the subject alone: people ask without a test, too. Which ones follows from the commit's id.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

import numpy as np
import numpy.typing as npt

from agentctx import vcs
from agentctx.bench.ranking.fixes import Fix, fixes
from agentctx.bench.ranking.past import Pasts
from agentctx.bench.ranking.trees import Trees
from agentctx.bench.replay.cases import lines_of
from agentctx.errors import TaskError
from agentctx.prompt import ChangeSource, Evidence, FileChange, Task, TestRef
from agentctx.repo.graph import build_graph
from agentctx.repo.index import index
from agentctx.repo.locate import Located, locate
from agentctx.repo.logs.mentions import identifiers
from agentctx.repo.ranking.features import History, Table, table
from agentctx.repo.ranking.parts import part_features
from agentctx.repo.ranking.score import shortlist
from agentctx.repo.ranking.text import Floats, Ints
from agentctx.repo.resolvers.families import config_names
from agentctx.source import FileSyntax, RepoGraph
from agentctx.spans import LineSpan

CANDIDATES = 260  # chunks of an example: the best by the simple score, those of the fix,
OTHERS = 40  # and some of the rest, which stand for all of it
BYTES_PER_TOKEN = 3.6
_ASSERTS = re.compile(r"assert|expect|should|require|throws|raises|panic|EQ\(|error|[Ee]qual", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Given:
    """A task as the product would see it."""

    graph: RepoGraph
    data: Mapping[str, bytes]
    task: Task
    evidence: Evidence
    located: Located


@dataclass(frozen=True, slots=True)
class Example:
    """`gold`, `unit_gold`: edited lines in each candidate and unit; `lost`: those in no candidate (tests, none).

    `nodes`: the candidates' numbers in the graph of chunks. `weight`: how many chunks a candidate stands for. Sizes
    in estimated tokens; `evidence`: of tests and log.
    """

    id: str
    features: Floats
    gold: Floats
    weight: Floats
    size: Floats
    nodes: Ints
    unit_of: Ints
    unit_features: Floats
    unit_gold: Floats
    unit_size: Floats
    lost: int
    evidence: float


def mine(clone: Path, start: int, stop: int, say: Callable[[str], None]) -> Iterator[Example]:
    """The examples of the fixes number `start` to `stop` (not included) of a clone, newest first.

    Raises:
        GitError: it is no repository, or has no commits.
    """
    trees, pasts = Trees(clone), Pasts(clone)
    memory: dict[str, FileSyntax] = {}
    for number, fix in enumerate(islice(fixes(clone, stop), start, None), start + 1):
        say(f"{clone}: fix {number}, {fix.id[:10]} {fix.subject[:60]}")
        try:
            tasks = dressed(given(trees, fix.parent, fix.id, fix.tests, memory), fix)
        except TaskError as error:
            say(f"{fix.id[:10]} is left out: {error.message}")
            continue
        made = (example(task, fix, pasts.before(fix.id)) for task in tasks)
        yield from (one for one in made if one is not None)


def given(
    trees: Trees, parent: str, fix: str, tests: Sequence[tuple[str, str]], memory: dict[str, FileSyntax]
) -> Given:
    """The parent's tree with the fix's tests staged.

    Raises:
        TaskError, GitError: a test isn't in the tree that can be indexed; the commits aren't there.
    """
    files = trees.files(parent, dict(tests))
    data = {file.path: file.data for file in files}
    configs = {path: text for path, text in data.items() if path.rpartition("/")[2] in config_names()}
    graph = build_graph(index(files, None, memory).syntax, configs)
    known = [path for path, _ in tests if path in data]
    evidence = Evidence(changes=staged(trees.clone, parent, fix, known))
    task = Task(tests=tuple(TestRef(path) for path in known))
    return Given(graph, data, task, evidence, locate(task, evidence, graph))


def staged(clone: Path, parent: str, fix: str, paths: Sequence[str]) -> tuple[FileChange, ...]:
    """What git would say of the fix's tests, put into the parent's tree.

    Raises:
        GitError: the commits aren't there.
    """
    found = vcs.diff(clone, parent, fix, "--", *paths).files if paths else ()
    return tuple(
        FileChange(
            path=one.path,
            source=ChangeSource.STAGED,
            status=one.status,
            lines=tuple(LineSpan(*span) for span in one.lines),
            cuts=one.cuts,
            added=_text(hunk.added for hunk in one.hunks),
            removed=_text(hunk.removed for hunk in one.hunks),
            is_test=True,
        )
        for one in found
        if one.path in paths
    )


def _text(parts: Iterable[bytes]) -> str:
    return b"".join(parts).decode("utf-8", "replace")


def dressed(made: Given, fix: Fix) -> list[Given]:
    """The tasks that are made of one fix."""
    dice = int(fix.id[:4], 16)
    out = made
    if dice % 2:
        out = replace(out, evidence=pseudo_log(out.evidence))
    if dice // 2 % 4 == 0:
        out = replace(out, task=replace(out.task, request=fix.subject))
    if dice // 8 % 6:
        return [out]
    task, nothing = Task(request=fix.subject), Evidence()
    return [out, Given(made.graph, made.data, task, nothing, locate(task, nothing, made.graph))]


def pseudo_log(evidence: Evidence) -> Evidence:
    lines = [line.strip() for change in evidence.changes for line in change.added.splitlines()]
    lines = list(dict.fromkeys(line for line in lines if _ASSERTS.search(line)))[:30]
    mentions = tuple(identifiers(lines))
    return replace(evidence, text="\n".join(lines), error_lines=tuple(lines), mentions=mentions)


def example(made: Given, fix: Fix, history: History | None) -> Example | None:
    """None where no candidate was edited: the fix edits nothing that is ranked."""
    full = table(made.graph, made.data, made.task, made.evidence, made.located, history)
    gold, unit_gold, lost = gold_of(made, full, fix)
    if not gold.any():
        return None
    chosen, weight = _chosen(full, gold, int(fix.id[:8], 16))
    units, features = part_features(made.graph, full, chosen)
    place = np.full(len(full.rows), -1, dtype=np.int64)
    place[chosen] = np.arange(len(chosen))
    texts = [len(full.nodes.chunks[int(node)].text) for node in full.rows[chosen]]
    tests = sum(len(made.data[ref.path]) for ref in made.task.tests)
    own = sum(len(made.graph.symbols[test].span) for test in made.located.failing_tests)
    return Example(
        id=fix.id,
        features=full.values[chosen],
        gold=gold[chosen],
        weight=weight,
        size=np.array(texts) / BYTES_PER_TOKEN + 4,
        nodes=full.rows[chosen],
        unit_of=place[full.unit_rows[units]],
        unit_features=features,
        unit_gold=unit_gold[units],
        unit_size=np.array([len(full.unit_texts[unit]) for unit in units.tolist()]) / BYTES_PER_TOKEN + 2,
        lost=lost,
        evidence=(own or min(tests, 12000)) / BYTES_PER_TOKEN,
    )


def gold_of(made: Given, full: Table, fix: Fix) -> tuple[Floats, Floats, int]:
    """Edited lines in each candidate of the table and in each of its units, and how many are in none."""
    lines = lines_of(fix.gold)
    by_path: dict[str, list[int]] = {}
    for path, line in sorted(lines):
        by_path.setdefault(path, []).append(line)
    gold, unit_gold = np.zeros(len(full.rows)), np.zeros(len(full.unit_texts))
    for unit, row in enumerate(full.unit_rows.tolist()):
        path = full.nodes.chunks[int(full.rows[row])].path
        if path in by_path:
            span = made.graph.files[path].units[int(full.unit_numbers[unit])].lines
            unit_gold[unit] = sum(span.holds(line) for line in by_path[path])
            gold[row] += unit_gold[unit]
    return gold, unit_gold, len(lines) - int(gold.sum())


def _chosen(full: Table, gold: Floats, seed: int) -> tuple[Ints, Floats]:
    best = shortlist(full, CANDIDATES)
    mask: npt.NDArray[np.bool_] = np.zeros(len(full.rows), dtype=np.bool_)
    mask[best] = True
    mask |= gold > 0
    rest = np.flatnonzero(~mask)
    some = np.sort(np.random.default_rng(seed).permutation(len(rest))[:OTHERS])
    weight = np.ones(len(full.rows))
    if len(some):
        weight[rest[some]] = len(rest) / len(some)
    chosen = np.sort(np.concatenate([np.flatnonzero(mask), rest[some]]))
    return chosen, weight[chosen]
