"""The matches of a language's query, sorted by what they say. docs/languages.md lists the captures."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tree_sitter import Node

from agentctx.repo.trees import Captures, Matches


@dataclass(slots=True)
class Captured:
    """What units and definitions are made of. Node ids are those of one tree, which must stay alive."""

    blocks: list[Node] = field(default_factory=list)  # outer ones before what they hold
    nonempty: set[int] = field(default_factory=set)  # ids of blocks of which something must stay
    tags: dict[int, str] = field(default_factory=dict)  # node id -> `unit.*` capture, those of blocks aside
    comments: list[Node] = field(default_factory=list)
    definitions: list[tuple[str, Captures]] = field(default_factory=list)  # kind, the match
    n_errors: int = 0


def captured(matches: Matches) -> Captured:
    """The matches, sorted."""
    out = Captured()
    blocks: dict[int, Node] = {}
    errors: set[int] = set()
    for _, match in matches:
        for name, nodes in match.items():
            if name == "comment":
                out.comments += nodes
            elif name == "error":
                errors.update(node.id for node in nodes)
            elif name in ("unit.block", "unit.nonempty"):
                blocks.update((node.id, node) for node in nodes)
                if name == "unit.nonempty":
                    out.nonempty.update(node.id for node in nodes)
            elif name.startswith("unit."):
                out.tags.update((node.id, name[5:]) for node in nodes)
            elif name.startswith("def."):
                out.definitions.append((name[4:], match))
    out.blocks = outer_first(blocks.values())
    out.n_errors = len(errors)
    return out


def outer_first(nodes: Iterable[Node]) -> list[Node]:
    """The nodes in file order, each before those that it holds."""
    return sorted(nodes, key=lambda n: (n.start_byte, -n.end_byte, -n.descendant_count))
