"""The packed window: its size, the order of its sections, and definitions and links in its coordinates."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import groupby, pairwise

import pytest

from agentctx.pipeline.refs import parse_focus, parse_test
from agentctx.pipeline.services import Clock
from agentctx.pipeline.understand import Understood, understand
from agentctx.pipeline.window import pack_input
from agentctx.prompt import ChatFrame, NeedKind, PromptDocument, Section, Task
from agentctx.repo.pack import Frame, Packed, pack
from agentctx.source import Resolution, UnitKind
from agentctx.spec.tokens import tokenize
from tests.services import PlainServices, WordTokenizer
from tests.trees import ROOT, Repo

FRAME = Frame("system text", "request text")
CHAT = ChatFrame("<sys>", "<user>", "<answer>")


def understood(
    repo: Repo,
    *,
    request: str = "",
    tests: Sequence[str] = (),
    focus: Sequence[str] = (),
    pins: Sequence[str] = (),
    log: bytes | None = None,
) -> Understood:
    task = Task(
        request=request,
        tests=tuple(parse_test(text, repo.root) for text in tests),
        focus=tuple(parse_focus(text, repo.root) for text in focus),
        pins=tuple(parse_focus(text, repo.root) for text in pins),
        logs=(("failure.log", repo.log if log is None else log),),
    )
    return understand(repo.root, task, PlainServices(), Clock())


def packed(made: Understood, window: int, frame: Frame = FRAME) -> Packed:
    return pack(pack_input(made), frame, WordTokenizer(), window, window // 2)


@pytest.fixture
def chunks(repo: Callable[[str], Repo]) -> Understood:
    return understood(repo("chunks"))


@pytest.fixture
def deep(repo: Callable[[str], Repo]) -> Understood:
    tree = repo("deep_tree")
    log = (ROOT / "fixtures/repos/deep_tree/failure_end.log").read_bytes()
    return understood(tree, log=log, focus=["depot/zones/rules.py#next_stop"])


# ---------------------------------------------------------------- size


@pytest.mark.parametrize("window", [300, 600, 1000, 2000, 4000, 100_000])
def test_the_window_holds_by_the_tokenizers_count(deep: Understood, window: int) -> None:
    made = packed(deep, window)
    assert made.n_tokens == tokenize(made.document, WordTokenizer()).n_tokens
    assert made.n_tokens <= window
    if 600 <= window < 20_000:
        assert made.n_tokens >= 0.85 * window, "room was left though there is more to show"


def test_a_larger_window_shows_more(deep: Understood) -> None:
    shown = [
        {(u.path, u.lines) for u in packed(deep, window).document.units if u.lines} for window in (600, 2000, 8000)
    ]
    assert len(shown[0]) < len(shown[1]) < len(shown[2])


def test_what_must_be_said_is_packed_even_if_it_is_more(chunks: Understood) -> None:
    made = packed(chunks, 10, replace(FRAME, request="a long request " * 20))
    kinds = {unit.section for unit in made.document.units}
    assert {Section.SYSTEM, Section.REQUEST, Section.LOG} <= kinds
    assert Section.CODE not in kinds
    assert made.n_tokens > 10
    assert any("failing tests and fixtures are packed in part" in note for note in made.notes)
    assert any("parts of the log exceed its share" in note for note in made.notes)


def test_a_test_whose_header_alone_is_more_than_half_of_the_window_leaves_the_room_to_code(empty: Repo) -> None:
    values = "".join(f"        ({n}, 'a long value in a table of parameters', {n}),\n" for n in range(100))
    head = f"import pytest\nimport lib\n\n\n@pytest.mark.parametrize('a, b, c', [\n{values}])\n"
    empty.commit(
        {
            "tests/test_lib.py": f"{head}def test_load(a, b, c):\n    assert lib.load(a) == c\n",
            "lib.py": "".join(f"def load{n or ''}(n):\n    return n + {n}\n\n\n" for n in range(99)),
        }
    )
    made = packed(understood(empty, tests=["tests/test_lib.py::test_load"], log=b""), 600)
    assert made.n_tokens <= 600
    assert b"def load(n)" in made.document.text
    assert any("packed in part or not at all" in note for note in made.notes)
    whole = packed(understood(empty, tests=["tests/test_lib.py::test_load"], log=b""), 8000)
    assert b"def test_load(a, b, c)" in whole.document.text


def test_tests_and_log_take_a_quarter_each_at_most(deep: Understood) -> None:
    log = "E   AssertionError: here\n" + "".join(f"line {n} of a long log with words in it\n" for n in range(400))
    flooded = replace(deep, evidence=replace(deep.evidence, excerpt=log, error_lines=("AssertionError: here",)))
    made = packed(flooded, 2000)
    document = made.document
    tokens = WordTokenizer().count_batch(
        [document.unit_text(u.index).decode() for u in document.units if u.section is Section.LOG]
    )
    assert sum(tokens) <= 2000 // 4 + 20
    assert b"AssertionError: here" in document.text
    assert any("parts of the log exceed its share" in note for note in made.notes)


# ---------------------------------------------------------------- order


def test_sections_come_stable_first(repo: Callable[[str], Repo]) -> None:
    tree = repo("chunks")
    path = tree.root / "batchline/retry.py"
    path.write_bytes(path.read_bytes() + b"\n\ndef added():\n    return 1\n")
    made = packed(understood(tree, request="chunks and added"), 4000, replace(FRAME, chat=CHAT, answer="```"))
    order = [unit.section for unit in made.document.units]
    assert list(dict.fromkeys(order)) == [section for section in Section if section is not Section.SIGNATURES]
    assert all(list(Section).index(a) <= list(Section).index(b) for a, b in pairwise(order))
    text = made.document.text.decode()
    assert re.match(r"<sys>system text<user>Repository code:\n\n(# \S+|<!-- \S+ -->)\n", text)
    assert text.endswith("Request:\nrequest text\n<answer>```")
    edited = {unit.path for unit in made.document.units if unit.section is Section.EDITED}
    assert edited == {"batchline/retry.py"}


def test_without_a_chat_template_the_system_text_is_a_paragraph(chunks: Understood) -> None:
    assert packed(chunks, 1000).document.text.startswith(b"system text\n\nRepository code:\n\n# ")


def test_units_come_by_line_and_tests_by_path(deep: Understood) -> None:
    document = packed(deep, 4000).document
    for section in (Section.CODE, Section.TESTS):
        units = [u for u in document.units if u.section is section and u.lines]
        paths = [unit.path or "" for unit in units]
        assert len(list(groupby(paths))) == len(set(paths)), "a file has one place"
        assert section is Section.CODE or list(dict.fromkeys(paths)) == sorted(set(paths))
        assert all(
            a.path != b.path or (a.lines and b.lines and a.lines.end < b.lines.start) for a, b in pairwise(units)
        )


def test_units_are_the_bytes_of_their_files(repo: Callable[[str], Repo]) -> None:
    tree = repo("mixed_bytes")
    document = packed(understood(tree), 4000).document
    for unit in document.units:
        if unit.lines is None or unit.path is None:
            continue
        lines = (tree.root / unit.path).read_bytes().splitlines(keepends=True)
        shown = b"".join(lines[unit.lines.start - 1 : unit.lines.end])
        assert document.unit_text(unit.index) in (shown, shown + b"\n")
    assert {unit.path for unit in document.units} >= {"messwerk/größen.py"}


# ---------------------------------------------------------------- definitions, links, facts


def consistent(document: PromptDocument, made: Understood) -> None:
    graph, units = made.index.graph, document.units
    for key, definition in document.definitions.items():
        symbol = graph.symbols[key]
        assert (definition.symbol, definition.path, definition.lines) == (key, symbol.path, symbol.lines)
        for unit in definition.units:
            assert units[unit].path == symbol.path
            assert symbol.kind == "module" or (units[unit].symbol or "").startswith(key)
        if definition.header is not None:
            assert units[definition.header].path == symbol.path
            lines = units[definition.header].lines
            assert lines is not None
            assert lines.overlaps(symbol.lines)
        assert not definition.units or definition.header is not None or symbol.kind in ("constant", "field", "module")
    for link in document.links:
        assert set(link.targets) <= set(document.definitions)
        assert bool(link.targets) == (link.state in (Resolution.RESOLVED, Resolution.AMBIGUOUS))
        if link.line is None:
            assert units[link.unit].kind in (UnitKind.LOG, UnitKind.REQUEST)
            continue
        lines = units[link.unit].lines
        assert lines is not None
        assert lines.holds(link.line)
        assert link.path == units[link.unit].path
        for need in link.needs:
            assert bool(need.units) == (need.absent is None)
            assert link.unit not in need.units
            if need.kind is NeedKind.VARIABLE:
                assert {units[unit].path for unit in need.units} <= {link.path}
        if link.via is not None:
            assert units[link.via].kind is UnitKind.IMPORT or b"import" in document.unit_text(link.via)
            assert units[link.via].path == link.path


@pytest.mark.parametrize("window", [400, 1200, 6000])
def test_definitions_and_links_are_in_prompt_coordinates(deep: Understood, window: int) -> None:
    document = packed(deep, window).document
    consistent(document, deep)
    assert document.links
    assert {path for path, _ in document.files.items()} >= {unit.path for unit in document.units if unit.path}


def test_a_module_consists_of_what_is_packed_of_its_file(empty: Repo) -> None:
    files = {
        "app.py": "import lib\n\n\ndef run():\n    return lib.load(1), lib\n",
        "lib.py": '"""Doc."""\n\nimport far\n\n\ndef load(n):\n    return n + 1\n\n\ndef far_away():\n    return far\n',
        "far.py": "".join(f"def f{n}(x):\n    return x + {n}\n\n\n" for n in range(200)),
    }
    empty.commit(files)
    made = understood(empty, focus=["app.py#run"], log=b"")
    document = packed(made, 200).document
    module = document.definitions["lib.py"]
    assert module.units == tuple(unit.index for unit in document.units if unit.path == "lib.py" and unit.lines)
    assert module.units
    consistent(document, made)


@pytest.mark.parametrize("window", [200, 300, 400, 600, 800])
def test_a_packed_unit_brings_its_imports(empty: Repo, window: int) -> None:
    modules = [f"m{n}" for n in range(30)]
    imports = "".join(
        f"import {name}  # noqa\n{name.upper()} = 'a long line of words that is not needed here'\n" for name in modules
    )
    uses = "".join(f"def use{n}(x):\n    return {name}.run(x)\n\n\n" for n, name in enumerate(modules))
    empty.commit({"app.py": f"{imports}\n\n{uses}"})
    made = understood(empty, request=" ".join(f"use{n}" for n in range(30)), log=b"")
    document = packed(made, window).document
    graph = made.index.graph
    shown = {unit.lines.start for unit in document.units if unit.path == "app.py" and unit.lines}
    needed = [
        link
        for link in graph.links
        if link.via is not None and graph.files["app.py"].units[link.reference.unit].lines.start in shown
    ]
    assert needed
    assert all(graph.files["app.py"].units[link.via or 0].lines.start in shown for link in needed)


def test_an_import_outside_the_window_stays_with_its_link(empty: Repo) -> None:
    names = "".join(f"    name_{n},\n" for n in range(200))
    test = "def test_run():\n    assert app.run(name_7)\n"
    empty.commit(
        {
            "tests/test_app.py": f"from lib import (\n{names})\nimport app\n\n\n{test}",
            "app.py": "def run(x):\n    return x\n",
            "lib.py": "name_7 = str\n",
        }
    )
    made = understood(empty, tests=["tests/test_app.py::test_run"], log=b"")
    for window, there in ((40_000, True), (300, False)):
        document = packed(made, window).document
        links = [link for link in document.links if link.name == "name_7" and link.path == "tests/test_app.py"]
        absent = [link.absent for link in links if link.absent is not None]
        assert ([(one.path, one.line) for one in absent] == []) is there
        if absent:
            assert absent[0].text.startswith("from lib import ( name_0, name_1,")
            assert (absent[0].path, absent[0].line) == ("tests/test_app.py", 1)


def test_facts(deep: Understood) -> None:
    document = packed(deep, 2000).document
    facts = document.facts
    assert facts.targets == ("depot/zones/rules.py::next_stop",)
    assert not facts.targets_guessed
    assert facts.failing_tests == deep.located.failing_tests != ()
    for unit in facts.error_units:
        assert document.units[unit].kind is UnitKind.LOG
    assert facts.error_units
    assert all(document.units[unit].lines for unit in facts.frame_units)
    target = document.definitions[facts.targets[0]]
    assert b"def next_stop" in b"".join(document.unit_text(unit) for unit in target.units)


def test_names_in_the_request_and_the_log_are_links(repo: Callable[[str], Repo]) -> None:
    made = understood(repo("leap_year"), request="days_in_month is wrong, so is the day")
    document = packed(made, 2000, replace(FRAME, request="days_in_month is wrong, so is the day")).document
    mentions = [link for link in document.links if link.line is None]
    named = {(document.units[link.unit].kind, link.name) for link in mentions}
    assert (UnitKind.REQUEST, "days_in_month") in named
    assert (UnitKind.LOG, "is_leap") in named
    assert not any(name == "day" for _, name in named), "a plain English word is no mention"


def test_user_pins_are_packed_first(repo: Callable[[str], Repo]) -> None:
    made = understood(
        repo("deep_tree"), log=b"", focus=["depot/zones/rules.py#next_stop"], pins=["depot/accounts/rules.py"]
    )
    document = packed(made, 1500).document
    pinned = {document.units[unit].path for unit in document.facts.user_pins}
    assert pinned == {"depot/accounts/rules.py"}
    assert len(document.facts.user_pins) == len(made.index.graph.files["depot/accounts/rules.py"].units)


# ---------------------------------------------------------------- determinism

DIGEST = """
import hashlib, json, sys
from pathlib import Path
from agentctx.config import RunOptions
from agentctx.pipeline.select import run
from agentctx.prompt import Task
from tests.services import PlainServices
log = Path(sys.argv[2]).read_bytes()
task = Task(request="days_in_month is wrong", logs=(("l", log),))
made = run("select", Path(sys.argv[1]), task, RunOptions(budget=700, window=1400), PlainServices())
report = made.report.to_dict(all_units=True)
del report["timings"], report["cache"]
print(json.dumps([hashlib.sha256(made.tokenized.document.text).hexdigest(), made.text.text.decode(), report]))
"""


def test_the_hash_seed_does_not_matter(repo: Callable[[str], Repo]) -> None:
    tree = repo("leap_year")
    log = str(ROOT / "fixtures/repos/leap_year/failure.log")
    command = [sys.executable, "-c", DIGEST, str(tree.root), log]
    texts = set()
    for seed in ("0", "1", "2"):
        env = {**os.environ, "PYTHONHASHSEED": seed}
        texts.add(subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, check=True).stdout)
    assert len(texts) == 1
    assert "def days_in_month" in json.loads(texts.pop())[1]


def test_the_order_of_files_does_not_matter(chunks: Understood) -> None:
    graph = chunks.index.graph
    shuffled = replace(graph, files=dict(reversed(graph.files.items())), symbols=dict(reversed(graph.symbols.items())))
    data = dict(reversed(list(chunks.index.data.items())))
    again = replace(chunks, index=replace(chunks.index, graph=shuffled, data=data))
    one, other = packed(chunks, 1200), packed(again, 1200)
    assert other.document.text == one.document.text
    assert other.document == one.document


def test_a_file_that_ends_with_a_lone_carriage_return_ends_its_line(empty: Repo) -> None:
    empty.commit({"a.py": "def old(x):\r    return x\r", "b.py": "def new(x):\n    return x\n"})
    text = packed(understood(empty, request="old new", log=b""), 1000).document.text
    assert b"    return x\r\n# b.py\ndef new" in text


def test_pins_that_the_window_cannot_hold_are_said(repo: Callable[[str], Repo]) -> None:
    tree = repo("deep_tree")
    log = (ROOT / "fixtures/repos/deep_tree/failure_end.log").read_bytes()
    pinned = understood(tree, log=log, pins=["depot/zones/rules.py"])
    small, large = packed(pinned, 420), packed(pinned, 8000)
    said = [note for note in small.notes if "pinned units of depot/zones/rules.py don't fit the window" in note]
    assert len(said) == 1
    assert not [note for note in large.notes if "pinned units" in note]
    assert len(large.document.facts.user_pins) == len(pinned.located.pinned)
