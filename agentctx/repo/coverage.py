"""Coverage reports (coverage.py's JSON and database, lcov) -> the lines that tests ran, in repository paths. Pure.

Lines that importing a module runs (`def` and `class` lines among them) tell nothing of a test: ask for the share of
a definition's body.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentctx.repo.logs.paths import PathMap
from agentctx.source import FileSyntax, RepoGraph, Symbol, SymbolKind

Lines = Mapping[str, frozenset[int]]  # repository path -> lines, 1-based


class CoverageError(ValueError):
    """A report that is no report of its kind; the message is a sentence for people."""


@dataclass(frozen=True, slots=True)
class Row:
    """What a report says of one file: its path as written; lines by test context ('' = no test); lines not run."""

    path: str
    ran: Mapping[str, Collection[int]]
    missed: Collection[int] = ()


@dataclass(frozen=True, slots=True)
class Coverage:
    """`ran`: what any test ran. `by_test`: what each of the tests that were asked about ran, as far as it is known.

    `measured`: the lines that could be run, where the report says it. `stale`: files that the report can't speak of,
    because they are shorter now.
    """

    ran: Lines = field(default_factory=dict)
    by_test: Mapping[str, Lines] = field(default_factory=dict)
    measured: Lines = field(default_factory=dict)
    stale: tuple[str, ...] = ()

    def lines(self, path: str, tests: Sequence[str] = ()) -> frozenset[int]:
        """Lines of `path` that one of `tests` (symbol ids) ran; without tests: that any test ran."""
        if not tests:
            return self.ran.get(path, frozenset())
        return frozenset(line for test in tests for line in self.by_test.get(test, {}).get(path, ()))

    def shares(self, graph: RepoGraph, tests: Sequence[str] = ()) -> dict[str, float]:
        """Per function the share (0 < s <= 1) of its body that the tests ran; what they didn't run is left out."""
        out = {}
        for path in sorted(self.ran):
            lines = self.lines(path, tests)
            file = graph.files.get(path)
            if file is None or not lines:
                continue
            for symbol in file.symbols:
                if symbol.kind not in (SymbolKind.FUNCTION, SymbolKind.METHOD):
                    continue
                body = _body(file, symbol)
                whole = self.measured[path].intersection(body) if path in self.measured else frozenset(body)
                ran = len(lines.intersection(body))
                if ran:
                    out[symbol.id] = min(1.0, ran / max(len(whole), 1))
        return out


def _body(file: FileSyntax, symbol: Symbol) -> range:
    """Lines behind the header; of a function that is all header, those behind its first line."""
    end = symbol.lines.end + 1
    body = range(file.units[symbol.header].lines.end + 1, end)
    return body or range(symbol.lines.start + 1, end) or range(symbol.lines.start, end)


def merged(found: Sequence[Coverage]) -> Coverage:
    """All that several reports say."""
    tests = sorted({test for one in found for test in one.by_test})
    return Coverage(
        ran=_union([one.ran for one in found]),
        by_test={test: _union([one.by_test.get(test, {}) for one in found]) for test in tests},
        measured=_union([one.measured for one in found]),
        stale=tuple(sorted({path for one in found for path in one.stale})),
    )


def _union(maps: Sequence[Lines]) -> Lines:
    return {
        path: frozenset().union(*(one.get(path, ()) for one in maps)) for path in sorted({p for m in maps for p in m})
    }


def coverage_of(rows: Iterable[Row], paths: PathMap, n_lines: Callable[[str], int], tests: Sequence[str]) -> Coverage:
    """Rows of a report -> its lines in the repository. `n_lines`: how long each file is now. `tests`: symbol ids."""
    wanted = _Wanted(tests, paths)
    ran: dict[str, set[int]] = {}
    measured: dict[str, set[int]] = {}
    by_test: dict[str, dict[str, set[int]]] = {}
    stale = set()
    for row in rows:
        place = paths.locate(row.path)
        if not place.in_repo:
            continue
        path = place.path
        last = max((line for lines in (*row.ran.values(), row.missed) for line in lines), default=0)
        if last > n_lines(path):
            stale.add(path)
            continue
        for context, lines in row.ran.items():
            ran.setdefault(path, set()).update(lines)
            for test in wanted.of(context):
                by_test.setdefault(test, {}).setdefault(path, set()).update(lines)
        if row.missed:
            measured.setdefault(path, set()).update(row.missed)
    sure = {path: frozenset(lines | ran.get(path, set())) for path, lines in sorted(measured.items())}
    tested = {test: _frozen(by_test[test]) for test in sorted(by_test)}
    return Coverage(_frozen(ran), tested, sure, tuple(sorted(stale)))


