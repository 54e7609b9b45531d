"""Files -> their syntax, from memory or the cache where those know them, parsed where not."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass

from agentctx.repo.cache import Stored, SyntaxCache, key_of
from agentctx.repo.catalog_row import catalog_row
from agentctx.repo.entry import FileKey
from agentctx.repo.parse import parse
from agentctx.repo.syntax_codec import encode
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
    """The syntax of files that are all in memory, in their order. Stores in `cache` what it had to parse.

    `memory`: syntax by path from an earlier call of a process that lives on; what has the same content is taken from
    there. It holds exactly these files afterwards.
    """
    known = remembered(files, memory or {})
    left = [file for file in files if file.path not in known]
    found = cache.get(left) if cache is not None and left else None
    known.update(found.syntax if found is not None else {})
    missing = [file for file in left if file.path not in known]
    made = [parse(file) for file in missing]
    notes = found.notes if found is not None else ()
    if cache is not None and missing:
        notes += cache.put([_stored(file, syntax) for file, syntax in zip(missing, made, strict=True)])
    known.update((syntax.path, syntax) for syntax in made)
    if memory is not None:
        memory.clear()
        memory.update(known)
    syntax = tuple(known[file.path] for file in files)
    return IndexResult(syntax, len(files) - len(missing), len(missing), tuple(dict.fromkeys(notes)))


def _stored(file: SourceFile, syntax: FileSyntax) -> Stored:
    return Stored(key_of(file), encode(syntax), catalog_row(file.data, syntax.symbols))


def remembered(files: Sequence[FileKey], memory: Mapping[str, FileSyntax]) -> dict[str, FileSyntax]:
    """The syntax in `memory` of files that have still the same content and language."""
    found = ((file, memory.get(file.path)) for file in files)
    return {file.path: old for file, old in found if old is not None and is_of(old, file)}


def is_of(syntax: FileSyntax, file: FileKey) -> bool:
    return (syntax.digest, syntax.language, syntax.is_test) == (file.digest, file.language, file.is_test)
