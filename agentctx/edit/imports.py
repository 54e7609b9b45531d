"""Which imports of an answer are added to the file. Pure.

An import is added only where that can't change what the rest of the file means: it stands before the definition in
the answer, at the top level; the new code uses what it binds; nothing in the file binds that name; and the module is
in the standard library or its top-level package is imported by the file already. What is not added is said.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Sequence

from agentctx.edit.answer import try_parse
from agentctx.edit.matching import replace_lines
from agentctx.edit.target import Definition, first_line
from agentctx.edit.text import FileText
from agentctx.prompt import Hunk

Import = ast.Import | ast.ImportFrom


def import_hunks(file: FileText, body: Sequence[ast.stmt], node: Definition) -> tuple[list[Hunk], list[str]]:
    """Hunks that add the safe ones of the imports before `node`, and a note for each that is new to the file."""
    tree = try_parse("\n".join(file.lines) + "\n")
    if not isinstance(tree, ast.Module):
        return [], []
    present = {ast.unparse(single) for item in _imports(tree.body) for single in _singles(item)}
    bound, packages, used = _bound(tree), _packages(tree), _used(node)
    lines, notes = [], []
    leading = [item for item in _imports(body) if item.lineno < node.lineno]
    for single in [single for item in leading for single in _singles(item)]:
        text = ast.unparse(single)
        if text in present:
            continue
        reason = _unsafe(single, bound, packages, used)
        notes.append(f"not added to {file.path}: {text} ({reason})" if reason else f"added to {file.path}: {text}")
        if not reason:
            lines.append(text)
            present.add(text)
    at = _insert_line(tree)
    return ([replace_lines(file, at, at, lines)] if lines else []), notes


def _imports(body: Sequence[ast.stmt]) -> list[Import]:
    return [node for node in body if isinstance(node, Import)]


def _singles(node: Import) -> list[Import]:
    """One statement per name."""
    if isinstance(node, ast.Import):
        return [ast.Import([alias]) for alias in node.names]
    return [ast.ImportFrom(node.module, [alias], node.level) for alias in node.names]


def _binds(node: Import) -> str:
    alias = node.names[0]
    return alias.asname or (alias.name.partition(".")[0] if isinstance(node, ast.Import) else alias.name)


def _unsafe(node: Import, bound: frozenset[str], packages: frozenset[str], used: frozenset[str]) -> str:
    """Why the import can't be added; '' where it can."""
    name = _binds(node)
    module = (node.names[0].name if isinstance(node, ast.Import) else node.module) or ""
    package = module.partition(".")[0]
    if name == "*" or module == "__future__":
        return "it would change the whole file"
    if name not in used:
        return "the new code doesn't use it"
    if name in bound:
        return f"the file binds {name} already"
    if isinstance(node, ast.ImportFrom) and node.level:
        return "it is relative"
    if package not in sys.stdlib_module_names and package not in packages:
        return f"neither the standard library nor a package that the file imports holds {package}"
    return ""


def _bound(tree: ast.Module) -> frozenset[str]:
    """Names that the module level of a file binds, in any branch."""
    names: set[str] = set()
    for node in _module_level(tree.body):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, Import):
            names.update(_binds(single) for single in _singles(node))
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
    return frozenset(names)


def _module_level(body: Sequence[ast.stmt]) -> list[ast.AST]:
    """The nodes of module-level code, without the insides of functions and classes."""
    todo: list[ast.AST] = list(body)
    found: list[ast.AST] = []
    while todo:
        node = todo.pop()
        found.append(node)
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            todo.extend(ast.iter_child_nodes(node))
    return found


def _packages(tree: ast.Module) -> frozenset[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names.add((node.module or "").partition(".")[0])
    return frozenset(names)


def _used(node: Definition) -> frozenset[str]:
    return frozenset(inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name))


def _insert_line(tree: ast.Module) -> int:
    """The line (0-based) after the first run of top-level imports, else after the docstring."""
    at = 0
    for number, node in enumerate(tree.body):
        is_doc = not number and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if not is_doc and not isinstance(node, Import):
            return at if at else first_line(node) - 1
        at = node.end_lineno or at
    return at
