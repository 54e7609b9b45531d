"""RSpec, minitest and test-unit. Pure."""

from __future__ import annotations

import re
from typing import ClassVar

from agentctx.repo.logs.callstacks import is_runtime, ruby_frame
from agentctx.repo.logs.found import Found, RawFrame, RawTest
from agentctx.repo.logs.section import Section

_ENTRY = re.compile(r"^  (?P<n>\d+)\) (?P<title>\S.*)$")
_SECTION_END = re.compile(r"^(?:Finished in |Failed examples:|Top \d+ slowest|Pending: |Randomized with seed)")
_EXAMPLE = re.compile(r"^rspec (?P<path>[^\s:\[]+)(?::(?P<line>\d+)|\[[\d:]+\])? # (?P<title>.*)$")
_LOADING = re.compile(
    r"^An error occurred (?:while loading|in an? `?[\w:(]+[^\n]*? hook\.?) ?(?P<path>\S+?\.rb)?\.?(?: - .*)?$"
)
_SOURCE = re.compile(r"^\s*(?:\d+\.\d+\) )?Failure/Error: (?P<source>.*)$")
MAX_ERRORS = 8  # lines of one failure
MAX_LINES = 400


class _RubyFailures:
    """What the formats share: a failure that is read, its trace, its error lines."""

    def __init__(self) -> None:
        self._found = Found()
        self._section: Section | None = None
        self._frames: list[RawFrame] = []  # innermost first
        self._n_errors = 0

    def finish(self) -> Found:
        """Everything found."""
        self.close()
        return self._found

    def open(self, at: int) -> Section:
        self.close()
        self._section, self._frames, self._n_errors = Section(at), [], 0
        return self._section

    def add(self, at: int, line: str, section: Section) -> bool:
        """Keep a line; whether it is a frame."""
        section.add(at, line)
        frame = ruby_frame(line)
        if frame is not None and not is_runtime(frame.path):
            self._frames.append(frame)
        return frame is not None

    def error(self, at: int, line: str) -> None:
        if self._n_errors < MAX_ERRORS and line.strip():
            self._n_errors += 1
            self._found.add_error(at, line)

    def close(self) -> None:
        section, self._section = self._section, None
        if section is not None:
            section.trace(self._found, section.at, self._frames)
            self.ended(section)

    def ended(self, section: Section) -> None:
        """Take a failure that was read whole."""
        raise NotImplementedError


class RspecFormat(_RubyFailures):
    """Entries of `Failures:`; `Failed examples:` tells where each lies. Pending ones are expected to fail."""

    wakes: ClassVar[tuple[str, ...]] = ("Failures:", "rspec ", "An error occurred ")

    def __init__(self) -> None:
        super().__init__()
        self._in_failures = False
        self._title = ""
        self._path = ""  # of a file that can't be loaded
        self._sources: list[str] = []  # what the failure quotes
        self._failures: list[tuple[Section, RawTest]] = []
        self._examples: dict[str, list[RawTest]] = {}  # by description, in order

    @property
    def busy(self) -> bool:
        return self._in_failures or self._section is not None

    def feed(self, at: int, line: str) -> None:
        if line == "Failures:" or _SECTION_END.match(line):
            self.close()
            self._in_failures = line == "Failures:"
        elif example := _EXAMPLE.match(line):
            self._example(at, example)
        elif loading := _LOADING.match(line):
            self.close()
            self._title = ""
            self._path = loading["path"] or ""
            self.open(at).add(at, line)
        elif self._in_failures and (entry := _ENTRY.match(line)):
            self.close()
            self._title = entry["title"]
            self.open(at)
        elif self._section is not None:
            self._inside(at, line, self._section)

    def finish(self) -> Found:
        self.close()
        for section, test in self._failures:
            same = self._examples.get(test.names[0], []) if test.names else []
            known = same.pop(0) if same else test
            self._found.add_test(known)
            self._found.add_block(section.block(known, "FAILED"))
        for rest in self._examples.values():
            for test in rest:
                self._found.add_test(test)
        return self._found

    def _example(self, at: int, example: re.Match[str]) -> None:
        test = RawTest(at, example["path"], (example["title"],))
        known = self._examples.setdefault(example["title"], [])
        if len(known) < 200:
            known.append(test)
        if example["line"]:
            self._found.add_trace(at, [RawFrame(example["path"], int(example["line"]))])

    def _inside(self, at: int, line: str, section: Section) -> None:
        if at - section.at > MAX_LINES or (line.strip() and self._title and not line.startswith("   ")):
            return self.close()
        if self.add(at, line, section):
            return
        if source := _SOURCE.match(line):
            section.trace(self._found, section.at, self._frames)  # of several failures of one example
            self._frames, self._n_errors = [], 0
            self._sources.append(source["source"])
        elif not self._frames and line.strip() != "(compared using ==)":
            self.error(at, line)

    def ended(self, section: Section) -> None:
        sources, self._sources = self._sources, []
        for source in sources if section.frames else ():
            self._found.add_quoted(section.frames[-1].path, source)
        path = next(
            (f.path for f in section.frames if "_spec." in f.path), section.frames[0].path if section.frames else ""
        )
        test = RawTest(section.at, path, (self._title,)) if self._title else RawTest(section.at, self._path or path, ())
        if (test.path or test.names) and len(self._failures) < 2_000:
            self._failures.append((section, test))


