"""The git seam: hooks, odd names, empty repositories, folders inside a repository."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentctx import vcs
from tests.trees import Repo

ODD = (
    "plain.py",
    "with blank.py",
    " leading.py",
    "trailing .py",
    "-dash.py",
    "größe.py",
    "𝄞/clef.py",
    'quo"te.py',
    "apos'trophe.py",
    "back\\slash.py",
    "tab\tin.py",
    "bell\a\x01.py",
    "line\nbreak.py",
    "star*.py",
    ":(glob)magic.py",
    "b/b/b.py",
    "a -> b.py",
)


@pytest.fixture
def odd(empty: Repo) -> Repo:
    """Every odd file has three lines; the second is changed in the index, the third in the work tree."""
    empty.commit(dict.fromkeys(ODD, "1\n2\n3\n"))
    empty.write(dict.fromkeys(ODD, "1\ntwo\n3\n"))
    empty.git("add", "-A")
    empty.write(dict.fromkeys(ODD, "1\ntwo\nthree\n"))
    return empty


def test_odd_names_everywhere(odd: Repo) -> None:
    expected = tuple(sorted(ODD))
    assert vcs.changed_paths(odd.root) == expected
    assert vcs.changed_paths(odd.root, staged=True) == expected
    assert vcs.changed_paths(odd.root, since="HEAD") == expected
    assert vcs.unstaged_paths(odd.root) == expected
    assert vcs.staged_lines(odd.root) == dict.fromkeys(expected, ((2, 2),))
    assert vcs.changed_lines(odd.root) == dict.fromkeys(expected, ((2, 3),))
    for path in ODD:
        assert vcs.content(odd.root, "HEAD", path) == b"1\n2\n3\n"
        assert vcs.content(odd.root, "", path) == b"1\ntwo\n3\n"


def test_a_name_that_is_not_utf8(empty: Repo) -> None:
    name = os.fsdecode(b"caf\xe9.py")
    empty.commit({name: "1\n"})
    empty.write({name: "2\n"})
    assert vcs.changed_paths(empty.root) == (name,)
    assert vcs.changed_lines(empty.root) == {name: ((1, 1),)}
    assert vcs.content(empty.root, "HEAD", name) == b"1\n"


def test_hunks_that_look_like_headers(empty: Repo) -> None:
    """An added line `++ b/x` shows as `+++ b/x` in the diff."""
    empty.commit({"a.py": "1\n2\n"})
    empty.write({"a.py": "1\n++ b/other.py\n2\n@@ -1 +1 @@\ndiff --git a/x b/x\n"})
    assert vcs.changed_lines(empty.root) == {"a.py": ((2, 2), (4, 5))}


def test_lines_of_removed_text_are_none(empty: Repo) -> None:
    empty.commit({"a.py": "1\n2\n3\n", "gone.py": "1\n"})
    empty.write({"a.py": "1\n3\n"})
    (empty.root / "gone.py").unlink()
    assert vcs.changed_lines(empty.root) == {}
    assert vcs.changed_paths(empty.root) == ("a.py",)
    assert vcs.changed_paths(empty.root, deleted=True) == ("a.py", "gone.py")


def test_a_renamed_file_is_one_gone_and_one_new(empty: Repo) -> None:
    empty.commit({"a.py": "1\n2\n3\n4\n"})
    empty.git("mv", "a.py", "b.py")
    assert vcs.changed_paths(empty.root, staged=True, deleted=True) == ("a.py", "b.py")
    assert vcs.staged_lines(empty.root) == {}, "its lines are the old ones"
    empty.write({"b.py": "1\n2\n3\nfour\n"})
    empty.git("add", "-A")
    assert vcs.staged_lines(empty.root) == {"b.py": ((4, 4),)}


def test_the_users_diff_settings_do_not_matter(empty: Repo) -> None:
    empty.commit({"a.py": "1\n2\n3\n4\n"})
    for key, value in (
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("color.ui", "always"),
        ("diff.external", "false"),
        ("diff.renames", "copies"),
        ("core.quotePath", "true"),
        ("diff.relative", "false"),
        ("diff.context", "5"),
        ("diff.interHunkContext", "9"),
    ):
        empty.git("config", key, value)
    empty.write({"a.py": "1\ntwo\n3\nfour\n", "größe.py": "1\n2\n3\n4\n"})
    empty.git("add", "-A")
    assert vcs.staged_lines(empty.root) == {"a.py": ((2, 2), (4, 4)), "größe.py": ((1, 4),)}


def test_before_the_first_commit(empty: Repo) -> None:
    assert vcs.head(empty.root) is None
    assert vcs.changed_paths(empty.root) == ()
    assert (vcs.staged_lines(empty.root), vcs.changed_lines(empty.root)) == ({}, {})
    empty.write({"a.py": "1\n2\n", "b.py": "1\n"})
    empty.git("add", "a.py")
    assert vcs.changed_paths(empty.root) == ("a.py", "b.py")
    assert vcs.changed_paths(empty.root, staged=True) == ("a.py",)
    assert vcs.staged_lines(empty.root) == {"a.py": ((1, 2),)}
    assert vcs.content(empty.root, "HEAD", "a.py") is None
    assert vcs.content(empty.root, "", "a.py") == b"1\n2\n"


def test_paths_are_relative_to_the_folder_that_is_asked_about(empty: Repo) -> None:
    empty.commit({"top.py": "1\n", "sub/low.py": "1\n", "sub/kept.py": "1\n"})
    empty.write({"top.py": "2\n", "sub/low.py": "2\n", "sub/new.py": "1\n"})
    sub = empty.root / "sub"
    assert vcs.top_level(sub) == empty.root
    assert vcs.changed_paths(sub) == ("low.py", "new.py")
    assert vcs.changed_lines(sub) == {"low.py": ((1, 1),)}
    assert vcs.content(sub, "HEAD", "low.py") == b"1\n"
    assert vcs.content(sub, "HEAD", "top.py") is None
    empty.git("add", "-A")
    assert vcs.changed_paths(sub, staged=True) == ("low.py", "new.py")
    assert vcs.staged_lines(sub) == {"low.py": ((1, 1),), "new.py": ((1, 1),)}


def test_what_hooks_export_is_not_heard(empty: Repo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = empty.commit({"a.py": "1\n"})
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    assert vcs.head(empty.root) == head
    assert vcs.top_level(empty.root) == empty.root
    assert vcs.changed_paths(empty.root) == ()
    assert not (tmp_path / "elsewhere").exists()


def test_who_commits_and_how_to_configure_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_AUTHOR_NAME", "a")
    monkeypatch.setenv("GIT_DIR", "b")
    kept = {key: value for key, value in vcs.clean_environment({"GIT_X": "c"}).items() if key.startswith("GIT_")}
    assert kept == {
        "GIT_AUTHOR_NAME": "a",
        "GIT_X": "c",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
    }


def test_outside_of_git(tmp_path: Path) -> None:
    assert vcs.top_level(tmp_path) is None
    with pytest.raises(vcs.GitError, match="git status failed") as caught:
        vcs.text(tmp_path, "status")
    assert caught.value.status == 128
    assert "not a git repository" in caught.value.stderr


def test_input_and_output_are_bytes(empty: Repo) -> None:
    blob = vcs.run(empty.root, "hash-object", "-w", "--stdin", stdin=b"\x00\xff\r\n").decode().strip()
    assert vcs.run(empty.root, "cat-file", "blob", blob) == b"\x00\xff\r\n"
