"""Golden graphs of all languages but Python: tests/cases/graph_languages/*.md. Build files are files of the case."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from agentctx.repo import languages
from agentctx.repo.graph import build_graph
from agentctx.repo.parse import parse
from agentctx.repo.resolvers import families
from agentctx.source import FileSyntax, RepoGraph, SourceFile
from tests.casefile import case_paths, read_case
from tests.unit.repo.test_graph_cases import check_invariants, render


def syntax(path: str, text: str) -> FileSyntax:
    data = text.encode()
    language = languages.language_of(path)
    return parse(SourceFile(path, data, hashlib.sha256(data).hexdigest(), language, languages.is_test_path(path)))


def graph_of(files: Mapping[str, str]) -> RepoGraph:
    configs = {p: text.encode() for p, text in files.items() if p.rpartition("/")[2] in families.config_names()}
    return build_graph([syntax(path, text) for path, text in files.items() if path not in configs], configs)


@pytest.mark.parametrize("path", case_paths("graph_languages"), ids=lambda path: path.stem)
def test_case(path: Path) -> None:
    case = read_case(path)
    graph = graph_of(case.files)
    case.check(render(graph, relations="relations" in case.options))
    check_invariants(graph)


@pytest.mark.parametrize("path", case_paths("graph_languages"), ids=lambda path: path.stem)
def test_the_order_of_files_says_nothing(path: Path) -> None:
    files = dict(read_case(path).files)
    backwards = dict(reversed(files.items()))
    assert graph_of(files).links == graph_of(backwards).links


def test_a_name_of_an_outside_module_needs_the_import_statement() -> None:
    graph = graph_of({"a.test.ts": 'import { expect } from "vitest";\nimport * as o from "o";\n\nexpect(o.f);\n'})
    vias = {link.reference.name: link.via for link in graph.links if link.reference.line == 4}
    assert vias == {"expect": 0, "f": 1, "o": 1}
