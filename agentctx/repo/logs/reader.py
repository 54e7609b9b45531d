"""Logs -> Evidence: runs every format over every log, merges what they found, maps paths. Pure.

`formats` names the formats, `feeding` gives them their lines.
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from agentctx.prompt import Evidence, Frame, TestRef
from agentctx.repo.logs.clean import Cleaning, clean_batches
from agentctx.repo.logs.excerpt import LIMIT, Failure, make_excerpt
from agentctx.repo.logs.feeding import Feeder
from agentctx.repo.logs.formats import FORMATS, REPORT_FORMATS
from agentctx.repo.logs.found import Block, Found, RawFrame, RawTest, Trace
from agentctx.repo.logs.generic import GenericFormat
from agentctx.repo.logs.lanes import Lanes
from agentctx.repo.logs.mentions import identifiers, rank_mentions
from agentctx.repo.logs.paths import PathMap
from agentctx.repo.logsource import LogSource, read_parts

MAX_TEXT = 200_000  # characters of cleaned text that are kept, from the end
H = TypeVar("H", bound=Hashable)
MAX_NAMED = 5  # paths that a note lists


@dataclass(frozen=True, slots=True)
class _Log:
    """One log, read."""

    name: str
    traces: tuple[Trace, ...]
    tests: tuple[RawTest, ...]
    errors: tuple[str, ...]
    quoted: tuple[tuple[str, str], ...]
    blocks: tuple[Block, ...]
    text: str
    notes: tuple[str, ...]


def read_logs(logs: Sequence[tuple[str, LogSource]], repo_paths: Collection[str]) -> Evidence:
    """What `logs`, (name, raw bytes or file), say about the repository with the files `repo_paths`.

    Files are streamed: what is held of a log is bounded, whatever its size. Never raises on content.

    Args:
        logs: In the order in which the user gave them.
        repo_paths: POSIX, relative to the repository's root.

    Raises:
        TaskError: a file can't be read.
    """
    paths = PathMap(repo_paths)
    read = [_read(name, data) for name, data in logs]
    frames = _distinct(_frame(raw, paths) for log in read for trace in log.traces for raw in trace.frames)
    traced = tuple(_frame(raw, paths) for log in read for trace in log.traces for raw in trace.frames)
    tests = _distinct(_test(raw, paths) for log in read for raw in log.tests)
    notes = [note for log in read for note in (*log.notes, *_path_notes(log, paths))]
    excerpt, cut = _excerpts(read, paths)
    return Evidence(
        frames=traced,
        failing=tests,
        error_lines=_distinct(line for log in read for line in log.errors),
        mentions=_mentions(read, frames, excerpt, paths),
        excerpt=excerpt,
        text="\n".join(log.text for log in read),
        notes=(*notes, *cut),
    )


def _read(name: str, source: LogSource) -> _Log:
    cleaning = Cleaning()
    lanes, feeders = Lanes(), defaultdict[str, Feeder](lambda: Feeder(REPORT_FORMATS if cleaning.report else FORMATS))
    tail = _Tail()
    at = 0
    for batch in clean_batches(read_parts(name, source), cleaning):
        n_lines = batch.count("\n") + 1
        for lane in lanes.split(range(at, at + n_lines), batch):
            feeders[lane.name].feed(lane.numbers, lane.text)
        tail.add(at, batch)
        at += n_lines
    found = [feeder.finish() for feeder in feeders.values()]
    notes = _notes(name, cleaning, tail)
    if not any(f for lane in found for f in lane):
        if not cleaning.blank:
            notes.append(f"{name}: no known failure format; only identifiers and places were taken from its end")
        found = [[_generic(tail)]]
    dropped = Counter[str]()
    for f in chain.from_iterable(found):
        dropped.update(f.dropped)
    notes += [f"{name}: {n} {kind} beyond the limit were left out" for kind, n in sorted(dropped.items())]
    return _merge(name, found, tail.text, notes)


def _generic(tail: _Tail) -> Found:
    generic = GenericFormat()
    for at, line in tail.lines:
        generic.feed(at, line)
    return generic.finish()


class _Tail:
    """The last lines of a log, at most `MAX_TEXT` characters."""

    def __init__(self) -> None:
        self._batches: deque[tuple[int, str]] = deque()
        self._size = 0
        self._cut: tuple[int, list[str]] | None = None

    def add(self, at: int, batch: str) -> None:
        """Keep a batch, whose first line has the index `at`, as long as it may belong to the end."""
        self._batches.append((at, batch))
        self._size += len(batch) + 1
        while self._size - len(self._batches[0][1]) - 1 >= MAX_TEXT:
            self._size -= len(self._batches.popleft()[1]) + 1

    @property
    def lines(self) -> list[tuple[int, str]]:
        start, lines = self._kept()
        return [(start + i, line) for i, line in enumerate(lines)]

    @property
    def n_cut(self) -> int:
        """Lines before the kept ones."""
        return self._kept()[0]

    @property
    def text(self) -> str:
        return "".join(f"{line}\n" for line in self._kept()[1])

    def _kept(self) -> tuple[int, list[str]]:
        """Index of the first kept line, and the lines. Call after the last batch."""
        if self._cut is None:
            lines = [line for _, batch in self._batches for line in batch.split("\n")]
            size, first = 0, len(lines)
            while first and size + len(lines[first - 1]) + 1 <= MAX_TEXT:
                first -= 1
                size += len(lines[first]) + 1
            start = self._batches[0][0] if self._batches else 0
            self._cut = start + first, lines[first:]
        return self._cut


def _notes(name: str, cleaning: Cleaning, tail: _Tail) -> list[str]:
    notes = []
    if cleaning.blank:
        notes.append(f"{name}: the log is empty")
    if tail.n_cut:
        notes.append(f"{name}: only the last {MAX_TEXT} characters of its text are kept ({tail.n_cut} lines cut)")
    if cleaning.long_lines:
        notes.append(f"{name}: {cleaning.long_lines} overlong lines were cut")
    if cleaning.control_bytes > max(64, cleaning.n_bytes // 50):
        notes.append(f"{name}: looks binary; {cleaning.control_bytes} control characters were removed")
    return notes


def _merge(name: str, lanes: Sequence[Sequence[Found]], text: str, notes: Sequence[str]) -> _Log:
    found = list(chain.from_iterable(lanes))
    blocks = [block for lane in lanes for block in _outermost([block for f in lane for block in f.blocks])]
    traces = sorted((trace for f in found for trace in f.traces), key=lambda trace: trace.at)
    errors = sorted(((at, line) for f in found for line, at in f.errors.items()), key=lambda item: item[0])
    return _Log(
        name=name,
        traces=tuple({trace.frames: trace for trace in reversed(traces)}.values())[::-1],
        tests=tuple(test for f in found for test in f.tests),
        errors=_distinct(line for _, line in errors),
        quoted=_distinct(line for f in found for line in f.quoted),
        blocks=_once(sorted(blocks, key=lambda block: (block.at, block.end))),
        text=text,
        notes=tuple(notes),
    )


def _outermost(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Blocks in log order without those that lie inside another one (a traceback inside a test's failure)."""
    out: list[Block] = []
    for block in sorted(blocks, key=lambda b: (b.at, -b.end)):
        if not out or block.end > out[-1].end:
            out.append(block)
    return tuple(out)


