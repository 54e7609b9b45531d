"""Random tasks on a repository of forty files: whatever is asked for, the contracts of a report hold."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

import pytest

from agentctx.config import OnOmission, OverBudget, RunOptions
from agentctx.errors import BudgetError
from agentctx.pipeline.index import build_index
from agentctx.pipeline.select import Outcome, run
from agentctx.pipeline.services import Clock
from agentctx.prompt import FocusRef, Task, TestRef
from agentctx.report.sarif import to_sarif
from agentctx.report.text import render
from agentctx.source import RepoGraph, SymbolKind, UnitKind
from tests.reports import check_json
from tests.sarif import check_sarif
from tests.services import PlainServices, WordTokenizer
from tests.trees import Repo
from tests.unit_checks import n_errors

_LEFT_OUT = re.compile(rb"^\s*# \.\.\. (\d+) lines? left out \.\.\.$", re.MULTILINE)
_CODE = (SymbolKind.FUNCTION, SymbolKind.METHOD, SymbolKind.CLASS)


def random_task(rng: Random, graph: RepoGraph) -> Task:
    symbols = [symbol for symbol in graph.symbols.values() if symbol.kind in _CODE]
    tests = [symbol for symbol in symbols if symbol.is_test]
    one, two, three = rng.sample(symbols, 3)
    frames = "".join(f'  File "/x/{s.path}", line {s.lines.start}, in {s.name}\n    x\n' for s in (two, three))
    log = f"Traceback (most recent call last):\n{frames}ValueError: {two.name}\n".encode()
    test = rng.choice(tests)
    return Task(
        request=f"{one.name} and {three.name}",
        focus=(FocusRef(one.path, symbol=one.qualname),) if rng.random() < 0.6 else (),
        tests=(TestRef(test.path, tuple(test.qualname.split("."))),) if rng.random() < 0.6 else (),
        pins=(FocusRef(three.path, line=three.lines.start),) if rng.random() < 0.3 else (),
        logs=(("a.log", log),) if rng.random() < 0.5 else (),
    )


def random_options(rng: Random) -> RunOptions:
    budget = int(10 ** rng.uniform(2.2, 4.0))
    return RunOptions(
        budget=budget,
        window=rng.choice([None, budget, 3 * budget]),
        on_omission=rng.choice(list(OnOmission)),
        over_budget=rng.choice([OverBudget.REDUCE, *OverBudget]),
    )


def attempt(tree: Repo, task: Task, options: RunOptions) -> tuple[Outcome | None, BudgetError | None]:
    try:
        return run("select", tree.root, task, options, PlainServices()), None
    except BudgetError as error:
        return None, error


def check_counts(outcome: Outcome, options: RunOptions) -> None:
    report = outcome.report
    budget = report.budget
    dense = report.decision.mode == "dense"
    whole = WordTokenizer().count_batch([outcome.text.text.decode("utf-8", "replace")])[0]
    assert dense or whole == budget.kept
    assert dense or budget.kept <= budget.limit
    raised = dense or options.over_budget in (OverBudget.RAISE, OverBudget.DENSE)
    assert raised or budget.limit <= (options.budget or 0)


def check_code(outcome: Outcome, data: dict[str, bytes]) -> None:
    shown: dict[str, bytes] = {}
    for unit in outcome.text.units:
        if unit.path is not None and unit.path.endswith(".py") and unit.kind is not UnitKind.FILE:
            shown[unit.path] = shown.get(unit.path, b"") + outcome.text.unit_text(unit.index)
    for path, text in shown.items():
        assert n_errors(text, "python") == 0, path
        left_out = [int(n) for n in _LEFT_OUT.findall(text)]
        raw = data[path]
        n_lines = raw.count(b"\n") + (not raw.endswith(b"\n"))
        assert text.count(b"\n") - len(left_out) + sum(left_out) == n_lines, path


@pytest.mark.parametrize("seed", range(4))
def test_contracts(repo: Callable[[str], Repo], seed: int) -> None:
    tree, rng = repo("deep_tree"), Random(seed)
    index = build_index(tree.root, PlainServices(), Clock())
    for _ in range(4):
        task, options = random_task(rng, index.graph), random_options(rng)
        outcome, refused = attempt(tree, task, options)
        if outcome is None:
            assert refused is not None
            assert refused.hint is not None
            assert options.over_budget is OverBudget.FAIL or (options.budget or 0) < 400
            continue
        check_json(outcome.report.to_dict(all_units=True))
        check_sarif(to_sarif(outcome.report))
        assert render(outcome.report, all_units=True)
        assert not (task.focus and outcome.report.targets_guessed)
        check_counts(outcome, options)
        check_code(outcome, dict(index.data))
