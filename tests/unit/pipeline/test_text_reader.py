"""A drafter that selects for a server, and the server's context: on engines without any library."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from agentctx import vcs
from agentctx.config import RunOptions
from agentctx.errors import UsageError
from agentctx.pipeline.edit import EditRequest, run_edit
from agentctx.prompt import Completion, Conversation, FocusRef, Task, Tokenizer
from agentctx.report import RunReport
from agentctx.spec.protocols import Hear, SampleParams, ServedModel, TextUsage
from tests.services import WordTokenizer
from tests.trees import Repo
from tests.unit.pipeline.test_edit_run import Scripted, Services


@dataclass
class Server:
    """Model, engine and session at once."""

    context: int | None = None
    said: list[Conversation] = field(default_factory=list)
    engine: str = "openai"
    load_seconds: float = 0.0
    usage: TextUsage = field(default_factory=TextUsage)
    notes: tuple[str, ...] = ()

    @property
    def served(self) -> ServedModel:
        return ServedModel("coder", "localhost:1", True, self.context)

    @property
    def tokenizer(self) -> Tokenizer:
        return WordTokenizer()

    def connect(self) -> Server:
        return self

    def open(self, conversation: Conversation) -> Server:
        self.said.append(conversation)
        return self

    def sample(self, n: int, params: SampleParams, hear: Hear | None = None) -> list[Completion]:
        assert params.stop == ()
        return [Completion("nothing", (), "stop", 0.0, 1)] * n


@dataclass
class WithServer(Services):
    server: Server = field(default_factory=Server)

    def text_model(self, options: RunOptions) -> Server:  # type: ignore[override]
        return self.server


def run(repo: Callable[[str], Repo], tmp_path: Path, server: Server, **options: object) -> RunReport:
    services = WithServer(tmp_path / "cache", Scripted(["x"]), server=server)
    check = f"{sys.executable} -S -c 'raise SystemExit(1)'"
    chosen = RunOptions(check_cmd=check, **options)  # type: ignore[arg-type]
    task = Task(request="mean([]) must be 0.0", focus=(FocusRef("tallies/basic.py", symbol="mean"),))
    return run_edit(EditRequest(repo("mean_empty").root, task, chosen, False), services, vcs.clean_environment())


def test_a_drafter_selects_text(repo: Callable[[str], Repo], tmp_path: Path) -> None:
    server = Server()
    report = run(repo, tmp_path, server, budget=600, drafter="tiny", drafter_layers=1, text_level=True)
    decision = report.decision
    assert (decision.mode, decision.drafter, decision.drafter_layers) == ("text", "tiny", 1)
    assert "score" in report.timings
    assert decision.change is not None
    assert report.budget.kept <= 600
    [said] = server.said
    assert "left out ..." in said.user
    assert "def mean" in said.user


def test_a_drafter_needs_text_level(repo: Callable[[str], Repo], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a server takes text") as caught:
        run(repo, tmp_path, Server(), drafter="tiny")
    assert "--text-level" in str(caught.value.hint)


def test_the_window_is_within_the_context(repo: Callable[[str], Repo], tmp_path: Path) -> None:
    report = run(repo, tmp_path, Server(context=3000), budget=2000, max_new=400)
    assert report.budget.window == 2600
    assert not any("how long its context is" in finding.message for finding in report.findings)
