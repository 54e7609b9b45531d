from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from spec_prompts import make_prompt

from agentctx.errors import EngineUnavailable
from agentctx.prompt import Float32, Int32, PackFacts, Section, TokenizedPrompt
from agentctx.spec.engines import reference
from agentctx.spec.engines.reference_model import DecoderConfig
from agentctx.spec.prefix import PrefixStore
from agentctx.spec.protocols import Drafter, ModelInfo
from agentctx.spec.reading import ReadFacts, Reading, Sink
from agentctx.spec.scorers.base import MEAN, Aggregate, Asked
from agentctx.spec.scorers.published import SpecPrefill
from agentctx.spec.windows import combine, cut, plan, score_in_windows

SCORER = SpecPrefill(n_lookahead=2)


def drafter(max_position: int) -> Drafter:
    config = DecoderConfig(260, max_position=max_position, n_layers=2)
    return reference.drafter_from(reference.tiny_engine(config=config))


@dataclass
class ByIds:
    """A scorer that values every token by its id, and remembers its prompts."""

    seen: list[TokenizedPrompt] = field(default_factory=list)
    aggregate: Aggregate = MEAN
    name: str = "ids"
    dilutes: bool = True
    n_lookahead: int = 2

    def depth(self, n_layers: int) -> int:
        return n_layers

    def begin(self, asked: Asked) -> tuple[Reading, Values]:
        if asked.prompt is not LONG:
            self.seen.append(asked.prompt)
        return Reading(n_lookahead=2), Values(asked.prompt)


@dataclass
class Values:
    prompt: TokenizedPrompt

    def rows(self, group: str, layer: int, rows: Float32) -> None:
        raise AssertionError

    def hidden(self, states: Float32) -> None:
        raise AssertionError

    def values(self) -> Float32:
        return self.prompt.ids.astype(np.float32) / self.prompt.n_tokens


@dataclass
class Reader:
    """A drafter that takes a second for every prompt."""

    max_position: int
    tokenizer: object = None
    n_blind: int = 0

    @property
    def info(self) -> ModelInfo:
        return ModelInfo("ids", "", 1, 1, 1, 1, 1, 1, 256, self.max_position, "d", "test")

    def read(self, ids: Int32, reading: Reading, sink: Sink, store: PrefixStore | None = None) -> ReadFacts:
        assert reading.room(len(ids)) <= self.max_position
        return ReadFacts(1, 2, 1.0, n_blind=self.n_blind)


class Blind(ByIds):
    def begin(self, asked: Asked) -> tuple[Reading, Values]:
        return Reading(), Values(replace(asked.prompt, ids=np.zeros_like(asked.prompt.ids)))


LONG = make_prompt(
    [
        (Section.SYSTEM, 10),
        (Section.CODE, 300),
        (Section.EDITED, 40),
        (Section.LOG, 12),
        (Section.REQUEST, 8),
        (Section.TAIL, 3),
    ]
)


def test_one_window_is_the_drafter_itself() -> None:
    one = drafter(400)
    scores, findings = score_in_windows(one, LONG, SCORER)
    reading, scoring = SCORER.begin(Asked(LONG, one.tokenizer, 2))
    one.read(LONG.ids, reading, scoring)
    np.testing.assert_array_equal(scores.values, scoring.values())
    assert (scores.scorer, scores.n_layers, scores.n_lookahead, findings) == ("specprefill", 2, 2, ())


def test_the_last_fitting_length_is_one_window() -> None:
    assert score_in_windows(drafter(374), LONG, SCORER)[1] == ()
    assert score_in_windows(drafter(373), LONG, SCORER)[1][0].code == "windows"


def test_every_window_holds_head_and_query() -> None:
    fake = ByIds()
    scores, (finding,) = score_in_windows(Reader(129), LONG, fake)  # type: ignore[arg-type]
    assert len(fake.seen) >= 4
    assert f"{len(fake.seen)} overlapping windows" in finding.message
    assert "373 tokens" in finding.message
    for prompt in fake.seen:
        assert prompt.n_tokens <= 128
        assert prompt.ids[:10].tolist() == LONG.ids[:10].tolist()
        assert prompt.ids[-23:].tolist() == LONG.ids[-23:].tolist()
        assert prompt.starts[-1] == len(prompt.document.text)
        assert bytes(int(i) for i in prompt.ids) == prompt.document.text
        sections = [unit.section for unit in prompt.document.units]
        assert [sections[0], *sections[-3:]] == [Section.SYSTEM, Section.LOG, Section.REQUEST, Section.TAIL]
        assert prompt.unit_starts.tolist()[-1] == prompt.n_tokens
    assert scores.seconds == len(fake.seen)
    assert scores.values.shape == (373,)
    # ids / length * length / T: the windows' different lengths cancel out
    np.testing.assert_allclose(scores.values, LONG.ids / 373, rtol=1e-6)


