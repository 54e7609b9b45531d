"""Diffs of real git repositories as evidence: whatever state the repository is in."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentctx import vcs
from agentctx.config import Changes, RunOptions
from agentctx.errors import TaskError, UsageError
from agentctx.pipeline import changes as module
from agentctx.pipeline.changes import ReadChanges, read_changes
from agentctx.pipeline.select import run
from agentctx.pipeline.services import Clock
from agentctx.pipeline.understand import Understood, understand
from agentctx.prompt import ChangeSource, FileChange, Task, TestRef
from agentctx.report import RepoRow
from tests.services import PlainServices
from tests.trees import Repo

CODE = "".join(f"x{n} = {n}\n" for n in range(1, 11))
TEST = """from app import x1


def test_one():
    assert x1 == 1


def test_two():
    assert x1 == 2
"""


@dataclass(frozen=True)
class Tree:
    """What `read_changes` must know of a tree."""

    row: RepoRow
    changed: frozenset[str]
    data: dict[str, bytes]


@pytest.fixture
def tree(empty: Repo) -> Repo:
    empty.commit({"app.py": CODE, "tests/test_app.py": TEST})
    return empty


def state(root: Path) -> Tree:
    status = vcs.status(root)
    data = {p.relative_to(root).as_posix(): p.read_bytes() for p in root.rglob("*.py") if p.is_file()}
    row = RepoRow(str(root), status.head, dirty=bool(status.changed or status.deleted))
    return Tree(row, frozenset(status.changed), data)


def read(root: Path, options: RunOptions | None = None, **more: object) -> ReadChanges:
    tests, overlay = more.get("tests", ()), more.get("overlay")
    assert isinstance(tests, tuple)
    assert overlay is None or isinstance(overlay, dict)
    return read_changes(root, state(root), options or RunOptions(), tests, overlay)


def brief(made: ReadChanges) -> list[tuple[str, str, str, list[tuple[int, int]]]]:
    return [(c.path, c.source.value, c.status, [(s.start, s.end) for s in c.lines]) for c in made.changes]


def about(root: Path, *tests: str, options: RunOptions | None = None) -> Understood:
    task = Task(tests=tuple(TestRef(path) for path in tests))
    return understand(root, task, PlainServices(), Clock(), options=options)


# ---------------------------------------------------------------- the three diffs


def test_nothing_changed(tree: Repo) -> None:
    assert read(tree.root) == ReadChanges()


def test_staged_lines_are_those_of_the_work_tree(tree: Repo) -> None:
    """The file was staged, then edited above, below and within what was staged."""
    tree.write({"app.py": CODE.replace("x5 = 5\n", "x5 = 55\nx5b = 5\n")})
    tree.git("add", "-A")
    tree.write({"app.py": "top = 0\n" + CODE.replace("x5 = 5\n", "x5 = 55\nx5b = 5.5\n").replace("x9 = 9\n", "")})
    made = read(tree.root)
    assert brief(made) == [
        ("app.py", "staged", "modified", [(6, 7)]),
        ("app.py", "unstaged", "modified", [(1, 1), (7, 7)]),
    ]
    staged, unstaged = made.changes
    assert (staged.added, staged.removed) == ("x5 = 55\nx5b = 5\n", "x5 = 5\n")
    assert (unstaged.added, unstaged.removed) == ("top = 0\nx5b = 5.5\n", "x5b = 5\nx9 = 9\n")
    assert unstaged.cuts == (10,)
    assert made.notes == ("changes that count as evidence: 1 file staged, 1 file unstaged; edited code: app.py",)


def test_what_counts_is_an_option(tree: Repo) -> None:
    tree.write({"app.py": CODE + "y = 1\n"})
    tree.git("add", "-A")
    tree.write({"app.py": "z = 1\n" + CODE + "y = 1\n", "new.py": "n = 1\n"})
    staged = read(tree.root, RunOptions(changes=Changes.STAGED))
    assert brief(staged) == [("app.py", "staged", "modified", [(12, 12)])]
    assert read(tree.root, RunOptions(changes=Changes.NONE)) == ReadChanges()


def test_untracked_deleted_and_renamed(tree: Repo) -> None:
    tree.write({"new.py": "a\nb", "gone.py": "g\n", "old_name.py": CODE + "unlike = 1\n"})
    tree.commit()
    (tree.root / "gone.py").unlink()
    tree.git("mv", "old_name.py", "new_name.py")
    tree.write({"new_name.py": CODE + "unlike = 2\n", "fresh.py": "1\n2\n", "package-lock.json": "{}"})
    tree.git("add", "new_name.py")
    made = read(tree.root)
    assert brief(made) == [
        ("fresh.py", "unstaged", "added", [(1, 2)]),
        ("gone.py", "unstaged", "deleted", []),
        ("new_name.py", "staged", "renamed", [(11, 11)]),
    ]
    assert made.changes[1].removed == "g\n"
    assert made.changes[2].old_path == "old_name.py"


def test_since_a_revision(tree: Repo) -> None:
    first = tree.git("rev-parse", "HEAD").strip()
    tree.commit({"app.py": CODE + "y = 1\n"})
    tree.write({"app.py": CODE + "y = 1\nz = 1\n", "new.py": "n = 1\n"})
    made = read(tree.root, RunOptions(since=first))
    assert brief(made) == [
        ("app.py", "since", "modified", [(11, 12)]),
        ("new.py", "since", "added", [(1, 1)]),
    ]
    tree.git("tag", "first", first)
    assert brief(read(tree.root, RunOptions(since="first"))) == brief(made)
    assert read(tree.root, RunOptions(since="HEAD")).changes[0].lines[0].start == 12


def test_since_a_branch_that_moved_on(tree: Repo) -> None:
    """Its new commits are not ours, backwards."""
    tree.git("checkout", "-qb", "mine")
    tree.commit({"mine.py": "m = 1\n"})
    tree.git("checkout", "-q", "-")
    tree.commit({"theirs.py": "t = 1\n"})
    tree.git("branch", "upstream")
    tree.git("checkout", "-q", "mine")
    made = read(tree.root, RunOptions(since="upstream"))
    assert brief(made) == [("mine.py", "since", "added", [(1, 1)])]
    assert "'upstream' has moved on" in made.notes[1]


def test_since_what_has_nothing_in_common(tree: Repo) -> None:
    tree.git("checkout", "-q", "--orphan", "other")
    tree.commit({"app.py": CODE + "y = 1\n"})
    made = read(tree.root, RunOptions(since="main"))
    assert ("app.py", "since", "modified", [(11, 11)]) in brief(made)
    assert "no commit in common" in made.notes[1]


@pytest.mark.parametrize("revision", ["nothing", "--all", "HEAD~9", "", "a b"])
def test_an_unknown_revision(tree: Repo, revision: str) -> None:
    with pytest.raises(UsageError, match=f"there is no revision '{revision}'") as caught:
        read(tree.root, RunOptions(since=revision))
    assert caught.value.exit_code == 2


def test_since_outside_of_git(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a = 1\n")
    with pytest.raises(UsageError, match="--since HEAD"):
        about(tmp_path, options=RunOptions(since="HEAD"))
    assert about(tmp_path).evidence.changes == ()


# ---------------------------------------------------------------- states of a repository


def test_before_the_first_commit(empty: Repo) -> None:
    empty.write({"app.py": "a = 1\n", "b.py": "b = 1\n"})
    empty.git("add", "app.py")
    assert brief(read(empty.root)) == [("app.py", "staged", "added", [(1, 1)]), ("b.py", "unstaged", "added", [(1, 1)])]
    with pytest.raises(UsageError, match="there is no revision 'HEAD'"):
        read(empty.root, RunOptions(since="HEAD"))


def test_a_detached_head_and_a_linked_work_tree(tree: Repo, tmp_path: Path) -> None:
    place = tmp_path / "linked"
    tree.git("worktree", "add", "-q", "--detach", str(place))
    (place / "app.py").write_text(CODE + "y = 1\n")
    assert brief(read(place)) == [("app.py", "unstaged", "modified", [(11, 11)])]
    assert read(tree.root).changes == ()


def test_a_shallow_clone(tree: Repo, tmp_path: Path) -> None:
    tree.commit({"app.py": CODE + "y = 1\n"})
    place = tmp_path / "shallow"
    subprocess.run(["git", "clone", "-q", "--depth=1", tree.root.as_uri(), str(place)], check=True, capture_output=True)
    (place / "app.py").write_text(CODE)
    assert read(place).changes[0].removed == "y = 1\n"
    with pytest.raises(UsageError) as caught:
        read(place, RunOptions(since="HEAD~1"))
    assert "this clone is shallow" in (caught.value.hint or "")


def test_a_folder_inside_of_a_repository(tree: Repo) -> None:
    tree.write({"tests/test_app.py": TEST + "\n# end\n", "app.py": CODE + "y = 1\n"})
    assert brief(read(tree.root / "tests")) == [("test_app.py", "unstaged", "modified", [(10, 11)])]


def test_submodules_do_not_count(tree: Repo, empty_other: Repo) -> None:
    empty_other.commit({"lib.py": "1\n"})
    tree.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", str(empty_other.root), "mod")
    tree.commit()
    (tree.root / "mod" / "lib.py").write_text("2\n")
    assert read(tree.root).changes == ()


@pytest.fixture
def empty_other(tmp_path: Path) -> Repo:
    root = tmp_path / "other"
    root.mkdir()
    made = Repo(root)
    made.git("init", "-q")
    return made


def test_a_merge_in_progress(tree: Repo) -> None:
    tree.git("checkout", "-qb", "theirs")
    tree.commit({"app.py": CODE.replace("x5 = 5", "x5 = 'theirs'"), "clean.py": "c = 1\n"})
    tree.git("checkout", "-q", "-")
    tree.commit({"app.py": CODE.replace("x5 = 5", "x5 = 'ours'")})
    with pytest.raises(subprocess.CalledProcessError):
        tree.git("merge", "theirs")
    made = read(tree.root)
    assert brief(made) == [
        ("app.py", "unstaged", "modified", [(5, 5), (7, 9)]),
        ("clean.py", "staged", "added", [(1, 1)]),
    ]
    assert "<<<<<<<" in made.changes[0].added
    assert any("a merge is in progress" in note for note in made.notes)


def test_binary_and_crlf(tree: Repo) -> None:
    tree.git("config", "core.autocrlf", "true")
    tree.write({".gitattributes": "*.dat.py binary\n", "a.dat.py": "1\n", "crlf.py": "a = 1\r\nb = 2\r\n"})
    tree.git("config", "core.safecrlf", "warn")
    tree.commit()
    tree.write({"a.dat.py": "2\n", "crlf.py": "a = 1\r\nb = 3\r\n"})
    made = read(tree.root)
    assert brief(made) == [("a.dat.py", "unstaged", "modified", []), ("crlf.py", "unstaged", "modified", [(2, 2)])]
    assert made.changes[0].binary


def test_a_huge_diff_is_bounded_and_said(tree: Repo, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "DIFF_LIMIT", 2000)
    tree.write({"b.py": "\n".join(f"b{n} = 1" for n in range(900)), "tests/test_app.py": TEST + "# end\n"})
    tree.write({"app.py": CODE + "y = 1\n", "untracked.py": "u = 1\n"})
    tree.git("add", "b.py", "tests", "app.py")
    found = read(tree.root, tests=("tests/test_app.py",))
    assert [change.path for change in found.changes] == ["app.py", "tests/test_app.py", "untracked.py"]
    assert any(note.startswith("the diff is larger than") for note in found.notes)


def test_the_users_settings_change_nothing(tree: Repo) -> None:
    tree.write({"app.py": CODE.replace("x5 = 5", "x5 = 55")})
    plain = read(tree.root)
    for key, value in (
        ("diff.noprefix", "true"), ("diff.mnemonicPrefix", "true"), ("color.ui", "always"), ("diff.external", "false"),
        ("diff.context", "9"), ("diff.renames", "copies"), ("core.quotePath", "true"), ("diff.orderFile", "nowhere"),
    ):  # fmt: skip
        tree.git("config", key, value)
        if key == "diff.orderFile":
            (tree.root / "nowhere").write_text("")
            tree.git("config", "core.excludesFile", "/dev/null")
        assert read(tree.root).changes == plain.changes, key


# ---------------------------------------------------------------- what follows from it


def test_a_staged_test_is_the_failing_test(tree: Repo) -> None:
    tree.write({"tests/test_app.py": TEST.replace("x1 == 2", "x1 == 3"), "tests/test_new.py": TEST})
    tree.git("add", "-A")
    assert about(tree.root, "tests/test_app.py").located.failing_tests == ("tests/test_app.py::test_two",)
    assert len(about(tree.root, "tests/test_new.py").located.failing_tests) == 2
    none = about(tree.root, "tests/test_app.py", options=RunOptions(changes=Changes.NONE))
    assert len(none.located.failing_tests) == 2


def test_of_a_staged_file_only_what_is_staged(tree: Repo) -> None:
    tree.write({"tests/test_app.py": TEST.replace("x1 == 2", "x1 == 3")})
    tree.git("add", "-A")
    tree.write({"tests/test_app.py": "# top\n\n" + TEST.replace("x1 == 2", "x1 == 3").replace("x1 == 1", "x1 == 4")})
    assert about(tree.root, "tests/test_app.py").located.failing_tests == ("tests/test_app.py::test_two",)


def test_a_deleted_test_says_so(tree: Repo) -> None:
    (tree.root / "tests/test_app.py").unlink()
    with pytest.raises(TaskError) as caught:
        about(tree.root, "tests/test_app.py")
    assert caught.value.hint == "the change deletes it"


def test_unsaved_buffers_move_the_lines(tree: Repo) -> None:
    tree.write({"app.py": CODE.replace("x5 = 5", "x5 = 55")})
    buffer = ("\n\n" + CODE.replace("x5 = 5", "x5 = 55")).encode()
    made = read_changes(tree.root, state(tree.root), RunOptions(), (), {"app.py": buffer})
    assert [(c.source, [(s.start, s.end) for s in c.lines]) for c in made.changes] == [
        (ChangeSource.UNSTAGED, [(7, 7)]),
        (ChangeSource.UNSTAGED, [(1, 2)]),
    ]


def test_text_is_bounded(tree: Repo) -> None:
    tree.write({"app.py": "é = 1\n" * 20_000})
    [change] = read(tree.root).changes
    assert isinstance(change, FileChange)
    assert len(change.added.encode()) <= 64 * 1024 + 2


def test_statements_of_a_script_are_pinned_as_failing_tests(tree: Repo) -> None:
    script = "import app\n\nassert app.x1 == 1\n\n\ndef other():\n    return 1\n"
    tree.commit({"tests/script.py": script})
    tree.write({"tests/script.py": script.replace("x1 == 1", "x1 == 7")})
    made = run("select", tree.root, Task(tests=(TestRef("tests/script.py"),)), RunOptions(budget=400), PlainServices())
    pinned = [(row.path, row.start_line) for row in made.report.units if "failing-test" in row.pins]
    assert ("tests/script.py", 3) in pinned
    assert b"app.x1 == 7" in made.text.text