def _once(blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Without the tracebacks of no test that a test's failure elsewhere in the log has, too."""
    named = {block.frames for block in blocks if block.test is not None}
    return tuple(block for block in blocks if block.test is not None or block.frames not in named or not block.frames)


def _frame(raw: RawFrame, paths: PathMap) -> Frame:
    place = paths.locate(raw.path)
    return Frame(place.path, max(1, raw.line), raw.function, place.in_repo)


def _test(raw: RawTest, paths: PathMap) -> TestRef:
    return TestRef(paths.locate(raw.path).path if raw.path else "", raw.names, raw.param)


def _path_notes(log: _Log, paths: PathMap) -> list[str]:
    written = _distinct(
        [*(f.path for t in log.traces for f in t.frames), *(test.path for test in log.tests if test.path)]
    )
    located = {path: paths.locate(path) for path in written}
    notes = [
        f"{log.name}: {path} may be any of {', '.join(place.rivals[:MAX_NAMED])}; taken as none of them"
        for path, place in located.items()
        if place.rivals
    ]
    notes += [
        f"{log.name}: {path} may be built from {place.maybe}; a built file is not taken for its source"
        for path, place in located.items()
        if place.maybe
    ]
    if written and not notes and not any(place.in_repo for place in located.values()):
        notes.append(f"{log.name}: names no file of the repository (it names {', '.join(written[:MAX_NAMED])})")
    elif missing := _distinct(test.path for test in log.tests if test.path and not located[test.path].in_repo):
        notes.append(
            f"{log.name}: failing tests in files that aren't in the repository: {', '.join(missing[:MAX_NAMED])}"
        )
    return notes


def _excerpts(logs: Sequence[_Log], paths: PathMap) -> tuple[str, list[str]]:
    parts, notes = [], []
    for log in logs:
        failures = _failures(log, paths)
        excerpt = make_excerpt(failures, lambda path: paths.locate(path).in_repo, LIMIT // len(logs))
        if excerpt.n_cut:
            notes.append(
                f"{log.name}: the excerpt was cut to {LIMIT // len(logs)} bytes ({excerpt.n_cut} failures shortened)"
            )
        if excerpt.text:
            parts.append(f"# {log.name}\n{excerpt.text}" if len(logs) > 1 else excerpt.text)
    return "".join(f"{part}\n" for part in parts), notes


def _failures(log: _Log, paths: PathMap) -> list[Failure]:
    """Blocks with the tests that the summary names for them, then the tests without a block."""
    open_tests = _distinct(_test(raw, paths) for raw in log.tests)
    taken: set[TestRef] = set()
    out: list[Failure] = []
    for block in log.blocks:
        test = _match(block, open_tests, taken, paths)
        taken.update([test] if test else [])
        place = tuple((f.path, f.line) for f in block.frames)
        out.append(Failure(block.lines, test, block.label, place))
    return out + [Failure((), test, "FAILED", ()) for test in open_tests if test not in taken]


def _match(block: Block, tests: Sequence[TestRef], taken: set[TestRef], paths: PathMap) -> TestRef | None:
    """The listed test that the block is about: same name, the title's path first, else in listed order."""
    if block.test is None:
        return None
    named = _test(block.test, paths)
    alike = [t for t in tests if (t.names, t.param) == (named.names, named.param) and (t.names or t.path == named.path)]
    same = [t for t in alike if t.path == named.path]
    free = [t for t in alike if t not in taken]
    return next(iter([*same, *free]), named)


def _mentions(logs: Sequence[_Log], frames: Sequence[Frame], excerpt: str, paths: PathMap) -> tuple[str, ...]:
    """From error lines, then frames (deepest first) and the source quoted there, then everything else."""
    functions = [f.function for f in reversed(frames) if f.in_repo and f.function and f.function[0] != "<"]
    quoted = [line for log in logs for path, line in reversed(log.quoted) if paths.locate(path).in_repo]
    return rank_mentions(
        (
            identifiers(line for log in logs for line in log.errors),
            identifiers(functions, code=True),
            identifiers(quoted, code=True),
            identifiers(excerpt.splitlines()),
        )
    )


def _distinct(items: Iterable[H]) -> tuple[H, ...]:
    return tuple(dict.fromkeys(items))
