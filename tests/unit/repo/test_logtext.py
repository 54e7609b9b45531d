"""The log's share of the window: error lines first, and what is left out is marked."""

from __future__ import annotations

from agentctx.prompt import Evidence
from agentctx.repo.logtext import GROUP_LINES, log_pieces
from agentctx.source import UnitKind
from tests.services import WordTokenizer

LINES = [f"line {n} of the log" for n in range(40)]
LINES[20] = "E   ValueError: the cause"
LINES[35] = "E   KeyError: a later one"
EVIDENCE = Evidence(
    excerpt="\n".join(LINES) + "\n", error_lines=("E   ValueError: the cause", "E   KeyError: a later one")
)


def texts(room: int, evidence: Evidence = EVIDENCE) -> tuple[list[str], tuple[str, ...]]:
    pieces, notes = log_pieces(evidence, WordTokenizer(), room)
    return [piece.text.decode() for piece in pieces], notes


def test_no_log_no_pieces() -> None:
    assert log_pieces(Evidence(excerpt=" \n"), WordTokenizer(), 1000) == ((), ())


def test_a_log_that_fits_is_whole() -> None:
    made, notes = texts(10_000)
    assert "".join(made) == "\nTest output:\n" + EVIDENCE.excerpt
    assert notes == ()


def test_groups_are_short_and_error_lines_stand_alone() -> None:
    made, _ = texts(10_000)
    assert max(len(text.splitlines()) for text in made[1:]) == GROUP_LINES
    assert "E   ValueError: the cause\n" in made


def test_error_lines_come_first_and_gaps_are_marked() -> None:
    made, notes = texts(30)
    groups = len(texts(10_000)[0]) - 1
    assert made == [
        "\nTest output:\n",
        "[... 3 parts of the log left out ...]\nE   ValueError: the cause\n",
        "[... 2 parts of the log left out ...]\nE   KeyError: a later one\n",
    ]
    assert notes == (f"{groups - 2} of {groups} parts of the log exceed its share of the window and are left out",)


def test_the_first_error_is_kept_without_any_room() -> None:
    made, notes = texts(0)
    assert made[1:] == ["[... 3 parts of the log left out ...]\nE   ValueError: the cause\n"]
    assert notes


def test_pieces_hang_on_the_heading() -> None:
    pieces, _ = log_pieces(EVIDENCE, WordTokenizer(), 10_000)
    assert pieces[0].kind is UnitKind.SCAFFOLD
    assert {piece.kind for piece in pieces[1:]} == {UnitKind.LOG}
    assert {piece.spine for piece in pieces[1:]} == {(pieces[0].key,)}
    assert len({piece.key for piece in pieces}) == len(pieces)


def test_text_that_is_no_unicode() -> None:
    made, _ = texts(1000, Evidence(excerpt="caf\udce9 𝄞\n"))
    assert made[1] == "caf? 𝄞\n"
