"""Mutated logs: whatever a log has become, reading it ends, soon, without an exception and always the same.

The seeds are logs of real tools. A mutation cuts, repeats, splices, garbles or interleaves them.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from agentctx.prompt import Evidence
from agentctx.repo.logs import read_logs

MAX_BYTES = 200_000  # of a mutated log
SECONDS_PER_MB = 5.0  # CPU time that reading may take, plus a second
MAX_EXCERPT = 16_100  # bytes
MAX_SHOWN = 20  # failures that the result holds

_SUFFIXES = (".log", ".txt", ".md")
_BLOCK = re.compile(rb"^`[^`\n]+\.(?:log|txt)`:?\n\n?(?:```+)[^\n]*\n(.*?)^```+ *$", re.M | re.S)
_PATHS = re.compile(rb"^options:.*?\brepo=([^;\n]*)", re.M)

Mutation = Callable[[bytes, bytes, random.Random], bytes]


@dataclass(frozen=True, slots=True)
class Seed:
    """A log and the paths of the repository that it is about."""

    name: str
    data: bytes
    paths: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LogFuzz:
    """What a run found. `failures` are (case, what was wrong), at most `MAX_SHOWN`.

    `run(1, seed, seeds, first=case)` repeats one.
    """

    n: int
    seconds: float
    slowest: float  # CPU seconds per megabyte, of logs over 10 kB
    n_failing_tests: int  # found in all logs together: that they aren't zero shows that the logs weren't only noise
    failures: tuple[tuple[int, str], ...] = field(default=())


def seeds_below(folders: Sequence[Path]) -> list[Seed]:
    """Logs (`*.log`, `*.txt`, and code blocks so named in `*.md`) below the folders, sorted by path."""
    found: list[Seed] = []
    logs = (path for folder in folders for path in folder.rglob("*") if path.suffix in _SUFFIXES and path.is_file())
    for path in sorted(logs):
        data = path.read_bytes()
        blocks = _BLOCK.findall(data) if path.suffix == ".md" else [data]
        paths = _PATHS.search(data) if path.suffix == ".md" else None
        known = tuple(paths[1].decode("utf-8", "replace").split()) if paths else ("src/a.py", "tests/test_a.py")
        found += [Seed(path.name, block[:MAX_BYTES], known) for block in blocks]
    return found


def run(n: int, seed: int, seeds: Sequence[Seed], first: int = 0) -> LogFuzz:
    """Read `n` mutated logs, the cases `first`, `first + 1`, ... of `seed`. Deterministic but for the times."""
    failures: list[tuple[int, str]] = []
    slowest, n_tests, started = 0.0, 0, time.process_time()
    for case in range(first, first + n):
        log = mutated(case, seed, seeds)
        wrong, seconds, tests = _read(log)
        n_tests += tests
        if len(log.data) > 10_000:
            slowest = max(slowest, seconds * 1e6 / len(log.data))
        failures += [(case, text) for text in wrong if len(failures) < MAX_SHOWN]
    return LogFuzz(n, time.process_time() - started, slowest, n_tests, tuple(failures))


def mutated(case: int, seed: int, seeds: Sequence[Seed]) -> Seed:
    """One mutated log, about the repositories of the two it was made of."""
    rng = random.Random(f"{seed} {case}")
    one, other = rng.choice(seeds), rng.choice(seeds)
    data = one.data
    for _ in range(rng.randint(1, 4)):
        data = rng.choice(MUTATIONS)(data, other.data, rng)[:MAX_BYTES]
    return Seed(f"{one.name}+{other.name}", data, tuple(sorted({*one.paths, *other.paths})))


def _read(log: Seed) -> tuple[list[str], float, int]:
    """(what was wrong, CPU seconds of one reading, failing tests found)."""
    started = time.process_time()
    try:
        evidence = read_logs([(log.name, log.data)], log.paths)
        seconds = time.process_time() - started
        again = read_logs([(log.name, log.data)], tuple(reversed(log.paths)))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what we look for
        return [f"{log.name}: {type(error).__name__}: {error}"], time.process_time() - started, 0
    wrong = [f"{log.name}: {text}" for text in _broken(evidence, frozenset(log.paths))]
    if again != evidence:
        wrong.append(f"{log.name}: two readings differ")
    if seconds > 1 + SECONDS_PER_MB * len(log.data) / 1e6:
        wrong.append(f"{log.name}: {seconds:.1f} s for {len(log.data)} bytes")
    return wrong, seconds, len(evidence.failing)


def _broken(evidence: Evidence, paths: frozenset[str]) -> list[str]:
    """What must hold of any evidence and doesn't."""
    rules = {
        "the excerpt is too long": len(evidence.excerpt.encode("utf-8", "replace")) > MAX_EXCERPT,
        "a frame's line is below 1": any(frame.line < 1 for frame in evidence.frames),
        "a frame's place is wrong": any(frame.in_repo != (frame.path in paths) for frame in evidence.frames),
        "a test is named twice": len(set(evidence.failing)) != len(evidence.failing),
        "an error line comes twice": len(set(evidence.error_lines)) != len(evidence.error_lines),
        "a line holds an escape": any("\x1b" in line or "\n" in line for line in evidence.error_lines),
        "a test has neither path nor name": any(not (test.path or test.names) for test in evidence.failing),
        "the text can't be encoded": not _encodes(evidence.text) or not _encodes(evidence.excerpt),
    }
    return [rule for rule, broken in rules.items() if broken]


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# ---------------------------------------------------------------- mutations


