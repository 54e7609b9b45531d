"""What a tool calls a test -> the graph's symbols, in any language. Pure.

A test's name is a chain of words: `Cart > sums counts`, `Cart sums counts`, `TestX/sub_case`, `tests::it_works`,
`com.x.FooTest#bar`. It is compared word by word with the chains of the tests' symbols, so that no tool's punctuation
matters: the whole chain, else the end of it, else (for what runs inside a test: sub-tests, cases of a table) its begin.
A title that is a template (`parses %s`, `has ${n} rows`) fits what it may have become.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from agentctx.prompt import TestRef
from agentctx.repo.graph import find_test
from agentctx.source import FileSyntax, RepoGraph, Symbol, SymbolKind

_TESTS = (SymbolKind.FUNCTION, SymbolKind.METHOD, SymbolKind.CLASS)
_WORDS = re.compile(r"[^\W_]+")
_HOLE = re.compile(r"%(?:[sdifjopc#$%]|\.\d+f)|\$\{[^}]*\}|#\{[^}]*\}|\$[A-Za-z_#][\w.]*|\{\w*\}")
_CASE = re.compile(r"(?:\s*(?:\[[^\]]*\]|\([^)]*\)|with data set .*|#\d+))+$")  # what a table's row adds to a name
_GAP = "\0"
MAX_ALIKE = 3  # tests that one name may mean; more say nothing
Chain = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Test:
    symbol: Symbol
    chain: Chain  # words of its qualified name; _GAP where a template has a hole
    package: Chain
    place: frozenset[str]  # words of its path


class TestNames:
    """The tests of a graph by their words. Build it once for many questions."""

    __test__ = False  # not a test class

    def __init__(self, graph: RepoGraph) -> None:
        self._graph = graph
        self._by_last: dict[str, list[_Test]] = {}
        self._templates: list[_Test] = []
        self._by_path: dict[str, list[_Test]] = {}
        for path in sorted(graph.files):
            for test in _tests(graph.files[path]):
                self._by_path.setdefault(path, []).append(test)
                if _GAP in test.chain:
                    self._templates.append(test)
                elif test.chain:
                    self._by_last.setdefault(test.chain[-1], []).append(test)

    def find(self, ref: TestRef) -> tuple[str, ...]:
        """Ids of the tests that a log's reference means, sorted; () when none or too many fit."""
        if not ref.names:
            return ()
        found = self.find_in_file(ref) or self._definition(ref)
        if found or ref.path.endswith(".py") or (ref.path and ref.path not in self._graph.files):
            return found  # a file that isn't here, or Python's, whose tools know the file
        return _best(ref, self._everywhere(ref))

    def find_in_file(self, ref: TestRef) -> tuple[str, ...]:
        """The same, of the tests in `ref.path` alone."""
        exact = find_test(self._graph, ref)
        return (exact,) if exact is not None else _best(ref, self._by_path.get(ref.path, ()))

    def _everywhere(self, ref: TestRef) -> Iterable[_Test]:
        """Tests of all files that may fit; cheap for the many that can't."""
        for chain in _spellings(ref):
            yield from self._by_last.get(chain[-1], ())
            for first in dict.fromkeys(chain[:-1]):  # a sub-test: the test is named before it
                yield from (test for test in self._by_last.get(first, ()) if len(test.chain) < len(chain))
        yield from self._templates

    def _definition(self, ref: TestRef) -> tuple[str, ...]:
        """What a doctest stands in: a definition that is no test, by its last name."""
        file = self._graph.files.get(ref.path)
        if file is None or file.is_test:
            return ()
        name = ref.names[-1].rpartition(".")[2]
        found = [symbol.id for symbol in file.symbols if symbol.name == name and symbol.kind in _TESTS]
        return tuple(found[:1])


def _tests(file: FileSyntax) -> list[_Test]:
    package = _words(file.package)
    place = frozenset(_words(file.path))
    return [
        _Test(symbol, _template(symbol.qualname), package, place)
        for symbol in file.symbols
        if symbol.is_test and symbol.kind in _TESTS
    ]


def _words(text: str) -> Chain:
    return tuple(word.casefold() for word in _WORDS.findall(text))


def _template(title: str) -> Chain:
    parts = _HOLE.split(title)
    chain = _words(parts[0])
    for part in parts[1:]:
        chain = (*chain, _GAP, *_words(part))
    return chain


def _spellings(ref: TestRef) -> tuple[Chain, ...]:
    """The words of the whole name; then without what a table's row added."""
    whole = " ".join(ref.names)
    return tuple(dict.fromkeys(chain for text in (whole, _CASE.sub("", whole)) if (chain := _words(text))))


def _best(ref: TestRef, tests: Iterable[_Test]) -> tuple[str, ...]:
    scored: dict[str, tuple[int, int, int]] = {}
    for test in tests:
        score = max((_score(chain, test) for chain in _spellings(ref)), default=(0, 0, 0))
        if score[0]:
            scored[test.symbol.id] = max(score, scored.get(test.symbol.id, score))
    top = max(scored.values(), default=(0, 0, 0))
    found = sorted(id for id, score in scored.items() if score == top)
    return tuple(found) if top[0] and len(found) <= MAX_ALIKE else ()


def _score(named: Chain, test: _Test) -> tuple[int, int, int]:
    """(how well, words that agree, words of the rest that the path has); (0, ...) for no fit."""
    chain = test.chain
    whole = (*test.package, *chain)
    if not chain:
        return 0, 0, 0
    if named in (whole, chain):
        return 5, len(named), 0
    if _GAP in chain:
        n = len(chain) - chain.count(_GAP)
        return (4, n, 0) if n and _fits(chain, named) else (0, 0, 0)
    if named[-len(chain) :] == chain:
        return 4, len(chain), sum(word in test.place for word in named[: -len(chain)])
    if whole[-len(named) :] == named:
        return 3, len(named), 0
    if len(named) > len(chain) and test.symbol.kind is not SymbolKind.CLASS and _begins(named, chain):
        return 2, len(chain), 0
    return 0, 0, 0


def _begins(named: Chain, chain: Chain) -> bool:
    """Whether a test's chain stands in the name before the sub-test's part: `pkg TestX sub`."""
    return any(named[i : i + len(chain)] == chain for i in range(len(named) - len(chain)))


def _fits(template: Chain, named: Chain) -> bool:
    """Whether the words can be a template's, a hole being any number of words; what stands before may be left out."""
    parts: list[list[str]] = [[]]
    for word in template:
        if word == _GAP:
            parts.append([])
        else:
            parts[-1].append(word)
    first, *rest = parts
    if not rest:
        return False
    starts = [i for i in range(len(named)) if list(named[i : i + len(first)]) == first] if first else [0]
    return any(_follow(rest, named[start + len(first) :]) for start in starts[:1])


def _follow(parts: list[list[str]], words: Chain) -> bool:
    """Each part after the one before it, the last one at the end."""
    at = 0
    for part in parts[:-1]:
        starts = range(at, len(words) - len(part) + 1)
        at = next((i + len(part) for i in starts if list(words[i : i + len(part)]) == part), -1)
        if at < 0:
            return False
    last = parts[-1]
    return len(words) - at >= len(last) and list(words[len(words) - len(last) :]) == last
