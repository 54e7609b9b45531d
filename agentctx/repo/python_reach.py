"""Which of a name's events hold at a position, and small questions about functions and texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tree_sitter import Node

from agentctx.repo.python_defs import text_of
from agentctx.repo.python_flow import Event, How

MAX_CHOICES = 6
_CLASS_METHODS = frozenset({"__new__", "__init_subclass__", "__class_getitem__"})


def receiver_of(data: bytes, function: Node | None) -> str | None:
    """`@self` or `@cls`: what the first parameter of a method is; None for other functions."""
    outer = function.parent if function is not None else None
    decorators: list[str] = []
    if outer is not None and outer.type == "decorated_definition":
        decorators = [text_of(data, child) for child in outer.children if child.type == "decorator"]
        outer = outer.parent
    is_method = outer is not None and outer.parent is not None and outer.parent.type == "class_definition"
    if function is None or not is_method or any("staticmethod" in text for text in decorators):
        return None
    name = function.child_by_field_name("name")
    is_class = any("classmethod" in text for text in decorators) or (
        name is not None and text_of(data, name) in _CLASS_METHODS
    )
    return "@cls" if is_class else "@self"


def choice(texts: Iterable[str | None]) -> str | None:
    """One of several; those that nobody knows are left out."""
    known = list(dict.fromkeys(text for text in texts if text is not None and text != "$None"))[:MAX_CHOICES]
    if not known:
        return None
    return known[0] if len(known) == 1 else f"({'|'.join(known)})"


def plain_children(node: Node) -> list[Node]:
    return [child for child in node.named_children if not child.is_extra]


def narrowing(events: Sequence[Event], at: int) -> Event | None:
    """The innermost narrowing around `at` that no later assignment undoes."""
    inner = None
    for event in events:
        if event.how is How.NARROWED:
            if event.start <= at < event.end:
                inner = event
        elif inner is not None and inner.start < event.at <= at:
            inner = None
    return inner


def reaching(events: Sequence[Event], at: int) -> tuple[list[Event], bool]:
    """The assignments that may have made the value at `at`, last first, and whether the earliest surely happened."""
    before = [event for event in events if event.how in _BINDS and event.at <= at]
    if not before:  # in a loop, what comes later
        return [event for event in events if event.how in _BINDS], False
    found: list[Event] = []
    for event in reversed(before):
        found.append(event)
        if event.start <= at < event.end:
            return found, True
    return found, False


_BINDS = (How.VALUE, How.ITEM, How.ENTERED, How.RAISED)
