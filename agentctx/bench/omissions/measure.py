"""What `agentctx bench omissions` measures: names that a type checker misses in kept text, and the report doesn't say.

Each selection has a random definition as its focus and a random budget. Its kept text is written as a tree
(`kept_tree`), and an oracle, which knows nothing of us, says which names it can't find there. What it can't find in
the whole repository either (same file, line and name) is no omission and is subtracted.

Rules:
- A missed name is reported where an omission of any state but kept covers it and is referred to from that file. The
  name is the omission's, the last part of its symbol or of a candidate, or a word of the import statement; or the
  file calls the omission's symbol by that name on that line (`export {output as infer}`). Reported on the line: from
  that very line; statements of several lines cost there.
- A name that a library's module hasn't got is no name of the repository: kept text without `assert sys.platform ==
  "win32"` imports from `ctypes` what other systems don't have. A library is what no file or folder has the name of.
- Where the module of `from m import a` isn't there, `a` is what is missed; of `import m` and `from m import *` it
  is `m`. A name that a module hasn't got, and a module, are also reported by the omission of a module, or of the
  statement by which one hands names on, that the very line refers to.
- An attribute that a class hasn't got counts where that class binds it in the whole repository, itself or by one of
  its bases, whatever the classes of those names are. Where it doesn't, the oracle named another class there: kept
  text without its assignments and `return`s has other types, and the name was never to be found in that one.
- Attributes of what isn't a class or module of the repository (None, int) are left out for the same reason.
- Files of a tree that can't be parsed are counted; what the oracle says of them isn't.
- Silent names are of three kinds. `local`: no definition and no import of the file has the name; it is a variable of
  a function, which is no symbol, and the statement that binds it was left out. `re-export`: what we resolve the name
  to is kept; what was left out is the statement by which the module in between hands it on. `other`: all else.
"""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from agentctx.bench.omissions.kept_tree import kept_files, without_stubs
from agentctx.bench.resolve.measure import LANGUAGES
from agentctx.config import RunOptions
from agentctx.errors import BudgetError, UsageError
from agentctx.pipeline.select import run
from agentctx.pipeline.services import Clock, Services
from agentctx.pipeline.understand import understand
from agentctx.prompt import FocusRef, NeedKind, Omission, PromptDocument, SymbolState, Task
from agentctx.source import FileSyntax, Symbol, SymbolKind

BATCH = 25  # selections that the oracle reads in one go
WHOLE = "whole"  # the tree of the repository itself
Key = tuple[str, int, str]  # path, line, name
_WORD = re.compile(r"[\w$]+")
_PACKAGE_FILES = frozenset({"__init__", "index"})


@dataclass(frozen=True, slots=True)
class Missed:
    """A name that the oracle can't find."""

    path: str
    line: int
    name: str
    message: str
    module: bool = False

    @property
    def key(self) -> Key:
        return self.path, self.line, self.name


@dataclass(frozen=True, slots=True)
class Reading:
    """What an oracle says of one tree. `broken`: files that it can't parse."""

    missed: tuple[Missed, ...] = ()
    broken: frozenset[str] = frozenset()


class MissingOracle(Protocol):
    """Reads trees: folders in `folder`, by name."""

    @property
    def name(self) -> str: ...

    def read(self, folder: Path, trees: Sequence[str]) -> Mapping[str, Reading]:
        """What it says of each.

        Raises:
            UnavailableError: it failed.
        """


