"""What the evidence says, as texts and sets of terms: the test, its changed lines, the log, the request. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from agentctx.prompt import Evidence, Task
from agentctx.repo.locate import Located
from agentctx.repo.locate_tests import Touched, touched_by, touched_imports
from agentctx.repo.ranking.literals import literals
from agentctx.repo.ranking.twins import lost_lines
from agentctx.repo.terms import query_terms
from agentctx.source import RepoGraph

MAX_REMOVED = 40_000  # characters of what was taken from tests
MAX_CHANGED = 400  # changed lines of tests that are read


@dataclass(frozen=True, slots=True)
class Queries:
    """`terms`: name of a query -> its terms. `names`: whole words of the evidence; `changed_names`: of changed lines;
    `removed_names`: of lines that the change took from the tests, which speak of the code as it is."""

    terms: Mapping[str, frozenset[str]]
    names: frozenset[str]
    changed_names: frozenset[str]
    removed_names: frozenset[str]
    test_words: frozenset[str]
    strings: tuple[str, ...]
    lines: tuple[str, ...]
    n_changed: int = 0
    titles: tuple[str, ...] = ()  # names of the failing tests
    lost: tuple[str, ...] = ()  # lines that the change took from the tests
    bound: frozenset[str] = frozenset()  # names that changed import lines of the tests bind

    @property
    def wanted(self) -> list[str]:
        return sorted(frozenset().union(*self.terms.values()))


_NAME = re.compile(r"[^\W\d]\w+")


def queries(graph: RepoGraph, data: Mapping[str, bytes], task: Task, evidence: Evidence, located: Located) -> Queries:
    tests = test_text(graph, data, located)
    touched = touched_tests(graph, task, evidence, located)
    lines = "\n".join(changed_lines(data, touched)) or tests
    removed = "\n".join(change.removed for change in evidence.changes if change.path in touched)[:MAX_REMOVED]
    names = " ".join(graph.symbols[test].qualname for test in located.failing_tests)
    errors = "\n".join(evidence.error_lines)
    strong = "\n".join((errors, names, task.request))
    said = "\n".join((task.request, *evidence.mentions))
    return Queries(
        terms={
            "all": query_terms("\n".join((_told(evidence), tests, lines, task.request))),
            "tests": query_terms(tests),
            "changed": query_terms(lines),
            "removed": query_terms(removed),
            "strong": query_terms("\n".join((strong, *literals(lines)))),
            "names": query_terms(names),
        },
        names=frozenset(_NAME.findall("\n".join((tests, lines, said)))),
        changed_names=frozenset(_NAME.findall("\n".join((lines, errors, task.request)))),
        test_words=query_terms(names) - {"test", "tests"},
        removed_names=frozenset(_NAME.findall(removed)),
        strings=tuple(dict.fromkeys((*literals(lines), *literals(removed)))),
        n_changed=sum(len(span) for change in touched.values() for span in change.lines),
        lines=tuple(dict.fromkeys((*evidence.error_lines, *task.request.splitlines()))),
        titles=tuple(graph.symbols[test].name for test in located.failing_tests),
        lost=lost_lines(removed, lines.split("\n")),
        bound=_bound(graph, touched),
    )


def _told(evidence: Evidence) -> str:
    """What a log tells of the failure; all of it where no line says what went wrong. The rest of a log (tests that
    passed, versions, values) has words that some code holds by chance."""
    return "\n".join((*evidence.error_lines, *evidence.mentions)) if evidence.error_lines else evidence.text


def test_text(graph: RepoGraph, data: Mapping[str, bytes], located: Located) -> str:
    """Source of the failing tests and their fixtures."""
    parts = []
    for test in (*located.failing_tests, *located.fixtures):
        symbol = graph.symbols[test]
        parts.append(data[symbol.path][symbol.span.start : symbol.span.end].decode("utf-8", "replace"))
    for path, unit in located.test_units:
        span = graph.files[path].units[unit].span
        parts.append(data[path][span.start : span.end].decode("utf-8", "replace"))
    return "\n".join(parts)


def touched_tests(graph: RepoGraph, task: Task, evidence: Evidence, located: Located) -> dict[str, Touched]:
    """Changed lines of test files: of the failing tests' files, where there are any; else of all."""
    files = {graph.symbols[test].path for test in located.failing_tests} | {ref.path for ref in task.tests}
    changed = touched_by(change for change in evidence.changes if change.is_test and change.path in graph.files)
    paths = [path for path in sorted(changed) if path in files] or sorted(changed)
    return {path: changed[path] for path in paths}


def _bound(graph: RepoGraph, touched: Mapping[str, Touched]) -> frozenset[str]:
    """What the changed imports of the tests bring in, by the names that they bind."""
    found = (touched_imports(graph.files[path], change) for path, change in touched.items())
    return frozenset().union(*found)


def changed_lines(data: Mapping[str, bytes], touched: Mapping[str, Touched]) -> list[str]:
    """The text of the touched lines."""
    found: list[str] = []
    for path, change in touched.items():
        lines = data[path].decode("utf-8", "replace").split("\n")
        for span in change.lines:
            found += lines[span.start - 1 : span.end]
    return found[:MAX_CHANGED]
