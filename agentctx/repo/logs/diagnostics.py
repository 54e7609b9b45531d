"""What compilers and linters of Python, JavaScript and TypeScript report: a place, a severity, a message. Pure.

mypy, pyright, flake8, pylint, ruff; tsc, eslint; anything else that writes `path:line:col: error: message`.
The place is where the error is reported. Warnings count only where no error was found.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import ClassVar

from agentctx.repo.logs.found import Block, Found, RawFrame
from agentctx.repo.logs.javascript import SCRIPT

_EXT = rf"(?:pyi?|ipynb|json|s?css|less|html|md|{SCRIPT})"
_PATH = rf"(?P<path>(?:[A-Za-z]:)?[^\s:(][^:(\n]*?\.{_EXT})"
_SEVERITY = r"(?P<severity>fatal error|error|warning|note|information|info|hint|Error|Warning)"
_LINES = (
    # mypy, gcc-like, pyright, pretty tsc: path:line[:col[:line:col]][:| -] error[ TS123]: message
    re.compile(rf"^\s*{_PATH}:(?P<line>\d+)(?::\d+){{0,3}}(?::| -) {_SEVERITY}(?: TS\d+)?: (?P<message>.+)$"),
    # flake8, pylint, concise ruff: path:line:col: CODE message
    re.compile(
        rf"^{_PATH}:(?P<line>\d+):(?:\d+:)? "
        r"(?P<message>(?:(?P<code>[A-Z]{1,5}\d{2,5}):?|invalid-syntax:|SyntaxError:) .+)$"
    ),
    # eslint's unix formatter: path:line:col: message [Error/rule]
    re.compile(rf"^{_PATH}:(?P<line>\d+):\d+: (?P<message>.+ \[(?P<severity>Error|Warning)(?:/[^\]]+)?\])$"),
    # eslint's compact formatter: path: line 4, col 1, Error - message
    re.compile(rf"^{_PATH}: line (?P<line>\d+), col \d+, {_SEVERITY} - (?P<message>.+)$"),
    # tsc: path(line,col): error TS123: message
    re.compile(rf"^\s*{_PATH}\((?P<line>\d+),\d+\): {_SEVERITY} (?P<message>TS\d+: .+)$"),
)
_FILE = re.compile(rf"^(?P<path>(?:[A-Za-z]:)?[^\s:][^:\n]*\.{_EXT}):?$")
_UNDER = re.compile(
    r"^ +(?P<line>\d+):\d+ +(?:(?P<severity>error|warning|info) +(?P<message>\S.*)|(?P<code>[A-Z]{1,5}\d{2,5}) .+)$"
)
_RULE = re.compile(r"^(?:(?P<code>[A-Z]{1,5}\d{2,5})(?: \[\*\])? .+|(?:invalid-syntax|SyntaxError|error): .+)$")
_ARROW = re.compile(rf"^ *--> {_PATH}:(?P<line>\d+):\d+$")
_JSON = re.compile(r'^[\[,]? *\{.*"filename": ?"')
_CARET = re.compile(r"^[\s|]*[~^]+[\s~^]*$")
_QUOTED = re.compile(r"^(?:\s{2,}|\d+ *[|\u2502]? ?\s|\s*\d+ \|)")
_STYLE = ("W", "C", "R", "D", "N", "I", "Q", "ANN", "UP", "SIM", "PT", "PERF", "RUF", "TRY", "COM")
MAX_MORE = 12  # lines after a message that belong to it
MAX_WARNINGS = 300


@dataclass(slots=True)
class _Report:
    """One message with the lines that go on with it."""

    at: int
    path: str
    line: int
    is_error: bool
    lines: list[str]
    message: str


class DiagnosticsFormat:
    """One message after the other; `_under` is the file whose messages follow it."""

    wakes: ClassVar[tuple[str, ...]] = (
        *(".py:", ".pyi:", ".ts:", ".js:", "sx:", ".mjs:", ".cjs:", ".mts:", ".cts:", ".vue:", ".ipynb:", ".json:"),
        *(".ts(", ".js(", "sx(", ".mts(", ".cts(", ".vue("),
        *(".py\n", ".js\n", ".ts\n", "sx\n", ".cjs\n", ".mjs\n", ".cts\n", ".mts\n", ".vue\n"),
    )

    def __init__(self) -> None:
        self._found = Found()
        self._warnings: list[_Report] = []
        self._report: _Report | None = None
        self._under: str | None = None
        self._n_errors = 0

    @property
    def busy(self) -> bool:
        return self._report is not None or self._under is not None

    def feed(self, at: int, line: str) -> None:
        if (found := _match(line)) is not None:
            self._close()
            self._report = _report(at, line, found, found["path"])
        elif self._under is not None and (found := _UNDER.match(line)):
            self._close()
            self._report = _report(at, line, found, self._under)
        elif self._report is not None and self._goes_on(line, self._report):
            self._report.lines.append(line)
        else:
            self._outside(at, line)

    def finish(self) -> Found:
        self._close()
        for report in [] if self._n_errors else self._warnings:
            self._add(report)
        return self._found

    def _goes_on(self, line: str, report: _Report) -> bool:
        return len(report.lines) < MAX_MORE and bool(_QUOTED.match(line) or _CARET.match(line) or line.startswith("["))

    def _outside(self, at: int, line: str) -> None:
        if not line.strip() and self._report is not None and len(self._report.lines) == 1:
            return  # pretty tsc leaves a line free before it quotes the source
        self._close()
        file = _FILE.match(line)
        self._under = file["path"] if file else self._under if line.strip() and line.startswith(" ") else None

    def _close(self) -> None:
        report, self._report = self._report, None
        if report is None:
            return
        if report.is_error:
            self._n_errors += 1
            self._add(report)
        elif len(self._warnings) < MAX_WARNINGS:
            self._warnings.append(report)

    def _add(self, report: _Report) -> None:
        add_place(self._found, report.at, RawFrame(report.path, report.line), report.message, report.lines)


def add_place(found: Found, at: int, frame: RawFrame, message: str, lines: list[str]) -> None:
    """A message about a place: a trace of one frame, an error line and a block. The source it quotes ranks."""
    found.add_trace(at, [frame])
    found.add_error(at, message)
    kept = [line for line in lines if line.strip()]
    for line in kept[1:]:
        if _QUOTED.match(line) and not _CARET.match(line):
            found.add_quoted(frame.path, re.sub(r"^\s*\d+ [|\u2502]?", "", line))
    found.add_block(Block(at, at + len(lines) - 1, tuple(kept), (frame,)))


def _match(line: str) -> re.Match[str] | None:
    return next((found for pattern in _LINES if (found := pattern.match(line))), None)


def _report(at: int, line: str, found: re.Match[str], path: str) -> _Report:
    groups = found.groupdict()
    severity = (groups.get("severity") or "").lower()
    code = groups.get("code") or ""
    is_error = "error" in severity if severity else not code.rstrip("0123456789").startswith(_STYLE)
    where = "" if groups.get("path") else f"{path}: "
    message = groups.get("message") or line.strip()
    return _Report(at, path.strip(), int(found["line"]), is_error, [where + line], message)


class RuffFormat:
    """ruff's full output (`F401 message`, then ` --> path:line:col` and the source) and its JSON lines."""

    wakes: ClassVar[tuple[str, ...]] = ("--> ", '"filename"')
    back: ClassVar[int] = 1

    def __init__(self) -> None:
        self._found = Found()
        self._rule: tuple[int, str] | None = None  # the line before, where it may be a message
        self._frame: RawFrame | None = None
        self._lines: list[str] = []

    @property
    def busy(self) -> bool:
        return self._frame is not None

    def feed(self, at: int, line: str) -> None:
        arrow = _ARROW.match(line)
        if arrow and self._rule is not None and self._frame is None:
            self._frame = RawFrame(arrow["path"], int(arrow["line"]))
            self._lines = [self._rule[1], line]
        elif self._frame is not None and line.strip() and len(self._lines) < MAX_MORE:
            self._lines.append(line)
        else:
            self._close()
            self._rule = (at, line) if _RULE.match(line) else None
            if _JSON.match(line):
                self._json(at, line)

    def finish(self) -> Found:
        self._close()
        return self._found

    def _close(self) -> None:
        if self._frame is not None and self._rule is not None:
            at, message = self._rule
            add_place(self._found, at, self._frame, message, self._lines)
        self._rule, self._frame = None, None

    def _json(self, at: int, line: str) -> None:
        try:
            row = json.loads(line.strip("[], "))
            frame = RawFrame(str(row["filename"]), int(row["location"]["row"]))
            text = f"{row['code'] or 'invalid-syntax'} {row['message']}"
        except (ValueError, KeyError, TypeError, RecursionError):
            return  # some other tool's JSON
        add_place(self._found, at, frame, text, [f"{frame.path}:{frame.line}: {text}"])
