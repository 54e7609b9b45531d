"""The budget holds, whatever it is, and what is kept reads as code."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import SequenceMatcher

import pytest

from agentctx.config import OverBudget, RunOptions
from agentctx.errors import BudgetError, UsageError
from agentctx.pipeline.select import Outcome, run, select_for
from agentctx.pipeline.services import Clock
from agentctx.pipeline.understand import understand
from agentctx.prompt import ChatFrame, FocusRef, Section, Task
from agentctx.repo.pack import Frame
from agentctx.source import UnitKind
from agentctx.spec.tokens import tokenize
from tests.reports import check_json
from tests.services import PlainServices, WordTokenizer
from tests.trees import REPOS, Repo
from tests.unit_checks import n_errors

FRAME = Frame("system", "totals are wrong")


def selected(tree: Repo, budget: int, **options: object) -> Outcome:
    log = (REPOS / tree.name / "failure_middle.log").read_bytes()
    task = Task(
        request="the total of a line is wrong",
        logs=(("failure.log", log),),
        focus=(FocusRef("depot/invoices/rules.py", symbol="line_total"),),
    )
    return run("select", tree.root, task, RunOptions(budget=budget, **options), PlainServices())  # type: ignore[arg-type]


@pytest.fixture
def deep(repo: Callable[[str], Repo]) -> Repo:
    return repo("deep_tree")


@pytest.mark.parametrize("budget", [300, 400, 550, 800, 1300, 2500])
def test_the_budget_binds_and_is_used(deep: Repo, budget: int) -> None:
    outcome = selected(deep, budget)
    report = outcome.report
    check_json(report.to_dict(all_units=True))
    text = outcome.text.text.decode()
    assert report.budget.kept == WordTokenizer().count_batch([text])[0] <= budget
    if budget >= 400:
        assert report.budget.kept >= 0.8 * budget
    assert "the total of a line is wrong" in text
    assert "def line_total" in text
    assert text.index("Repository code") < text.index("def line_total") < text.index("Request:")


@pytest.mark.parametrize(
    ("name", "log", "focus"),
    [
        ("deep_tree", "failure_middle.log", ()),
        ("deep_tree", "failure_middle.log", (FocusRef("depot/invoices/rules.py", symbol="line_total"),)),
        ("chunks", "failure.log", ()),
    ],
)
def test_any_budget_is_hard_and_full_where_there_is_code(
    repo: Callable[[str], Repo], name: str, log: str, focus: tuple[FocusRef, ...]
) -> None:
    """Odd budgets from what just holds the request to more than there is, without and with a focus."""
    task = Task(request="totals are wrong", logs=((log, (REPOS / name / log).read_bytes()),), focus=focus)
    made = understand(repo(name).root, task, PlainServices(), Clock())
    for budget in (397, 512, 701, 1024, 1531, 2048, 3001, 4096, 8192):
        outcome = select_for("select", made, FRAME, RunOptions(budget=budget), PlainServices(), Clock(), None)
        kept, packed = outcome.report.budget.kept, outcome.report.budget.packed
        assert kept == WordTokenizer().count_batch([outcome.text.text.decode()])[0] <= budget
        if packed > 1.2 * budget and budget >= 512:  # of small budgets one unit is a large part
            assert kept >= (0.95 if budget >= 1024 else 0.9) * budget, budget


def test_an_edit_moves_little_of_the_prompt(deep: Repo) -> None:
    """One line of a file that is being edited changes: files keep their order, nearly all lines are the same."""
    path = deep.root / "depot/invoices/rules.py"
    raw = path.read_bytes()
    lines = []
    for comment in (b"# looked at\n", b"# looked at again\n"):
        path.write_bytes(raw + b"\n" + comment)
        lines.append(selected(deep, 3000).text.text.decode().split("\n"))
    first, second = ([line for line in one if re.fullmatch(r"# \S+\.py", line)] for one in lines)
    assert [path for path in first if path in second] == [path for path in second if path in first]
    assert SequenceMatcher(None, *lines, autojunk=False).ratio() >= 0.9


@pytest.mark.parametrize("budget", [300, 800, 2500])
def test_what_is_kept_reads_as_code(deep: Repo, budget: int) -> None:
    outcome = selected(deep, budget)
    document = outcome.text
    by_file: dict[str, bytes] = {}
    for unit in document.units:
        if unit.path is not None and unit.path.endswith(".py") and unit.kind is not UnitKind.FILE:
            by_file[unit.path] = by_file.get(unit.path, b"") + document.unit_text(unit.index)
    assert "depot/invoices/rules.py" in by_file
    for path, text in by_file.items():
        assert n_errors(text, "python") == 0, path
        left_out = [int(n) for n in re.findall(rb"# \.\.\. (\d+) lines? left out", text)]
        shown = text.count(b"\n") - len(left_out)
        raw = (deep.root / path).read_bytes()
        assert shown + sum(left_out) == raw.count(b"\n") + (not raw.endswith(b"\n"))


def test_a_larger_budget_keeps_what_a_smaller_one_did_for_the_task(deep: Repo) -> None:
    """Not every unit (a reduced group may make room for others), but the target and the request."""
    for budget in (300, 2500):
        report = selected(deep, budget).report
        assert {"target", "request", "tail"} <= set(report.pins)


def test_too_little_for_what_is_never_dropped(deep: Repo) -> None:
    with pytest.raises(BudgetError) as caught:
        selected(deep, 20)
    assert "the limit is 20" in caught.value.message
    assert caught.value.hint is not None
    assert "--budget " in caught.value.hint


def test_raising_the_budget(deep: Repo) -> None:
    report = selected(deep, 60, over_budget=OverBudget.RAISE).report
    assert report.budget.kept <= report.budget.limit
    assert report.budget.limit > 60
    assert any(finding.code == "budget" and "raised" in finding.message for finding in report.findings)


def test_stable_code_comes_before_edited_code(deep: Repo) -> None:
    path = deep.root / "depot/invoices/rules.py"
    path.write_bytes(path.read_bytes() + b"\n# edited\n")
    document = selected(deep, 1500).text
    order = [unit.section for unit in document.units]
    assert order == sorted(order, key=list(Section).index)
    assert "depot/invoices/rules.py" in {unit.path for unit in document.units if unit.section is Section.EDITED}


def test_unsaved_text_counts_instead_of_the_file(deep: Repo) -> None:
    """An editor's buffer."""
    raw = (deep.root / "depot/invoices/rules.py").read_bytes()
    buffer = raw.replace(b"def line_total", b"def line_total_of_the_buffer")
    task = Task(request="x", focus=(FocusRef("depot/invoices/rules.py", symbol="line_total_of_the_buffer"),))
    overlay = {"depot/invoices/rules.py": buffer}
    outcome = run("lsp", deep.root, task, RunOptions(budget=800), PlainServices(), overlay)
    assert b"def line_total_of_the_buffer" in outcome.text.text
    assert (deep.root / "depot/invoices/rules.py").read_bytes() == raw


