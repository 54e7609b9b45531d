"""What the user sees while a model writes."""

from __future__ import annotations

from agentctx.pipeline.writing import WIDEST, Writing


def told(n: int, *pieces: tuple[int, str], first: int = 0) -> list[str]:
    said: list[str] = []
    writing = Writing(said.append, first, n)
    writing.begin()
    for sample, piece in pieces:
        writing(sample, piece)
    return said


def test_one_candidate_shows_its_line() -> None:
    assert told(1, (0, "def f"), (0, "():\n"), (0, "    return 1"), (0, "\n\nx")) == [
        "drawing candidate 0",
        "drawing candidate 0, line 1: def f",
        "drawing candidate 0, line 2: ",
        "drawing candidate 0, line 2:     return 1",
        "drawing candidate 0, line 4: x",
    ]


def test_several_candidates_show_their_number_of_lines() -> None:
    assert told(3, (0, "a\n"), (2, "b\nc\n"), first=4) == [
        "drawing candidates 4 to 6",
        "drawing candidates 4 to 6: 1 lines",
        "drawing candidates 4 to 6: 3 lines",
    ]


def test_a_line_obeys_nothing_and_is_cut() -> None:
    assert told(1, (0, "\x1b[2J\ta\x07"))[-1] == "drawing candidate 0, line 1:  [2J a "
    exact = "x" * WIDEST
    assert told(1, (0, exact))[-1].endswith(f": {exact}")
    assert told(1, (0, exact + "y"))[-1].endswith(f": {exact}...")