def _cut_head(data: bytes, other: bytes, rng: random.Random) -> bytes:
    return data[rng.randrange(len(data) + 1) :]


def _cut_tail(data: bytes, other: bytes, rng: random.Random) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def _repeat(data: bytes, other: bytes, rng: random.Random) -> bytes:
    a, b = _span(data, rng)
    return data[:b] + data[a:b] * rng.randint(1, 3) + data[b:]


def _splice(data: bytes, other: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    a, b = _span(other, rng)
    return data[:at] + other[a:b] + data[at:]


def _garble(data: bytes, other: bytes, rng: random.Random) -> bytes:
    out = bytearray(data)
    for _ in range(rng.randint(1, 1 + len(out) // 200)):
        if out:
            out[rng.randrange(len(out))] = rng.randrange(256)
    return bytes(out)


def _drop_lines(data: bytes, other: bytes, rng: random.Random) -> bytes:
    share = rng.random() * 0.5
    return b"\n".join(line for line in data.split(b"\n") if rng.random() > share)


def _shuffle_lines(data: bytes, other: bytes, rng: random.Random) -> bytes:
    lines = data.split(b"\n")
    at = rng.randrange(len(lines))
    part = lines[at : at + 30]
    rng.shuffle(part)
    return b"\n".join([*lines[:at], *part, *lines[at + 30 :]])


def _interleave(data: bytes, other: bytes, rng: random.Random) -> bytes:
    queues = [data.split(b"\n"), other.split(b"\n")]
    marks = rng.choice([(b"", b""), (b"api-1  | ", b"web-1  | "), (b"[one] ", b"[two] ")])
    out, at = [], [0, 0]
    while at[0] < len(queues[0]) or at[1] < len(queues[1]):
        which = rng.randrange(2)
        if at[which] < len(queues[which]):
            out.append(marks[which] + queues[which][at[which]])
            at[which] += 1
    return b"\n".join(out)


def _join_lines(data: bytes, other: bytes, rng: random.Random) -> bytes:
    a, b = _span(data, rng)
    return data[:a] + data[a:b].replace(b"\n", rng.choice([b"", b" ", b"\r", b"\x00"])) + data[b:]


def _recode(data: bytes, other: bytes, rng: random.Random) -> bytes:
    return data.decode("utf-8", "replace").encode(rng.choice(["utf-16", "utf-16-le", "latin-1"]), "replace")


def _numbers(data: bytes, other: bytes, rng: random.Random) -> bytes:
    big = rng.choice([b"0", b"99999999999999999999", b"-1", b"\xd9\xa3", "²".encode()])
    return b"".join(big if byte[0:1].isdigit() and rng.random() < 0.05 else byte for byte in _bytes(data))


def _prefix(data: bytes, other: bytes, rng: random.Random) -> bytes:
    mark = rng.choice([b"2024-05-01T10:00:00.1234567Z ", b"[12:34:56] ", b"    ", b"> ", b"E   ", b"\t", b"  | "])
    return b"\n".join(mark + line for line in data.split(b"\n"))


def _span(data: bytes, rng: random.Random) -> tuple[int, int]:
    a = rng.randrange(len(data) + 1)
    return a, min(len(data), a + rng.randint(0, 4_000))


def _bytes(data: bytes) -> list[bytes]:
    return [data[i : i + 1] for i in range(len(data))]


MUTATIONS: tuple[Mutation, ...] = (
    _cut_head,
    _cut_tail,
    _repeat,
    _splice,
    _garble,
    _drop_lines,
    _shuffle_lines,
    _interleave,
    _join_lines,
    _recode,
    _numbers,
    _prefix,
)
