"""What `agentctx bench resolve` measures: our resolved references beside an oracle's.

Rules:
- A reference counts for recall where one of the oracle's declarations lies in an indexed file with text. A module or
  package counts as its file; an empty file can't be a target of ours and is left out.
- `RESOLVED` agrees when every target of ours is one that the oracle names. Equal to a declaration are the others of
  the same qualified name in that file (overloads, property setters, an `if` and its `else`), and to a class its own
  constructor. A stub and the code beside it are the same. What a module hands out as its default or as a whole,
  without a name, is the module.
- `AMBIGUOUS` and `UNKNOWN` count as unresolved. `RESOLVED` where the oracle says that the definition is outside of
  the repository is wrong; where the oracle knows nothing, it isn't counted.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from agentctx.bench.import_places import IMPORT_PLACES
from agentctx.bench.oracle import Answer, Oracle, Place, Position
from agentctx.repo.graph import build_graph
from agentctx.repo.parse import parse
from agentctx.repo.resolvers.families import config_names
from agentctx.repo.scan import scan
from agentctx.source import FileSyntax, Link, RepoGraph, Resolution, Role, SourceFile, Symbol, SymbolKind

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
    checked: list[Checked] = []
    for file in files:
        asked = [*_asked(file, graph.files[file.path], links.get(file.path, ()))]
        answers = oracle.definitions(file.path, [declared.position(file.path, at) for at, _ in asked])
        checked += [
            found
            for (_, link), answer in zip(asked, answers, strict=True)
            if (found := declared.check(link, answer)) is not None
        ]
    return Comparison(oracle.name, len(files), len(checked), tuple(_rows(checked)), tuple(checked))


def _asked(file: SourceFile, syntax: FileSyntax, links: Sequence[Link]) -> Iterator[tuple[int, Link]]:
    """(the byte to ask for, our link) of every name as it is written. Fixtures are known to pytest only."""
    by_import: dict[tuple[int, str, str | None], Link] = {}
    for link in links:
        reference = link.reference
        if reference.role is Role.IMPORT:
            by_import[reference.line, reference.name, reference.receiver] = link
        elif reference.role in KINDS:
            written = file.data[reference.span.start : reference.span.end].decode("utf-8", "replace")
            if written == reference.name:  # not so for the `__init__` that a call of a class implies
                yield reference.span.start, link
    for item, at in zip(syntax.imports, IMPORT_PLACES[file.language or ""](syntax, file.data), strict=True):
        receiver = "." * item.level + item.module if item.name is not None else None
        named = by_import.get((item.line, item.name or item.module, receiver))
        if at is not None and named is not None:
            yield at, named


_STUB = re.compile(r"(?<=\.py)i$")
_CONSTRUCTORS = ("__init__", "__new__", "constructor")
_WHOLE = re.compile(rb"export\s+default\b|export\s*=|(?:module\.)?exports\s*=")


class Declared:
    """The graph's symbols by where their names stand."""

    def __init__(self, graph: RepoGraph, files: Sequence[SourceFile]) -> None:
        self._symbols = graph.symbols
        self._data = {file.path: file.data for file in files}
        self._starts = {path: _starts(data) for path, data in self._data.items()}
        self._at: dict[Place, str] = {}
        self._named: dict[tuple[str, str], list[str]] = {}
        for symbol in graph.symbols.values():
            is_module = symbol.kind is SymbolKind.MODULE
            at = Position(0, 0) if is_module else self.position(symbol.path, symbol.name_span.start)
            self._at[Place(symbol.path, at.line, at.column)] = symbol.id
            self._named.setdefault(_bare(symbol), []).append(symbol.id)

    def position(self, path: str, byte: int) -> Position:
        starts = self._starts[path]
        line = _row(starts, byte)
        before = self._data[path][starts[line] : byte].decode("utf-8", "replace")
        return Position(line, len(before.encode("utf-16-le")) // 2)

    def check(self, link: Link, answer: Answer) -> Checked | None:
        """None where the oracle doesn't know, or where there is nothing that could be a target."""
        if link.reference.role is Role.NAME and link.reference.name.startswith("__"):
            return None
        inside = any(place.path in self._data for place in answer)
        if not answer or (inside and not any(self._data.get(place.path or "") for place in answer)):
            return None
        allowed = {id for place in answer for id in self._alike(place)}
        agrees = link.state is Resolution.RESOLVED and all(self._key(id) in allowed for id in link.targets)
        return Checked(link, answer, inside, agrees)

    def _alike(self, place: Place) -> Iterator[tuple[str, str]]:
        """The (path, qualified name)s that a declaration stands for."""
        id = self._at.get(place)
        if id is None:
            if place.path is not None and _WHOLE.match(self._data.get(place.path, b""), self._byte(place)):
                yield place.path, ""
            return
        path, qualname = self._key(id)
        yield path, qualname
        owner, _, name = qualname.rpartition(".")
        if self._symbols[id].kind is SymbolKind.CLASS:
            yield from ((path, f"{qualname}.{constructor}") for constructor in _CONSTRUCTORS)
        elif name in _CONSTRUCTORS:
            yield path, owner

    def _byte(self, place: Place) -> int:
        """Where a place is, in a file of which we know the text; columns of lines that are not ASCII are too small."""
        starts = self._starts.get(place.path or "", ())
        return starts[place.line] + place.column if place.line < len(starts) else 0

    def _key(self, id: str) -> tuple[str, str]:
        return _bare(self._symbols[id])


def _bare(symbol: Symbol) -> tuple[str, str]:
    return _STUB.sub("", symbol.path), symbol.qualname


def _starts(data: bytes) -> list[int]:
    """The first byte of each line, as language servers count them."""
    starts = [0]
    for line in data.replace(b"\r\n", b" \n").replace(b"\r", b"\n").split(b"\n")[:-1]:
        starts.append(starts[-1] + len(line) + 1)
    return starts


def _row(starts: Sequence[int], byte: int) -> int:
    return bisect_right(starts, byte) - 1


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