def test_sparse_by_force_needs_a_drafter(deep: Repo) -> None:
    with pytest.raises(UsageError, match="--force-sparse needs a drafter"):
        selected(deep, 800, force_sparse=True)


class OneSpecial(WordTokenizer):
    """Scaffolding is one token, as the marks of a chat template are."""

    def encode(self, text: str, *, special: bool = False) -> tuple[list[int], list[int]]:
        return ([1], [0]) if special else super().encode(text)


def test_a_chat_template_counts_as_the_model_reads_it(deep: Repo) -> None:
    made = understand(deep.root, Task(request="line_total is wrong"), PlainServices(), Clock())
    frame = Frame("system", "request", ChatFrame("<|a|> " * 9, "<|b|> " * 9, "<|c|> " * 9))
    options = RunOptions(budget=4000)

    class Services(PlainServices):
        def tokenizer(self, options: RunOptions) -> OneSpecial:
            return OneSpecial()

    outcome = select_for("edit", made, frame, options, Services(), Clock(), None)
    assert outcome.report.budget.kept == tokenize(outcome.text, OneSpecial()).n_tokens


@pytest.mark.parametrize("budget", [300, 350, 400, 450])
def test_messages_name_the_users_limit(deep: Repo, budget: int) -> None:
    said = [finding.message for finding in selected(deep, budget).report.findings if finding.code == "budget"]
    limits = {match for message in said for match in re.findall(r"limit(?: is)? (\d+)", message)}
    assert limits <= {str(budget)}
    assert said
