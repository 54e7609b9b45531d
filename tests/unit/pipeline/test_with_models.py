"""The pipeline with a drafter and a main model: tiny random ones, run by the reference engine."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from agentctx.config import OnOmission, RunOptions
from agentctx.errors import UsageError
from agentctx.pipeline.edit import EditRequest, run_edit
from agentctx.pipeline.prefixes import PrefixMemory
from agentctx.pipeline.select import Outcome, run
from agentctx.prompt import ChatFrame, ModelInfo, Task, TestRef, Tokenizer
from agentctx.spec.engines import load, load_drafting
from agentctx.spec.engines.byte_tokenizer import BYTE_CHAT
from agentctx.spec.engines.choice import Choice
from agentctx.spec.protocols import Drafter, Engine
from agentctx.spec.scorers import LEARNED, SCORERS, make
from agentctx.vcs import clean_environment
from tests.engines.engine_models import MODELS, build, describe
from tests.reports import check_json
from tests.services import WordTokenizer
from tests.trees import Repo

TEST = TestRef("tests/test_rules.py", ("test_1900_is_not_a_leap_year",))


REFERENCE = Choice("reference", "--engine")


class FewWords(WordTokenizer):
    """Words, with ids that the tiny models know."""

    def encode(self, text: str, *, special: bool = False) -> tuple[list[int], list[int]]:
        ids, starts = super().encode(text)
        return [one % 256 for one in ids], starts

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(f"w{one}" for one in ids)


class OtherWords(FewWords):
    name, digest = "others", "0" * 64


@dataclass
class TinyModel:
    info: ModelInfo
    tokenizer: Tokenizer = field(default_factory=FewWords)
    chat: ChatFrame = BYTE_CHAT
    n_drafters: int = 0
    engine: Choice = REFERENCE
    address: None = None

    def load_drafter(self, n_layers: int | None) -> Drafter:
        self.n_drafters += 1
        folder = Path(self.info.folder)
        return load_drafting("reference").load_drafter(
            folder, self.info.name, tokenizer=FewWords(), info=self.info, n_layers=n_layers
        )

    def load_engine(self) -> Engine:
        return load("reference").load_engine(
            Path(self.info.folder), self.info.name, tokenizer=self.tokenizer, chat=self.chat, info=self.info
        )


@dataclass
class TinyServices:
    """Implements `pipeline.services.Services` with the models that it holds."""

    models: dict[str, TinyModel]
    cache_dir: Path | None = None
    memory: None = None
    prefixes: PrefixMemory = field(default_factory=PrefixMemory)

    def tokenizer(self, options: RunOptions) -> Tokenizer:
        return FewWords()

    def model(self, name: str, options: RunOptions, n_tokens: int) -> TinyModel:
        return self.models[name]

    def text_model(self, options: RunOptions) -> None:
        return None

    def default_model(self) -> str | None:
        return next(iter(self.models), None)

    def progress(self, message: str) -> None:
        pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("tiny"), **MODELS["llama"], max_position_embeddings=8192)


@pytest.fixture
def services(folder: Path, tmp_path: Path) -> TinyServices:
    """`main` and `small` differ in name and folder only; `main` is said to be large, so that selecting pays."""
    info = describe(folder)
    main = replace(info, name="main", n_params=100_000_000)
    link = tmp_path / "small"
    link.symlink_to(folder)
    small = replace(info, name="small", folder=str(link))
    return TinyServices({"main": TinyModel(main), "small": TinyModel(small)}, tmp_path / "cache")


@pytest.fixture
def leap(repo: Callable[[str], Repo]) -> Repo:
    return repo("leap_year")


def selected(repo: Repo, services: TinyServices, **options: object) -> Outcome:
    task = Task(request="is_leap is wrong", logs=(("failure.log", repo.log),))
    given = {"drafter": "small", "model": "main", "budget": 900, "window": 1800, **options}
    outcome = run("select", repo.root, task, RunOptions(**given), services)  # type: ignore[arg-type]
    check_json(json.loads(json.dumps(outcome.report.to_dict(all_units=True))))
    return outcome


def test_sparse(leap: Repo, services: TinyServices) -> None:
    outcome = selected(leap, services)
    report = outcome.report
    assert (report.decision.mode, report.decision.drafter) == ("sparse", "small")
    assert report.budget.kept <= report.budget.limit == 900
    tokenized = outcome.tokenized
    assert report.budget.kept == sum(len(tokenized.unit_tokens(unit)) for unit in outcome.selection.units)
    assert {"load_drafter", "score"} <= set(report.timings)
    change = report.decision.change
    assert change is not None
    assert change.same > 0
    assert services.models["small"].n_drafters == 1


def test_scores_decide_among_what_is_not_pinned(leap: Repo, services: TinyServices) -> None:
    by_rank = selected(leap, services, drafter="none", budget=1400)
    sparse = selected(leap, services, budget=1400, force_sparse=True, scorer="early-exit")
    assert by_rank.report.decision.mode == "text"
    chosen = [unit for unit in sparse.report.units if unit.kept and unit.tier == 3]
    scored = [unit for unit in chosen if not unit.why.startswith("belongs to ")]
    assert scored
    assert all(unit.score > 0 for unit in scored)


@pytest.mark.parametrize("scorer", [name for name in SCORERS if name not in LEARNED])
def test_every_scorer_that_learns_nothing(leap: Repo, services: TinyServices, scorer: str) -> None:
    found = selected(leap, services, scorer=scorer, force_sparse=True)
    decision = found.report.decision
    assert (decision.mode, decision.scorer) == ("sparse", scorer)
    assert decision.drafter_layers == make(scorer, None).depth(3)
    again = selected(leap, services, scorer=scorer, force_sparse=True)
    assert [row.score for row in again.report.units] == [row.score for row in found.report.units]
    assert len({row.score for row in found.report.units}) > 5


def test_the_same_scores_every_time(leap: Repo, services: TinyServices) -> None:
    one, other = selected(leap, services), selected(leap, services)
    assert other.selection == one.selection
    assert other.text.text == one.text.text


def known(services: TinyServices) -> TinyServices:
    """With a drafter whose weights can be told from others: without that nothing of it is kept."""
    services.models["small"].info = replace(services.models["small"].info, weights_digest="ab" * 32)
    return services


def plain(outcome: Outcome) -> dict[str, object]:
    """The report but for what may differ from run to run."""
    return {k: v for k, v in outcome.report.to_dict(all_units=True).items() if k not in ("timings", "cache")}


def test_the_same_request_runs_no_drafter_again(leap: Repo, services: TinyServices) -> None:
    first = selected(leap, known(services))
    again = selected(leap, services)
    assert (first.report.cache["selection"], again.report.cache["selection"]) == ("miss", "hit")
    assert services.models["small"].n_drafters == 1
    assert plain(again) == plain(first)
    uncached = selected(leap, services, cache=False)
    assert uncached.report.cache["selection"] == "miss"
    assert plain(uncached)["units"] == plain(first)["units"]


def test_a_second_request_reads_only_what_changed(leap: Repo, services: TinyServices) -> None:
    selected(leap, known(services), window=3000)
    edited = Task(request="is_leap is wrong!", logs=(("failure.log", leap.log),))
    given = RunOptions(drafter="small", model="main", budget=900, window=3000)
    services.prefixes.held.clear()  # a new process
    found = run("select", leap.root, edited, given, services)
    assert found.report.cache["selection"] == "miss"
    n_known = found.report.cache["drafter_prefix_tokens"]
    assert isinstance(n_known, int)
    assert n_known > 0
    assert n_known % 256 == 0
    uncached = run("select", leap.root, edited, replace(given, cache=False), services)
    assert uncached.report.cache["drafter_prefix_tokens"] == 0
    assert plain(found)["units"] == plain(uncached)["units"]


def test_what_is_said_of_windows_is_said_from_the_cache_too(leap: Repo, services: TinyServices) -> None:
    known(services)
    services.models["small"].info = replace(services.models["small"].info, max_position=1024)
    first, again = selected(leap, services), selected(leap, services)
    assert again.report.cache["selection"] == "hit"
    assert again.report.findings == first.report.findings
    assert any(finding.code == "windows" for finding in again.report.findings)


def test_another_scorer_is_another_request(leap: Repo, services: TinyServices) -> None:
    selected(leap, known(services), scorer="icr")
    assert selected(leap, services, scorer="window").report.cache["selection"] == "miss"
    assert selected(leap, services, scorer="icr").report.cache["selection"] == "hit"
    assert selected(leap, services, scorer="icr", drafter_layers=2).report.cache["selection"] == "miss"


def test_a_cache_that_cannot_be_kept_is_said(leap: Repo, services: TinyServices, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/drafter").write_text("")
    report = selected(leap, known(services)).report
    assert any(finding.code == "cache" and "can't be kept" in finding.message for finding in report.findings)


def test_dense_is_cut_to_the_budget_and_runs_no_drafter(leap: Repo, services: TinyServices) -> None:
    report = selected(leap, services, force_dense=True).report
    assert report.decision.mode == "dense"
    assert report.budget.kept <= report.budget.limit == 900
    assert "score" not in report.timings
    assert services.models["small"].n_drafters == 0


def test_dense_keeps_the_window_only_where_a_fraction_was_asked_for(leap: Repo, services: TinyServices) -> None:
    report = selected(leap, services, force_dense=True, budget=None, keep=0.5).report
    assert report.budget.kept == report.budget.packed


def test_a_fraction_of_the_window(leap: Repo, services: TinyServices) -> None:
    report = selected(leap, services, budget=None, keep=0.5, force_sparse=True).report
    assert report.budget.limit == -(-report.budget.packed // 2)
    assert report.budget.kept <= report.budget.limit


def test_where_selecting_does_not_pay(leap: Repo, services: TinyServices) -> None:
    services.models["main"].info = replace(services.models["main"].info, n_params=50_000)
    report = selected(leap, services).report
    assert report.decision.mode == "dense"
    assert "the drafter was not run" in report.decision.reason


def test_another_tokenizer(leap: Repo, services: TinyServices) -> None:
    services.models["small"].tokenizer = OtherWords()
    with pytest.raises(UsageError, match="can't select for"):
        selected(leap, services)
    report = selected(leap, services, text_level=True).report
    assert report.decision.mode == "text"
    assert report.budget.kept <= 900
    assert "score" in report.timings
    by_rank = selected(leap, services, text_level=True, drafter="none").report
    ours, theirs = (
        {(unit.path, unit.start_line) for unit in one.units if unit.kept and unit.path} for one in (report, by_rank)
    )
    change = report.decision.change
    assert change is not None
    assert (change.added, change.removed) == (len(ours - theirs), len(theirs - ours))


def test_a_window_beyond_the_drafters_context(leap: Repo, services: TinyServices) -> None:
    services.models["small"].info = replace(services.models["small"].info, max_position=1024)
    report = selected(leap, services).report
    assert report.decision.mode == "sparse"
    assert any("1024" in finding.message or "windows" in finding.message for finding in report.findings)


def test_without_a_window_it_fits_the_context(leap: Repo, services: TinyServices) -> None:
    services.models["main"].info = replace(services.models["main"].info, max_position=1500)
    report = selected(leap, services, window=None).report
    assert report.budget.window == 1500 - RunOptions().max_new


@pytest.mark.parametrize("drafter", ["none", "small"])
def test_on_omission_dense_keeps_the_window(leap: Repo, services: TinyServices, drafter: str) -> None:
    tight = {"drafter": drafter, "budget": 350, "force_sparse": drafter != "none"}
    flagged = selected(leap, services, on_omission=OnOmission.FLAG, **tight).report
    assert any(omission.severity == "error" for omission in flagged.omissions.findings)
    report = selected(leap, services, on_omission=OnOmission.DENSE, **tight).report
    assert report.decision.mode == "dense"
    assert report.decision.reason.startswith("--on-omission dense: ")
    assert report.budget.kept == report.budget.packed


def test_an_edit_that_a_random_model_makes(leap: Repo, services: TinyServices) -> None:
    """No candidate of a random model is right: nothing is written, everything is said."""
    before = {path: path.read_bytes() for path in leap.root.rglob("*") if path.is_file() and ".git" not in path.parts}
    options = RunOptions(drafter="small", model="main", budget=900, window=1800, max_new=12, samples=2, temperature=1.0)
    task = Task(request="make is_leap right", tests=(TEST,), logs=(("failure.log", leap.log),))
    request = EditRequest(leap.root, task, options, apply=True)
    report = run_edit(request, services, clean_environment())
    data = json.loads(json.dumps(report.to_dict()))
    check_json(data)
    assert data["command"] == "edit"
    assert data["decision"]["mode"] == "sparse"
    assert data["edit"]["outcome"] == "failed"
    assert data["edit"]["target"] == "almanac/rules.py#is_leap"
    assert len(data["edit"]["candidates"]) == 2
    assert {"prefill", "decode", "ttft"} <= set(data["timings"])
    after = {path: path.read_bytes() for path in leap.root.rglob("*") if path.is_file() and ".git" not in path.parts}
    assert after == before
    assert leap.git("status", "--porcelain") == ""


def test_what_is_set_of_a_drafter_that_is_not_there_is_in_the_report(leap: Repo, services: TinyServices) -> None:
    codes = [
        {one.code for one in selected(leap, services, drafter=name, scorer="icr").report.findings}
        for name in ("none", "small")
    ]
    assert ["without-effect" in found for found in codes] == [True, False]
