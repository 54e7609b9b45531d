"""tsc's command line as the oracle of names that are missing in JavaScript and TypeScript.

One run per tree: scripts of one program would see each other's globals. Every file is a module, for the same reason:
what was left out of it may have been its exports. tsc says nothing of names while a file of a program doesn't parse,
so such files are taken out and it is run again.
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agentctx.bench.omissions.measure import Missed, Reading
from agentctx.bench.oracles.inherited import with_inherited
from agentctx.bench.oracles.npm import program_of, version_of
from agentctx.bench.oracles.typescript_options import SHARED_OPTIONS, module_options
from agentctx.errors import UnavailableError

PROGRAM = "tsc"
SECONDS = 1800.0
CONFIG = "agentctx-omissions.tsconfig.json"
_ROUNDS = 4  # of taking out files that don't parse
_LINE = re.compile(r"^(?P<path>[^\s(][^(]*)\((?P<line>\d+),(?P<column>\d+)\): error TS(?P<code>\d+): (?P<message>.*)$")
_CODES_EXPORT = (2305, 2614, 2694, 2724)
_SYNTAX = range(1001, 1190)
_NAMES: Mapping[int, re.Pattern[str]] = {
    **dict.fromkeys((2304, 2552, 2503, 2663, 2662), re.compile(r"'(?P<name>[^']+)'")),
    18004: re.compile(r"shorthand property '(?P<name>[^']+)'"),
    **dict.fromkeys(_CODES_EXPORT, re.compile(r"has no exported member (?:named )?'(?P<name>[^']+)'")),
    **dict.fromkeys((2459, 2460), re.compile(r"declares '(?P<name>[^']+)' locally")),
}
_MODULE = re.compile(r"Cannot find module '(?P<name>[^']+)'")
_ATTRIBUTE = re.compile(r"Property '(?P<name>[^']+)' does not exist on type '(?:typeof )?(?P<owner>import\(|\w+)")
_CODES_MODULE, _CODES_ATTRIBUTE = (2307,), (2339, 2551)
_CLAUSE = re.compile(r"(?:import|export)\s+(?:type\s+)?(?:[\w$]+\s*,\s*)?\{(?P<names>[^{}]*)\}\s*from\s*$")
_DECLARED = re.compile(r"\b(?:class|interface|enum|namespace|type)\s+(?P<name>[A-Za-z_$][\w$]*)(?P<head>[^{;]*)")
_WORD = re.compile(r"[A-Za-z_$][\w$]*")


@dataclass(frozen=True, slots=True)
class TscMissing:
    """`bound`: the words of each class, interface, type and namespace of the repository (`type_names`).

    `configs`: build files of the repository.
    """

    program: str
    bound: Mapping[str, frozenset[str]]
    configs: Mapping[str, bytes]

    @property
    def name(self) -> str:
        return f"tsc {version_of(Path(self.program))}"

    def read(self, folder: Path, trees: Sequence[str]) -> Mapping[str, Reading]:
        """Each tree in a run of its own.

        Raises:
            UnavailableError: no output that can be read.
        """
        return {tree: self._read(folder / tree) for tree in trees}

    def _read(self, tree: Path) -> Reading:
        (tree / CONFIG).write_text(json.dumps(_config(self.configs)), "utf-8")
        broken: set[str] = set()
        for _ in range(_ROUNDS):
            said = list(self._run(tree))
            bad = {one["path"] for one in said if int(one["code"]) in _SYNTAX}
            if not bad:
                break
            broken |= bad
            for path in bad:
                (tree / path).unlink(missing_ok=True)
        missed = [found for one in said for found in self._missed(one, tree)]
        return Reading(tuple(missed), frozenset(broken))

    def _run(self, tree: Path) -> Iterator[re.Match[str]]:
        command = (self.program, "-p", CONFIG, "--pretty", "false")
        try:
            done = subprocess.run(command, capture_output=True, cwd=tree, timeout=SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise UnavailableError(f"{PROGRAM} failed: {error}") from error
        lines = done.stdout.decode("utf-8", "replace").splitlines()
        found = [match for line in lines if (match := _LINE.match(line)) is not None]
        if done.returncode and not found and not any("TS18003" in line for line in lines):  # no inputs
            raise UnavailableError(f"{PROGRAM} failed: {(done.stdout + done.stderr)[:500].decode('utf-8', 'replace')}")
        yield from found

    def _missed(self, said: re.Match[str], tree: Path) -> Iterator[Missed]:
        path, line, code, message = said["path"], int(said["line"]), int(said["code"]), said["message"]
        if code in _CODES_MODULE and (module := _MODULE.search(message)) is not None:
            yield from _module(path, line, int(said["column"]), module["name"], message, tree / path)
        elif code in _CODES_ATTRIBUTE and (attribute := _ATTRIBUTE.search(message)) is not None:
            owner, name = attribute["owner"], attribute["name"]
            if owner == "import(" or name in self.bound.get(owner, ()):
                yield Missed(path, line, name, message, module=owner == "import(")
        elif code in _NAMES and (named := _NAMES[code].search(message)) is not None:
            yield Missed(path, line, named["name"], message, module=code in _CODES_EXPORT)


def tsc_missing(folder: Path | None, bound: Mapping[str, frozenset[str]], configs: Mapping[str, bytes]) -> TscMissing:
    """tsc where npm installed it in `folder`, or (None) on PATH.

    Raises:
        UnavailableError: it is not there.
    """
    return TscMissing(str(program_of(PROGRAM, folder, "typescript").resolve()), bound, configs)


def _config(configs: Mapping[str, bytes]) -> Mapping[str, object]:
    """As `tsserver` has it: of the repository's configuration only what says where modules are."""
    options: dict[str, object] = {
        **SHARED_OPTIONS,
        "checkJs": True,
        "moduleDetection": "force",
        "skipLibCheck": True,
        "strict": False,
        **module_options(configs, lambda one: f"./{one}"),
    }
    return {"compilerOptions": options, "include": ["."], "exclude": []}


