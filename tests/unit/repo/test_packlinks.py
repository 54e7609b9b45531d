"""Names in the log and the request that are links to definitions."""

from __future__ import annotations

import pytest

from agentctx.assemble import Block, Piece, assemble
from agentctx.prompt import Evidence, PromptFile, Section, Task
from agentctx.repo.packlinks import definitions_and_links
from agentctx.source import RepoGraph, Resolution, Role, UnitKind
from tests.unit.repo.test_graph_cases import graph_of

CODE = """from other import helper_of_all

LIMIT_OF_ALL = 3


class Basket:
    def add_item(self, x):
        return helper_of_all(x)


def open():
    return Basket().add_item(LIMIT_OF_ALL)
"""
OTHER = "def helper_of_all(x):\n    return x\n\n\nclass Bag:\n    def add_item(self, x):\n        return x\n"


@pytest.fixture(scope="module")
def graph() -> RepoGraph:
    return graph_of({"a.py": CODE, "other.py": OTHER, "test_a.py": "def test_add_item():\n    pass\n"})


def links(graph: RepoGraph, text: str, *, kind: UnitKind = UnitKind.REQUEST, mentions: tuple[str, ...] = ()):  # type: ignore[no-untyped-def]
    made = assemble([Block(Section.REQUEST, (Piece(("r", 0), kind, text.encode()),))])
    data = {"a.py": CODE.encode(), "other.py": OTHER.encode(), "test_a.py": b""}
    return definitions_and_links(graph, data, Evidence(mentions=mentions), Task(), made)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("helper_of_all is wrong", ["other.py::helper_of_all"]),
        ("LIMIT_OF_ALL", ["a.py::LIMIT_OF_ALL"]),
        ("the Basket", ["a.py::Basket"]),
        ("Basket.add_item()", ["a.py::Basket.add_item"]),
        ("please open it", []),
        ("test_add_item fails", []),
        ("nothing_of_ours", []),
    ],
)
def test_telling_names_are_links(graph: RepoGraph, text: str, expected: list[str]) -> None:
    definitions, found = links(graph, text)
    assert [target for link in found for target in link.targets] == expected
    assert {link.role for link in found} <= {Role.MENTION}
    assert {link.state for link in found} <= {Resolution.RESOLVED}
    assert set(expected) <= set(definitions)


def test_a_name_of_several_is_ambiguous(graph: RepoGraph) -> None:
    _, (link,) = links(graph, "add_item is wrong")
    assert link.state is Resolution.AMBIGUOUS
    assert link.targets == ("a.py::Basket.add_item", "other.py::Bag.add_item")


def test_names_of_the_log_count_as_far_as_the_evidence_knows_them(graph: RepoGraph) -> None:
    assert links(graph, "helper_of_all", kind=UnitKind.LOG)[1] == ()
    _, (link,) = links(graph, "helper_of_all", kind=UnitKind.LOG, mentions=("helper_of_all",))
    assert link.targets == ("other.py::helper_of_all",)


def test_a_definition_knows_its_packed_units(graph: RepoGraph) -> None:
    file = graph.files["a.py"]
    shown = [unit for unit in file.units if unit.symbol is not None]
    pieces = tuple(
        Piece(("a.py", u.index), u.kind, CODE.encode()[u.span.start : u.span.end], u.lines, u.symbol) for u in shown
    )
    named = PromptFile("a.py", ("#", ""), 12, "python")
    made = assemble([Block(Section.CODE, pieces, named)])
    definitions, found = definitions_and_links(
        graph, {"a.py": CODE.encode(), "other.py": OTHER.encode(), "test_a.py": b""}, Evidence(), Task(), made
    )
    helper = definitions["other.py::helper_of_all"]
    assert (helper.header, helper.units) == (None, ())
    basket = definitions["a.py::Basket"]
    assert basket.header in basket.units
    assert all(made.units[unit].path == "a.py" for unit in basket.units)
    calls = {(link.name, link.targets) for link in found if link.role is Role.CALL}
    assert ("helper_of_all", ("other.py::helper_of_all",)) in calls
    assert all(made.units[link.unit].lines is not None for link in found)
