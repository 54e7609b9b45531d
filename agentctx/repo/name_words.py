"""Tests and code by their names: `test_parse_url` and `TestParser` are about `parse_url` and `Parser`. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from agentctx.source import Symbol, SymbolKind

MIN_NAME = 4  # shorter names are in too many others
MAX_WORDS = 5
MAX_ALIKE = 3  # definitions of one name; more say nothing
_CODE = (SymbolKind.FUNCTION, SymbolKind.METHOD, SymbolKind.CLASS)
_NOTHING_SAID = frozenset({"test", "tests"})
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


def words(name: str) -> tuple[str, ...]:
    """`parse_HTTPUrl2` -> parse http url 2."""
    return tuple(word.lower() for word in _WORD.findall(name))


class Named:
    """All code of a repository by the words of its names."""

    def __init__(self, symbols: Mapping[str, Symbol]) -> None:
        self._symbols = symbols
        self._ids: dict[tuple[str, ...], list[str]] = {}
        self._words: dict[str, tuple[str, ...]] = {}
        self._around: dict[str, frozenset[str]] = {}
        for id, symbol in symbols.items():
            if symbol.kind in _CODE and not symbol.is_test and not symbol.is_fixture and len(symbol.name) >= MIN_NAME:
                self._ids.setdefault(self._of(symbol.name), []).append(id)

    def _of(self, name: str) -> tuple[str, ...]:
        if name not in self._words:
            self._words[name] = words(name)
        return self._words[name]

    def about(self, test: Symbol) -> Iterator[str]:
        """What the name of a test, or of the class around it, names."""
        names = [test.name]
        around = self._symbols.get(test.parent or "")
        names += [around.name] if around is not None else []
        for name in names:
            parts = self._of(name)
            parts = parts[1:] if parts[:1] in (("test",), ("tests",)) else parts
            for length in range(min(len(parts), MAX_WORDS), 0, -1):
                found = [i for at in range(len(parts) - length + 1) for i in self._ids.get(parts[at : at + length], ())]
                if found:
                    yield from found if len(found) <= MAX_ALIKE else ()
                    break

    def around(self, id: str) -> frozenset[str]:
        """The words of a definition's qualified name and of its file's name."""
        chain: list[Symbol] = []
        at: str | None = id
        while at is not None and at not in self._around:
            chain.append(self._symbols[at])
            at = chain[-1].parent if chain[-1].parent in self._symbols else None
        found = self._around[at] if at is not None else frozenset(self._of(_stem(chain[-1].path)))
        for symbol in reversed(chain):
            found = self._around[symbol.id] = found.union(self._of(symbol.name)) - _NOTHING_SAID
        return found


def _stem(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]
