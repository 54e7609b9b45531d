"""What is offered to the window, in which order, in how large pieces."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from agentctx.repo.choose import choose
from agentctx.repo.locate import Located
from agentctx.repo.offers import IMPORT_WORTH, Limits, Offer, offers
from agentctx.repo.parse import parse
from agentctx.repo.rank import Chunk, Ranked, chunks_of
from agentctx.source import FileSyntax, SourceFile
from tests.unit.repo.test_graph_cases import graph_of

SMALL = "import os\nfrom re import sub\n\n\ndef small(a):\n    b = a + 1\n    c = b + 1\n    d = c + 1\n    return d\n"
LARGE = "\n\ndef large(a):\n" + "".join(f"    if a == {n}:\n" + f"        a = a + {n}\n" * 6 for n in range(20))


def parsed(path: str, text: str) -> FileSyntax:
    return parse(SourceFile(path, text.encode(), "0", "python"))


def made(
    text: str, scores: dict[str, float], budget: int, parts: Sequence[float] = (), room: int = 4000
) -> list[Offer]:
    file = parsed("m.py", text)
    chunks = {chunk.symbol or chunk.id: chunk for chunk in chunks_of(file, text.encode())}
    ranking = [Ranked(chunks[f"m.py::{name}"], score, (), tuple(parts)) for name, score in scores.items()]
    return offers({"m.py": file}, {"m.py": text.encode()}, ranking, frozenset(), Limits(budget, room))


def named(found: Sequence[Offer], text: str = SMALL) -> list[str]:
    file = parsed("m.py", text)
    lines = text.splitlines()
    return [lines[file.units[offer.units[0]].lines.start - 1] for offer in found]


def test_a_small_chunk_is_one_offer_and_its_files_imports_follow() -> None:
    found = made(SMALL, {"small": 0.5}, 4096)
    assert named(found)[0] == "def small(a):"
    assert len(found[0].units) > 1
    assert sorted(named(found)[1:]) == ["from re import sub", "import os"]
    assert all(offer.score == pytest.approx(found[0].score * IMPORT_WORTH) for offer in found[1:])


def test_a_chunk_above_an_eighth_of_the_budget_is_offered_by_its_units() -> None:
    text = SMALL + LARGE
    n_units = len(next(c for c in chunks_of(parsed("m.py", text), text.encode()) if c.symbol == "m.py::large").units)
    chances = [0.0] * n_units
    chances[3] = 0.4
    chances[5] = 0.2
    found = made(text, {"large": 0.5}, 1024, chances)
    large = [offer for offer in found if "imports" not in offer.why]
    assert len(large) == n_units
    assert all(len(offer.units) == 1 for offer in large)
    assert large[1].score == pytest.approx(large[0].score / 2), "the others by their share of the best"
    whole = [offer for offer in made(text, {"large": 0.5}, 100_000, chances) if "imports" not in offer.why]
    assert len(whole) == 1


def test_of_equal_chances_the_smaller_is_worth_more() -> None:
    found = made(SMALL + LARGE, {"large": 0.5, "small": 0.5}, 100_000)
    assert found[0].score > next(offer.score for offer in found if len(offer.units) > 20)


def test_what_has_no_chance_is_not_offered() -> None:
    assert made(SMALL, {"small": 0.0}, 4096) == []


def test_no_more_is_offered_than_could_be_chosen_from() -> None:
    """A repository's tail of thousands of chunks costs nothing."""
    text = "".join(f"\n\ndef f{n}(a):\n    return a + {n}\n" for n in range(500))
    found = made(text, {f"f{n}": 0.5 for n in range(500)}, 64, room=64)
    assert 20 < len(found) < 60


def test_chunk_order_breaks_ties() -> None:
    text = "".join(f"\n\ndef f{n}(a):\n    return a + {n}\n" for n in range(9))
    found = made(text, {f"f{n}": 0.5 for n in range(9)}, 4096)
    assert [offer.units[0] for offer in found] == sorted(offer.units[0] for offer in found)


def test_chunks_have_the_shape_that_offers_take() -> None:
    file = parsed("m.py", SMALL)
    assert all(isinstance(chunk, Chunk) and chunk.units for chunk in chunks_of(file, SMALL.encode()))


def test_of_two_offers_of_a_unit_the_better_counts() -> None:
    """Imports are offered with their file and as what they are."""
    graph = graph_of({"m.py": SMALL})
    offered = [Offer("m.py", (0,), 0.4, "with its file"), Offer("m.py", (0, 1), 0.1, "by itself")]
    found = choose(graph, {}, Located(), (), offered, lambda keys: [1] * len(keys), 1000, 1000)
    assert found.scores == {("m.py", 0): (0.4, "with its file"), ("m.py", 1): (0.1, "by itself")}
