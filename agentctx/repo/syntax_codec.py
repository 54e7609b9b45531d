"""FileSyntax <-> bytes for the cache: flat JSON columns, zlib. Independent of the file's path.

Ids are stored without the path, strings once, numbers in rows of fixed width: reading is the hot path.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from agentctx.repo.entry import FileKey
from agentctx.source import FileSyntax, Import, LocalUse, Reference, Role, Symbol, SymbolKind, Unit, UnitKind
from agentctx.spans import ByteSpan, LineSpan

_UNIT_KINDS, _SYMBOL_KINDS, _ROLES = tuple(UnitKind), tuple(SymbolKind), tuple(Role)
_UNIT_NUMBER = {kind: number for number, kind in enumerate(_UNIT_KINDS)}
_SYMBOL_NUMBER = {kind: number for number, kind in enumerate(_SYMBOL_KINDS)}
_ROLE_NUMBER = {role: number for number, role in enumerate(_ROLES)}
_UNIT_WIDTH, _SYMBOL_WIDTH, _REFERENCE_WIDTH, _IMPORT_WIDTH, _LOCAL_WIDTH = 6, 21, 9, 8, 4


class _Strings(dict[str | None, int]):
    """Strings as numbers, in order of their first use; 0 is None."""

    def __init__(self) -> None:
        self[None] = 0

    def __missing__(self, text: str | None) -> int:
        number = self[text] = len(self)
        return number


class _Ids(dict[str | None, int]):
    """Ids as the numbers of what is left of them without the path."""

    def __init__(self, strings: _Strings, path: str) -> None:
        self._strings = strings
        self._prefix = len(path)
        self[None] = 0

    def __missing__(self, symbol_id: str | None) -> int:
        assert symbol_id is not None
        number = self[symbol_id] = self._strings[symbol_id[self._prefix :]]
        return number


def encode(syntax: FileSyntax) -> bytes:
    """The syntax without its path, language and digest."""
    strings = _Strings()
    local = _Ids(strings, syntax.path)

    def several(texts: Sequence[str]) -> list[int]:
        return [strings[text] for text in texts]

    units: list[Any] = []
    for u in syntax.units:
        units += (_UNIT_NUMBER[u.kind], u.span.end, u.lines.start, u.lines.end, local[u.symbol], u.spine)
    symbols: list[Any] = []
    for s in syntax.symbols:
        symbols += (local[s.id], strings[s.name], strings[s.qualname], _SYMBOL_NUMBER[s.kind])
        symbols += (s.span.start, s.span.end, s.name_span.start, s.name_span.end, s.lines.start, s.lines.end, s.header)
        symbols += (local[s.parent], strings[s.signature], several(s.bases), several(s.decorators))
        symbols += (int(s.is_test), int(s.is_fixture), strings[s.form], strings[s.type])
        symbols += (strings[s.value], several(s.traits))
    references: list[int] = []
    for r in syntax.references:
        references += (r.span.start, r.span.end, r.line, strings[r.name], _ROLE_NUMBER[r.role], local[r.scope])
        references += (strings[r.receiver], r.unit, strings[r.receiver_type])
    imports: list[int] = []
    for i in syntax.imports:
        imports += (strings[i.module], strings[i.name], strings[i.alias], i.level, i.unit, local[i.scope], i.line)
        imports.append(int(i.exported))
    variables: list[Any] = []
    for v in syntax.locals:
        variables += (v.unit, strings[v.name], v.line, v.bound)
    code = [units, symbols, references, imports, variables]
    exports = [syntax.exports, syntax.export_units]
    whole = [list(strings), *code, *exports, syntax.n_errors, syntax.package]
    return zlib.compress(json.dumps(whole, separators=(",", ":")).encode(), 1)


def decode(data: bytes, file: FileKey) -> FileSyntax:
    """What `encode` was given for a file of this content.

    Raises:
        ValueError, TypeError, IndexError, zlib.error: the bytes are damaged.
    """
    strings, *code, exports, export_units, n_errors, package = json.loads(zlib.decompress(data))
    units, symbols, references, imports, variables = code
    ids = [None if text is None else file.path + text for text in strings]
    return FileSyntax(
        path=file.path,
        language=file.language,
        digest=file.digest,
        units=tuple(_units(units, ids)),
        symbols=tuple(_symbols(symbols, file.path, strings, ids)),
        references=tuple(_references(references, file.path, strings, ids)),
        imports=tuple(_imports(imports, file.path, strings, ids)),
        exports=tuple(exports),
        export_units=tuple(export_units),
        n_errors=n_errors,
        is_test=file.is_test,
        package=package,
        locals=tuple(_locals(variables, strings)),
    )


def _rows(flat: list[Any], width: int) -> Iterator[tuple[Any, ...]]:
    if len(flat) % width:
        raise ValueError(f"{len(flat)} numbers are no rows of {width}")
    return zip(*[iter(flat)] * width, strict=True)


def _units(flat: list[Any], ids: Sequence[str | None]) -> Iterator[Unit]:
    at = 0
    for index, (kind, end, first, last, symbol, spine) in enumerate(_rows(flat, _UNIT_WIDTH)):
        yield Unit(index, _UNIT_KINDS[kind], ByteSpan(at, end), LineSpan(first, last), ids[symbol], tuple(spine))
        at = end


def _symbols(flat: list[Any], path: str, strings: Sequence[str], ids: Sequence[Any]) -> Iterator[Symbol]:
    for row in _rows(flat, _SYMBOL_WIDTH):
        made, name, qualname, kind, start, end, name_start, name_end, first, last, header = row[:11]
        parent, signature, bases, decorators, is_test, is_fixture, form, type_, value, traits = row[11:]
        yield Symbol(
            ids[made],
            strings[name],
            strings[qualname],
            _SYMBOL_KINDS[kind],
            path,
            ByteSpan(start, end),
            ByteSpan(name_start, name_end),
            LineSpan(first, last),
            header,
            ids[parent],
            strings[signature],
            tuple(strings[i] for i in bases),
            tuple(strings[i] for i in decorators),
            bool(is_test),
            bool(is_fixture),
            strings[form],
            strings[type_],
            strings[value],
            tuple(strings[i] for i in traits),
        )


def _references(flat: list[int], path: str, strings: Sequence[str], ids: Sequence[Any]) -> Iterator[Reference]:
    for start, end, line, name, role, scope, receiver, unit, type_ in _rows(flat, _REFERENCE_WIDTH):
        span = ByteSpan(start, end)
        yield Reference(
            path, span, line, strings[name], _ROLES[role], ids[scope], strings[receiver], unit, strings[type_]
        )


def _imports(flat: list[int], path: str, strings: Sequence[str], ids: Sequence[Any]) -> Iterator[Import]:
    for module, name, alias, level, unit, scope, line, exported in _rows(flat, _IMPORT_WIDTH):
        names = (strings[module], strings[name], strings[alias])
        yield Import(path, *names, level, unit, ids[scope], line, bool(exported))


def _locals(flat: list[Any], strings: Sequence[Any]) -> Iterator[LocalUse]:
    for unit, name, line, bound in _rows(flat, _LOCAL_WIDTH):
        yield LocalUse(unit, strings[name], line, tuple(bound))
