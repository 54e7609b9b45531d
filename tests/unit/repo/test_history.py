"""Recency and co-change, from logs as text and from real repositories."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from agentctx import vcs
from agentctx.pipeline.history import read_history
from agentctx.repo.history import CROWD, FADE, WINDOW, Commit, History, commits, history
from tests.trees import Repo


def test_the_log_is_read() -> None:
    log = "\x01aa bb cc\x02\0\nb.py\0a b\nc.py\0\x01bb cc\x02\0\x01cc \x02\0\n\na.py\0"
    assert list(commits(log)) == [
        Commit("aa", ("bb", "cc"), ("a b\nc.py", "b.py")),
        Commit("bb", ("cc",), ()),
        Commit("cc", (), ("\na.py",)),
    ]


def test_recency_halves() -> None:
    made = History((("a",), *[("b",)] * 9, ("c", "a")))
    assert [made.recency(path) for path in "abcd"] == [1.0, 1 / (1 + 1 / FADE), 0.5, 0.0]


def test_cochange_is_a_share_and_small_commits_weigh_more() -> None:
    crowd = (*(f"{n}" for n in range(CROWD)), "t", "crowded")
    made = History((("a", "t"), ("a", "b", "c", "t"), ("a",), crowd, ("t",)))
    total = 1 / 2 + 1 / 4 + 1
    assert made.cochange("a", ["t"]) == pytest.approx((1 / 2 + 1 / 4) / total)
    assert made.cochange("b", ["t", "gone"]) == pytest.approx(1 / 4 / total)
    assert made.cochange("t", ["t"]) == 1.0
    assert made.cochange("crowded", ["t"]) == 0.0
    assert made.cochange("a", []) == 0.0
    assert made.cochange("a", ["t", "u"]) == made.cochange("a", ["u", "t", "t"])


def test_only_the_window_counts() -> None:
    found = [Commit(str(n), (), (f"f{n}",)) for n in range(WINDOW + 5)]
    made = history(found)
    assert made.recency(f"f{WINDOW - 1}") > 0
    assert made.recency(f"f{WINDOW}") == 0


def of(root: Path) -> History | None:
    return read_history(root, vcs.head(root))[0]


def test_a_real_history_and_nothing_of_its_future(empty: Repo) -> None:
    assert read_history(empty.root, None) == (None, ())
    empty.commit({"a.py": "1", "größe.py": "1", "sub/b.py": "1"})
    empty.commit({"a.py": "2", "t.py": "1"})
    empty.commit({"sub/b.py": "2"})
    empty.git("branch", "future")
    empty.git("checkout", "-q", "--detach", "HEAD~1")
    assert of(empty.root) == History((("a.py", "t.py"), ("a.py", "größe.py", "sub/b.py")))
    empty.git("checkout", "-q", "future")
    assert of(empty.root / "sub") == History((("b.py",), (), ("b.py",)))


def test_what_was_merged_counts_once(empty: Repo) -> None:
    empty.commit({"a.py": "1"})
    empty.git("checkout", "-qb", "topic")
    empty.commit({"b.py": "1"})
    empty.commit({"b.py": "2", "c.py": "1"})
    empty.git("checkout", "-q", "main")
    empty.commit({"a.py": "2"})
    empty.git("merge", "-q", "--no-ff", "-m", "m", "topic")
    assert of(empty.root) == History((("b.py", "c.py"), ("a.py",), ("a.py",)))


def test_a_shallow_clone_is_said(empty: Repo, tmp_path: Path) -> None:
    for n in range(4):
        empty.commit({"a.py": str(n), f"b{n}.py": "1"})
    for depth, known in ((1, None), (3, History((("a.py", "b3.py"), ("a.py", "b2.py"))))):
        place = tmp_path / str(depth)
        command = ["git", "clone", "-q", f"--depth={depth}", empty.root.as_uri(), str(place)]
        subprocess.run(command, check=True, capture_output=True)
        found, notes = read_history(place, vcs.head(place))
        assert found == known
        assert notes == (f"the clone is shallow: recency and co-change are those of its last {depth - 1} commits",)


def test_the_users_settings_change_nothing(empty: Repo) -> None:
    empty.commit({"a.py": "1"})
    empty.commit({"b.py": "1"})
    plain = of(empty.root)
    for key, value in (
        ("log.follow", "true"),
        ("log.showSignature", "true"),
        ("color.ui", "always"),
        ("diff.renames", "true"),
    ):
        empty.git("config", key, value)
        assert of(empty.root) == plain, key
