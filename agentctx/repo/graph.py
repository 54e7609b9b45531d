"""Files' syntax -> the repository's graph, and questions about it. Pure.

References are resolved per language; a language without a resolver contributes its symbols only.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Protocol

from agentctx.prompt import TestRef
from agentctx.repo import mapping
from agentctx.repo.resolve_python import PythonResolver
from agentctx.repo.resolvers import families
from agentctx.repo.resolvers.engine import CapturedResolver
from agentctx.source import FileSyntax, Link, RepoGraph, Role, Symbol, SymbolKind
from agentctx.spans import ByteSpan, LineSpan

_DEFINITIONS = (SymbolKind.FUNCTION, SymbolKind.METHOD, SymbolKind.CLASS)
_POSITION = attrgetter(
    *("reference.span.start", "reference.span.end", "reference.line", "reference.role", "reference.name")
)


class Types(Protocol):
    """What a resolver knows of types."""

    def subclasses(self, cls: str) -> tuple[str, ...]: ...

    def overridden(self, member: Symbol) -> tuple[str, ...]: ...


class Resolver(Protocol):
    """Resolves the references of files that can see each other's definitions."""

    def links(self, file: FileSyntax) -> Iterable[Link]: ...


def build_graph(files: Sequence[FileSyntax], configs: Mapping[str, bytes] | None = None) -> RepoGraph:
    """Resolve every reference of `files`. The order of `files` does not matter.

    Beside the files' own symbols the graph has one of kind MODULE per file with code, so that imports have targets.
    `configs`: the build files (`families.config_names`) by path.
    """
    ordered = sorted(files, key=lambda file: file.path)
    resolvers = _resolvers(ordered, configs or {})
    links = [
        link
        for file in ordered
        if (family := _family(file)) is not None
        for link in _in_order(resolvers[family][0].links(file))
    ]
    symbols = {symbol.id: symbol for file in ordered for symbol in (*_module(file), *file.symbols)}
    symbols = {id: symbols[id] for id in sorted(symbols)}
    callers, callees = mapping.calls(links)
    types = {file.path: resolvers[family][1] for file in ordered if (family := _family(file)) is not None}
    overrides, overridden_by = _overrides(types, symbols)
    return RepoGraph(
        files={file.path: file for file in ordered},
        symbols=symbols,
        links=tuple(links),
        callers=callers,
        callees=callees,
        overrides=overrides,
        overridden_by=overridden_by,
        subclasses=_subclasses(types, symbols),
        tests=mapping.tests(links, symbols),
        fixtures=mapping.fixtures(links, symbols),
    )


def _family(file: FileSyntax) -> str | None:
    return "python" if file.language == "python" else families.family_of(file.language)


def _resolvers(files: Sequence[FileSyntax], configs: Mapping[str, bytes]) -> dict[str, tuple[Resolver, Types]]:
    by_family: dict[str, list[FileSyntax]] = {}
    for file in files:
        family = _family(file)
        if family is not None:
            by_family.setdefault(family, []).append(file)
    out: dict[str, tuple[Resolver, Types]] = {}
    for family, own in sorted(by_family.items()):
        if family == "python":
            python = PythonResolver(own)
            out[family] = (python, python.hierarchy)
        else:
            captured = CapturedResolver(own, families.rules(family), configs)
            out[family] = (captured, captured.classes)
    return out


def _in_order(links: Iterable[Link]) -> list[Link]:
    return sorted(links, key=_POSITION)


def _module(file: FileSyntax) -> list[Symbol]:
    if file.language is None or not file.units:
        return []
    name = file.path.rpartition("/")[2].partition(".")[0]
    whole = ByteSpan(0, file.units[-1].span.end)
    lines = LineSpan(1, file.units[-1].lines.end)
    return [
        Symbol(
            id=file.path,
            name=name,
            qualname="",
            kind=SymbolKind.MODULE,
            path=file.path,
            span=whole,
            name_span=ByteSpan(0, 0),
            lines=lines,
            header=0,
            signature=f"module {name}",
        )
    ]