def _module(path: str, line: int, column: int, name: str, message: str, file: Path) -> Iterator[Missed]:
    """What a statement takes from a module that isn't there; else the module."""
    lines = file.read_bytes().decode("utf-8", "replace").split("\n")
    before = "\n".join([*lines[max(0, line - 200) : line - 1], lines[line - 1][: column - 1]])
    clause = _CLAUSE.search(before)
    if clause is None:
        stem = name.rstrip("/").rpartition("/")[2].partition(".")[0]
        yield Missed(path, line, stem or name, message, module=True)
        return
    start = line - before[clause.start("names") :].count("\n")
    for word in re.finditer(r"(?P<name>[A-Za-z_$][\w$]*)(?:\s+as\s+[\w$]+)?\s*(?:,|$)", clause["names"]):
        at = start + clause["names"][: word.start()].count("\n")
        if word["name"] != "default":
            yield Missed(path, at, word["name"], message)


def type_names(files: Mapping[str, bytes]) -> Mapping[str, frozenset[str]]:
    """By the name of a class, interface, enum, type or namespace: the words in it and in what its head names."""
    own: dict[str, set[str]] = {}
    heads: dict[str, set[str]] = {}
    for data in files.values():
        text = data.decode("utf-8", "replace")
        for match in _DECLARED.finditer(text):
            words = set(_WORD.findall(_body(text, match.end())))
            own.setdefault(match["name"], set()).update(words)
            heads.setdefault(match["name"], set()).update(_WORD.findall(match["head"]))
    return with_inherited(own, heads)


def _body(text: str, start: int) -> str:
    """From the first brace to the one that closes it."""
    depth = 0
    for at in range(start, len(text)):
        if text[at] == "{":
            depth += 1
        elif text[at] == "}":
            depth -= 1
        if depth <= 0:
            return text[start:at]
    return text[start:]
