from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from agentctx.prompt import Float32
from agentctx.spec.engines.sampling import Decoding, generate, nucleus, pick, stop_end
from agentctx.spec.engines.spoken import Spoken
from agentctx.spec.protocols import Hear, SampleParams

LOGITS = np.log(np.asarray([0.5, 0.3, 0.15, 0.05], np.float32))


def test_draws_follow_the_distribution() -> None:
    rng = np.random.default_rng(0)
    drawn = [pick(LOGITS, SampleParams(temperature=1.0), rng) for _ in range(20_000)]
    np.testing.assert_allclose(np.bincount(drawn) / 20_000, [0.5, 0.3, 0.15, 0.05], atol=0.012)


def test_temperature_sharpens() -> None:
    rng = np.random.default_rng(0)
    drawn = [pick(LOGITS, SampleParams(temperature=0.5), rng) for _ in range(20_000)]
    squared = np.asarray([0.5, 0.3, 0.15, 0.05]) ** 2
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 20_000, squared / squared.sum(), atol=0.012)


@pytest.mark.parametrize(
    ("top_p", "allowed"), [(0.3, {0}), (0.45, {0}), (0.6, {0, 1}), (0.9, {0, 1, 2}), (1.0, {0, 1, 2, 3})]
)
def test_top_p_keeps_the_nucleus(top_p: float, allowed: set[int]) -> None:
    rng = np.random.default_rng(1)
    logits = np.log(np.asarray([0.5, 0.25, 0.1875, 0.0625], np.float32))
    drawn = {pick(logits, SampleParams(temperature=1.0, top_p=top_p), rng) for _ in range(2000)}
    assert drawn == allowed


def test_nucleus_breaks_ties_by_id() -> None:
    assert nucleus(np.full(4, 0.25), 0.4).tolist() == [0.25, 0.25, 0, 0]


def test_greedy_takes_the_first_best() -> None:
    assert pick(np.asarray([1, 3, 3], np.float32), SampleParams(), np.random.default_rng(0)) == 1


@pytest.mark.parametrize(
    ("text", "stop", "end"),
    [("abcabc", ("c",), 3), ("abc", ("x",), None), ("abc", ("c", "ab"), 2), ("abc", ("",), None), ("abc", (), None)],
)
def test_stop_end(text: str, stop: tuple[str, ...], end: int | None) -> None:
    assert stop_end(text, stop) == end


@dataclass
class Script:
    """Row i continues with the given letters, whatever is fed."""

    rows: list[str]
    at: int = 1
    log: list[tuple[str, ...]] = field(default_factory=list)

    def step(self, tokens: Sequence[int]) -> Float32:
        self.log.append(tuple(chr(t) for t in tokens))
        out = np.full((len(self.rows), 128), -50, np.float32)
        for i, row in enumerate(self.rows):
            out[i, ord(row[self.at])] = 50
        self.at += 1
        return out

    def keep(self, rows: Sequence[int]) -> None:
        self.rows = [self.rows[row] for row in rows]


def run(
    script: Script, n: int, params: SampleParams, room: int = 100, batch: int = 8, hear: Hear | None = None
) -> list[tuple[str, str]]:
    first = np.full(128, -50, np.float32)
    first[ord(script.rows[0][0])] = 50
    decoding = Decoding(
        lambda rows, extra: script, lambda ids: "".join(map(chr, ids)), frozenset({ord("$")}), room, batch
    )
    return [(c.text, c.finish) for c in generate(first, n, params, decoding, hear)]


def test_pieces_are_heard_as_they_are_written() -> None:
    heard: list[tuple[int, str]] = []
    params = SampleParams(max_new=4, temperature=1.0, stop=("xy",))
    run(Script(["abcdef", "ab$def", "axyzzz"]), 3, params, hear=lambda sample, piece: heard.append((sample, piece)))
    assert heard == [(0, "a"), (1, "a"), (2, "a"), (0, "b"), (1, "b"), (2, "x"), (0, "c"), (2, "y"), (0, "d")]


def test_greedy_samples_are_heard_once() -> None:
    heard: list[tuple[int, str]] = []
    run(Script(["ab$"]), 3, SampleParams(max_new=4), hear=lambda sample, piece: heard.append((sample, piece)))
    assert heard == [(0, "a"), (0, "b")]


def test_a_character_is_heard_when_it_is_whole() -> None:
    heard: list[str] = []
    spoken = Spoken(lambda sample, piece: heard.append(f"{sample}{piece}"), 7)
    for text in ("a", "a\ufffd", "a\ufffd\ufffd", "aü", "aüb", "aüb\ufffd"):
        spoken.up_to(text)
    spoken.end("aüb\ufffd")  # it never became whole
    spoken.end("aüb\ufffd")
    assert heard == ["7a", "7ü", "7b", "7\ufffd"]


def test_rows_end_by_themselves() -> None:
    script = Script(["abcdef", "ab$def", "axyzzz"])
    params = SampleParams(max_new=4, temperature=1.0, stop=("xy",))
    assert run(script, 3, params) == [("abcd", "length"), ("ab", "stop"), ("axy", "stop")]
    assert script.log == [("a", "a", "a"), ("b", "b", "x"), ("c",)]


@pytest.mark.parametrize(("room", "expected"), [(2, ("ab", "length")), (1, ("a", "length")), (0, ("", "length"))])
def test_the_context_ends_generation(room: int, expected: tuple[str, str]) -> None:
    assert run(Script(["abcdef"]), 1, SampleParams(max_new=5), room) == [expected]


def test_no_samples_is_an_error() -> None:
    with pytest.raises(ValueError, match="0 samples"):
        run(Script(["a"]), 0, SampleParams())
