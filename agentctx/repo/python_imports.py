"""Import statements and `__all__`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tree_sitter import Node

from agentctx.repo.python_defs import Captures, Definition, nesting, text_of
from agentctx.source import Import


def imports(
    data: bytes, path: str, captures: Captures, found: Sequence[Definition], unit_at: Sequence[int]
) -> tuple[Import, ...]:
    """Every imported name in file order. `unit_at`: row -> unit."""
    where = nesting(found)
    made: list[Import] = []
    for node in sorted(captures.get("unit.import", ()), key=lambda n: n.start_byte):
        owner = where.at(node.start_byte)
        row = node.start_point[0]
        for module, name, alias, level in _names(data, node):
            made.append(
                Import(
                    path=path,
                    module=module,
                    name=name,
                    alias=alias,
                    level=level,
                    unit=unit_at[row],
                    scope=owner.id if owner is not None else None,
                    line=row + 1,
                )
            )
    return tuple(made)


def _names(data: bytes, node: Node) -> Iterator[tuple[str, str | None, str, int]]:
    """(module, name, alias, level) of each name of one statement."""
    items = [_aliased(data, child) for child in node.children_by_field_name("name")]
    if node.type == "import_statement":
        for name, alias in items:
            yield name, None, alias or name.partition(".")[0], 0
        return
    module, level = ("__future__", 0) if node.type == "future_import_statement" else _module(data, node)
    for name, alias in items:
        yield module, name, alias or name, level
    if any(child.type == "wildcard_import" for child in node.children):
        yield module, "*", "", level


def _module(data: bytes, node: Node) -> tuple[str, int]:
    module = node.child_by_field_name("module_name")
    if module is None:
        return "", 0
    text = "".join(text_of(data, module).split())
    bare = text.lstrip(".")
    return bare, len(text) - len(bare)


def _aliased(data: bytes, node: Node) -> tuple[str, str | None]:
    if node.type != "aliased_import":
        return "".join(text_of(data, node).split()), None
    name, alias = node.child_by_field_name("name"), node.child_by_field_name("alias")
    return (
        "".join(text_of(data, name).split()) if name is not None else "",
        text_of(data, alias) if alias is not None else None,
    )


def exports(data: bytes, captures: Captures, found: Sequence[Definition]) -> tuple[str, ...]:
    """The literal strings of the module's `__all__ = [...]` and `__all__ += [...]`, in order."""
    where = nesting(found)
    names: list[str] = []
    nodes = [*captures.get("def.assignment", ()), *captures.get("def.augmented", ())]
    for node in sorted(nodes, key=lambda n: n.start_byte):
        if where.at(node.start_byte) is not None:
            continue
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is not None and right is not None and text_of(data, left) == "__all__":
            names.extend(literal_strings(data, right))
    return tuple(dict.fromkeys(names))


def literal_strings(data: bytes, node: Node) -> Iterator[str]:
    """The plain strings in a literal list or tuple (or in a sum of them), in order."""
    stack = [node]
    while stack:
        item = stack.pop()
        if item.type == "string":
            yield "".join(text_of(data, child) for child in item.named_children if child.type == "string_content")
        elif item.type in ("list", "tuple", "binary_operator", "parenthesized_expression", "expression_list"):
            stack.extend(reversed(item.named_children))
