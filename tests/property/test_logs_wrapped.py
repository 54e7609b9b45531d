"""What a CI service, a shell or a driver does to a log must not change what is found in it: all cases and wrappings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import pytest

from agentctx.prompt import Evidence, TestRef
from agentctx.repo.logs import read_logs
from tests.casefile import Case, case_paths, read_case

FOLDERS = ("logs", "logs_others")
# Reports in XML are files: nothing writes something before their lines.
CASES = {path.stem: path for folder in FOLDERS for path in case_paths(folder) if not path.stem.endswith("-xml")}
NOISE = [f"fetching layer {i} of 40 ... done in {i / 7:.1f} s" for i in range(40)]


def _each(prefix: Callable[[int], str]) -> Callable[[Sequence[str]], bytes]:
    return lambda lines: "".join(f"{prefix(i)}{line}\n" for i, line in enumerate(lines)).encode()


def _compose(lines: Sequence[str]) -> bytes:
    """Beside the log another service writes its own lines."""
    out = []
    for i, line in enumerate(lines):
        out.append(f"tests-1  | {line}\n")
        if i % 3 == 0:
            out.append(f"db-1     | LOG:  checkpoint {i} complete\n")
    return "".join(out).encode()


WRAPPINGS: dict[str, Callable[[Sequence[str]], bytes]] = {
    "github": _each(lambda i: f"2024-05-01T10:00:{i % 60:02}.1234567Z "),
    "github-cli": _each(lambda i: f"build (3.12)\tRun tests\t2024-05-01T10:00:{i % 60:02}.1234567Z "),
    "gitlab": _each(lambda i: f"2024-05-01T10:00:{i % 60:02}.123456Z 01O "),
    "jenkins": _each(lambda i: f"[2024-05-01T10:00:{i % 60:02}.123Z] "),
    "clock": _each(lambda i: f"[10:00:{i % 60:02}] "),
    "buildkit": _each(lambda i: f"#12 {i / 10:.3f} "),
    "buildkite": _each(lambda i: f"\x1b_bk;t=17140000{i:05}\x07"),
    "compose": _compose,
    "kubectl": _each(lambda i: "[pod/tests-x7z2/main] "),
    "crlf": lambda lines: "".join(f"{line}\r\n" for line in lines).encode(),
    "utf-16": lambda lines: "".join(f"{line}\r\n" for line in lines).encode("utf-16"),
    "mark": lambda lines: b"\xef\xbb\xbf" + "".join(f"{line}\n" for line in lines).encode(),
    "noise": lambda lines: "\n".join((*NOISE, *lines, "", *NOISE)).encode(),
    "progress": lambda lines: "".join(f" 10%\r 90%\r{line}\n" if line else "\n" for line in lines).encode(),
}


def _log(case: Case) -> list[str]:
    return next(iter(case.files.values())).split("\n")[:-1]


@cache
def _plain(stem: str) -> tuple[Case, Evidence]:
    case = read_case(CASES[stem])
    log = "".join(f"{line}\n" for line in _log(case)).encode()
    return case, read_logs([("tool.log", log)], case.options["repo"].split())


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_the_same_is_found(wrapping: str) -> None:
    wrong = []
    for stem in CASES:
        case, plain = _plain(stem)
        if any("no known failure format" in note for note in plain.notes):
            continue
        found = read_logs([("tool.log", WRAPPINGS[wrapping](_log(case)))], case.options["repo"].split())
        if (found.failing, found.frames, found.error_lines) != (plain.failing, plain.frames, plain.error_lines):
            wrong.append(stem)
    assert wrong == []


def _known(test: TestRef, all_of_it: Sequence[TestRef]) -> bool:
    """Whether the whole log has the test; a part may know less of its names and not its file, or lack a parameter."""
    n = len(test.names)
    return any(
        (test.path in ("", other.path) or not other.path) and test.names in (other.names[-n:], other.names[:n], ())
        for other in all_of_it
    )


@pytest.mark.parametrize("part", ["head", "tail"])
def test_a_cut_log_names_no_test_that_the_whole_one_does_not(part: str) -> None:
    wrong = []
    for stem in (stem for stem in CASES if CASES[stem].parent.name == "logs"):
        case, plain = _plain(stem)
        lines = _log(case)
        for third in (1, 2):
            cut = len(lines) * third // 3
            kept = lines[:cut] if part == "tail" else lines[cut:]
            found = read_logs([("tool.log", "\n".join(kept).encode())], case.options["repo"].split())
            wrong += [f"{stem}: {test.id}" for test in found.failing if not _known(test, plain.failing)]
    assert wrong == []


def test_two_processes_at_once() -> None:
    """Their lines take turns; each is read as if it were alone."""
    (one, first), (two, second) = _plain("pytest-short"), _plain("jest")
    lines, others = _log(one), _log(two)
    both = []
    for i in range(max(len(lines), len(others))):
        both += [f"api_1  | {lines[i]}\n"] if i < len(lines) else []
        both += [f"web_1  | {others[i]}\n"] if i < len(others) else []
    repo = [*one.options["repo"].split(), *two.options["repo"].split()]
    found = read_logs([("compose.log", "".join(both).encode())], repo)
    assert set(found.failing) == {*first.failing, *second.failing}
    assert {frame for frame in found.frames if frame.in_repo} == {
        frame for frame in (*first.frames, *second.frames) if frame.in_repo
    }
