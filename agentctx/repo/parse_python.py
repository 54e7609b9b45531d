"""Python files -> FileSyntax. The units and names of Python have modules of their own (`parse_units`, `python_*`)."""

from __future__ import annotations

from tree_sitter import Node

from agentctx.repo.local_uses import local_uses
from agentctx.repo.parse_lines import Lines
from agentctx.repo.parse_place import finish, unit_at
from agentctx.repo.parse_units import UnitWalk
from agentctx.repo.python_defs import Captures, Ids, definition_symbol, definitions, target_symbol, targets, text_of
from agentctx.repo.python_exprs import Exprs
from agentctx.repo.python_heal import healed
from agentctx.repo.python_imports import exports, imports
from agentctx.repo.python_refs import Places, file_scopes, local_variables, references
from agentctx.repo.python_typed import Typed, completed
from agentctx.repo.trees import run_query
from agentctx.source import FileSyntax, SourceFile


def parse_python(file: SourceFile) -> FileSyntax:
    """All that can be said of one Python file by itself."""
    captures, root, n_errors = _read(file.data)
    lines = Lines(file.data)
    found = definitions(file.data, captures, ids := Ids(file.path))
    by_node = {made.node.id: made.id for made in found}
    walk = UnitWalk(lines, unit_tags(captures), interpolated_rows(captures))
    units = finish(walk.run(root), lines, lambda node: by_node.get(node) if node is not None else None)
    at = unit_at(units)
    assigned = targets(file.data, captures, found)
    constants = {text_of(file.data, target.name) for target in assigned if target.owner is None}
    made = file_scopes(file.data, captures, constants)
    exprs = Exprs(file.data, captures, made)
    symbols = completed(
        Typed(file.data, captures, exprs),
        [
            (definition_symbol(file.data, file.path, d, at[d.node.start_point[0]], in_tests=file.is_test), d)
            for d in found
        ],
        [
            (target_symbol(file.data, file.path, target, at[target.name.start_point[0]], ids.new), target)
            for target in assigned
        ],
    )
    return FileSyntax(
        path=file.path,
        language="python",
        digest=file.digest,
        units=units,
        symbols=tuple(symbols),
        references=references(Places(file.path, file.data, lines, at), captures, found, symbols, made, exprs),
        imports=imports(file.data, file.path, captures, found, at),
        exports=exports(file.data, captures, found),
        n_errors=n_errors,
        is_test=file.is_test,
        locals=local_uses(units, at, local_variables(captures, made)),
    )


def _read(data: bytes) -> tuple[Captures, Node, int]:
    """(captures, the tree's root, errors in the text as it is). Where there are some, brackets are healed first."""
    captures, root = run_query(data, "python")
    n_errors = len({node.id for node in captures.get("error", ())})
    if n_errors and (better := healed(data)) != data:
        captures, root = run_query(better, "python")
    return captures, root, n_errors


def unit_tags(captures: Captures) -> dict[int, str]:
    """Node id -> its `unit.*` capture, without the prefix."""
    return {
        node.id: capture.removeprefix("unit.")
        for capture, nodes in captures.items()
        if capture.startswith("unit.")
        for node in nodes
    }


def interpolated_rows(captures: Captures) -> frozenset[int]:
    return frozenset(node.start_point[0] for node in captures.get("interpolation", ()))
