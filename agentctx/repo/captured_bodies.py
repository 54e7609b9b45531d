"""Where the bodies of definitions begin."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from tree_sitter import Node

_BODIES = ("body", "value", "right", "declaration", "definition", "declarator", "arguments")


def body_start(outer: Node, name: Node, end: int, block_starts: Sequence[int]) -> int:
    """The first byte of the body of the definition `outer`; its end where it has none."""
    node: Node | None = outer
    while node is not None and node.end_byte > name.end_byte:
        body = node.child_by_field_name("body")
        if body is not None and body.start_byte >= name.end_byte:
            return body.start_byte
        node = next((child for field in _BODIES if (child := node.child_by_field_name(field)) is not None), None)
    at = bisect_left(block_starts, name.end_byte)
    return min(block_starts[at], end) if at < len(block_starts) else end
