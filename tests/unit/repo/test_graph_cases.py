"""Golden graphs: tests/cases/graph/*.md."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from agentctx.repo.graph import build_graph
from agentctx.repo.parse import parse
from agentctx.source import FileSyntax, Link, RepoGraph, Resolution, Role, SourceFile
from tests.casefile import case_paths, read_case

RELATIONS = ("callers", "overrides", "overridden_by", "subclasses", "fixtures", "tests")


def syntax(path: str, text: str) -> FileSyntax:
    data = text.encode()
    name = path.rpartition("/")[2]
    is_test = path.startswith("tests/") or name.startswith("test_")
    return parse(SourceFile(path, data, hashlib.sha256(data).hexdigest(), "python", is_test))


def graph_of(files: Mapping[str, str]) -> RepoGraph:
    return build_graph([syntax(path, text) for path, text in files.items()])


def render_link(link: Link) -> str:
    reference = link.reference
    name = f"{reference.receiver}.{reference.name}" if reference.receiver else reference.name
    via = f" via {link.via}" if link.via is not None else ""
    targets = " ".join(link.targets) or "-"
    handed = "".join(f" handed on by {path} {unit}" for path, unit in link.handed)
    return f"{reference.path}:{reference.line} {reference.role} {name} -> {link.state}: {targets}{via}{handed}"


def render(graph: RepoGraph, *, relations: bool) -> str:
    lines = [
        render_link(link)
        for link in graph.links
        # Builtins, and the modules of the library, are all alike.
        if link.state is not Resolution.EXTERNAL or link.reference.receiver or link.reference.role is Role.FIXTURE
    ]
    for name in RELATIONS if relations else ():
        lines.append(f"{name}:")
        lines += [f"  {key}: {' '.join(values)}" for key, values in getattr(graph, name).items()]
    return "\n".join(lines)


@pytest.mark.parametrize("path", case_paths("graph"), ids=lambda path: path.stem)
def test_case(path: Path) -> None:
    case = read_case(path)
    graph = graph_of(case.files)
    case.check(render(graph, relations="relations" in case.options))
    check_invariants(graph)


def check_invariants(graph: RepoGraph) -> None:
    imports = {path: {item.unit for item in file.imports} for path, file in graph.files.items()}
    known = set(graph.symbols)
    for link in graph.links:
        assert link.targets == tuple(sorted(set(link.targets)))
        assert known.issuperset(link.targets)
        assert bool(link.targets) == (link.state in (Resolution.RESOLVED, Resolution.AMBIGUOUS)), link
        assert len(link.targets) <= 8 or link.state is Resolution.RESOLVED
        assert link.via is None or link.via in imports[link.reference.path]
    for relation in RELATIONS:
        for key, values in getattr(graph, relation).items():
            assert known.issuperset((key, *values))
            assert len(set(values)) == len(values) > 0
    assert {(a, b) for b, many in graph.callers.items() for a in many} == {
        (a, b) for a, many in graph.callees.items() for b in many
    }
    assert {(a, b) for b, many in graph.overridden_by.items() for a in many} == {
        (a, b) for a, many in graph.overrides.items() for b in many
    }
