"""What `agentctx bench resolve` measures: our resolved references beside an oracle's.

Rules:
- A reference counts for recall where one of the oracle's declarations lies in an indexed file with text. A module or
  package counts as its file; an empty file can't be a target of ours and is left out.
- `RESOLVED` agrees when every target of ours is one that the oracle names. Equal to a declaration are the others of
  the same qualified name in that file (overloads, property setters, an `if` and its `else`), and to a class its own
  constructor. A stub, or a declaration file, and the code of the same qualified name are the same. What a module
  hands out as its default or as a whole, without a name, is the module. A function expression is what it is given to.
- Where the oracle stops at the import that binds a name, what it says of the import itself counts.
- `AMBIGUOUS` and `UNKNOWN` count as unresolved. `RESOLVED` where the oracle says that the definition is outside of
  the repository is wrong; where the oracle knows nothing, it isn't counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from agentctx.bench.oracles.oracle import Answer, Oracle
from agentctx.bench.resolve.declared import Declared
from agentctx.bench.resolve.import_places import IMPORT_PLACES
from agentctx.repo.graph import build_graph
from agentctx.repo.parse import parse
from agentctx.repo.resolvers.families import config_names
from agentctx.repo.scan import scan
from agentctx.source import FileSyntax, Link, Resolution, Role, SourceFile

KINDS: Mapping[Role, str] = {
    Role.CALL: "calls",
    Role.IMPORT: "imports",
    Role.BASE: "bases",
    Role.DECORATOR: "decorators",
    Role.TYPE: "types",
    Role.ATTRIBUTE: "attributes",
    Role.NAME: "names",
}
REQUIRED = ("calls", "imports", "bases")
# what a user names -> the languages of files that see each other's definitions
LANGUAGES: Mapping[str, frozenset[str]] = {
    "python": frozenset({"python"}),
    "typescript": frozenset({"javascript", "typescript", "tsx"}),
}


@dataclass(frozen=True, slots=True)
class Checked:
    """One reference: ours beside the oracle's. `inside`: the oracle's declaration is in the repository."""

    link: Link
    answer: Answer
    inside: bool
    agrees: bool


@dataclass(frozen=True, slots=True)
class Row:
    """Counts of one kind of references. `total`: defined in the repository, as the oracle says."""

    kind: str
    total: int
    agreed: int
    wrong: int  # resolved otherwise than the oracle, or to the repository where the oracle leaves it
    ambiguous: int
    unknown: int  # with those that we say are external

    @property
    def precision(self) -> float | None:
        return self.agreed / (self.agreed + self.wrong) if self.agreed + self.wrong else None

    @property
    def recall(self) -> float | None:
        return self.agreed / self.total if self.total else None


@dataclass(frozen=True, slots=True)
class Comparison:
    oracle: str
    files: int
    references: int  # asked for
    rows: tuple[Row, ...]  # one per kind, then "calls, imports, bases" and "all"
    checked: tuple[Checked, ...]


def content_digest(files: Sequence[SourceFile]) -> str:
    """Names the state of the repository that answers hold for."""
    return hashlib.sha256("\n".join(f"{file.path} {file.digest}" for file in files).encode()).hexdigest()


def sources(root: Path, language: str, exclude: Sequence[str] = ()) -> tuple[SourceFile, ...]:
    """The files of a language under `root`, sorted by path, but those below the folders `exclude`.

    Raises:
        RepoError: as `scan` does.
    """
    out = tuple(f"{folder.strip('/')}/" for folder in exclude)
    return tuple(
        file for file in scan(root).files if file.language in LANGUAGES[language] and not file.path.startswith(out)
    )


def build_files(root: Path) -> dict[str, bytes]:
    """The build files under `root` by path.

    Raises:
        RepoError: as `scan` does.
    """
    return {file.path: file.data for file in scan(root).files if file.path.rpartition("/")[2] in config_names()}


def compare(
    files: Sequence[SourceFile], oracle: Oracle, configs: Mapping[str, bytes] = MappingProxyType({})
) -> Comparison:
    """Resolve all references of `files` and ask the oracle for each.

    Raises:
        UnavailableError: the oracle failed.
    """
    graph = build_graph([parse(file) for file in files], configs)
    declared = Declared(graph, files)
    links: dict[str, list[Link]] = {}
    for link in graph.links:
        links.setdefault(link.reference.path, []).append(link)
    answered: list[tuple[_Asked, Answer]] = []
    for file in files:
        asked = [*_asked(file, graph.files[file.path], links.get(file.path, ()))]
        answers = oracle.definitions(file.path, [declared.position(file.path, one.at) for one in asked])
        answered += zip(asked, answers, strict=True)
    bound = {(one.link.reference.path, one.binds): answer for one, answer in answered if one.binds is not None}
    checked = (_check(one.link, declared.followed(answer, bound), declared) for one, answer in answered)
    return _comparison(oracle.name, len(files), tuple(found for found in checked if found is not None))


def _comparison(oracle: str, n_files: int, checked: tuple[Checked, ...]) -> Comparison:
    return Comparison(oracle, n_files, len(checked), tuple(_rows(checked)), checked)


def _check(link: Link, answer: Answer, declared: Declared) -> Checked | None:
    """None where the oracle doesn't know, or where there is nothing that could be a target."""
    if link.reference.role is Role.NAME and link.reference.name.startswith("__"):
        return None
    if not answer or not declared.can_be_targets(answer):
        return None
    inside = any(declared.is_indexed(place) for place in answer)
    agrees = link.state is Resolution.RESOLVED and declared.covers(answer, link.targets)
    return Checked(link, answer, inside, agrees)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A name as it is written. `at`: its first byte; `binds`: the name in the file that an import gives it."""

    at: int
    link: Link
    binds: str | None = None


def _asked(file: SourceFile, syntax: FileSyntax, links: Sequence[Link]) -> Iterator[_Asked]:
    """Every name as it is written. Fixtures are known to pytest only."""
    by_import: dict[tuple[int, str, str | None], Link] = {}
    for link in links:
        reference = link.reference
        if reference.role is Role.IMPORT:
            by_import[reference.line, reference.name, reference.receiver] = link
        elif reference.role in KINDS:
            written = file.data[reference.span.start : reference.span.end].decode("utf-8", "replace")
            if written == reference.name:  # not so for the `__init__` that a call of a class implies
                yield _Asked(reference.span.start, link)
    for item, at in zip(syntax.imports, IMPORT_PLACES[file.language or ""](syntax, file.data), strict=True):
        receiver = "." * item.level + item.module if item.name is not None else None
        named = by_import.get((item.line, item.name or item.module, receiver))
        if at is not None and named is not None:
            yield _Asked(at, named, item.alias or None)


def _rows(checked: Sequence[Checked]) -> Iterator[Row]:
    of_kind = {kind: [c for c in checked if KINDS[c.link.reference.role] == kind] for kind in KINDS.values()}
    for kind, found in of_kind.items():
        yield _row_of(kind, found)
    yield _row_of(", ".join(REQUIRED), [c for kind in REQUIRED for c in of_kind[kind]])
    yield _row_of("all", checked)


def _row_of(kind: str, checked: Sequence[Checked]) -> Row:
    inside = [c for c in checked if c.inside]
    resolved = [c for c in checked if c.link.state is Resolution.RESOLVED]
    agreed = sum(c.agrees for c in inside)
    return Row(
        kind=kind,
        total=len(inside),
        agreed=agreed,
        wrong=len(resolved) - agreed,
        ambiguous=sum(c.link.state is Resolution.AMBIGUOUS for c in inside),
        unknown=sum(c.link.state in (Resolution.UNKNOWN, Resolution.EXTERNAL) for c in inside),
    )
