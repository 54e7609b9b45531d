"""One file's bytes -> why it is left out, or its entry, its syntax and its row of the catalog.

Runs the same in the main process and in workers.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from agentctx.repo import scan_rules
from agentctx.repo.cache import SyntaxCache, key_of
from agentctx.repo.catalog_row import NOTHING, CatalogRow, catalog_row
from agentctx.repo.entry import FileEntry
from agentctx.repo.languages import is_test_path
from agentctx.repo.parse import parse
from agentctx.repo.syntax_codec import encode
from agentctx.repo.tree_cache import TreeRow
from agentctx.source import FileSyntax, SourceFile


@dataclass(frozen=True, slots=True)
class Examined:
    """Either `reason`, or an entry with its catalog row.

    `syntax` as made in this process, `blob` as encoded by another one; neither where the syntax cache had it.
    """

    path: str
    reason: str | None
    entry: FileEntry | None = None
    row: CatalogRow = NOTHING
    syntax: FileSyntax | None = None
    blob: bytes | None = None

    def encoded(self) -> bytes | None:
        return encode(self.syntax) if self.syntax is not None else self.blob


def load(root: Path, path: str) -> bytes | str:
    """The bytes of a regular file, or why there are none."""
    try:
        return (root / path).read_bytes()
    except FileNotFoundError:
        return "vanished: git lists it, but it is not in the work tree"
    except OSError as error:
        return f"can't be read: {error.strerror or error}"


def source_of(path: str, data: bytes) -> SourceFile:
    """The file as the parser wants it."""
    language = scan_rules.language_by_content(path, data)
    return SourceFile(path, data, hashlib.sha256(data).hexdigest(), language, is_test_path(path))


def judged(path: str, data: bytes) -> SourceFile | str:
    """The file, or why its content says that it is left out."""
    reason = scan_rules.by_size(len(data)) or scan_rules.by_content(path, data)
    return reason if reason is not None else source_of(path, data)


def entry_of(file: SourceFile) -> FileEntry:
    return FileEntry(file.path, file.digest, file.language, file.is_test, len(file.data))


def examine(found: Sequence[SourceFile | tuple[str, str]], cache: SyntaxCache | None) -> list[Examined]:
    """What `found` says, in its order: files, or (path, reason). What `cache` knows is not parsed.

    Where the cache can't be read, it says so when it is written to.
    """
    files = [one for one in found if isinstance(one, SourceFile)]
    keys = {file.path: key_of(file) for file in files}
    known = cache.rows(list(keys.values()))[0] if cache is not None else {}
    return [
        _parsed(one, known, keys[one.path]) if isinstance(one, SourceFile) else Examined(*one)  # as found
        for one in found
    ]


def _parsed(file: SourceFile, known: Mapping[str, CatalogRow], key: str) -> Examined:
    row = known.get(key)
    if row is not None:
        return Examined(file.path, None, entry_of(file), row)
    try:
        syntax = parse(file)
    except Exception as error:  # noqa: BLE001 - a file that the parser can't take must not end the run; it is reported
        return Examined(file.path, f"the parser failed on it: {type(error).__name__}: {error}")
    return Examined(file.path, None, entry_of(file), catalog_row(file.data, syntax.symbols), syntax)


def read_and_examine(
    root: Path, paths: Sequence[str], cache: SyntaxCache | None, old: Mapping[str, TreeRow] = MappingProxyType({})
) -> list[Examined]:
    """`examine` of files on disk. `old`: rows of files that may have been touched only, not changed."""
    found: list[SourceFile | tuple[str, str]] = []
    for path in paths:
        data = load(root, path)
        verdict = data if isinstance(data, str) else judged(path, data)
        found.append((path, verdict) if isinstance(verdict, str) else verdict)
    same = {one.path: old[one.path] for one in found if isinstance(one, SourceFile) and _is_same(one, old)}
    fresh = iter(examine([one for one in found if not (isinstance(one, SourceFile) and one.path in same)], cache))
    return [
        Examined(path, None, row.entry, row.row) if (row := same.get(path)) is not None else next(fresh)
        for path in paths
    ]


def _is_same(file: SourceFile, old: Mapping[str, TreeRow]) -> bool:
    return file.path in old and old[file.path].entry == entry_of(file)
