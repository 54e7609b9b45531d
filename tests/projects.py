"""Small projects of every language, and real selections of them: random tasks through the product's own stages."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random

import numpy as np

from agentctx.config import RunOptions
from agentctx.errors import BudgetError, TaskError
from agentctx.pipeline.fit import Fitter
from agentctx.pipeline.index import build_index
from agentctx.pipeline.services import Clock
from agentctx.pipeline.understand import Understood, understand
from agentctx.pipeline.window import SYSTEM, window_of
from agentctx.prompt import FocusRef, Selection, Task, TestRef
from agentctx.repo.pack import Frame, Packed
from agentctx.repo.store import IndexMemory
from agentctx.source import RepoGraph, SymbolKind
from agentctx.spec.select import rank_scores
from tests.casefile import CASES, read_case
from tests.services import PlainServices, WordTokenizer
from tests.trees import META, REPOS, ROOT

CONFIGURED = "[limits]\ndepth = 3\n\n[colours]\nborder = 'red'\n"
_TOOL_LOGS = ROOT / "fixtures" / "tool_logs"
_LANGUAGES = CASES / "graph_languages"
_CODE = (SymbolKind.FUNCTION, SymbolKind.METHOD, SymbolKind.CLASS)
_TRIES = 20

FIXTURES = sorted(path.name for path in REPOS.iterdir() if path.is_dir())
SUITES = ("bats", "c", "go", "gtest", "java", "kotlin", "php", "python", "ruby", "rust", "scala")
PACKS = sorted(path.stem for path in _LANGUAGES.glob("*.md"))
PROJECTS = (*FIXTURES, *(f"suite-{name}" for name in SUITES), *(f"pack-{name}" for name in PACKS), "pack-all")


def write(project: str, folder: Path) -> None:
    """The files of a project: a fixture project, the suite of a test tool, or golden cases of the graph."""
    if project in FIXTURES:
        shutil.copytree(REPOS / project, folder, ignore=shutil.ignore_patterns(*META, "__pycache__"))
        return
    kind, _, name = project.partition("-")
    if kind == "suite":
        shutil.copytree(_TOOL_LOGS / name, folder)
    for case in PACKS if project == "pack-all" else [name] if kind == "pack" else []:
        for path, text in read_case(_LANGUAGES / f"{case}.md").files.items():
            target = folder / case / path if project == "pack-all" else folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, "utf-8")
    (folder / "settings.toml").write_text(CONFIGURED, "utf-8")


def random_task(rng: Random, graph: RepoGraph) -> Task:
    """Names in the request, now and then a focus, a failing test, a pin, a log, and configuration that is spoken of."""
    symbols = [symbol for symbol in graph.symbols.values() if symbol.kind in _CODE]
    one, two, three = rng.choices(symbols, k=3)
    tests = [symbol for symbol in symbols if symbol.is_test]
    configs = sorted(path for path in graph.files if path.endswith((".toml", ".md")))
    spoken = rng.choice(("", "limits", "border colours", "project")) if configs else ""
    trace = "".join(f'  File "/x/{s.path}", line {s.lines.start}, in {s.name}\n    x\n' for s in (two, three))
    log = f"Traceback (most recent call last):\n{trace}ValueError: {two.name}\n".encode()
    test = rng.choice(tests) if tests and rng.random() < 0.6 else None
    return Task(
        request=f"{one.qualname} and {three.name}; {spoken} in {rng.choice(configs)}" if spoken else one.qualname,
        focus=(FocusRef(one.path, symbol=one.qualname),) if rng.random() < 0.6 else (),
        tests=(TestRef(test.path, tuple(test.qualname.split("."))),) if test is not None else (),
        pins=(FocusRef(three.path, line=three.lines.start),) if rng.random() < 0.3 else (),
        logs=(("a.log", log),) if rng.random() < 0.5 else (),
    )


def random_selections(project: str, rng: Random) -> Iterator[tuple[RepoGraph, Fitter, Selection]]:
    """What the product keeps of a project for a random task, in random budgets, by rank and by random scores."""
    understood = _understood(project, rng)
    frame = Frame(system=SYSTEM, request=understood.task.request)
    for is_ranked in (True, False):
        _, fitter = _window(understood, frame, rng)
        scores = rank_scores(fitter.tokenized.document)
        scores = scores if is_ranked else np.array([rng.random() for _ in scores])
        yield understood.index.graph, fitter, fitter.select(scores, fitter.limit)[0]


def _window(understood: Understood, frame: Frame, rng: Random) -> tuple[Packed, Fitter]:
    budget = int(10 ** rng.uniform(2.3, 3.5))
    for _ in range(_TRIES):
        options = RunOptions(budget=budget, window=rng.choice([None, 3 * budget, 6 * budget]))
        packed, fitter = window_of(understood, frame, options, None, WordTokenizer(), Clock())
        try:
            fitter.select(rank_scores(fitter.tokenized.document), fitter.limit)
        except BudgetError:
            budget *= 2  # too small for the request and the test
        else:
            return packed, fitter
    raise AssertionError("no budget is enough")


def _understood(project: str, rng: Random) -> Understood:
    folder, services = _folder(project), _services(project)
    graph = build_index(folder, services, Clock()).graph
    for _ in range(_TRIES):
        try:
            return understand(folder, random_task(rng, graph), services, Clock())
        except TaskError:
            continue  # a name that says too little
    raise AssertionError(f"no task for {project}")


@cache
def _services(project: str) -> PlainServices:
    return PlainServices(memory=IndexMemory())


@cache
def _folder(project: str) -> Path:
    """A copy that lives as long as the process."""
    folder = Path(_made().name) / project
    write(project, folder)
    return folder


@cache
def _made() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="agentctx-projects-")
