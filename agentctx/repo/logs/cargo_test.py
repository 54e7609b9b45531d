"""cargo test and cargo nextest: failing tests by module path, documentation tests. Pure.

The list of `failures:` names each test again; a name is one test per test binary.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from agentctx.repo.logs.found import Found, RawFrame, RawTest
from agentctx.repo.logs.rust_panic import RustPanicFormat
from agentctx.repo.logs.section import Section

_BINARY = re.compile(r"^\s*Running (?:unittests )?(?P<path>\S+\.rs)(?: \(.*\))?$")
_DOC = re.compile(r"^\s*Doc-tests (?P<crate>\S+)$")
_RESULT = re.compile(r"^test (?P<name>\S.*?)(?: - should panic)?(?: - compile(?: fail)?)? \.\.\. (?P<rest>.*)$")
_STDOUT = re.compile(r"^---- (?P<name>\S.*?) (?:stdout|stderr) ----$")
_NEXTEST = re.compile(
    r"^\s+(?P<what>FAIL|PASS|SIGABRT|SIGSEGV|SIGILL|TIMEOUT|TRY \d+ FAIL|ABORT|FLAKY[\s\d/]*) \[[^\]]*\] "
    r"(?:\( *\d+/\d+\) )?(?P<binary>[\w-]+(?:::\S+)?) (?P<name>\S+)$"
)
_NEXTEST_OUT = re.compile(r"^(?:---|\s*stdout|\s*stderr|──).*$")
_PANIC = re.compile(r"thread '(?P<thread>[^']+)'(?: \(\d+\))? panicked at (?:'.*', )?(?P<path>[^':\s]+):\d+:\d+")
_END = re.compile(r"^(?:failures:|test result: |successes:|error: (?:test|doctest) failed|---- )")
_ERROR = re.compile(r"^(?:Error: |error(?:\[E\d+\])?: |.*expected substring: )")
_DOC_NAME = re.compile(r"^(?P<path>\S+\.rs) - (?P<name>.*?) ?\(line (?P<line>\d+)\)$")
MAX_QUIET = 5_000


class CargoTestFormat:
    """Blocks `---- name stdout ----`; what else failed has no output."""

    wakes: ClassVar[tuple[str, ...]] = (
        "Running ",
        "Doc-tests ",
        "\ntest ",
        "\n---- ",
        " [ ",
        "FAIL [",
        " panicked at ",
    )

    def __init__(self) -> None:
        self._found = Found()
        self._binary = ""
        self._failed: dict[tuple[str, str], int] = {}  # (binary, test) -> line
        self._told: set[tuple[str, str]] = set()
        self._section: Section | None = None
        self._after = Section(0)  # what comes after the panic
        self._name = ""
        self._panics = RustPanicFormat()
        self._panicked: dict[str, RawFrame] = {}  # where the thread of a test panicked outside of a block
        self._waiting = ""  # a test whose output comes between its name and its verdict

    @property
    def busy(self) -> bool:
        return self._section is not None or bool(self._waiting)

    def feed(self, at: int, line: str) -> None:
        if (binary := _BINARY.match(line)) or (binary := _DOC.match(line)):
            self._close()
            self._binary = binary.groupdict().get("path", "") or ""
        elif out := _STDOUT.match(line):
            self._close()
            self._open(at, out["name"])
        elif self._section is not None:
            self._inside(at, line, self._section)
        elif panic := _PANIC.search(line):
            if len(self._panicked) < MAX_QUIET:
                self._panicked.setdefault(panic["thread"], RawFrame(panic["path"], 0))
        elif result := _RESULT.match(line):
            self._result(at, result["name"], result["rest"])
        elif self._waiting:
            self._late(at, line)
        elif nextest := _NEXTEST.match(line):
            self._nextest(at, nextest)

    def finish(self) -> Found:
        self._close()
        for (binary, name), at in self._failed.items():
            if (binary, name) not in self._told:
                self._found.add_test(
                    rust_test(at, binary, name, [self._panicked[name]] if name in self._panicked else [])
                )
        return self._found

    def _result(self, at: int, name: str, rest: str) -> None:
        if rest.strip() == "FAILED":
            self._fail(at, name)
        elif rest.strip() not in ("ok", "ignored") and not rest.startswith(("ignored", "bench", "ok ")):
            self._waiting = name  # --nocapture

    def _late(self, at: int, line: str) -> None:
        if line.strip() in ("ok", "FAILED") or line.endswith(("... ok", "... FAILED")):
            if line.endswith("FAILED"):
                self._fail(at, self._waiting)
            self._waiting = ""
        elif _END.match(line) or line.startswith("running "):
            self._waiting = ""

    def _fail(self, at: int, name: str) -> None:
        if len(self._failed) < MAX_QUIET:
            self._failed.setdefault((self._binary, name), at)

    def _nextest(self, at: int, found: re.Match[str]) -> None:
        crate, _, binary = found["binary"].partition("::")
        path = f"tests/{binary}.rs" if binary and not binary.startswith(("bin/", "$")) else ""
        key = (path or crate, found["name"])
        if found["what"].startswith(("PASS", "FLAKY")):
            self._failed.pop(key, None)
        elif not found["what"].startswith("TRY"):
            self._failed.setdefault(key, at)

    def _open(self, at: int, name: str) -> None:
        self._section, self._after, self._name = Section(at), Section(at), name
        self._panics = RustPanicFormat()

    def _inside(self, at: int, line: str, section: Section) -> None:
        if _END.match(line) or at - section.at > MAX_QUIET:
            return self._close()
        if line.startswith(("note: run with `RUST_BACKTRACE", "note: Some details are omitted")):
            return
        if _ERROR.match(line):
            self._found.add_error(at, line)
        known = self._panics.busy or bool(self._after.lines)
        self._panics.feed(at, line)
        if not self._panics.busy:
            (self._after if known else section).add(at, line)
        elif not known:
            self._after.add(at, "panicked")  # what follows comes after the panic
        section.end = at

    def _close(self) -> None:
        section, self._section = self._section, None
        if section is None:
            return
        panics = self._panics.finish()
        for part in panics.blocks:
            section.frames += part.frames
            for line in part.lines:
                section.add(section.at, line)
        for line in self._after.lines[1:]:
            section.add(section.at, line)
        test = rust_test(section.at, self._binary, self._name, section.frames)
        self._told.add((self._binary, self._name))
        self._found.add_test(test)
        self._found.add_block(section.block(test, "FAILED"))


def rust_test(at: int, binary: str, name: str, frames: Sequence[RawFrame] = ()) -> RawTest:
    """The test of a module path.

    The file is known of integration tests, of tests in the crate's root, and where a frame is of the test or of a
    file that has a module's name.
    """
    if doc := _DOC_NAME.match(name):
        return RawTest(at, doc["path"], tuple(part for part in doc["name"].split("::") if part))
    name, _, case = name.partition(" ")
    parts = tuple(part for part in name.split("::") if part)
    own = binary.endswith(".rs") and (len(parts) < 2 or parts[0] in ("test", "tests"))
    return RawTest(at, binary if own else _path_of(parts, frames), parts, case or None)


def _path_of(parts: Sequence[str], frames: Sequence[RawFrame]) -> str:
    for frame in frames:
        if parts and frame.function == parts[-1]:
            return frame.path
    for frame in frames:
        path = frame.path.replace("\\", "/").removesuffix("/mod.rs").removesuffix(".rs")
        if path.rpartition("/")[2] in parts[:-1]:
            return frame.path
    return ""