@dataclass(frozen=True, slots=True)
class Selected:
    """One selection. `files`: its tree; `links`: what kept text calls by a name, on a line, as we resolve it."""

    number: int
    focus: str
    budget: int
    files: Mapping[str, bytes]
    omissions: tuple[Omission, ...]
    links: Mapping[Key, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Silent:
    """A name that the oracle misses in a selection, and that its report doesn't hold."""

    selection: int
    focus: str
    budget: int
    missed: Missed
    kind: str = "other"  # or 'local', 're-export'


@dataclass(frozen=True, slots=True)
class Measured:
    """Counts over all selections; `missed` = `reported` + silent ones."""

    oracle: str
    language: str
    selections: int
    refused: int  # the budget was too small
    files: int
    missed: int
    reported: int
    on_line: int  # of these, from the very line
    known: int  # that the oracle misses in the whole repository, too
    outside: int  # that it misses in a library
    broken: int  # files of trees that it can't parse
    silent: tuple[Silent, ...]


@dataclass(frozen=True, slots=True)
class Known:
    """What the whole repository says: names that the oracle misses there; by file the names of its definitions and
    imports; (file, name) of what is imported from libraries.
    """

    missed: frozenset[Key]
    names: Mapping[str, frozenset[str]]
    outside: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Request:
    root: Path
    language: str
    selections: int
    seed: int
    budgets: tuple[int, int]
    first: int = 0
    options: RunOptions = field(default_factory=RunOptions)


def measure(request: Request, oracle: MissingOracle, services: Services, say: Callable[[str], None]) -> Measured:
    """Select, let the oracle read, and look each missed name up in the report.

    Raises:
        UsageError: no definitions of the language.
        UnavailableError: the oracle failed.
    """
    index = understand(request.root, Task(), services, Clock(), options=request.options).index
    languages = LANGUAGES[request.language]
    files = {path: index.data[path] for path, syntax in index.graph.files.items() if syntax.language in languages}
    whole = without_stubs(files, index.data)
    names = {path: _names_of(index.graph.files[path]) for path in files}
    ours = frozenset(part.partition(".")[0] for path in index.data for part in path.split("/"))
    outside = frozenset((path, name) for path in files for name in from_outside(index.graph.files[path], ours))
    symbols = [symbol for symbol in index.graph.symbols.values() if symbol.path in files]
    extra = {path: data for path, data in index.data.items() if path.rpartition("/")[2] == "package.json"}
    known = frozenset(one.key for one in read_trees(oracle, {WHOLE: whole}, extra)[WHOLE].missed)
    total = Measured(oracle.name, request.language, 0, 0, 0, 0, 0, 0, 0, 0, 0, ())
    batch: list[Selected] = []
    for number, selected in enumerate(selections(request, symbols, services), 1):
        if selected is None:
            total = replace(total, refused=total.refused + 1)
        else:
            batch.append(selected)
        if len(batch) == BATCH or number == request.selections:
            readings = read_trees(oracle, {_name(one): one.files for one in batch}, extra)
            for one in batch:
                total = judged(total, one, readings[_name(one)], Known(known, names, outside))
            batch = []
            say(f"{number} of {request.selections}: {total.missed} names missed, {len(total.silent)} silent")
    return total


def selections(request: Request, symbols: Iterable[Symbol], services: Services) -> Iterator[Selected | None]:
    """One for each number; None where the budget is too small for what must stay.

    Raises:
        UsageError: there are no symbols.
    """
    pool = sorted((one for one in symbols if one.kind is not SymbolKind.MODULE), key=lambda one: one.id)
    if not pool:
        raise UsageError(f"there are no definitions in {request.language} to focus on")
    for number in range(request.first, request.first + request.selections):
        rng = random.Random(f"{request.seed}/{number}")  # so that a case can be had again by itself
        symbol = rng.choice(pool)
        budget = rng.randint(*request.budgets)
        task = Task(focus=(FocusRef(symbol.path, symbol=symbol.qualname),))
        try:
            done = run("select", request.root, task, replace(request.options, budget=budget), services)
        except BudgetError:
            yield None
            continue
        files = kept_files(done.text, done.understood.index.data, LANGUAGES[request.language])
        links = _links(done.tokenized.document, done.selection.units)
        focus = f"{symbol.path}#{symbol.qualname}"
        yield Selected(number, focus, budget, files, done.report.omissions.omissions, links)


def _links(document: PromptDocument, kept: Collection[int]) -> dict[Key, frozenset[str]]:
    found: dict[Key, frozenset[str]] = {}
    for link in document.links:
        if link.unit in kept and link.path is not None and link.line is not None:
            key = link.path, link.line, link.name
            found[key] = found.get(key, frozenset()).union(link.targets)
    return found


def _names_of(syntax: FileSyntax) -> frozenset[str]:
    """The names of definitions and imports of a file."""
    imported = (name for item in syntax.imports for name in (item.name, item.alias, item.module) if name)
    return frozenset((*(symbol.name for symbol in syntax.symbols), *imported))


def from_outside(syntax: FileSyntax, ours: frozenset[str]) -> frozenset[str]:
    """The names that a file imports from modules that no file or folder of the repository (`ours`) has the name of."""
    imported: dict[str, bool] = {}
    for item in syntax.imports:
        if item.name is not None:
            top = re.split(r"[./]", item.module.removeprefix("@"))[0]
            outside = not item.level and bool(top) and top not in ours
            imported[item.name] = imported.get(item.name, True) and outside
    return frozenset(name for name, outside in imported.items() if outside)


def _name(selected: Selected) -> str:
    return f"s{selected.number:05}"


def read_trees(
    oracle: MissingOracle, trees: Mapping[str, Mapping[str, bytes]], extra: Mapping[str, bytes]
) -> Mapping[str, Reading]:
    """Write the trees into a temporary folder and let the oracle read them. `extra`: files of all of them."""
    with tempfile.TemporaryDirectory(prefix="agentctx-omissions-") as made:
        folder = Path(made).resolve()
        for name, files in trees.items():
            for path, data in {**extra, **files}.items():
                file = folder / name / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
        return oracle.read(folder, tuple(trees))


def judged(
    total: Measured,
    selected: Selected,
    reading: Reading,
    known: Known,
) -> Measured:
    """`total` with one selection more."""
    sound = [one for one in dict.fromkeys(reading.missed) if one.path not in reading.broken]
    outside = {one.key for one in sound if one.module and (one.path, one.name) in known.outside} - known.missed
    missed = {one.key: one for one in sound if one.key not in known.missed and one.key not in outside}
    reported = on_line = 0
    silent = []
    for one in missed.values():
        sites = list(_sites(one, selected))
        reported += bool(sites)
        on_line += one.line in sites
        if not sites:
            kind = _kind(one, selected, known.names.get(one.path, frozenset()))
            silent.append(Silent(selected.number, selected.focus, selected.budget, one, kind))
    return replace(
        total,
        selections=total.selections + 1,
        files=total.files + len(selected.files),
        missed=total.missed + len(missed),
        reported=total.reported + reported,
        on_line=total.on_line + on_line,
        known=total.known + len({one.key for one in sound} & known.missed),
        outside=total.outside + len(outside),
        broken=total.broken + len(reading.broken),
        silent=(*total.silent, *silent),
    )


def _kind(missed: Missed, selected: Selected, names: frozenset[str]) -> str:
    """Of a silent name; `names`: of definitions and imports of its file."""
    called = selected.links.get(missed.key, frozenset())
    if missed.module and called:
        states = {one.symbol: one.state for one in selected.omissions}
        if all(states.get(symbol) in (SymbolState.KEPT, SymbolState.SIGNATURE) for symbol in called):
            return "re-export"
    return "local" if not missed.module and not called and missed.name not in names else "other"


def _sites(missed: Missed, selected: Selected) -> Iterator[int | None]:
    """The lines of the file from which omissions that cover the name are referred to."""
    called = selected.links.get(missed.key, frozenset())
    for omission in selected.omissions:
        if omission.state is SymbolState.KEPT:
            continue
        named = missed.name in covered(omission) or omission.symbol in called
        module = missed.module and omission.kind in (SymbolKind.MODULE, NeedKind.REEXPORT)
        for path, line in omission.referenced_from:
            if path == missed.path and (named or (module and line == missed.line)):
                yield line


def covered(omission: Omission) -> frozenset[str]:
    """The names that an omission speaks of."""
    if omission.kind in ("import", NeedKind.REEXPORT):
        return frozenset(_WORD.findall(omission.name))
    names = {omission.name}
    for symbol in (omission.symbol, *omission.candidates):
        names.update(_last(symbol))
    return frozenset(names)


def _last(symbol: str) -> Iterator[str]:
    """The last part of a symbol's id. A module has the name of its file, or of the folder that it stands for."""
    path, found, qualname = symbol.partition("::")
    if found:
        yield qualname.rpartition(".")[2].partition("~")[0]
        return
    folder, _, file = path.rpartition("/")
    stem = file.partition(".")[0]
    yield folder.rpartition("/")[2] if stem in _PACKAGE_FILES else stem
    yield stem
