"""Features by hand on small graphs."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest

from agentctx.prompt import ChangeSource, Evidence, FileChange, Task, TestRef
from agentctx.repo.locate import Located, locate
from agentctx.repo.ranking import nodes as graph_nodes
from agentctx.repo.ranking.features import Table, table
from agentctx.repo.ranking.literals import literals, overlap, word_pairs
from agentctx.repo.ranking.near import Asked, walk_features
from agentctx.repo.ranking.nodes import MEMBER, NAMED, build_nodes
from agentctx.repo.ranking.parts import PARTS, part_features, with_chunks
from agentctx.repo.ranking.scales import ranks, scaled
from agentctx.repo.ranking.text import bm25, count_terms, coverage
from agentctx.repo.ranking.walks import FAR, backward, hops, mass
from agentctx.repo.terms import bag, query_terms
from agentctx.repo.terms import bm25 as plain_bm25
from agentctx.spans import LineSpan
from tests.unit.repo.test_graph_cases import graph_of

FILES = {
    "shop.py": '''from tax import rate

class Cart:
    def __init__(self):
        self.items = []

    def add(self, item):
        self.items.append(item)

    def total(self):
        return sum(self.items) * rate("food")

def refund(cart):
    """Pay back what was paid for a cart, and complain of what is not there any more, in this long text."""
    paid = [item for item in cart.items if item]
    if not paid:
        cart.items = []
        raise ValueError("nothing was paid for this cart")
    return sum(paid) - cart.total() + sum(item for item in cart.items if item not in paid and item > 7)
''',
    "tax.py": '''RATES = {"food": 7}

def rate(kind):
    return RATES[kind]

def unrelated():
    return 0
''',
    "test_shop.py": '''from shop import Cart, refund

def test_total():
    cart = Cart()
    cart.add(1)
    assert cart.total(rounding=2) == 1

def test_refund_of_an_empty_cart():
    with raises("nothing was paid"):
        refund(Cart())
''',
}  # fmt: skip
LONG = "        print('what is short is one piece with its class')\n" * 12
DATA = {path: text.encode() for path, text in FILES.items()}


def made(test: str = "test_total", changed: tuple[int, int] | None = None) -> Table:
    graph = graph_of(FILES)
    lines = (LineSpan(*changed),) if changed else ()
    change = FileChange("test_shop.py", ChangeSource.STAGED, "modified", lines, is_test=True)
    evidence = Evidence(changes=(change,) if changed else ())
    task = Task(tests=(TestRef("test_shop.py", (test,)),))
    return table(graph, DATA, task, evidence, locate(task, evidence, graph))


def column(of: Table, name: str) -> dict[str, float]:
    ids = [of.nodes.chunks[node].id for node in of.rows.tolist()]
    return dict(zip(ids, of.column(name).tolist(), strict=True))


def test_candidates_are_all_chunks_outside_of_tests() -> None:
    assert list(column(made(), "shape.size")) == [
        "shop.py@imports", "shop.py::Cart", "shop.py::Cart.__init__", "shop.py::Cart.add", "shop.py::Cart.total",
        "shop.py::refund", "tax.py@0", "tax.py::rate", "tax.py::unrelated",
    ]  # fmt: skip


def test_hops_along_references() -> None:
    found = column(made(), "walk.hops")
    assert found["shop.py::Cart"] == 1
    assert found["shop.py::Cart.total"] == 1
    assert found["tax.py::rate"] == 2
    assert found["tax.py@0"] == 3
    assert found["tax.py::unrelated"] == FAR
    assert found["shop.py::refund"] == FAR
    assert column(made("test_refund_of_an_empty_cart"), "walk.hops")["shop.py::refund"] == 1


def test_only_the_changed_lines_of_a_test() -> None:
    """Line 6 calls `total` with a keyword that no code has yet."""
    found = made(changed=(6, 6))
    assert column(found, "walk.changed.hops")["shop.py::Cart.total"] == 1
    assert column(found, "walk.changed.hops")["shop.py::Cart.add"] == FAR
    assert column(found, "walk.novel.mass")["shop.py::Cart.total"] == 1
    assert column(found, "walk.novel.mass")["shop.py::Cart.add"] < 1
    assert max(column(made(changed=(5, 5)), "walk.novel.mass").values()) == 0


def test_strings_of_the_test_that_stand_in_the_code() -> None:
    found = column(made("test_refund_of_an_empty_cart"), "literal.phrase.scaled")
    assert found["shop.py::refund"] == 1
    assert sum(found.values()) == 1


def test_names_run_together_and_their_parts() -> None:
    found = made("test_refund_of_an_empty_cart")
    assert column(found, "name.own")["shop.py::refund"] == 1
    assert column(found, "name.title")["shop.py::refund"] == 1
    assert column(found, "name.joined")["shop.py::refund"] == 1
    assert column(found, "name.own")["tax.py::unrelated"] == 0
    assert column(found, "name.module")["shop.py::refund"] == 1
    assert column(found, "name.module")["tax.py::rate"] == 0


def test_values_are_thousandths_and_history_may_be_unknown() -> None:
    found = made()
    known = found.values[:, [not name.startswith("history") for name in found.names]]
    assert np.array_equal(known, np.round(known, 3))
    assert np.isnan(found.column("history.recency")).all()


class Past:
    def recency(self, path: str) -> float:
        return 0.5 if path == "shop.py" else 0.0

    def cochange(self, path: str, tests: object) -> float:
        assert tests == ["test_shop.py"]
        return 0.25


def test_history_by_path() -> None:
    graph = graph_of(FILES)
    task = Task(tests=(TestRef("test_shop.py"),))
    found = table(graph, DATA, task, Evidence(), locate(task, Evidence(), graph), Past())
    assert column(found, "history.recency")["shop.py::refund"] == 0.5
    assert column(found, "history.recency")["tax.py::rate"] == 0.0
    assert set(column(found, "history.cochange").values()) == {0.25}


def test_a_member_that_nothing_has_yet_speaks_for_its_class() -> None:
    files = {"m.py": f"class Box:\n    def get(self):\n{LONG}        return 1\n\nclass Other:\n    x = 1\n",
             "test_m.py": "from m import Box\n\ndef test_a():\n    assert Box.fetch() == 1\n"}  # fmt: skip
    graph = graph_of(files)
    data = {path: text.encode() for path, text in files.items()}
    located = Located(failing_tests=("test_m.py::test_a",))
    nodes = build_nodes(graph, data)
    rows = np.flatnonzero(~nodes.is_test)
    columns, _ = walk_features(Asked(graph, data, Task(), Evidence(), located), nodes, rows, list(files.values()))
    found = dict(zip([nodes.chunks[n].id for n in rows], columns["walk.missing"].tolist(), strict=True))
    assert found == {"m.py::Box": 1.0, "m.py::Box.get": 0.5, "m.py::Other": 0.0}


# ---------------------------------------------------------------- pieces


def test_bm25_is_that_of_terms() -> None:
    texts = ["def parse_args(x): return parse(x)", "class Parser: pass", "x = 1", ""]
    query = query_terms("parse the args")
    wanted = sorted(query)
    counts = count_terms(texts, wanted)
    mask = np.ones(len(wanted), dtype=np.bool_)
    expected = plain_bm25([bag(text, query) for text in texts], query)
    assert bm25(counts, mask, counts.idf()).tolist() == pytest.approx(expected)
    none = bm25(counts, ~mask, counts.idf())
    assert none.tolist() == [0, 0, 0, 0]


def test_documents_that_are_joined() -> None:
    counts = count_terms(["a b", "a", "c"], ["a", "b"])
    joined = counts.grouped(np.array([0, 0, 1]), 2)
    assert (joined.rows.tolist(), joined.cols.tolist(), joined.counts.tolist()) == ([0, 0], [0, 1], [2, 1])
    assert joined.lengths.tolist() == [3, 1]
    held, rarest = coverage(joined, np.array([True, True]), np.array([1.0, 3.0]))
    assert (held.tolist(), rarest.tolist()) == ([1.0, 0.0], [3.0, 0.0])


def test_ranks_do_not_depend_on_the_order() -> None:
    assert ranks(np.array([0.5, 2.0, 0.5, 0.1])).tolist() == [math.log2(3), 0, math.log2(3), 2]
    assert scaled(np.array([0.0, 0.0])).tolist() == [0, 0]
    assert scaled(np.array([1.0, 4.0])).tolist() == [0.25, 1]


def test_literals_and_pairs_of_words() -> None:
    assert literals("""f("a b", 'c\\'d', `e f`, 404, 7, "x")""") == ("a b", "c\\'d", "e f", "404")
    assert word_pairs("Invalid {kind} value for %s here") == {("value", "for")}
    same, pairs = overlap(['raise E("no such file")', "x = 'ok'", "y"], ["ok"], ["E: there is no such thing"])
    assert same.tolist() == pytest.approx([0, math.log(1 + 2.5 / 1.5), 0])
    assert pairs.tolist() == pytest.approx([math.log(1 + 2.5 / 1.5), 0, 0])


def test_the_walk_by_hand() -> None:
    """test -> f, g; f -> h. Mass 1 goes on by half, shared by the root of how many are called."""
    files = {
        "m.py": "def f():\n  return h()\n\ndef g():\n  return 1\n\ndef h():\n  return 2\n\ndef z():\n  return f()\n",
        "test_m.py": "from m import f, g\n\ndef test_a():\n  assert f() and g()\n",
    }
    nodes = build_nodes(graph_of(files), {path: text.encode() for path, text in files.items()})
    at = {chunk.id: n for n, chunk in enumerate(nodes.chunks)}
    seeds = np.zeros(nodes.n)
    seeds[at["test_m.py::test_a"]] = 1
    calls = nodes.edges((graph_nodes.CALL,))
    found = mass(nodes, seeds, calls)
    first = 0.5 / 2**0.5
    assert [found[at[f"m.py::{name}"]] for name in "fghz"] == pytest.approx([first, first, first * 0.5, 0])
    assert [hops(nodes, seeds, calls)[at[f"m.py::{name}"]] for name in "fghz"] == [1, 1, 2, FAR]
    back = backward(nodes, found, calls)
    assert back[at["m.py::z"]] == pytest.approx(first / 2**0.5)  # f has two callers


def test_edges_to_one_of_several_and_of_members() -> None:
    both = "".join(f"class {name}:\n    def go(self):\n{LONG}        return 1\n\n" for name in "AB")
    files = {"m.py": f"{both}def use(x):\n    return x.go()\n"}
    nodes = build_nodes(graph_of(files), {path: text.encode() for path, text in files.items()})
    at = {chunk.id: n for n, chunk in enumerate(nodes.chunks)}
    named = nodes.edges((NAMED,))
    assert list(zip(nodes.source[named].tolist(), nodes.target[named].tolist(), strict=True)) == [
        (at["m.py::use"], at["m.py::A.go"]),
        (at["m.py::use"], at["m.py::B.go"]),
    ]
    assert nodes.weight[named].tolist() == [0.25, 0.25]
    assert nodes.edges((MEMBER,)).sum() == 4
    assert nodes.group[at["m.py::A.go"]] == at["m.py::A"]


def test_parts_of_a_chunk() -> None:
    of = made("test_refund_of_an_empty_cart")
    chosen = np.arange(len(of.rows))
    units, values = part_features(graph_of(FILES), of, chosen)
    row = [of.nodes.chunks[node].id for node in of.rows].index("shop.py::refund")
    mine = [n for n, unit in enumerate(units.tolist()) if of.unit_rows[unit] == row]
    found = {name: values[mine, n].tolist() for n, name in enumerate(PARTS)}
    assert found["part.raises"] == [0, 0, 1, 0]
    assert [value > 0 for value in found["part.phrase"]] == [True, False, True, False]
    assert (found["part.first"], found["part.last"]) == ([1, 0, 0, 0], [0, 0, 0, 1])
    assert found["part.number"] == [0, 1, round(math.log2(3), 3), 2]
    scored = with_chunks(values, of.unit_rows[units], np.linspace(0.1, 0.9, len(of.rows)))
    assert scored[mine[0], PARTS.index("part.chunk.rank")] == round(math.log2(len(of.rows) - row), 3)
    assert values[mine[0], PARTS.index("part.chunk")] == 0


SCRIPT = """
import hashlib
from tests.unit.repo.test_rank_features import DATA, FILES
from agentctx.prompt import Evidence, Task, TestRef
from agentctx.repo.locate import locate
from agentctx.repo.rank import rank
from tests.unit.repo.test_graph_cases import graph_of
graph = graph_of(FILES)
task = Task(request="refund is wrong", tests=(TestRef("test_shop.py"),))
print(hashlib.sha256(repr(rank(graph, DATA, task, Evidence(), locate(task, Evidence(), graph))).encode()).hexdigest())
"""


def test_hash_seeds_change_nothing() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True, text=True
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1
