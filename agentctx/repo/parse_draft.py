"""What the walk over a tree collects: drafts of units, and where they stand."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from agentctx.source import UnitKind

GROUP_LINES = 8  # longest group of statements, and longest compound statement that stays whole


@dataclass(frozen=True, slots=True)
class Context:
    """Where statements stand: what their groups are called, the draft around them, their definition."""

    kind: UnitKind = UnitKind.STATEMENT
    parent: int | None = None
    owner: int | None = None  # node id of the innermost definition


@dataclass(slots=True)
class Draft:
    """`group`: drafts that are kept together with this one (a shared list). `owner` is as in Context."""

    kind: UnitKind
    first: int
    last: int
    context: Context
    owner: int | None
    group: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Atom:
    """Statements that share rows; the usual atom is one statement."""

    node: Node
    first: int
    last: int
    tag: str  # the capture without `unit.`; '' for simple statements, 'shared' where several share rows


def is_comment(node: Node) -> bool:
    return node.is_extra and not node.is_error


def expand_errors(nodes: Sequence[Node]) -> Iterator[Node]:
    """The nodes, with every long ERROR replaced by what was understood inside it."""
    stack = list(reversed(nodes))
    while stack:
        node = stack.pop()
        if node.is_error and node.end_point[0] - node.start_point[0] >= GROUP_LINES and node.child_count:
            stack.extend(child for child in reversed(node.children) if not is_comment(child))
        else:
            yield node
