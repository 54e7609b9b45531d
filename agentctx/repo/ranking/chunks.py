"""What is ranked: chunks, the pieces that people would read as one thing. Pure.

A function with what is nested in it, a class's header and fields, one top-level statement group, the import
statements of a file. Their units can be shown by themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

from agentctx.source import FileSyntax, SymbolKind, UnitKind

IMPORTS = "@imports"
LARGEST = 4000  # bytes of a top-level statement that is one chunk
_FUNCTIONS = (SymbolKind.FUNCTION, SymbolKind.METHOD)


@dataclass(frozen=True, slots=True)
class Chunk:
    id: str  # symbol id, `path@unit` for top-level statements, `path@imports`
    path: str
    units: tuple[int, ...]
    symbol: str | None
    text: str

    @property
    def is_imports(self) -> bool:
        return self.symbol is None and self.id.endswith(IMPORTS)


def chunks_of(file: FileSyntax, data: bytes) -> list[Chunk]:
    """The chunks of one file, in the order in which they begin. Every unit is in exactly one."""
    owner, statement = owners(file), _statements(file)
    groups: dict[str, list[int]] = {}
    for unit in file.units:
        if unit.symbol is not None:
            key = owner[unit.symbol]
        else:
            key = f"{file.path}{IMPORTS}" if unit.kind is UnitKind.IMPORT else f"{file.path}@{statement[unit.index]}"
        groups.setdefault(key, []).append(unit.index)
    return [_chunk(file, data, key, units, key in owner) for key, units in groups.items()]


def _chunk(file: FileSyntax, data: bytes, key: str, units: list[int], is_symbol: bool) -> Chunk:
    spans = [file.units[unit].span for unit in units]
    text = b"".join(data[span.start : span.end] for span in spans).decode("utf-8", "replace")
    return Chunk(key, file.path, tuple(units), key if is_symbol else None, text)


def _statements(file: FileSyntax) -> list[int]:
    """Of each unit the first one of its top-level statement: `get("fresh", function () {...})` is read as one thing.

    A statement that is as large as a file (a wrapper around all of it) falls apart into its units; so does plain text,
    whose outline isn't code.
    """
    if file.language is None:
        return list(range(len(file.units)))
    roots = [unit.spine[0] if unit.spine else unit.index for unit in file.units]
    sizes: dict[int, int] = {}
    for unit in file.units:
        if unit.symbol is None and unit.kind is not UnitKind.IMPORT:
            sizes[roots[unit.index]] = sizes.get(roots[unit.index], 0) + len(unit.span)
    return [root if sizes.get(root, 0) <= LARGEST else index for index, root in enumerate(roots)]


def owners(file: FileSyntax) -> dict[str, str]:
    """Definition -> the definition that it is read with: nested functions belong to the outer one.

    What a class or a namespace holds stands for itself, but for the fields of a class.
    """
    by_id = {symbol.id: symbol for symbol in file.symbols}
    out: dict[str, str] = {}
    for symbol in file.symbols:
        at = symbol
        while at.parent in by_id and (at.kind is not SymbolKind.CLASS or by_id[at.parent].kind is not SymbolKind.CLASS):
            parent = by_id[at.parent]
            if parent.kind is SymbolKind.CLASS and (at.kind in _FUNCTIONS or parent.form == "namespace"):
                break
            at = parent
        out[symbol.id] = at.id
    return out
