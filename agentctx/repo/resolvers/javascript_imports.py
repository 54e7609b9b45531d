"""Import statements of JavaScript and TypeScript; `require` and `import()` wherever they stand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from agentctx.repo.resolvers.imported import Imported

if TYPE_CHECKING:
    from tree_sitter import Node

_EXPORTS = ("exports", "module.exports")


def imports(statement: Node, data: bytes) -> Iterator[Imported]:
    """Imports, re-exports, `require` in declarations, assignments and elsewhere, `import x = require()`."""
    if statement.type == "export_statement":
        yield from _reexports(statement, data)
    elif statement.type == "import_statement":
        yield from _imports(statement, data)
    elif statement.type == "call_expression":
        yield from _called(statement, data)
    else:
        yield from _requires(statement, data)


def _imports(statement: Node, data: bytes) -> Iterator[Imported]:
    source = statement.child_by_field_name("source")
    if source is None:
        for child in statement.named_children:
            if child.type == "import_require_clause":
                module, name = child.child_by_field_name("source"), child.named_children[0]
                if module is not None:
                    yield Imported(_string(data, module), None, _text(data, name), at=module.start_byte)
        return
    module_name = _string(data, source)
    clause = next((c for c in statement.named_children if c.type == "import_clause"), None)
    if clause is None:
        yield Imported(module_name, None, "", at=source.start_byte)
        return
    for part in clause.named_children:
        if part.type == "identifier":
            yield Imported(module_name, "default", _text(data, part), at=part.start_byte)
        elif part.type == "namespace_import":
            yield Imported(module_name, None, _text(data, part.named_children[-1]), at=source.start_byte)
        else:
            yield from _specifiers(part, data, module_name, exported=False)


def _specifiers(clause: Node, data: bytes, module: str, *, exported: bool) -> Iterator[Imported]:
    for one in clause.named_children:
        name, alias = one.child_by_field_name("name"), one.child_by_field_name("alias")
        if name is not None:
            text = _text(data, name).strip("\"'")
            bound = _text(data, alias).strip("\"'") if alias is not None else text
            yield Imported(module, text, bound, exported, name.start_byte)


def _reexports(statement: Node, data: bytes) -> Iterator[Imported]:
    source = statement.child_by_field_name("source")
    if source is None:
        return
    module, at = _string(data, source), source.start_byte
    named = [c for c in statement.named_children if c.type in ("export_clause", "namespace_export")]
    if not named:
        yield Imported(module, "*", "", exported=True, at=at)
    for part in named:
        if part.type == "export_clause":
            yield from _specifiers(part, data, module, exported=True)
        else:
            yield Imported(module, None, _text(data, part.named_children[-1]), exported=True, at=at)


def _called(call: Node, data: bytes) -> Iterator[Imported]:
    """A `require()` or `import()` that no declaration or assignment takes: `use(require('./m'))`."""
    module = _required_module(call, data)
    around = call.parent
    if around is not None and around.type in ("member_expression", "await_expression"):
        around = around.parent
    if module is not None and (around is None or around.type not in ("variable_declarator", "assignment_expression")):
        yield Imported(_string(data, module), None, "", at=module.start_byte)


def _requires(statement: Node, data: bytes) -> Iterator[Imported]:
    """`const a = require('m')`, `{b: c} = require('m')`, `x = require('m').y`, `module.exports = require('m')`."""
    stack = [statement]
    while stack:
        node = stack.pop()
        if node.type in ("variable_declarator", "assignment_expression"):
            target = node.child_by_field_name("name") or node.child_by_field_name("left")
            value = node.child_by_field_name("value") or node.child_by_field_name("right")
            if target is not None and value is not None:
                yield from _required(target, value, data)
            if value is not None and value.type == "assignment_expression":
                stack.append(value)
        elif node.type in ("lexical_declaration", "variable_declaration", "expression_statement"):
            stack.extend(reversed(node.named_children))


def _required(target: Node, value: Node, data: bytes) -> Iterator[Imported]:
    while value.type in ("await_expression", "parenthesized_expression") and value.named_children:
        value = value.named_children[0]
    member = None
    if value.type == "member_expression":
        prop, inner = value.child_by_field_name("property"), value.child_by_field_name("object")
        member = prop
        value = inner if inner is not None else value
    module = _required_module(value, data)
    if module is None:
        return
    name, text = _string(data, module), _text(data, target)
    wanted = _text(data, member) if member is not None else None
    at = member.start_byte if member is not None else module.start_byte
    if target.type == "identifier":
        yield Imported(name, wanted, text, at=at)
    elif target.type == "object_pattern":
        yield from _parts(target, name, data)
    elif text in _EXPORTS:
        yield Imported(name, wanted or "*", "default" if wanted else "", exported=True, at=at)
    elif text.startswith(("exports.", "module.exports.")):
        yield Imported(name, wanted, text.rpartition(".")[2], exported=True, at=at)
    else:
        yield Imported(name, None, "", at=module.start_byte)


def _parts(pattern: Node, module: str, data: bytes) -> Iterator[Imported]:
    """The names that `{a, b: c, d = 1}` takes out of a module."""
    for part in pattern.named_children:
        key, local = part, part
        if part.type == "pair_pattern":
            key, local = part.child_by_field_name("key") or part, part.child_by_field_name("value") or part
        elif part.type == "object_assignment_pattern":
            key = local = part.child_by_field_name("left") or part
        if local.type in ("identifier", "shorthand_property_identifier_pattern"):
            yield Imported(module, _text(data, key), _text(data, local), at=key.start_byte)


def _required_module(value: Node, data: bytes) -> Node | None:
    """The string that a call of `require` or `import` is given."""
    function, arguments = value.child_by_field_name("function"), value.child_by_field_name("arguments")
    if value.type != "call_expression" or function is None or arguments is None:
        return None
    if _text(data, function) not in ("require", "import"):
        return None
    first = next(iter(arguments.named_children), None)
    return first if first is not None and first.type == "string" else None


def _text(data: bytes, node: Node) -> str:
    return data[node.start_byte : node.end_byte].decode("utf-8", "replace")


def _string(data: bytes, node: Node) -> str:
    return _text(data, node)[1:-1]
