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
    errors: list[int] = field(default_factory=list)  # where ERROR and MISSING nodes start, sorted


def captured(matches: Matches) -> Captured:
    """The matches, sorted."""
    out = Captured()
    blocks: dict[int, Node] = {}
    errors: dict[int, int] = {}
    for _, match in matches:
        for name, nodes in match.items():
            what = _GROUPS.get(name) or _group(name)
            if what == "other":
                continue
            if what == "def":
                out.definitions.append((name[4:], match))
            elif what == "unit":
                out.tags.update((node.id, name[5:]) for node in nodes)
            elif what == "block":
                blocks.update((node.id, node) for node in nodes)
                if name == "unit.nonempty":
                    out.nonempty.update(node.id for node in nodes)
            elif what == "comment":
                out.comments += nodes
            else:
                errors.update((node.id, node.start_byte) for node in nodes)
    out.blocks = outer_first(blocks.values())
    out.errors = sorted(errors.values())
    return out


# Most captures are those of references, which others read.
_GROUPS = {
    **dict.fromkeys(("ref", "ref.name", "ref.call", "ref.type", "ref.attribute", "receiver", "name", "skip"), "other"),
    **dict.fromkeys(
        ("local", "local.type", "local.value", "local.whole", "scope", "owner", "type", "base", "decorator"), "other"
    ),
    **dict.fromkeys(("value", "returned", "export.name", "export.local", "ref.base"), "other"),
    **dict.fromkeys(("unit.block", "unit.nonempty"), "block"),
    "comment": "comment",
    "error": "error",
}


def _group(name: str) -> str:
    prefix = name.partition(".")[0]
    return prefix if prefix in ("def", "unit") else "other"


def outer_first(nodes: Iterable[Node]) -> list[Node]:
    """The nodes in file order, each before those that it holds."""
    return sorted(nodes, key=lambda n: (n.start_byte, -n.end_byte, -n.descendant_count))
