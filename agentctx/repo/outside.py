"""What is known of libraries without looking into them. Pure.

The standard library's functions give the library's own things, but for those that hand on what they were given; what
another library's function returns may well be ours.
"""

from __future__ import annotations

import sys

from agentctx.repo.atoms import Outside, Thing, Value
from agentctx.repo.containers import SHAPES

_HAND_ON = frozenset(
    [
        *("builtins", "copy", "functools", "contextlib", "dataclasses", "typing", "weakref", "asyncio", "itertools"),
        *("operator", "collections", "contextvars", "concurrent", "importlib", "inspect", "queue", "types", "abc"),
        *("heapq", "random", "pickle", "sys", "unittest", "threading", "warnings"),
    ]
)
_PLAIN_BUILTINS = frozenset(
    f"builtins.{name}"
    for name in (
        *("open", "input", "len", "repr", "hash", "id", "print", "format", "ord", "chr", "hex", "bin", "oct", "abs"),
        *("round", "callable", "hasattr", "ascii"),
    )
)
_TELL_NOTHING = frozenset({"Any", "object", "type", "Type", "TypeVar", "Annotated", "property", "super", "Protocol"})
_BUILTIN_TYPES = frozenset({"str", "bytes", "bytearray", "int", "float", "bool", "complex", "memoryview", "range"})


def _last(name: str) -> str:
    return name.rpartition(".")[2]


def is_class(name: str) -> bool:
    """Whether a library's dotted name is that of a class, as far as its spelling tells."""
    last = _last(name)
    return (last[:1].isupper() and last not in _TELL_NOTHING) or last in _BUILTIN_TYPES or last in SHAPES


def thing_of(name: str, args: tuple[Value, ...]) -> Value:
    """An instance of the class with this dotted name; () where that says nothing."""
    if not is_class(name):
        return ()
    shape = SHAPES.get(_last(name)) if _is_standard(name) else None
    return (Thing(shape or name, args),)


def result_of_call(atom: Outside | Thing) -> Value:
    """What calling something of a library, or one of its methods, gives."""
    if isinstance(atom, Thing):
        return (Thing("", ()),) if not atom.args and _is_standard(atom.name) else ()
    if is_class(atom.name):
        return thing_of(atom.name, ())
    top = atom.name.partition(".")[0]
    is_own = atom.name in _PLAIN_BUILTINS or (_is_standard(atom.name) and top not in _HAND_ON)
    return (Thing("", ()),) if is_own else ()


def attribute_of(thing: Thing, name: str) -> Thing:
    """An attribute of an instance of a library's class is the library's too."""
    return Thing("" if _is_standard(thing.name) else f"{thing.name}.{name}", ())


def _is_standard(name: str) -> bool:
    top, dot, _ = name.partition(".")
    return not dot or top in sys.stdlib_module_names or top in ("builtins", "typing_extensions")
