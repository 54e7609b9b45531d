"""What Python's containers give when they are iterated, indexed, or asked by a method. Pure.

A container of the library is a `Thing` of one of these shapes: `list` (of x), `dict` (of keys to values), `tuple`,
`items` (pairs), `raised` (what `pytest.raises` gives: an exception in a box).
"""

from __future__ import annotations

from agentctx.repo.atoms import Method, Thing, Value, joined

_LISTS = (
    *("list", "List", "set", "Set", "frozenset", "FrozenSet", "deque", "Deque", "Sequence", "MutableSequence"),
    *("Iterable", "Iterator", "Collection", "Container", "Reversible", "AbstractSet", "MutableSet", "Generator"),
    *("AsyncIterable", "AsyncIterator", "AsyncGenerator", "KeysView", "ValuesView", "ContextManager", "Queue"),
    *("AbstractContextManager", "AsyncContextManager", "AbstractAsyncContextManager", "WeakSet", "ContextVar"),
)
_DICTS = (
    *("dict", "Dict", "Mapping", "MutableMapping", "defaultdict", "DefaultDict", "OrderedDict", "ChainMap"),
    *("WeakValueDictionary", "WeakKeyDictionary", "MappingProxyType"),
)
SHAPES = {
    **dict.fromkeys(_LISTS, "list"),
    **dict.fromkeys(_DICTS, "dict"),
    **dict.fromkeys(("tuple", "Tuple"), "tuple"),
    "ItemsView": "items",
}
_ELEMENT = frozenset({"pop", "popleft", "__getitem__", "__next__", "get", "get_nowait"})
_SAME = frozenset({"copy", "union", "intersection", "difference", "__iter__", "__enter__", "__aenter__"})
_VALUE = frozenset({"get", "pop", "setdefault", "__getitem__"})


def container(shape: str, *args: Value) -> Thing:
    return Thing(shape, args)


def method(of: Thing, name: str) -> Method | None:
    """A method that gives something of what the container holds."""
    table = {"list": _ELEMENT | _SAME, "dict": _VALUE | {"copy", "items", "values", "keys", "popitem"}}
    return Method(name, of) if name in table.get(of.name, ()) else None


def called(method: Method) -> Value:
    of, name = method.of, method.name
    if name in _SAME:
        return (of,)
    if of.name == "list":
        return element(of)
    match name:
        case "items" | "popitem":
            pair = container("tuple", *_pair(of))
            return (container("list", (pair,)),) if name == "items" else (pair,)
        case "values":
            return (container("list", _pair(of)[1]),)
        case "keys":
            return (container("list", _pair(of)[0]),)
    return _pair(of)[1]


def _pair(of: Thing) -> tuple[Value, Value]:
    return (of.args[0], of.args[1]) if len(of.args) == 2 else ((), ())


def element(of: Thing) -> Value:
    """What iterating gives."""
    match of.name:
        case "list":
            return of.args[0] if of.args else ()
        case "dict":
            return _pair(of)[0]
        case "tuple":
            return joined(*of.args) if of.args else ()
        case "items":
            return (container("tuple", *_pair(of)),)
    return ()


def item(of: Thing, index: int | None) -> Value:
    """What `of[index]` gives; None: an index that isn't known."""
    if of.name == "tuple":
        if index is None:
            return joined(*of.args) if of.args else ()
        return of.args[index] if index < len(of.args) else ()
    return _pair(of)[1] if of.name == "dict" else element(of)


def entered(of: Thing) -> Value:
    """What `with` gives: what a context manager is annotated with, else something of the library."""
    if of.name == "raised":
        return (of,)
    return element(of) if of.name == "list" else (Thing("", ()),)
