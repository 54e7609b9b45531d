"""From a task to a landed edit, on an engine whose answers are written down. Everything else is real."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from agentctx import vcs
from agentctx.config import EditFormat, RunOptions
from agentctx.edit.transaction import undo
from agentctx.errors import TaskError, UnavailableError, UsageError
from agentctx.pipeline.edit import EditRequest, run_edit
from agentctx.pipeline.prefixes import PrefixMemory
from agentctx.prompt import ChatFrame, Completion, Float32, ModelInfo, SparsePrompt, Task, TestRef, Tokenizer
from agentctx.report import RunReport
from agentctx.report.schema import load_schema
from agentctx.report.text import render_edit
from agentctx.spec.engines.address import Address
from agentctx.spec.engines.choice import Choice
from agentctx.spec.engines.reference import ReferenceDrafter, drafter_from, tiny_engine
from agentctx.spec.protocols import EngineCaps, Hear, SampleParams
from tests.trees import Repo

GOOD = "\n    if not values:\n        return 0.0\n    return sum(values) / len(values)\n```"
BAD = "\n    return 1.0\n```"
FAILING = TestRef("tests/test_basic.py", ("test_mean_of_empty_list_is_zero",))
TINY = tiny_engine()
DEFAULT = Choice("torch", "default")
WIDE = replace(TINY.info, max_position=1 << 20, folder="tiny")  # bytes are many tokens


@dataclass
class Scripted:
    """Engine and session at once: gives the answers in order, and remembers what it read."""

    answers: Sequence[str]
    prompts: list[SparsePrompt] = field(default_factory=list)
    given: int = 0
    prefill_seconds: float = 0.0
    load_seconds: float = 0.0
    form: str = "float32 on cpu"
    info: ModelInfo = WIDE
    caps: EngineCaps = TINY.caps
    tokenizer: Tokenizer = TINY.tokenizer
    chat: ChatFrame = TINY.chat
    logits: Float32 = field(default_factory=lambda: np.zeros(8, np.float32))
    n_cached: int | None = 0
    address: Address | None = None  # the server that it is

    def prefill(self, prompt: SparsePrompt, *, chunk: int = 512) -> Scripted:
        self.prompts.append(prompt)
        return self

    def extend(self, ids: Sequence[int]) -> Float32:
        return np.zeros((len(ids), 8), np.float32)

    def sample(self, n: int, params: SampleParams, hear: Hear | None = None) -> list[Completion]:
        texts = [self.answers[(self.given + i) % len(self.answers)] for i in range(n)]
        self.given += n
        return [Completion(text, (1, 2), "stop", 0.0) for text in texts]


@dataclass
class Model:
    scripted: Scripted
    engine: Choice = DEFAULT

    @property
    def info(self) -> ModelInfo:
        return self.scripted.info

    @property
    def tokenizer(self) -> Tokenizer:
        return self.scripted.tokenizer

    @property
    def chat(self) -> ChatFrame:
        return self.scripted.chat

    @property
    def address(self) -> Address | None:
        return self.scripted.address

    def load_engine(self) -> Scripted:
        return self.scripted

    def load_drafter(self, n_layers: int | None) -> ReferenceDrafter:
        return replace(drafter_from(TINY, n_layers), info=replace(WIDE, n_layers=n_layers or WIDE.n_layers))


@dataclass
class Services:
    cache_dir: Path | None
    engine: Scripted
    choice: Choice = DEFAULT
    memory: None = None
    prefixes: PrefixMemory = field(default_factory=PrefixMemory)

    def tokenizer(self, options: RunOptions) -> Tokenizer:
        return self.engine.tokenizer

    def model(self, name: str, options: RunOptions, n_tokens: int) -> Model:
        return Model(self.engine, self.choice)

    def text_model(self, options: RunOptions) -> None:
        return None

    def default_model(self) -> str | None:
        return "tiny" if self.engine.answers else None

    def progress(self, message: str) -> None:
        pass


@pytest.fixture
def project(repo: Callable[[str], Repo]) -> Repo:
    return repo("mean_empty")


def run(
    project: Repo,
    tmp_path: Path,
    answers: Sequence[str],
    *,
    apply: bool = True,
    task: Task | None = None,
    address: Address | None = None,
    n_cached: int | None = 0,
    choice: Choice = DEFAULT,
    **options: object,
) -> tuple[RunReport, Scripted]:
    engine = Scripted(answers, address=address, n_cached=n_cached)
    chosen = RunOptions(**{"budget": 12_000, "samples": 4, "temperature": 0.7, **options})  # type: ignore[arg-type]
    task = task or Task(request="mean([]) must be 0.0", tests=(FAILING,))
    request = EditRequest(project.root, task, chosen, apply)
    return run_edit(request, Services(tmp_path / "cache", engine, choice), vcs.clean_environment()), engine


def test_the_first_answer_that_passes_lands(project: Repo, tmp_path: Path) -> None:
    report, engine = run(project, tmp_path, [BAD, GOOD, BAD])
    edit = report.edit
    assert edit is not None
    assert edit.outcome == "landed"
    assert [candidate.status for candidate in edit.candidates] == ["failed", "passed"]
    assert edit.checks[0].what == "baseline"
    assert edit.checks[0].status == "failed"
    assert edit.target == "tallies/basic.py#mean"
    assert b"if not values:" in (project.root / "tallies/basic.py").read_bytes()
    assert edit.patch is not None
    assert Path(edit.patch).is_file()
    assert "+    if not values:" in edit.diff
    assert len(engine.prompts) == 1  # every candidate from one prefill
    landed = undo(project.root, tmp_path / "cache")
    assert landed.paths == ("tallies/basic.py",)
    assert not project.git("status", "--porcelain")


def test_without_apply_the_edit_is_shown_and_the_tree_stays(project: Repo, tmp_path: Path) -> None:
    report, _ = run(project, tmp_path, [GOOD], apply=False)
    assert report.edit is not None
    assert report.edit.outcome == "shown"
    assert not project.git("status", "--porcelain")


def test_no_answer_passes(project: Repo, tmp_path: Path) -> None:
    report, _ = run(project, tmp_path, [BAD])
    assert report.edit is not None
    assert report.edit.outcome == "failed"
    assert [candidate.status for candidate in report.edit.candidates] == ["failed", *["duplicate"] * 3]
    assert not project.git("status", "--porcelain")
    assert project.git("worktree", "list", "--porcelain").count("worktree ") == 1
    assert not project.git("for-each-ref", "refs/agentctx")


def test_the_log_is_made_when_none_is_given(project: Repo, tmp_path: Path) -> None:
    report, _ = run(project, tmp_path, [GOOD], apply=False)
    assert "log" in report.timings
    assert report.targets == ("tallies/basic.py::mean",)
    assert not report.targets_guessed  # it stands in the traceback


def test_an_answer_that_breaks_other_tests_does_not_land(project: Repo, tmp_path: Path) -> None:
    breaks = "\n    return 0.0\n```"
    report, _ = run(project, tmp_path, [breaks, GOOD])
    assert report.edit is not None
    assert [candidate.status for candidate in report.edit.candidates] == ["failed", "passed"]
    assert "breaks other tests" in report.edit.candidates[0].detail


def test_sparse_prefill_reads_kept_tokens_at_their_positions(project: Repo, tmp_path: Path) -> None:
    report, engine = run(
        project, tmp_path, [GOOD], budget=6000, window=9000, drafter="tiny", force_sparse=True, drafter_layers=1
    )
    [prompt] = engine.prompts
    assert report.decision.mode == "sparse"
    assert report.decision.change is not None
    assert prompt.total == report.budget.packed
    assert len(prompt.ids) == report.budget.kept <= 6000
    assert len(prompt.runs()) > 1


def test_without_a_drafter_the_prompt_is_contiguous(project: Repo, tmp_path: Path) -> None:
    report, engine = run(project, tmp_path, [GOOD], budget=6000)
    [prompt] = engine.prompts
    assert report.decision.mode == "text"
    assert len(prompt.runs()) == 1
    assert prompt.total == len(prompt.ids)


def test_the_answer_begins_with_the_functions_header(project: Repo, tmp_path: Path) -> None:
    _, engine = run(project, tmp_path, [GOOD])
    text = TINY.tokenizer.decode(engine.prompts[0].ids.tolist())
    assert text.endswith("```python\ndef mean(values: Sequence[float]) -> float:")


def test_search_replace(project: Repo, tmp_path: Path) -> None:
    answer = (
        "tallies/basic.py\n<<<<<<< SEARCH\n    return sum(values) / len(values)\n=======\n"
        "    return sum(values) / len(values) if values else 0.0\n>>>>>>> REPLACE\n"
    )
    report, _ = run(project, tmp_path, [answer], edit_format=EditFormat.SEARCH_REPLACE)
    assert report.edit is not None
    assert report.edit.outcome == "landed"
    assert report.edit.format == "search-replace"


def test_nothing_to_check_with(project: Repo, tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="nothing to check"):
        run(project, tmp_path, [GOOD], task=Task(request="mean of nothing"))


def test_no_check_but_a_diff(project: Repo, tmp_path: Path) -> None:
    focus = Task(request="mean([]) must be 0.0, see tallies/basic.py mean")
    report, _ = run(project, tmp_path, ["\n    pass\n```"], apply=False, task=focus)
    assert report.edit is not None
    assert report.edit.candidates[0].status in ("unchecked", "unusable")


def test_a_test_that_passes_already(project: Repo, tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="already passes"):
        run(project, tmp_path, [GOOD], task=Task(request="x", tests=(TestRef("tests/test_basic.py", ("test_total",)),)))


def test_greedy_samples_are_all_the_same(project: Repo, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="temperature"):
        run(project, tmp_path, [GOOD], samples=2, temperature=0.0)


def test_no_model(project: Repo, tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="no model"):
        run(project, tmp_path, [])


def test_the_json_of_an_edit_is_valid(project: Repo, tmp_path: Path) -> None:
    report, _ = run(project, tmp_path, [BAD, GOOD])
    jsonschema.validate(json.loads(json.dumps(report.to_dict(all_units=True))), load_schema())


# ---------------------------------------------------------------- what is known of the engine

FAR = Address("https://gpu.example/v1", "gpu.example", False)
NEAR = Address("http://localhost:8000/v1", "localhost:8000", True)
KEY = "ghp_" + "Zk3Vq9Lx7Rt2Wm8Bn4Yc6Hd1Jf5Gs0PaQeUi"


def test_the_report_says_what_the_engine_did(project: Repo, tmp_path: Path) -> None:
    report, engine = run(project, tmp_path, [GOOD], apply=False, samples=1, temperature=0.0)
    row = report.engine
    assert row is not None
    assert (row.name, row.host, row.model, row.context) == ("torch", None, "tiny", 1 << 20)
    assert (row.prompt_tokens, row.cached_tokens) == (len(engine.prompts[0].ids), 0)
    assert row.ttft == round(report.timings["ttft"], 4) > 0
    assert row.decode_tokens_per_second is not None
    assert row.peak_memory_bytes is None or row.peak_memory_bytes > 1_000_000
    assert (row.secrets_kept, row.secrets_reason) == (False, "not looked for, nothing leaves this process")
    jsonschema.validate(json.loads(json.dumps(report.to_dict())), load_schema())
    assert "engine torch (default): tiny (float32 on cpu) in this process, context 1,048,576" in render_edit(report)


def test_a_server_that_takes_ids_is_named(project: Repo, tmp_path: Path) -> None:
    report, _ = run(
        project, tmp_path, [GOOD], apply=False, address=NEAR, n_cached=None, choice=Choice("vllm", "--engine")
    )
    row = report.engine
    assert row is not None
    assert (row.name, row.host, row.cached_tokens, row.peak_memory_bytes) == ("vllm", "localhost:8000", None, None)
    assert row.secrets_reason == "not looked for, the server runs on this machine"
    text = render_edit(report)
    assert "engine vllm (--engine): tiny at localhost:8000" in text
    assert "prompt tokens, unknown of them cached" in text
    assert "peak memory" not in text


def with_a_secret(project: Repo) -> None:
    basic = project.root / "tallies/basic.py"
    basic.write_text(f'TOKEN = "{KEY}"\n' + basic.read_text())
    project.git("add", "tallies/basic.py")
    project.git("commit", "-qm", "oops")


def test_a_prompt_with_a_secret_is_not_sent_to_another_machine(project: Repo, tmp_path: Path) -> None:
    with_a_secret(project)
    with pytest.raises(
        UsageError, match=r"gpu\.example is another machine: tallies/basic\.py:1 \(github-token\)"
    ) as caught:
        run(project, tmp_path, [GOOD], address=FAR, pins=("tallies/basic.py",))
    assert KEY not in str(caught.value)
    assert "--engine openai" in str(caught.value.hint)


def test_a_server_here_is_sent_everything(project: Repo, tmp_path: Path) -> None:
    with_a_secret(project)
    report, _ = run(project, tmp_path, [GOOD], apply=False, address=NEAR, pins=("tallies/basic.py",))
    assert report.edit is not None
    assert report.edit.outcome == "shown"


def test_files_of_secrets_are_not_packed_for_another_machine(project: Repo, tmp_path: Path) -> None:
    (project.root / "secrets.yaml").write_text(f"token: {KEY}\n")
    project.git("add", "secrets.yaml")
    project.git("commit", "-qm", "oops")
    report, _ = run(project, tmp_path, [GOOD], apply=False, address=FAR)
    assert [row.path for row in report.skipped if "secret" in row.reason] == ["secrets.yaml"]
    assert report.engine is not None
    assert report.engine.secrets_kept
    here, _ = run(project, tmp_path / "here", [GOOD], apply=False)
    assert not [row.path for row in here.skipped if "secret" in row.reason]
