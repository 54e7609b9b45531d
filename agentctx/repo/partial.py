"""The graph of some files of a repository, as far as it is sure without the others. Pure.

Files that weren't loaded take part as *stubs*: their paths are there, so that imports resolve as they would with all
files, and so are placeholders for names that the loaded files use and the others define, so that no guess by name
looks sure. What leads to a stub is taken out again: it is UNKNOWN, never EXTERNAL.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from agentctx.repo.catalog import Catalog
from agentctx.repo.entry import FileKey
from agentctx.repo.graph import build_graph
from agentctx.source import FileSyntax, Link, RepoGraph, Resolution, Symbol, SymbolKind, Unit, UnitKind
from agentctx.spans import ByteSpan, LineSpan

PER_NAME = 2  # definitions elsewhere that stand for all of a name, in code and in tests: two are no sure guess
_SPAN, _LINE = ByteSpan(0, 1), LineSpan(1, 1)
_OWNER = "<elsewhere>"
_MEMBERS = (SymbolKind.METHOD, SymbolKind.FIELD)
Placed = Mapping[str, Sequence[tuple[str, SymbolKind]]]


def partial_graph(
    files: Sequence[FileSyntax],
    others: Mapping[str, FileKey],
    catalog: Catalog,
    configs: Mapping[str, bytes] | None = None,
) -> RepoGraph:
    """The graph of `files`, where the repository has `others` too. `catalog`: of all files."""
    names = {reference.name for file in files for reference in file.references}
    names |= {item.name for file in files for item in file.imports if item.name is not None}
    placed = _placeholders(catalog.defining(names), others)
    packages = {(_folder(file.path), file.language): file.package for file in files}
    stubs = [
        _stub(file, placed.get(path, ()), packages.get((_folder(path), file.language), ""))
        for path, file in sorted(others.items())
        if file.language is not None
    ]
    return _without(build_graph([*files, *stubs], configs), {file.path for file in files})


def _placeholders(
    found: Mapping[str, Sequence[tuple[str, SymbolKind]]], others: Mapping[str, FileKey]
) -> dict[str, list[tuple[str, SymbolKind]]]:
    """Path -> the names to place there: of each name `PER_NAME` per language, in code and in tests."""
    out: dict[str, list[tuple[str, SymbolKind]]] = {}
    for name, places in found.items():
        n_placed: dict[tuple[str | None, bool], int] = {}
        for path, kind in places:
            file = others.get(path)
            if file is None or kind is SymbolKind.MODULE:
                continue
            key = (file.language, file.is_test)
            n_placed[key] = n_placed.get(key, 0) + 1
            if n_placed[key] <= PER_NAME:
                out.setdefault(path, []).append((name, kind))
    return out


def _stub(file: FileKey, names: Iterable[tuple[str, SymbolKind]], package: str) -> FileSyntax:
    unit = Unit(0, UnitKind.STATEMENT, _SPAN, _LINE, None, ())
    symbols = []
    for name, kind in names:
        owner = f"{file.path}::{_OWNER}" if kind in _MEMBERS else None
        qualname = f"{_OWNER}.{name}" if owner else name
        symbols.append(_symbol(file.path, f"{file.path}::{qualname}", name, qualname, kind, owner))
    if any(symbol.parent for symbol in symbols):
        symbols.insert(0, _symbol(file.path, f"{file.path}::{_OWNER}", _OWNER, _OWNER, SymbolKind.CLASS, None))
    distinct = tuple({symbol.id: symbol for symbol in symbols}.values())
    return FileSyntax(file.path, file.language, file.digest, (unit,), distinct, is_test=file.is_test, package=package)


def _symbol(path: str, id: str, name: str, qualname: str, kind: SymbolKind, parent: str | None) -> Symbol:
    return Symbol(id, name, qualname, kind, path, _SPAN, _SPAN, _LINE, 0, parent)


def _without(graph: RepoGraph, inside: set[str]) -> RepoGraph:
    """The graph without its stubs."""
    symbols = {id: symbol for id, symbol in graph.symbols.items() if symbol.path in inside}

    def kept(relation: Mapping[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        short = {key: tuple(id for id in values if id in symbols) for key, values in relation.items() if key in symbols}
        return {key: values for key, values in short.items() if values}

    return RepoGraph(
        files={path: file for path, file in graph.files.items() if path in inside},
        symbols=symbols,
        links=tuple(_inside(link, symbols) for link in graph.links),
        callers=kept(graph.callers),
        callees=kept(graph.callees),
        overrides=kept(graph.overrides),
        overridden_by=kept(graph.overridden_by),
        subclasses=kept(graph.subclasses),
        tests=kept(graph.tests),
        fixtures=kept(graph.fixtures),
    )


def _inside(link: Link, symbols: Mapping[str, Symbol]) -> Link:
    targets = tuple(id for id in link.targets if id in symbols)
    if len(targets) == len(link.targets):
        return link
    return replace(link, state=Resolution.AMBIGUOUS if targets else Resolution.UNKNOWN, targets=targets)


def _folder(path: str) -> str:
    return path.rpartition("/")[0]