_MINITEST = re.compile(r"^(?:  \d+\) )?(?P<verdict>Failure|Error|Skipped):$")
_NAMED = re.compile(r"^ ?(?P<class>[A-Z][\w:]*(?:::.*?)?)#(?P<name>.+?)(?: \[(?P<path>[^\]]+?):(?P<line>\d+)\])?:$")
_MINITEST_END = re.compile(r"^\d+ (?:runs|tests), \d+ assertions|^(?:bin/)?rails test |^Finished in ")
_UNIT = re.compile(
    r"^(?P<verdict>Failure|Error): (?P<name>[\w\[\] ]+?)\((?P<class>[A-Z][\w:]*)\)(?:: (?P<message>.*)|:)?$"
)
_RULE = re.compile(r"^={40,}$")
_QUOTE = re.compile(r"^ +(?P<here>=> )?\d+: ?(?P<source>.*)$")


class MinitestFormat(_RubyFailures):
    """`1) Failure:`, then `CartTest#test_total [path:line]:` and the message."""

    wakes: ClassVar[tuple[str, ...]] = ("Failure:", "Error:", "Failure: ", "Error: test")

    def __init__(self) -> None:
        super().__init__()
        self._verdict = ""  # of an entry whose name comes next
        self._names: tuple[str, ...] = ()
        self._place: RawFrame | None = None
        self._unit = False  # test-unit's entries end with a rule

    @property
    def busy(self) -> bool:
        return bool(self._verdict) or self._section is not None

    def feed(self, at: int, line: str) -> None:
        if head := _MINITEST.match(line):
            self.close()
            self._verdict = head["verdict"]
        elif self._verdict:
            verdict, self._verdict = self._verdict, ""
            if (named := _NAMED.match(line)) and verdict != "Skipped":
                self._open_named(at, line, named)
        elif unit := _UNIT.match(line):
            self._open_unit(at, line, unit)
        elif self._section is not None:
            self._inside(at, line, self._section)

    def ended(self, section: Section) -> None:
        path = self._place.path if self._place else ""
        if not path:
            own = (frame.path for frame in self._frames if frame.function == self._names[-1])
            path = next(own, self._frames[-1].path if self._frames else "")
        test = RawTest(section.at, path, self._names)
        if self._place and not section.frames:
            section.trace(self._found, section.at, [self._place])
        self._found.add_test(test)
        self._found.add_block(section.block(test, "FAILED"))

    def _open_named(self, at: int, line: str, named: re.Match[str]) -> None:
        self.close()
        self._names, self._unit = (*named["class"].split("::"), named["name"]), False
        self._place = RawFrame(named["path"], int(named["line"]), named["name"]) if named["path"] else None
        self.open(at).add(at, line)

    def _open_unit(self, at: int, line: str, unit: re.Match[str]) -> None:
        self.close()
        self._names, self._place, self._unit = (*unit["class"].split("::"), unit["name"]), None, True
        self.open(at).add(at, line)
        self.error(at, unit["message"] or "")

    def _inside(self, at: int, line: str, section: Section) -> None:
        end = _RULE.match(line) if self._unit else _MINITEST_END.match(line)
        if end or at - section.at > MAX_LINES:
            return self.close()
        if self.add(at, line, section):
            return
        if quote := _QUOTE.match(line) if self._unit else None:
            if quote["here"] and self._frames:
                self._found.add_quoted(self._frames[0].path, quote["source"])
        elif self._unit or not self._frames:
            self.error(at, line)
