"""Which files of a large repository a request loads, links and ranks. Pure but for the loading.

Small repositories are loaded whole. Of large ones: what the evidence names, the files that match its text best, those
that mention the names that it is about, and what all of these import.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Protocol

from agentctx.prompt import Evidence, FocusRef, Task
from agentctx.repo.catalog import Catalog
from agentctx.repo.imported_paths import ImportedPaths
from agentctx.repo.terms import query_terms, words
from agentctx.source import FileSyntax


@dataclass(frozen=True, slots=True)
class Size:
    """So many files and so many bytes."""

    files: int
    n_bytes: int

    def share(self, part: float) -> Size:
        return Size(int(self.files * part), int(self.n_bytes * part))


WHOLE = Size(2500, 12_000_000)  # repositories of at most so many files and bytes are loaded whole
PART = Size(800, 6_000_000)
TEXT_SHARE, MENTION_SHARE = 0.4, 0.2  # of PART
MAX_DEFINERS = 8  # a name that more files define says nothing of where to look
MAX_CHANGED = 200  # changed files that are loaded because of that
MAX_TEXT = 200_000  # characters of the evidence's text that rank files

Load = Callable[[Iterable[str]], Sequence[FileSyntax]]


class Tree(Protocol):
    """What is asked of files that aren't loaded."""

    def text_of(self, path: str) -> bytes: ...

    def size_of(self, path: str) -> int: ...


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a request is about. `paths` are loaded in any case; `names` are looked for; `text` ranks files.

    `about`: the names of the definitions that the request is about; files that mention them may call them.
    """

    paths: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    text: str = ""
    mention_share: float = MENTION_SHARE  # of the files may be there because they mention something in `about`


def wanted_of(task: Task, evidence: Evidence, changed: Iterable[str] = ()) -> Wanted:
    """`changed`: paths of files whose changes are evidence; of many the first ones count."""
    frames = [frame for frame in evidence.frames if frame.in_repo]
    focus = [ref.symbol.rpartition(".")[2] for ref in task.focus if ref.symbol is not None]
    functions = [frame.function.rpartition(".")[2] for frame in reversed(frames) if frame.function]
    paths = [ref.path for ref in (*task.tests, *evidence.failing)]
    paths += [frame.path for frame in reversed(frames)]
    paths += [ref.path for ref in _refs(task)]
    return Wanted(
        paths=tuple(dict.fromkeys((*paths, *islice(dict.fromkeys(changed), MAX_CHANGED)))),
        names=tuple(dict.fromkeys((*focus, *words(task.request), *evidence.mentions))),
        about=tuple(dict.fromkeys((*focus, *functions))),
        text="\n".join((task.request, *evidence.error_lines, evidence.text[-MAX_TEXT:])),
    )


def _refs(task: Task) -> Iterator[FocusRef]:
    yield from task.focus
    yield from task.pins


def working_set(catalog: Catalog, wanted: Wanted, load: Load, tree: Tree, limit: Size = PART) -> tuple[FileSyntax, ...]:
    """The files to work with, by path. Deterministic; `wanted.paths` may exceed the limit, nothing else may."""
    known = frozenset(catalog.paths)
    seeds = [path for path in wanted.paths if path in known]
    chosen = _Chosen(tree, limit, seeds)
    chosen.add(_defining(catalog, wanted.names), limit)
    loaded = load(chosen.paths)
    about = (*wanted.about, *_defined(loaded, wanted.paths))
    terms = query_terms("\n".join((wanted.text, *_texts(loaded, tree.text_of))))
    scored = catalog.best(terms, limit.files * 4)
    chosen.add(scored, limit.share(TEXT_SHARE))
    chosen.add(_mentioning(catalog, about, scored), limit.share(wanted.mention_share))
    files = {file.path: file for file in load(chosen.paths)}
    _close(files, ImportedPaths(catalog.paths), load, chosen)
    return tuple(files[path] for path in sorted(files))


class _Chosen:
    """Paths, as far as they fit. A file that doesn't fit leaves its place to smaller ones."""

    def __init__(self, tree: Tree, limit: Size, paths: Iterable[str]) -> None:
        self.paths = dict.fromkeys(paths)
        self._tree = tree
        self.limit = limit
        self._n_bytes = sum(tree.size_of(path) for path in self.paths)

    def add(self, paths: Iterable[str], share: Size) -> list[str]:
        """Adds those that are new and fit into the share and the whole; gives them back."""
        taken: list[str] = []
        used = 0
        for path in paths:
            if path in self.paths:
                continue
            if len(taken) == share.files or len(self.paths) >= self.limit.files:
                break
            size = self._tree.size_of(path)
            if used + size <= share.n_bytes and self._n_bytes + size <= self.limit.n_bytes:
                self.paths[path] = None
                self._n_bytes += size
                used += size
                taken.append(path)
        return taken


def _defining(catalog: Catalog, names: Sequence[str]) -> list[str]:
    """Files that define one of the names, where few do."""
    found = catalog.defining(names)
    out: list[str] = []
    for name in names:
        paths = dict.fromkeys(path for path, _ in found.get(name, ()))
        out += paths if len(paths) <= MAX_DEFINERS else ()
    return list(dict.fromkeys(out))


def _defined(files: Sequence[FileSyntax], wanted: Iterable[str]) -> list[str]:
    """Names of what the evidence's own code files define."""
    paths = frozenset(wanted)
    return [symbol.name for file in files if file.path in paths and not file.is_test for symbol in file.symbols]


def _texts(files: Sequence[FileSyntax], text_of: Callable[[str], bytes]) -> list[str]:
    """The text of the evidence's tests: what they use is what the request is about."""
    return [text_of(file.path).decode("utf-8", "replace")[:MAX_TEXT] for file in files if file.is_test]


def _mentioning(catalog: Catalog, names: Iterable[str], scored: Sequence[str]) -> list[str]:
    """Files that mention one of the names, those that match the text best first."""
    rank = {path: at for at, path in enumerate(scored)}
    found: dict[str, None] = {}
    for name in dict.fromkeys(names):
        paths = catalog.mentioning(name)
        if len(paths) * 20 < len(catalog.paths):  # a word of one file in twenty is no name to go by
            found |= dict.fromkeys(paths)
    return sorted(found, key=lambda path: (rank.get(path, len(rank)), path))


def _close(files: dict[str, FileSyntax], paths: ImportedPaths, load: Load, chosen: _Chosen) -> None:
    """Adds what the files import, and what that imports, nearest first, up to the limit."""
    level = list(files.values())
    while level:
        new = dict.fromkeys(path for file in level for item in file.imports for path in paths.candidates(item))
        level = list(load(chosen.add(new, chosen.limit)))
        files.update((made.path, made) for made in level)
