"""Where imported names stand: an `Import` knows its statement only, an oracle is asked for a name."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from agentctx.repo.captured_refs import imported
from agentctx.repo.resolvers.families import import_reader
from agentctx.repo.trees import run_matches
from agentctx.source import FileSyntax, Import

# (file, its text) -> the byte at which each import's name starts, None where that can't be told
ImportPlaces = Callable[[FileSyntax, bytes], Sequence[int | None]]


def python_places(file: FileSyntax, data: bytes) -> Sequence[int | None]:
    """The last part of each imported dotted name; nothing in files that Python can't parse, and for stars."""
    try:
        tree = ast.parse(data)
    except (SyntaxError, ValueError):
        return [None] * len(file.imports)
    starts = _line_starts(data)
    by_line: dict[int, list[ast.Import | ast.ImportFrom]] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            by_line.setdefault(node.lineno, []).append(node)
    return [_place(item, by_line.get(item.line, ()), starts) for item in file.imports]


def _place(item: Import, nodes: Sequence[ast.Import | ast.ImportFrom], starts: Sequence[int]) -> int | None:
    for node in nodes:
        for name in node.names:
            if isinstance(node, ast.Import):
                fits = item.name is None and name.name == item.module and item.alias == _bound(name)
            else:
                fits = name.name == item.name != "*" and item.alias == (name.asname or name.name)
            if fits:
                last = len(name.name.rpartition(".")[0].encode())
                return starts[name.lineno - 1] + name.col_offset + (last + 1 if last else 0)
    return None


def _bound(name: ast.alias) -> str:
    return name.asname or name.name.partition(".")[0]


def _line_starts(data: bytes) -> list[int]:
    """The first byte of each line as Python's parser counts them; it doesn't count a byte order mark."""
    starts, at = [3 if data.startswith(b"\xef\xbb\xbf") else 0], 0
    for line in data.splitlines(keepends=True):
        at += len(line)
        starts.append(at)
    return starts


def written_places(file: FileSyntax, data: bytes) -> Sequence[int | None]:
    """As the reader of the language's import statements tells them."""
    read = import_reader(file.language or "")
    matches, _ = run_matches(data, file.language or "")
    assert read is not None
    places = [one.at for one in imported(data, matches, read)]
    assert len(places) == len(file.imports), file.path
    return places


IMPORT_PLACES: Mapping[str, ImportPlaces] = MappingProxyType(
    {"python": python_places, **dict.fromkeys(("javascript", "typescript", "tsx"), written_places)}
)
