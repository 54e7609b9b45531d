"""Files -> their syntax, from the cache where it knows them, parsed where not.

In one process: a pool was measured on two cores and did not pay (sending the syntax back costs what parsing does).
"""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass

from agentctx.repo.cache import SyntaxCache
from agentctx.repo.parse import parse
from agentctx.source import FileSyntax, SourceFile


@dataclass(frozen=True, slots=True)
class IndexResult:
    """`syntax[i]` is that of `files[i]`. `notes` are sentences for the report."""

    syntax: tuple[FileSyntax, ...]
    hits: int = 0
    misses: int = 0
    notes: tuple[str, ...] = ()


def index(
    files: Sequence[SourceFile],
    cache: SyntaxCache | None = None,
    memory: MutableMapping[str, FileSyntax] | None = None,
) -> IndexResult:
    """The syntax of all files, in their order. Stores in `cache` what it had to parse.

    `memory`: syntax by path from an earlier call of a process that lives on; what has the same content is taken from
    there. It holds exactly these files afterwards.
    """
    known = _remembered(files, memory or {})
    left = [file for file in files if file.path not in known]
    found = cache.get(left) if cache is not None and left else None
    known.update(found.syntax if found is not None else {})
    missing = [file for file in left if file.path not in known]
    made = [parse(file) for file in missing]
    notes = found.notes if found is not None else ()
    if cache is not None and missing:
        notes += cache.put(missing, made)
    known.update((syntax.path, syntax) for syntax in made)
    if memory is not None:
        memory.clear()
        memory.update(known)
    syntax = tuple(known[file.path] for file in files)
    return IndexResult(syntax, len(files) - len(missing), len(missing), tuple(dict.fromkeys(notes)))


def _remembered(files: Sequence[SourceFile], memory: Mapping[str, FileSyntax]) -> dict[str, FileSyntax]:
    found = ((file, memory.get(file.path)) for file in files)
    return {file.path: old for file, old in found if old is not None and old.digest == file.digest}