def test_overlaps_take_the_maximum() -> None:
    windows = plan(LONG, 128)
    values = [np.full(sum(map(len, window)), i, np.float32) for i, window in enumerate(windows)]
    out = combine(373, windows, values)
    first, second = windows[0][1], windows[1][1]
    assert first.overlaps(second)
    length = sum(map(len, windows[1]))
    np.testing.assert_allclose(out[second.start : first.end], length / 373, rtol=1e-6)


def test_values_that_are_no_shares_keep_their_sign_and_size() -> None:
    windows = plan(LONG, 128)
    values = [np.full(sum(map(len, window)), -1 - i, np.float32) for i, window in enumerate(windows)]
    out = combine(373, windows, values, dilutes=False)
    first, second = windows[0][1], windows[1][1]
    assert set(out[first.start : first.end].tolist()) == {-1.0}
    assert set(out[first.end : second.end].tolist()) == {-2.0}


def test_a_window_knows_its_failing_tests() -> None:
    """Tests are part of the query: every window holds their end, and which of their units fail."""
    prompt = make_prompt([(Section.CODE, 200), (Section.TESTS, 30), (Section.TESTS, 20), (Section.REQUEST, 5)])
    prompt = replace(prompt, document=replace(prompt.document, facts=PackFacts(test_units=(2,))))
    windows = plan(prompt, 120)
    assert len(windows) > 1
    for window in windows:
        part = cut(prompt, window)
        (failing,) = part.document.facts.test_units
        assert part.document.units[failing].section is Section.TESTS
        assert len(part.unit_tokens(failing)) == 20


def test_a_log_longer_than_half_a_window_is_cut_at_its_start() -> None:
    prompt = make_prompt([(Section.CODE, 100), (Section.LOG, 200), (Section.TAIL, 4)])
    for window in plan(prompt, 64):
        assert window[-1].end == 304
        assert len(window[-1]) == 32


def test_a_system_prompt_that_would_fill_the_window_is_scored_as_code() -> None:
    prompt = make_prompt([(Section.SYSTEM, 60), (Section.CODE, 100), (Section.TAIL, 4)])
    assert {len(window) for window in plan(prompt, 64)} == {2}


def test_a_context_that_holds_no_window_is_refused() -> None:
    with pytest.raises(EngineUnavailable, match="reads 12 tokens"):
        score_in_windows(Reader(12), LONG, ByIds())  # type: ignore[arg-type]


@pytest.mark.parametrize("max_position", [128, 400])
def test_a_scorer_that_finds_nothing_is_refused(max_position: int) -> None:
    """Such as one that reads a single layer, where that slides over less than the prompt."""
    with pytest.raises(EngineUnavailable, match="ids found nothing: 3 layers of ids slide"):
        score_in_windows(Reader(max_position, n_blind=3), LONG, Blind())  # type: ignore[arg-type]
    score_in_windows(Reader(max_position), LONG, Blind())  # type: ignore[arg-type]


def test_real_windows_find_what_the_drafter_finds() -> None:
    scores, _ = score_in_windows(drafter(128), LONG, SCORER)
    assert np.isfinite(scores.values).all()
    assert (scores.values > 0).all()
    assert scores.values.flags.writeable is False
    again, _ = score_in_windows(drafter(128), LONG, SCORER)
    np.testing.assert_array_equal(scores.values, again.values)


@settings(max_examples=200)
@given(st.integers(0, 40), st.integers(0, 600), st.integers(0, 90), st.integers(16, 200))
def test_windows_cover_everything_and_fit(head: int, code: int, query: int, room: int) -> None:
    prompt = make_prompt([(Section.SYSTEM, head), (Section.CODE, code + room), (Section.REQUEST, query)])
    windows = plan(prompt, room)
    covered = np.zeros(prompt.n_tokens, bool)
    for window in windows:
        assert sum(map(len, window)) <= room
        assert all(a.end <= b.start for a, b in pairwise(window))
        part = cut(prompt, window)
        assert part.n_tokens == sum(map(len, window))
        for span in window:
            covered[span.start : span.end] = True
    assert covered.all()
