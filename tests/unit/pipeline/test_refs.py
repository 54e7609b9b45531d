"""Tests and places as people write them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentctx.errors import TaskError
from agentctx.pipeline.refs import parse_focus, parse_test, relative
from agentctx.prompt import FocusRef, TestRef


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "sub").mkdir()
    for name in ("a.py", "sub/b.py", "odd:3"):
        (tmp_path / name).write_text("x")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.py", TestRef("a.py")),
        ("a.py::", TestRef("a.py")),
        ("a.py::T::t", TestRef("a.py", ("T", "t"))),
        ("a.py::t[1]", TestRef("a.py", ("t",), "1")),
        ("a.py::t[]", TestRef("a.py", ("t",), "")),
        ("a.py::t[x::y[0]]", TestRef("a.py", ("t",), "x::y[0]")),
        ("./sub/../a.py::t", TestRef("a.py", ("t",))),
        ("gone.py::t", TestRef("gone.py", ("t",))),
    ],
)
def test_tests(root: Path, text: str, expected: TestRef) -> None:
    assert parse_test(text, root) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.py", FocusRef("a.py")),
        ("a.py:12", FocusRef("a.py", line=12)),
        ("a.py#f", FocusRef("a.py", symbol="f")),
        ("a.py#C.m", FocusRef("a.py", symbol="C.m")),
        ("odd:3", FocusRef("odd:3")),
        ("odd:3:4", FocusRef("odd:3", line=4)),
        ("a.py:x", FocusRef("a.py:x")),
    ],
)
def test_places(root: Path, text: str, expected: FocusRef) -> None:
    assert parse_focus(text, root) == expected
    assert parse_focus(expected.text, root) == expected


def test_a_path_from_the_folder_one_stands_in(root: Path) -> None:
    assert relative("b.py", root, root / "sub") == "sub/b.py"
    assert relative("a.py", root, root / "sub") == "a.py"
    assert relative("../a.py", root, root / "sub") == "a.py"
    assert relative(str(root / "sub/b.py"), root) == "sub/b.py"


def test_a_path_through_a_link_to_the_root(root: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    link = tmp_path_factory.mktemp("links") / "link"
    os.symlink(root, link)
    assert relative(str(link / "sub/b.py"), root) == "sub/b.py"


@pytest.mark.parametrize("path", ["../a.py", "/etc/passwd", "sub/../../x"])
def test_paths_outside(root: Path, path: str) -> None:
    with pytest.raises(TaskError, match="lies outside of the repository"):
        relative(path, root)


@pytest.mark.parametrize("text", ["", "::t"])
def test_no_path(root: Path, text: str) -> None:
    with pytest.raises(TaskError, match="an empty path"):
        parse_test(text, root)
    with pytest.raises(TaskError, match="an empty path"):
        parse_focus("#f", root)