def _frozen(lines: Mapping[str, set[int]]) -> Lines:
    found = ((path, frozenset(line for line in lines[path] if line > 0)) for path in sorted(lines))
    return {path: some for path, some in found if some}  # an empty module ran its "line 0"


class _Wanted:
    """Which of the tests a context names: `path::Class::name[param]|run` (pytest-cov) or `pkg.module.Class.name`."""

    def __init__(self, tests: Sequence[str], paths: PathMap) -> None:
        self._paths = paths
        self._ids = frozenset(tests)
        self._dotted: dict[str, list[str]] = {}
        for test in tests:
            path, _, qualname = test.partition("::")
            parts = [*path.rpartition(".")[0].split("/"), *qualname.split(".")]
            for start in range(len(path.split("/"))):
                self._dotted.setdefault(".".join(parts[start:]), []).append(test)
        self._known: dict[str, tuple[str, ...]] = {}

    def of(self, context: str) -> tuple[str, ...]:
        if context not in self._known:
            self._known[context] = self._of(context)
        return self._known[context]

    def _of(self, context: str) -> tuple[str, ...]:
        name = context.partition("|")[0].partition("[")[0]
        if "::" in name:
            path, *names = name.split("::")
            test = f"{self._paths.locate(path).path}::{'.'.join(names)}"
            return (test,) if test in self._ids else ()
        parts = name.split(".")
        for start in range(len(parts) - 1):
            found = self._dotted.get(".".join(parts[start:]))
            if found is not None:
                return tuple(found)
        return ()


# ---------------------------------------------------------------- formats


def read_json(data: bytes) -> list[Row]:
    """The report of `coverage json`, best with --show-contexts.

    Raises:
        CoverageError: it is none.
    """
    try:
        report = json.loads(data)
        return [_json_row(path, entry) for path, entry in report["files"].items()]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CoverageError("it is not a report of `coverage json`") from error


def _json_row(path: str, entry: Mapping[str, Any]) -> Row:
    contexts: dict[str, list[int]] = {"": [int(line) for line in entry["executed_lines"]]}
    for line, names in entry.get("contexts", {}).items():
        for name in names:
            contexts.setdefault(str(name), []).append(int(line))
    return Row(path, contexts, [int(line) for line in entry.get("missing_lines", ())])


def read_lcov(data: bytes) -> list[Row]:
    """An lcov tracefile. A `TN:` line names the test.

    Raises:
        CoverageError: it is none.
    """
    rows = list(_lcov_rows(data.decode("utf-8", "replace").splitlines()))
    if not rows:
        raise CoverageError("it is not an lcov tracefile")
    return rows


def _lcov_rows(lines: Iterable[str]) -> Iterator[Row]:
    test, path = "", ""
    ran: list[int] = []
    missed: list[int] = []
    for line in lines:
        key, _, value = line.strip().partition(":")
        if key == "TN":
            test = value
        elif key == "SF":
            path, ran, missed = value, [], []
        elif key == "DA":
            number, _, count = value.partition(",")
            hits = count.partition(",")[0]
            if number.isdecimal() and hits.lstrip("-").isdecimal():
                (ran if int(hits) > 0 else missed).append(int(number))
        elif key == "end_of_record" and path:
            yield Row(path, {test: tuple(ran)}, tuple(missed))
            path = ""


def bits(blob: bytes) -> list[int]:
    """The lines in a `numbits` of coverage.py's database: bit n of byte b stands for line 8 b + n."""
    return [8 * at + n for at, byte in enumerate(blob) if byte for n in range(8) if byte >> n & 1]
