"""From a real tool's log to the tests and definitions of the project that it ran in."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agentctx.prompt import Task
from agentctx.repo.locate import locate
from agentctx.repo.logs import read_logs
from tests.casefile import CASES, read_case
from tests.unit.repo.test_match_tests import graph_of

PROJECTS = Path(__file__).parents[3] / "fixtures" / "logs"
_BLOCK = re.compile(r"^`([^`\n]+)`\n\n(```+)[^\n]*\n(.*?)^\2$", re.MULTILINE | re.DOTALL)


def project(name: str) -> dict[str, str]:
    found = {block[0]: block[2] for block in _BLOCK.findall((PROJECTS / f"{name}.md").read_text("utf-8"))}
    return {path: text for path, text in found.items() if path != "commands"}


@pytest.mark.parametrize(
    ("name", "log", "tests", "first"),
    [
        ("node", "jest", {"Cart.sums counts", "Cart.pays", "parses %s", "parses prices"}, "parsePrice"),
        ("node", "vitest", {"Cart.sums counts", "Cart.pays", "parses %s", "parses prices"}, "parsePrice"),
        ("node", "jasmine", {"Cart.sums counts", "Cart.throws"}, "parsePrice"),
        ("node", "node-spec", {"Cart.sums counts", 'Cart.rows.keeps "quoted" names > and more'}, "parsePrice"),
        ("node", "node-tap", {"Cart.sums counts", 'Cart.rows.keeps "quoted" names > and more'}, "parsePrice"),
        ("pytest", "pytest-short", {"test_parse", "TestCart.test_total", "TestOld.test_sub"}, "parse_price"),
        ("unittest", "unittest-text", {"LeapTest.test_century", "LeapTest.test_many", "Broken"}, "parse"),
    ],
)
def test_from_log_to_tests(name: str, log: str, tests: set[str], first: str) -> None:
    files = project(name)
    graph = graph_of({path: text for path, text in files.items() if path.endswith((".py", ".js"))})
    case = read_case(CASES / "logs" / f"{log}.md")
    evidence = read_logs([("tool.log", case.files["tool.log"].encode())], files)
    located = locate(Task(), evidence, graph)
    names = [graph.symbols[test].qualname for test in located.failing_tests]
    assert [test for test in sorted(tests) if not any(name.endswith(test) for name in names)] == []
    assert first in {graph.symbols[frame].name for frame in located.frames}