def _overrides(types: Mapping[str, Types], symbols: dict[str, Symbol]) -> tuple[mapping.Relation, mapping.Relation]:
    overrides: mapping.Relation = {}
    overridden: dict[str, set[str]] = {}
    for symbol in symbols.values():
        if (
            symbol.kind is SymbolKind.METHOD
            and symbol.path in types
            and (found := types[symbol.path].overridden(symbol))
        ):
            overrides[symbol.id] = found
            for base in found:
                overridden.setdefault(base, set()).add(symbol.id)
    return overrides, {id: tuple(sorted(overridden[id])) for id in sorted(overridden)}


def _subclasses(types: Mapping[str, Types], symbols: Mapping[str, Symbol]) -> mapping.Relation:
    classes = (symbol for symbol in symbols.values() if symbol.kind is SymbolKind.CLASS and symbol.path in types)
    return {cls.id: below for cls in classes if (below := types[cls.path].subclasses(cls.id))}


# ---------------------------------------------------------------- questions


def symbol_at(graph: RepoGraph, path: str, line: int) -> Symbol | None:
    """The innermost definition that holds a line; else the constant or field that does; None in neither."""
    file = graph.files.get(path)
    holding = [symbol for symbol in file.symbols if symbol.lines.holds(line)] if file is not None else []
    definitions = [symbol for symbol in holding if symbol.kind in _DEFINITIONS]
    inner = min(definitions, key=lambda s: (len(s.lines), s.id), default=None)
    if inner is not None and inner.kind is not SymbolKind.CLASS:
        return inner
    values = [symbol for symbol in holding if symbol.kind not in _DEFINITIONS]
    return min(values, key=lambda s: (len(s.lines), s.id), default=inner)


def find_symbols(graph: RepoGraph, text: str) -> tuple[Symbol, ...]:
    """Symbols that `text` names: by id, else by qualified name, else `module.Qual.name`, else by name; sorted by id."""
    if text in graph.symbols:
        return (graph.symbols[text],)
    symbols = graph.symbols.values()
    for fits in (_has_qualname, _has_dotted_path, _ends_with, _has_name):
        found = tuple(symbol for symbol in symbols if fits(symbol, text))
        if found:
            return found
    return ()


def _has_qualname(symbol: Symbol, text: str) -> bool:
    return symbol.qualname == text


def _has_dotted_path(symbol: Symbol, text: str) -> bool:
    """`pkg.module.Class.method`, with or without the source root before it."""
    if "." not in text or not symbol.qualname or not text.endswith(f".{symbol.qualname}"):
        return False
    module = text.removesuffix(f".{symbol.qualname}")
    stem = symbol.path.rpartition(".")[0].removesuffix("/__init__").replace("/", ".")
    return f".{stem}".endswith(f".{module}")


def _ends_with(symbol: Symbol, text: str) -> bool:
    return "." in text and symbol.qualname.endswith(f".{text}")


def _has_name(symbol: Symbol, text: str) -> bool:
    return symbol.name == text


def find_test(graph: RepoGraph, ref: TestRef) -> str | None:
    """The id of the function or class that a test reference names, also where a test class inherits it."""
    file = graph.files.get(ref.path)
    if file is None or not ref.names:
        return None
    found = _last_named(file, ".".join(ref.names))
    if found is not None or len(ref.names) < 2:
        return found
    owner = _last_named(file, ".".join(ref.names[:-1]))
    return _inherited(graph, owner, ref.names[-1]) if owner is not None else None


def _last_named(file: FileSyntax, qualname: str) -> str | None:
    """Of several definitions of one name the last one counts."""
    found = [symbol for symbol in file.symbols if symbol.qualname == qualname]
    return max(found, key=lambda s: s.span.start).id if found else None


def _inherited(graph: RepoGraph, owner: str, name: str) -> str | None:
    bases: dict[str, list[str]] = {}
    for link in graph.links:
        if link.reference.role is Role.BASE and link.reference.scope is not None:
            bases.setdefault(link.reference.scope, []).extend(link.targets)
    queue, seen = [owner], {owner}
    for at in queue:
        symbol = graph.symbols[at]
        if symbol.kind is SymbolKind.CLASS:
            found = _last_named(graph.files[symbol.path], f"{symbol.qualname}.{name}")
            if found is not None:
                return found
        for base in bases.get(at, ()):
            if base not in seen:
                seen.add(base)
                queue.append(base)
    return None
