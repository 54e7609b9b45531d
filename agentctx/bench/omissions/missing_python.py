"""pyright's command line as the oracle of names that are missing in Python."""

from __future__ import annotations

import ast
import json
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentctx.bench.omissions.measure import Missed, Reading
from agentctx.bench.oracles.inherited import with_inherited
from agentctx.bench.oracles.npm import program_of, version_of
from agentctx.errors import UnavailableError

PROGRAM = "pyright"
SECONDS = 1800.0
_NO_PACKAGES = "no-packages"  # an environment in which nothing is installed: the repository itself may be, in ours
_RULES = {
    "reportUndefinedVariable": "error",
    "reportAttributeAccessIssue": "error",
    "reportMissingImports": "error",
}
_NAMES = (
    re.compile(r'^"(?P<name>[^"]+)" is not defined'),
    re.compile(r'^"(?P<name>[^"]+)" is unknown import symbol'),
    re.compile(r'^"(?P<name>[^"]+)" is not a known attribute of module'),
)
_MODULE = re.compile(r'^Import "(?P<name>[^"]+)" could not be resolved')
_ATTRIBUTE = re.compile(r'attribute "(?P<name>[^"]+)" for class "(?:type\[)?(?:[Ss]elf@)?(?P<owner>\w+)')


@dataclass(frozen=True, slots=True)
class PyrightMissing:
    """`program`: the command; `bound`: what each class of the repository binds, by class name (`class_names`)."""

    program: str
    bound: Mapping[str, frozenset[str]]

    @property
    def name(self) -> str:
        return f"pyright {version_of(Path(self.program))}"

    def read(self, folder: Path, trees: Sequence[str]) -> Mapping[str, Reading]:
        """All trees in one run, each an environment of its own.

        Raises:
            UnavailableError: no output that can be read.
        """
        _configure(folder, trees)
        command = (self.program, "--outputjson", "-p", str(folder))
        try:
            done = subprocess.run(command, capture_output=True, cwd=folder, timeout=SECONDS, check=False)
            said = json.loads(done.stdout)["generalDiagnostics"]
        except (OSError, ValueError, KeyError, subprocess.TimeoutExpired) as error:
            raise UnavailableError(f"{PROGRAM} failed: {error}") from error
        broken = {tree: frozenset(_broken(folder / tree)) for tree in trees}
        missed: dict[str, list[Missed]] = {tree: [] for tree in trees}
        for one in said:
            tree, _, path = Path(one["file"]).relative_to(folder).as_posix().partition("/")
            if path not in broken[tree]:
                missed[tree] += self._missed(one, path, folder / tree / path)
        return {tree: Reading(tuple(missed[tree]), broken[tree]) for tree in trees}

    def _missed(self, said: Mapping[str, Any], path: str, file: Path) -> Iterator[Missed]:
        message, line = said["message"].splitlines()[0], said["range"]["start"]["line"] + 1
        named = next((found for pattern in _NAMES if (found := pattern.search(message))), None)
        if named is not None:
            yield Missed(path, line, named["name"], message, module="is not defined" not in message)
        elif (attribute := _ATTRIBUTE.search(message)) is not None:
            if attribute["name"] in self.bound.get(attribute["owner"], ()):
                yield Missed(path, line, attribute["name"], message)
        elif (module := _MODULE.search(message)) is not None:
            yield from _module(path, line, module["name"], message, file)


def pyright_missing(folder: Path | None, bound: Mapping[str, frozenset[str]]) -> PyrightMissing:
    """pyright where npm installed it in `folder`, or (None) on PATH.

    Raises:
        UnavailableError: it is not there.
    """
    return PyrightMissing(str(program_of(PROGRAM, folder, "pyright")), bound)


def _configure(folder: Path, trees: Sequence[str]) -> None:
    (folder / _NO_PACKAGES / "lib" / "python3" / "site-packages").mkdir(parents=True)
    roots = [{"root": tree, "extraPaths": [f"{tree}/src"]} for tree in trees]
    config = {
        "include": list(trees),
        "executionEnvironments": roots,
        "venvPath": ".",
        "venv": _NO_PACKAGES,
        "typeCheckingMode": "off",
        "enableTypeIgnoreComments": False,
        **_RULES,
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(config), "utf-8")


def _broken(tree: Path) -> Iterator[str]:
    for file in sorted(tree.rglob("*.py*")):
        try:
            ast.parse(file.read_bytes())
        except (SyntaxError, ValueError, RecursionError):
            yield file.relative_to(tree).as_posix()


def _module(path: str, line: int, name: str, message: str, file: Path) -> Iterator[Missed]:
    """What an import statement takes from a module that isn't there; else the module."""
    taken = [
        alias
        for node in ast.walk(ast.parse(file.read_bytes()))
        if isinstance(node, ast.ImportFrom) and node.lineno <= line <= (node.end_lineno or line)
        for alias in node.names
        if alias.name != "*"
    ]
    for alias in taken:
        yield Missed(path, alias.lineno, alias.name, message)
    if not taken:
        yield Missed(path, line, name.rpartition(".")[2] or name, message, module=True)


def class_names(files: Mapping[str, bytes]) -> Mapping[str, frozenset[str]]:
    """By the name of a class: the names that its body or its bases bind. Classes of one name are taken together."""
    own: dict[str, set[str]] = {}
    bases: dict[str, set[str]] = {}
    for data in files.values():
        try:
            tree = ast.parse(data)
        except (SyntaxError, ValueError, RecursionError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                own.setdefault(node.name, set()).update(_bound(node))
                bases.setdefault(node.name, set()).update(_base_names(node))
    return with_inherited(own, bases)


def _bound(body: ast.ClassDef) -> Iterator[str]:
    """Names that anything inside defines or assigns; strings too, for `__slots__` and the like."""
    for node in ast.walk(body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if node is not body:
                yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            yield node.value


def _base_names(node: ast.ClassDef) -> Iterator[str]:
    for base in node.bases:
        inner = base.value if isinstance(base, ast.Subscript) else base
        if isinstance(inner, ast.Name | ast.Attribute):
            yield inner.id if isinstance(inner, ast.Name) else inner.attr
