"""Which files of a large repository a request loads, links and ranks. Pure but for the loading.

Small repositories are loaded whole. Of large ones: what the evidence names, the files that match its text best, those
that mention the names that it is about, and what all of these import.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from agentctx.prompt import Evidence, FocusRef, Task
from agentctx.repo.catalog import Catalog
from agentctx.repo.imported_paths import ImportedPaths
from agentctx.repo.terms import query_terms
from agentctx.source import FileSyntax

WHOLE_FILES = 1500  # repositories of at most so many files are loaded whole
MAX_FILES = 800
TEXT_SHARE, MENTION_SHARE = 0.3, 0.2  # of MAX_FILES
MAX_DEFINERS = 8  # a name that more files define says nothing of where to look
MAX_TEXT = 200_000  # characters of the evidence's text that rank files

Load = Callable[[Iterable[str]], Sequence[FileSyntax]]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a request is about. `paths` are loaded in any case; `names` are looked for; `text` ranks files.

    `about`: the names of the definitions that the request is about; files that mention them may call them.
    """

    paths: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    text: str = ""


def wanted_of(task: Task, evidence: Evidence, changed: Iterable[str] = ()) -> Wanted:
    """`changed`: paths of files whose changes are evidence."""
    frames = [frame for frame in evidence.frames if frame.in_repo]
    focus = [ref.symbol.rpartition(".")[2] for ref in task.focus if ref.symbol is not None]
    functions = [frame.function.rpartition(".")[2] for frame in reversed(frames) if frame.function]
    paths = [ref.path for ref in (*task.tests, *evidence.failing)]
    paths += [frame.path for frame in reversed(frames)]
    paths += [ref.path for ref in _refs(task)]
    return Wanted(
        paths=tuple(dict.fromkeys((*paths, *changed))),
        names=tuple(dict.fromkeys((*focus, *evidence.mentions))),
        about=tuple(dict.fromkeys((*focus, *functions))),
        text="\n".join((task.request, *evidence.error_lines, evidence.text[-MAX_TEXT:])),
    )


def _refs(task: Task) -> Iterator[FocusRef]:
    yield from task.focus
    yield from task.pins


def working_set(
    catalog: Catalog, wanted: Wanted, load: Load, text_of: Callable[[str], bytes], max_files: int = MAX_FILES
) -> tuple[FileSyntax, ...]:
    """The files to work with, by path. Deterministic; `wanted.paths` may exceed `max_files`, nothing else may."""
    known = frozenset(catalog.paths)
    seeds = [path for path in wanted.paths if path in known]
    seeds += [path for path in _defining(catalog, wanted.names) if path not in seeds]
    loaded = load(seeds)
    chosen = dict.fromkeys(seeds)
    about = (*wanted.about, *_defined(loaded, wanted.paths))
    words = query_terms("\n".join((wanted.text, *_texts(loaded, text_of))))
    scored = catalog.best(words, max_files)
    chosen |= dict.fromkeys(scored[: int(max_files * TEXT_SHARE)])
    chosen |= dict.fromkeys(_mentioning(catalog, about, scored, int(max_files * MENTION_SHARE)))
    files = {file.path: file for file in load(chosen)}
    _close(files, ImportedPaths(catalog.paths), load, max_files)
    return tuple(files[path] for path in sorted(files))


def _defining(catalog: Catalog, names: Sequence[str]) -> list[str]:
    """Files that define one of the names, where few do."""
    found = catalog.defining(names)
    out: list[str] = []
    for name in names:
        paths = dict.fromkeys(path for path, _ in found.get(name, ()))
        out += paths if len(paths) <= MAX_DEFINERS else ()
    return list(dict.fromkeys(out))[:MAX_FILES]


def _defined(files: Sequence[FileSyntax], wanted: Iterable[str]) -> list[str]:
    """Names of what the evidence's own code files define."""
    paths = frozenset(wanted)
    return [symbol.name for file in files if file.path in paths and not file.is_test for symbol in file.symbols]


def _texts(files: Sequence[FileSyntax], text_of: Callable[[str], bytes]) -> list[str]:
    """The text of the evidence's tests: what they use is what the request is about."""
    return [text_of(file.path).decode("utf-8", "replace")[:MAX_TEXT] for file in files if file.is_test]


def _mentioning(catalog: Catalog, names: Iterable[str], scored: Sequence[str], limit: int) -> list[str]:
    """Files that mention one of the names, those that match the text best first."""
    rank = {path: at for at, path in enumerate(scored)}
    found: dict[str, None] = {}
    for name in dict.fromkeys(names):
        paths = catalog.mentioning(name)
        if len(paths) * 20 < len(catalog.paths):  # a word of one file in twenty is no name to go by
            found |= dict.fromkeys(paths)
    return sorted(found, key=lambda path: (rank.get(path, len(rank)), path))[:limit]


def _close(files: dict[str, FileSyntax], paths: ImportedPaths, load: Load, max_files: int) -> None:
    """Adds what the files import, and what that imports, nearest first, up to the limit."""
    queue = deque(files.values())
    while queue and len(files) < max_files:
        level = [queue.popleft() for _ in range(len(queue))]
        new = dict.fromkeys(path for file in level for item in file.imports for path in paths.candidates(item))
        fresh = [path for path in new if path not in files][: max_files - len(files)]
        for made in load(fresh):
            files[made.path] = made
            queue.append(made)
