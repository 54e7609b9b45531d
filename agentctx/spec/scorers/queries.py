"""Which tokens of a prompt ask: the failing tests, the log, the request; and the null query that asks nothing. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from agentctx.prompt import Int32, PromptDocument, Section, TokenizedPrompt, Tokenizer
from agentctx.source import MARKS
from agentctx.spec.reading import Aside, Group, tokens

TEST, LOG, REQUEST = "test", "log", "request"
NULL, NULL_REQUEST = "null", "null.request"
MOST = 256  # queries of a group; more of them change the mean little and cost as much each

NULL_EVIDENCE = "Failing test:\nN/A\n\nTest output:\nN/A\n"
NULL_ASKED = "\nRequest:\nMake the failing test pass.\n"
_BEFORE = (Section.SYSTEM, Section.CODE, Section.EDITED)


def code_end(tokenized: TokenizedPrompt) -> int:
    """Tokens before the first of tests, log and request: what all of those can see."""
    for unit in tokenized.document.units:
        if unit.section not in _BEFORE:
            return int(tokenized.unit_starts[unit.index])
    return tokenized.n_tokens


def evidence_groups(tokenized: TokenizedPrompt) -> tuple[Group, ...]:
    """The failing tests, the log and the request, as far as the prompt has them; MOST queries of each at most."""
    document = tokenized.document
    found = {
        TEST: _tokens(tokenized, _test_units(document)),
        LOG: _tokens(tokenized, _units_of(document, Section.LOG)),
        REQUEST: _tokens(tokenized, _units_of(document, Section.REQUEST, Section.TAIL)),
    }
    return tuple(Group(name, thinned(at)) for name, at in found.items() if len(at))


def null_aside(tokenized: TokenizedPrompt, tokenizer: Tokenizer) -> Aside:
    """A suffix that asks nothing, behind the code: groups NULL (all of it) and NULL_REQUEST (its request)."""
    evidence = tokenizer.encode(NULL_EVIDENCE)[0]
    asked = tokenizer.encode(NULL_ASKED)[0]
    ids = tokens([*evidence, *asked])
    groups = (
        Group(NULL, tokens(range(len(ids)))),
        Group(NULL_REQUEST, tokens(range(len(evidence), len(ids)))),
    )
    return Aside(code_end(tokenized), ids, groups)


def null_of(group: str) -> str:
    """The null query that a group is compared with."""
    return NULL_REQUEST if group == REQUEST else NULL


def last_tokens(tokenized: TokenizedPrompt, n: int) -> Int32:
    """The last n tokens of the prompt."""
    total = tokenized.n_tokens
    return tokens(range(max(0, total - n), total))


def thinned(at: Int32, most: int = MOST) -> Int32:
    """At most `most` of them, evenly spread."""
    if len(at) <= most:
        return at
    return tokens(at[np.linspace(0, len(at) - 1, most).round().astype(np.int64)])


def failing_units(document: PromptDocument) -> frozenset[int]:
    """Units of the tests that are known to fail."""
    facts, definitions = document.facts, document.definitions
    own = {u for symbol in facts.failing_tests if symbol in definitions for u in definitions[symbol].units}
    return frozenset(own.union(facts.test_units))


def _test_units(document: PromptDocument) -> list[int]:
    """Units of the failing tests; of all tests where none is known to fail."""
    own = failing_units(document)
    return sorted(own) if own else _units_of(document, Section.TESTS)


def _units_of(document: PromptDocument, *sections: Section) -> list[int]:
    return [unit.index for unit in document.units if unit.section in sections and unit.kind not in MARKS]


def _tokens(tokenized: TokenizedPrompt, units: Iterable[int]) -> Int32:
    spans = [tokenized.unit_tokens(unit) for unit in units]
    return tokens([at for span in spans for at in range(span.start, span.end)])
