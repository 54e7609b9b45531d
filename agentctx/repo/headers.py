"""Which references stand in the header of a definition, and so are looked up in the scope around it. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from agentctx.source import Reference, Role, Symbol

_WORD = re.compile(r"\w+")


def header_starts(references: Iterable[Reference], symbols: Mapping[str, Symbol]) -> Iterator[int]:
    """Where those references of one file start that stand before their scope's name or in its signature.

    A short definition is one unit, header and body. As often as the signature has a word, so many of the first
    references of that name are the signature's.
    """
    words: dict[str, Counter[str]] = {}
    for reference in references:
        scope = symbols.get(reference.scope or "")
        if scope is None or reference.unit != scope.header:
            continue
        if reference.span.start < scope.name_span.start:
            yield reference.span.start
            continue
        if scope.id not in words:
            words[scope.id] = Counter(_WORD.findall(scope.signature.partition(scope.name)[2]))
        left = words[scope.id]
        if left[reference.name] > 0:
            left[reference.name] -= 1
            yield reference.span.start
        elif reference.role is Role.TYPE and scope.signature.endswith("..."):  # it was shortened
            yield reference.span.start
