"""TypeScript's own server as the oracle of JavaScript and TypeScript.

All files are one external project, whatever the repository's configuration leaves
out (tests, as a rule); of that configuration only what says where modules are is kept.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from agentctx.bench.oracles.connection import Connection
from agentctx.bench.oracles.npm import program_of, version_of
from agentctx.bench.oracles.oracle import Answer, Place, Position
from agentctx.bench.oracles.typescript_options import SHARED_OPTIONS, module_options
from agentctx.errors import UnavailableError

PROGRAM = "tsserver"
BATCH = 100  # all questions of a batch fit into a pipe's buffer: neither side waits for the other to read
SECONDS = 600.0  # for one batch: the first one loads the project
_DECLARATIONS = (".d.ts", ".d.mts", ".d.cts")
# `exports.a = a`, `module.exports = a`, `export default a`; `{a}`
_HANDED_ON = re.compile(
    r"(?:(?:module\.)?exports(?:\.[\w$]+)?\s*=\s*(?:module\.exports\s*=\s*)?|export\s+default\s+)"
    r"(?=[A-Za-z_$][\w$]*\s*(?:;|\n|$))"
)
_REQUIRED = re.compile(r"(?:module\.)?exports\s*=\s*require\(")
_SHORTHAND = re.compile(r"[A-Za-z_$][\w$]*(?=\s*[,}])")


@dataclass(frozen=True, slots=True)
class Program:
    """How to start the server: `name` says in which version."""

    name: str
    command: tuple[str, ...]


def tsserver(folder: Path | None) -> Program:
    """Where the server is: where npm installed it in `folder`, or (None) on PATH.

    Raises:
        UnavailableError: it is not there.
    """
    program = program_of(PROGRAM, folder, "typescript@5")
    return Program(f"tsserver {version_of(program)}", (str(program), "--disableAutomaticTypingAcquisition"))


class TsServerOracle:
    """A running server; leave the `with` block to end it. `paths`: the files of the project, below `root`."""

    def __init__(
        self,
        program: Program,
        root: Path,
        paths: Sequence[str],
        configs: Mapping[str, bytes],
        *,
        seconds: float = SECONDS,
    ) -> None:
        self._program = program
        self._root = root.resolve()
        self._paths = paths
        self._options = _project_options(self._root, configs)
        self._texts: dict[str, str] = {}
        self._starts: dict[str, list[int]] = {}  # file -> where its lines start
        self._connection = Connection(program.name, program.command, self._root, seconds)

    @property
    def name(self) -> str:
        return self._program.name

    @property
    def failures(self) -> int:
        """Questions that the server answered with an error."""
        return self._connection.failures

    def __enter__(self) -> TsServerOracle:
        project = {
            "projectFileName": str(self._root / "all-files.csproj"),
            "rootFiles": [{"fileName": str(self._root / path)} for path in self._paths],
            "options": self._options,
            "typeAcquisition": {"enable": False},
        }
        try:
            self._connection.ask("openExternalProject", [project])
        except UnavailableError:
            self._connection.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def definitions(self, path: str, positions: Sequence[Position]) -> list[Answer]:
        """Declarations; behind those of a declaration file also what it declares, in the code beside it."""
        file = str(self._root / path)
        self._connection.send("open", {"file": file})
        questions = [{"file": file, "line": at.line + 1, "offset": at.column + 1} for at in positions]
        bodies = list(self._in_batches("definition-full", questions))
        found = [self._declared(body) for body in bodies]
        self._add_behind_uses(found, bodies)
        self._add_required(found, bodies)
        declared = [at for at, places in enumerate(found) if any(_is_declaration(place) for place in places)]
        behind = self._in_batches("findSourceDefinition", [questions[at] for at in declared])
        for at, body in zip(declared, behind, strict=True):
            found[at] |= self._places(body)
        self._connection.send("close", {"file": file})
        return [tuple(sorted(places, key=lambda p: (p.path or "", p.line, p.column))) for places in found]

    def _declared(self, body: Any) -> set[Place]:
        """An import of what isn't there stands for nothing, though the server names the import itself."""
        items = [item for item in body or () if not item.get("failedAliasResolution") and item["kind"] != "alias"]
        return {self._at(item["fileName"], item["textSpan"]["start"]) for item in items}

    def _add_behind_uses(self, found: Sequence[set[Place]], bodies: Sequence[Any]) -> None:
        """The server stops at `{a}` and `exports.a = a`, which only hand `a` on: it is asked for that `a` too."""
        hops = [
            (number, item["fileName"], offset)
            for number, body in enumerate(bodies)
            for item in body or ()
            if (offset := self._handed_on(item)) is not None
        ]
        wanted = list(dict.fromkeys((name, offset) for _, name, offset in hops))
        questions = [self._at_offset(*one) for one in wanted]
        answers = dict(zip(wanted, self._in_batches("definition-full", questions), strict=True))
        for number, name, offset in hops:
            found[number].update(self._declared(answers[name, offset]))

    def _add_required(self, found: Sequence[set[Place]], bodies: Sequence[Any]) -> None:
        """Of `module.exports = require('m')` the server says what it is by the type only."""
        hops = [
            (number, item["fileName"], item["textSpan"]["start"])
            for number, body in enumerate(bodies)
            for item in body or ()
            if self._inside(item["fileName"]) is not None
            and _REQUIRED.match(self._text(item["fileName"]), item["textSpan"]["start"]) is not None
        ]
        wanted = list(dict.fromkeys((name, offset) for _, name, offset in hops))
        answers = dict(
            zip(wanted, self._in_batches("typeDefinition", [self._at_offset(*one) for one in wanted]), strict=True)
        )
        for number, name, offset in hops:
            found[number].update(self._places(answers[name, offset]))

    def _at_offset(self, name: str, offset: int) -> Mapping[str, object]:
        place = self._at(name, offset)
        return {"file": name, "line": place.line + 1, "offset": place.column + 1}

    def _handed_on(self, item: Mapping[str, Any]) -> int | None:
        name, start = item["fileName"], item["textSpan"]["start"]
        if self._inside(name) is None:
            return None
        match = _HANDED_ON.match(self._text(name), start)
        if match is not None:
            return match.end()
        return start if item["kind"] == "property" and _SHORTHAND.match(self._text(name), start) else None

    def _text(self, name: str) -> str:
        """A file's text; as offsets count UTF-16, other planes' characters are two of it."""
        if name not in self._texts:
            text = Path(name).read_bytes().decode("utf-8-sig", "replace")
            self._texts[name] = re.sub(r"[\U00010000-\U0010ffff]", "??", text)
        return self._texts[name]

    def _at(self, name: str, offset: int) -> Place:
        """`offset` counts UTF-16 code units from the start of the file."""
        inside = self._inside(name)
        if inside is None:
            return Place(None, 0, 0)
        if name not in self._starts:
            self._starts[name] = _line_starts(self._text(name))
        line = bisect_right(self._starts[name], offset) - 1
        return Place(inside, line, offset - self._starts[name][line])

    def _inside(self, name: str) -> str | None:
        path = Path(name)
        return path.relative_to(self._root).as_posix() if path.is_relative_to(self._root) else None

    def _places(self, body: Any) -> set[Place]:
        return {self._place(item) for item in body or ()}

    def _place(self, item: Mapping[str, Any]) -> Place:
        return Place(self._inside(item["file"]), item["start"]["line"] - 1, item["start"]["offset"] - 1)

    def _in_batches(self, command: str, questions: Sequence[Mapping[str, object]]) -> Iterator[Any]:
        for start in range(0, len(questions), BATCH):
            yield from self._connection.ask(command, questions[start : start + BATCH])


def _project_options(root: Path, configs: Mapping[str, bytes]) -> dict[str, object]:
    options = {**SHARED_OPTIONS, **module_options(configs, lambda one: str(root / one))}
    if "paths" in options:
        options["baseUrl"] = str(root)
    return options


def _line_starts(text: str) -> list[int]:
    starts = [0]
    for line in re.split(r"(?<=\n)|(?<=\r)(?!\n)|(?<=[\u2028\u2029])", text):
        starts.append(starts[-1] + len(line))
    return starts[:-1]


def _is_declaration(place: Place) -> bool:
    return place.path is not None and place.path.endswith(_DECLARATIONS)
