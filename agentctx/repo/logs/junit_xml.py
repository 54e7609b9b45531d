"""JUnit's XML reports, from any tool, given as a log. Pure.

Read by lines and regular expressions within bounds, not by an XML parser: a report is a log that somebody sent. There
are no entities but the five of XML and numbers, whatever the text declares.
"""

from __future__ import annotations

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from agentctx.repo.logs.found import Found
from agentctx.repo.logs.junit_names import Case, case_frames, case_test, joined, said
from agentctx.repo.logs.section import Section

_ATTRIBUTES = r"(?P<attributes>(?:\s+[\w:.-]+\s*=\s*(?:\"[^\"]*\"|'[^']*'))*)"
_SUITE = re.compile(rf"<testsuite\b{_ATTRIBUTES}\s*(?P<empty>/?)>")
_CASE = re.compile(rf"<testcase\b{_ATTRIBUTES}\s*(?P<empty>/?)>")
_FAILURE = re.compile(rf"<(?P<tag>failure|error)\b{_ATTRIBUTES}\s*(?:/>|>(?P<text>.*?)(?:</(?P=tag)>|\Z))", re.DOTALL)
_ATTRIBUTE = re.compile(r"([\w:.-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)')")
_NO_FAILURE = re.compile(r"\btype\s*=\s*[\"'][^\"']*(?:RiskyTestError|IncompleteTestError|SkippedTestError)[\"']")
_CDATA = re.compile(r"<!\[CDATA\[(.*?)(?:\]\]>|\Z)", re.DOTALL)
_OUTPUT = re.compile(r"<(system-out|system-err)\b[^>]*>.*?(?:</\1>|\Z)", re.DOTALL)
_PARTS = re.compile(r"(?=<testcase\b|<testsuite\b|</testsuite>)")
MAX_CASE_LINES = 1_500
MAX_CASE_CHARS = 200_000
NO_MESSAGE = ("", "Failed", "failed")
MAX_PARENTS = 10_000
MAX_DEPTH = 50  # suites in suites


@dataclass(slots=True)
class _Open:
    """The text of a test case that is being read."""

    at: int
    lines: list[str] = field(default_factory=list)
    chars: int = 0


class JUnitXmlFormat:
    """Suites in suites, test cases with `failure` or `error` in them; skipped and flaky ones don't count."""

    wakes: ClassVar[tuple[str, ...]] = ("<testsuite", "<testcase", "</testsuite>")

    def __init__(self) -> None:
        self._found = Found()
        self._suites: list[Mapping[str, str]] = []
        self._open: _Open | None = None
        self._parents: set[tuple[str, str]] = set()  # of Go's subtests

    @property
    def busy(self) -> bool:
        return self._open is not None

    def feed(self, at: int, line: str) -> None:
        for part in _PARTS.split(line) if "<test" in line or "</testsuite" in line else (line,):
            self._part(at, part)

    def finish(self) -> Found:
        self._close(None)
        return self._found

    def _part(self, at: int, part: str) -> None:
        if part.startswith("<testcase"):
            self._close(at)
            self._open = _Open(at)
            self._keep(at, part, self._open)
        elif self._open is not None:
            self._keep(at, part, self._open)
        elif part.startswith("</testsuite>"):
            del self._suites[-1:]
        elif (suite := _SUITE.match(part)) and not suite["empty"] and len(self._suites) < MAX_DEPTH:
            self._suites.append(_attributes(suite["attributes"]))

    def _keep(self, at: int, part: str, case: _Open) -> None:
        case.lines.append(part)
        case.chars += len(part)
        head = len(case.lines) == 1 and (found := _CASE.match(part)) and found["empty"]
        too_much = len(case.lines) > MAX_CASE_LINES or case.chars > MAX_CASE_CHARS
        if head or too_much or "</testcase>" in part or part.startswith("</testsuite"):
            self._close(at)

    def _close(self, at: int | None) -> None:
        case, self._open = self._open, None
        if case is None:
            return
        text = "\n".join(case.lines)
        head = _CASE.match(text)
        if head is None or head["empty"]:
            return
        body = _OUTPUT.sub("", text[head.end() :])
        failures = [_failure(found) for found in _FAILURE.finditer(body) if not _NO_FAILURE.search(found["attributes"])]
        if failures:
            self._fail(case.at, len(case.lines), _attributes(head["attributes"]), failures)

    def _fail(self, at: int, n_lines: int, attributes: Mapping[str, str], failures: list[tuple[str, str]]) -> None:
        section = Section(at)
        lines = [line for message, text in failures for line in _lines(message, text)]
        for line in joined(lines):
            section.add(at, line)
        case = Case(at, attributes, tuple(self._suites), tuple(lines))
        if (case.owner, case.name) in self._parents:
            return  # told by its subtests
        for message, text in failures:
            for line in said(text if message in NO_MESSAGE else message, case):
                self._found.add_error(at, line)
        for frames in case_frames(case):
            self._found.add_trace(at, frames)
            section.frames += frames[:100]
        test = case_test(case)
        if test.param is not None and len(self._parents) < MAX_PARENTS:
            self._parents.update((case.owner, case.name[: found.start()]) for found in re.finditer("/", case.name))
        self._found.add_test(test)
        self._found.add_block(section.block(test, "FAILED", at + n_lines - 1))


def _failure(found: re.Match[str]) -> tuple[str, str]:
    """(message, text) of a failure."""
    attributes = _attributes(found["attributes"])
    text = found["text"] or ""
    parts = _CDATA.split(text)  # what stands in CDATA is no markup: odd parts
    plain = "".join(part if i % 2 else html.unescape(part) for i, part in enumerate(parts))
    return attributes.get("message", ""), plain.strip("\n")


def _lines(message: str, text: str) -> list[str]:
    """The message and the text, which most tools begin with it."""
    said = [line for line in message.split("\n") if line.strip()]
    if message not in NO_MESSAGE and said and said[0].strip() not in text and said[0][:80].strip() not in text:
        return [*said, *text.split("\n")]
    return text.split("\n")


def _attributes(text: str) -> dict[str, str]:
    return {name: html.unescape(one or two) for name, one, two in _ATTRIBUTE.findall(text)}
