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
    """What the module's `__all__` names, in order; `*m` stands for all that `m.__all__` names.

    `__all__ = [...]`, `+= [...]`, `.extend(m.__all__)`, `.append("x")`, `[*m.__all__, "x"]`, `.remove("x")`.
    """
    where = nesting(found)
    names: dict[str, None] = {}
    nodes = [*captures.get("def.assignment", ()), *captures.get("def.augmented", ())]
    nodes += [
        node.parent for node in captures.get("ref.call", ()) if node.parent is not None and _is_of_all(data, node)
    ]
    for node in sorted(nodes, key=lambda n: n.start_byte):
        if where.at(node.start_byte) is not None:
            continue
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if node.type == "call":
            right = node.child_by_field_name("arguments")
        elif left is None or text_of(data, left) != "__all__":
            continue
        function = node.child_by_field_name("function")
        listed = dict.fromkeys(_listed(data, right)) if right is not None else {}
        if function is not None and text_of(data, function).endswith("remove"):
            names = {name: None for name in names if name not in listed}
        else:
            names.update(listed)
    return tuple(names)


def _is_of_all(data: bytes, function: Node) -> bool:
    return data[function.start_byte : function.start_byte + 8] == b"__all__." and function.type == "attribute"


def _listed(data: bytes, node: Node) -> Iterator[str]:
    """The strings of a list, and `*m` for each `m.__all__` in it."""
    stack = [node]
    while stack:
        item = stack.pop()
        if item.type == "attribute" and text_of(data, item).endswith(".__all__"):
            yield "*" + "".join(text_of(data, item).removesuffix(".__all__").split())
        elif item.type == "string":
            yield from literal_strings(data, item)
        elif item.type == "call" and (inner := item.child_by_field_name("arguments")) is not None:
            stack.append(inner)  # list(m.__all__)
        elif item.type in _LISTS:
            stack.extend(reversed(item.named_children))


_LISTS = (
    "list",
    "tuple",
    "set",
    "binary_operator",
    "parenthesized_expression",
    "expression_list",
    "list_splat",
    "argument_list",
)


def literal_strings(data: bytes, node: Node) -> Iterator[str]:
    """The plain strings in a literal list or tuple (or in a sum of them), in order."""
    stack = [node]
    while stack:
        item = stack.pop()
        if item.type == "string":
            yield "".join(text_of(data, child) for child in item.named_children if child.type == "string_content")
        elif item.type in ("list", "tuple", "binary_operator", "parenthesized_expression", "expression_list"):
            stack.extend(reversed(item.named_children))
