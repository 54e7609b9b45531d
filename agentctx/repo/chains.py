"""An expression -> how its value is reached, as dotted text: `this.pool.get()`, `<Foo>.bar`, `pkg.New()`.

`()` marks a call, `<T>` an instance of the type T as written. Node types of all grammars but Python's stand in the
same tables: their names don't contradict each other.
"""

from __future__ import annotations

from tree_sitter import Node

from agentctx.repo.type_names import bare_type

MAX_STEPS = 12

# member access: (field of the object, field of the name); None: the first, the last named child
_MEMBER: dict[str, tuple[str | None, str | None]] = {
    "member_expression": ("object", "property"),  # JavaScript, TypeScript
    "selector_expression": ("operand", "field"),  # Go
    "qualified_type": ("package", "name"),
    "field_access": ("object", "field"),  # Java
    "scoped_identifier": (None, "name"),  # Java, Rust
    "scoped_type_identifier": (None, None),
    "qualified_identifier": ("scope", "name"),  # C++
    "field_expression": (None, "field"),  # C, C++, Rust, Scala
    "member_access_expression": (None, "name"),  # C#, PHP
    "nullsafe_member_access_expression": ("object", "name"),
    "class_constant_access_expression": (None, None),
    "scoped_property_access_expression": ("scope", "name"),
    "qualified_name": (None, "name"),  # C#
    "navigation_expression": (None, None),  # Kotlin
    "scope_resolution": ("scope", "name"),  # Ruby
    "stable_identifier": (None, None),  # Scala
    "stable_type_identifier": (None, None),
    "nested_type_identifier": ("module", "name"),  # TypeScript
    "nested_identifier": ("object", "property"),
}
# calls: (field of the function or None for the first child, field of the object, field of the name)
_CALL: dict[str, tuple[str | None, str | None]] = {
    "call_expression": ("function", None),
    "invocation_expression": ("function", None),
    "function_call_expression": ("function", None),
    "method_invocation": ("name", "object"),
    "member_call_expression": ("name", "object"),
    "nullsafe_member_call_expression": ("name", "object"),
    "scoped_call_expression": ("name", "scope"),
    "call": ("method", "receiver"),
}
_NEW = {
    "new_expression": ("constructor", "type"),
    "object_creation_expression": ("type", None),
    "composite_literal": ("type", None),
    "struct_expression": ("name", None),
    "instance_expression": (None, None),
    "compound_literal_expression": ("type", None),
}
_CAST = {
    "as_expression": None,
    "satisfies_expression": None,
    "cast_expression": "type",
    "type_assertion_expression": "type",
    "type_conversion_expression": "type",
    "type_cast_expression": "type",
    "static_cast_expression": "type",
}
_THROUGH = frozenset(
    {
        *("parenthesized_expression", "await_expression", "non_null_expression", "unary_expression", "try_expression"),
        *("pointer_expression", "reference_expression", "postfix_unary_expression", "conditional_access_expression"),
        *("expression_list", "argument", "postfix_expression", "generic_function", "expression_statement"),
    }
)
_LEAVES = frozenset(
    {
        *("identifier", "this", "self", "super", "type_identifier", "field_identifier", "property_identifier"),
        *("package_identifier", "namespace_identifier", "simple_identifier", "constant", "variable_name", "name"),
        *(
            "this_expression",
            "super_expression",
            "base",
            "instance_variable",
            "class_variable",
            "crate",
            "metavariable",
        ),
        *("private_property_identifier", "operator_identifier", "predefined_type", "relative_scope", "qualified_name"),
        *("shorthand_property_identifier", "global_variable"),
    }
)
# What adds type arguments or `global::` to a name.
_NAMED = frozenset({"generic_type", "template_type", "template_function", "generic_name", "alias_qualified_name"})
_ARGUMENTS = frozenset({"type_arguments", "template_argument_list", "type_argument_list"})


def chain(data: bytes, node: Node | None) -> str | None:
    """The dotted text of an expression; None where it is more than names, members, calls, `new` and casts."""
    tail: list[str] = []
    called = False
    for _ in range(MAX_STEPS):
        if node is None:
            return None
        kind = node.type
        if kind in _THROUGH or (kind in _CALL and called is False and node.named_child_count == 0):
            node = _inner(node)
            continue
        if kind in _CAST:
            return _typed(data, _cast_type(node, _CAST[kind]), tail)
        if kind in _NEW:
            return _typed(data, _new_type(node, *_NEW[kind]), tail)
        if kind in _CALL:
            function, object_ = _CALL[kind]
            callee = node.child_by_field_name(function) if function else None
            owner = node.child_by_field_name(object_) if object_ else None
            if owner is not None:
                tail.append(f"{_text(data, callee)}()")
                node = owner
            else:
                called, node = True, callee or _first(node)
            continue
        if kind in _MEMBER and node.named_child_count > 1:
            object_field, name_field = _MEMBER[kind]
            name = node.child_by_field_name(name_field) if name_field else node.named_children[-1]
            tail.append(_text(data, name) + ("()" if called else ""))
            called = False
            node = (node.child_by_field_name(object_field) if object_field else None) or _first(node)
            continue
        if kind in _NAMED and node.named_child_count:
            node = node.child_by_field_name("name") or node.child_by_field_name("type") or _first(node)
            continue
        if node.named_child_count and kind not in _LEAVES:
            return None
        if kind not in _LEAVES:
            return None
        head = _text(data, node) + ("()" if called else "")
        return ".".join([*_outer_scopes(data, node), head, *reversed(tail)])
    return None


def _outer_scopes(data: bytes, node: Node) -> list[str]:
    """`a` and `b` for the scope `c` of `a::b::c::d`: C++'s tree has what comes first outside."""
    out: list[str] = []
    at = node.parent
    while at is not None and at.type == "qualified_identifier":
        above = at.parent
        if above is None or above.type != "qualified_identifier" or above.child_by_field_name("name") != at:
            break
        scope = above.child_by_field_name("scope")
        out += [_text(data, scope)] if scope is not None else []
        at = above
    return out[::-1]


def _first(node: Node) -> Node | None:
    return next((child for child in node.named_children if child.type not in _ARGUMENTS), None)


def _inner(node: Node) -> Node | None:
    children = [child for child in node.named_children if not child.is_extra]
    return children[0] if children else None


def _text(data: bytes, node: Node | None) -> str:
    if node is None:
        return "?"
    text = data[node.start_byte : node.end_byte].decode("utf-8", "replace")
    if len(text) > 200:
        return "?"
    text = text.removeprefix("$") if node.type == "variable_name" else text
    return text.partition("<")[0].strip()


def _cast_type(node: Node, field: str | None) -> Node | None:
    found = node.child_by_field_name(field) if field else None
    return found or (node.named_children[-1] if node.named_children else None)


def _new_type(node: Node, field: str | None, other: str | None) -> Node | None:
    for name in (field, other):
        found = node.child_by_field_name(name) if name else None
        if found is not None:
            return found
    return _first(node)


def _typed(data: bytes, node: Node | None, tail: list[str]) -> str | None:
    if node is None or node.end_byte - node.start_byte > 300:
        return None
    name = bare_type(data[node.start_byte : node.end_byte].decode("utf-8", "replace"))
    return ".".join([f"<{name}>", *reversed(tail)]) if name is not None else None
