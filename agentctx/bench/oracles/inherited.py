"""What a type binds, by itself and by the types that it names. Pure."""

from __future__ import annotations

from collections.abc import Mapping


def with_inherited(own: Mapping[str, set[str]], named: Mapping[str, set[str]]) -> dict[str, frozenset[str]]:
    """By type: its own names and those of all that it names, directly or not. `named`: the types each one names."""
    return {name: frozenset(_names(name, own, named)) for name in own}


def _names(name: str, own: Mapping[str, set[str]], named: Mapping[str, set[str]]) -> set[str]:
    found: set[str] = set()
    seen: set[str] = set()
    todo = [name]
    while todo:
        one = todo.pop()
        if one in own and one not in seen:
            seen.add(one)
            found |= own[one]
            todo += named[one]
    return found
