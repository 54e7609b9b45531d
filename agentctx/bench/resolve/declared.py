"""Where an oracle says that a name is declared -> which of our symbols that is."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence

from agentctx.bench.oracles.oracle import Answer, Place, Position
from agentctx.repo.resolvers.imported import WHOLE
from agentctx.source import RepoGraph, SourceFile, Symbol, SymbolKind

Key = tuple[str, str]  # path, qualified name
_CONSTRUCTORS = ("__init__", "__new__", "constructor")
_STUB = re.compile(r"(?<=\.py)i$")
_DECLARES = (".d.ts", ".d.mts", ".d.cts")
_WORD = re.compile(rb"[\w$]+")
# of JavaScript: what stands for its module, a function expression, what leads to one
_WHOLE = re.compile(rb"export\s+default\b|export\s*=|(?:module\.)?exports\s*=")
_FUNCTION = re.compile(rb"(?:async\s*)?(?:function\b|\(|<|[\w$]+\s*=>)")
_LEADS = re.compile(rb"(?:[=:?]|\breturn|\bdefault|\bfunction\s*\*?)\s*\Z")
_START = re.compile(rb"(?:\s|//[^\n]*|/\*.*?\*/|\A#![^\n]*)*", re.DOTALL)
_LEAD_BYTES = 40


class Declared:
    """The graph's symbols by where their names stand."""

    def __init__(self, graph: RepoGraph, files: Sequence[SourceFile]) -> None:
        self._symbols = graph.symbols
        self._data = {file.path: file.data for file in files}
        self._starts = {path: _starts(data) for path, data in self._data.items()}
        self._at: dict[Place, str] = {}
        self._whole = {
            path: [entry.removeprefix(f"{WHOLE}:") for entry in file.exports if entry.startswith(f"{WHOLE}:")]
            for path, file in graph.files.items()
        }
        self._in: dict[str, list[Symbol]] = {}
        for symbol in graph.symbols.values():
            is_module = symbol.kind is SymbolKind.MODULE
            at = Position(0, 0) if is_module else self.position(symbol.path, symbol.name_span.start)
            self._at[Place(symbol.path, at.line, at.column)] = symbol.id
            self._in.setdefault(symbol.path, []).append(symbol)

    def position(self, path: str, byte: int) -> Position:
        starts = self._starts[path]
        line = bisect_right(starts, byte) - 1
        before = self._data[path][starts[line] : byte].decode("utf-8", "replace")
        return Position(line, len(before.encode("utf-16-le")) // 2)

    def is_indexed(self, place: Place) -> bool:
        return place.path in self._data

    def can_be_targets(self, answer: Answer) -> bool:
        """Whether one of the places lies in a file with text, or all lie outside."""
        inside = [place for place in answer if place.path in self._data]
        return not inside or any(self._data[place.path or ""] for place in inside)

    def followed(self, answer: Answer, bound: Mapping[Key, Answer]) -> Answer:
        """With what is said of an import instead of the name that the import binds. `bound`: by path and name."""
        out: list[Place] = []
        for place in answer:
            word = self._word(place) if place not in self._at else None
            behind = bound.get((place.path or "", word)) if word is not None else None
            out += [place] if behind is None else behind
        return tuple(dict.fromkeys(out))

    def covers(self, answer: Answer, targets: Iterable[str]) -> bool:
        """Whether every target is one of the places."""
        allowed = {key for place in answer for key in self._alike(place)}
        keys = {_key(self._symbols[id]) for id in targets}
        right = keys & allowed
        # Of modules only those count that stand beside a right one: they all have the same (no) name.
        declared = {name for path, name in allowed if path.endswith(_DECLARES) and name} | {n for _, n in right}
        written = {name for _, name in allowed if name} | {name for _, name in right}
        return bool(keys) and all(
            name in (written if path.endswith(_DECLARES) else declared) for path, name in keys - right
        )

    def _alike(self, place: Place) -> Iterator[Key]:
        """What a declaration stands for."""
        id = self._at.get(place)
        if id is None:
            yield from self._unnamed(place)
            return
        path, qualname = _key(self._symbols[id])
        yield path, qualname
        if qualname in self._whole.get(path, ()):
            yield path, ""
        owner, _, name = qualname.rpartition(".")
        if self._symbols[id].kind is SymbolKind.CLASS:
            yield from ((path, f"{qualname}.{constructor}") for constructor in _CONSTRUCTORS)
        elif name in _CONSTRUCTORS:
            yield path, owner

    def _unnamed(self, place: Place) -> Iterator[Key]:
        """A place that is no symbol's name."""
        path, data = place.path or "", self._data.get(place.path or "")
        if data is None:
            return
        byte = self._byte(place)
        lead = data[max(0, byte - _LEAD_BYTES) : byte]
        if _WHOLE.match(data, byte):
            yield from ((path, name) for name in ("", "default", "exports", *self._whole.get(path, ())))
        elif (start := _START.match(data)) is not None and start.end() == byte:
            yield path, ""
            yield from ((path, name) for name in self._whole.get(path, ()))
        elif _LEADS.search(lead) and (_FUNCTION.match(data, byte) or lead.rstrip(b" *").endswith(b"function")):
            holding = [symbol for symbol in self._in.get(path, ()) if symbol.span.start <= byte < symbol.span.end]
            inner = min(holding, key=lambda s: (len(s.span), s.id), default=None)
            if inner is not None:
                yield _key(inner)

    def _word(self, place: Place) -> str | None:
        found = _WORD.match(self._data.get(place.path or "", b""), self._byte(place))
        return found[0].decode("utf-8", "replace") if found is not None else None

    def _byte(self, place: Place) -> int:
        """Where a place is in its file's text."""
        starts = self._starts.get(place.path or "", ())
        if place.line >= len(starts):
            return 0
        start = starts[place.line]
        line = self._data[place.path or ""][start : starts[place.line + 1] if place.line + 1 < len(starts) else None]
        before = line.decode("utf-8", "replace").encode("utf-16-le")[: 2 * place.column]
        return start + len(before.decode("utf-16-le", "replace").encode())


def _key(symbol: Symbol) -> Key:
    return _STUB.sub("", symbol.path), symbol.qualname


def _starts(data: bytes) -> list[int]:
    """The first byte of each line, as language servers count them."""
    starts = [0]
    for line in data.replace(b"\r\n", b" \n").replace(b"\r", b"\n").split(b"\n")[:-1]:
        starts.append(starts[-1] + len(line) + 1)
    return starts
