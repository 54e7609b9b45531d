"""Changes: calls of altered and removed definitions that the change leaves alone."""

from __future__ import annotations

import pytest

from agentctx.config import RunOptions
from agentctx.errors import UsageError
from agentctx.pipeline.change import check_change
from agentctx.prompt import Finding, Task
from agentctx.report import RunReport, exit_code
from tests.services import PlainServices
from tests.trees import Repo

LIB = """def rate(a):
    return a


def other():
    return rate(0)


class Box:
    def put(self, x):
        return x
"""
CALLS = """from lib import Box, rate


def use():
    return rate(1)


def fill(box: Box):
    return box.put(2)


TABLE = {"r": rate}
"""
TEST = "from lib import rate\n\n\ndef test_rate():\n    assert rate(1) == 1\n"


@pytest.fixture
def tree(empty: Repo) -> Repo:
    empty.commit({"lib.py": LIB, "pkg/calls.py": CALLS, "tests/test_lib.py": TEST})
    return empty


def check(tree: Repo, since: str | None = None) -> RunReport:
    return check_change(tree.root, Task(), RunOptions(), PlainServices(), since=since)


def found(tree: Repo, since: str | None = None) -> list[tuple[str, str, str | None, int | None]]:
    return [(f.code, f.severity, f.path, f.line) for f in check(tree, since).findings]


def stage(tree: Repo, **files: str) -> None:
    tree.write({f"{name}.py": text for name, text in files.items()})
    tree.git("add", "-A")


def test_a_changed_signature_with_calls_outside_of_the_change(tree: Repo) -> None:
    stage(tree, lib=LIB.replace("rate(a)", "rate(a, b)"))
    report = check(tree)
    assert [(f.code, f.severity, f.path, f.line) for f in report.findings] == [
        ("signature-changed", "error", "lib.py", 6),
        ("signature-changed", "error", "pkg/calls.py", 5),
        ("signature-changed", "error", "tests/test_lib.py", 5),
    ]
    assert report.findings[1].message == (
        "use calls rate, whose signature the change alters (def rate(a) -> def rate(a, b), lib.py:1); "
        "the call is not in the change"
    )
    assert (exit_code(report, "error"), exit_code(report, "never")) == (1, 0)


def test_calls_inside_the_change_are_fine(tree: Repo) -> None:
    tree.write({"tests/test_lib.py": TEST.replace("rate(1)", "rate(1, 2)")})
    stage(tree, lib=LIB.replace("rate(a)", "rate(a, b)").replace("rate(0)", "rate(0, 0)"))
    assert found(tree) == [("signature-changed", "error", "pkg/calls.py", 5)]


def test_a_compatible_change_is_a_note(tree: Repo) -> None:
    stage(tree, lib=LIB.replace("rate(a)", "rate(a, b=1)"))
    assert {(code, severity) for code, severity, _, _ in found(tree)} == {("signature-changed", "note")}
    assert exit_code(check(tree), "error") == 0


@pytest.mark.parametrize("new", ["def rate(a: int) -> int", "def rate(\n    a,\n)"])
def test_an_annotation_is_no_change(tree: Repo, new: str) -> None:
    stage(tree, lib=LIB.replace("def rate(a)", new))
    assert found(tree) == []


def test_a_method_through_a_typed_parameter(tree: Repo) -> None:
    stage(tree, lib=LIB.replace("put(self, x)", "put(self, x, y)"))
    assert found(tree) == [("signature-changed", "error", "pkg/calls.py", 9)]


def test_a_removed_definition_that_is_still_used(tree: Repo) -> None:
    stage(tree, lib=LIB[LIB.index("class Box") :])
    assert found(tree) == [
        ("definition-removed", "error", "pkg/calls.py", 1),
        ("definition-removed", "error", "pkg/calls.py", 5),
        ("definition-removed", "error", "pkg/calls.py", 12),
        ("definition-removed", "error", "tests/test_lib.py", 1),
        ("definition-removed", "error", "tests/test_lib.py", 5),
    ]
    assert check(tree).findings[1].message == "use uses rate, which the change removes from lib.py"


def test_a_removed_definition_that_its_own_file_still_uses(tree: Repo) -> None:
    tree.commit({"pkg/calls.py": "", "tests/test_lib.py": ""})
    stage(tree, lib="# gone\n" + LIB[LIB.index("def other") :].replace("rate(0)", "(rate(0),\n        rate(1))"))
    assert found(tree) == [("definition-removed", "error", "lib.py", 3), ("definition-removed", "error", "lib.py", 4)]


def test_a_definition_that_moved_and_is_imported_from_there(tree: Repo) -> None:
    moved = "def rate(a):\n    return a\n"
    tree.write({"tests/test_lib.py": TEST.replace("from lib", "from rates")})
    tree.write({"pkg/calls.py": CALLS.replace("import Box, rate", "import Box\nfrom rates import rate")})
    stage(tree, rates=moved, lib="from rates import rate\n\n\n" + LIB[LIB.index("def other") :])
    assert found(tree) == []


def test_a_definition_that_moved_but_is_still_exported(tree: Repo) -> None:
    stage(tree, rates="def rate(a):\n    return a\n", lib="from rates import rate\n" + LIB[LIB.index("def other") :])
    assert found(tree) == []


def test_a_removed_file_and_a_renamed_one(tree: Repo) -> None:
    tree.git("mv", "lib.py", "library.py")
    places = {(path, line) for code, _, path, line in found(tree) if code == "definition-removed"}
    assert {("pkg/calls.py", 1), ("pkg/calls.py", 5), ("tests/test_lib.py", 5)} <= places
    tree.git("rm", "-q", "--cached", "library.py")
    assert ("pkg/calls.py", 5) in {(path, line) for _, _, path, line in found(tree)}


def test_a_partly_staged_file_counts_as_it_is_in_the_index(tree: Repo) -> None:
    stage(tree, lib=LIB.replace("rate(a)", "rate(a, b)"))
    worktree = {"lib.py": LIB, "pkg/calls.py": "not = = python"}
    tree.write(worktree)
    assert ("signature-changed", "error", "pkg/calls.py", 5) in found(tree)
    for path, text in worktree.items():
        assert (tree.root / path).read_text() == text
    assert tree.git("diff", "--cached", "--name-only") == "lib.py\n"


def test_what_is_not_staged_is_no_part_of_the_change(tree: Repo) -> None:
    tree.write({"lib.py": LIB.replace("rate(a)", "rate(a, b)")})
    assert found(tree) == []
    tree.git("add", "-A")
    tree.write({"pkg/calls.py": CALLS.replace("rate(1)", "rate(1, 2)")})
    assert ("signature-changed", "error", "pkg/calls.py", 5) in found(tree), "the caller's change is not staged"


def test_an_untracked_caller_is_outside_of_the_change(tree: Repo) -> None:
    stage(tree, lib=LIB.replace("rate(a)", "rate(a, b)"))
    tree.write({"new.py": "from lib import rate\n\nrate(7)\n"})
    assert ("signature-changed", "error", "new.py", 3) in found(tree)


def test_since_a_revision(tree: Repo) -> None:
    first = tree.git("rev-parse", "HEAD").strip()
    tree.commit({"lib.py": LIB.replace("rate(a)", "rate(a, b)")})
    tree.write({"pkg/calls.py": CALLS.replace("rate(1)", "rate(1, 2)")})
    expected = [("lib.py", 6), ("tests/test_lib.py", 5)]
    assert [(path, line) for _, _, path, line in found(tree, first)] == expected
    assert found(tree, "HEAD") == []
    assert found(tree) == []


@pytest.mark.parametrize("revision", ["nothing", "--all", "HEAD~9"])
def test_an_unknown_revision(tree: Repo, revision: str) -> None:
    with pytest.raises(UsageError, match=f"--since: there is no revision '{revision}'") as caught:
        check(tree, revision)
    assert caught.value.exit_code == 2


def test_before_the_first_commit_nothing_is_altered(empty: Repo) -> None:
    stage(empty, lib=LIB, calls=CALLS)
    assert found(empty) == []


def test_in_a_folder_of_the_repository(empty: Repo) -> None:
    empty.commit({"sub/lib.py": LIB, "sub/calls.py": CALLS, "lib.py": ""})
    empty.write({"sub/lib.py": LIB.replace("rate(a)", "rate(a, b)")})
    empty.git("add", "-A")
    report = check_change(empty.root / "sub", Task(), RunOptions(), PlainServices())
    assert [(f.path, f.line) for f in report.findings] == [("calls.py", 5), ("lib.py", 6)]


def test_odd_names(empty: Repo) -> None:
    name = "a folder/größe 'x'.py"
    empty.commit({"lib.py": LIB, name: CALLS})
    stage(empty, lib=LIB.replace("rate(a)", "rate(a, b)"))
    assert (name, 5) in [(path, line) for _, _, path, line in found(empty)]


def test_files_that_were_skipped_are_listed(tree: Repo) -> None:
    tree.write({"blob.py": b"\0\1\2"})
    stage(tree, lib=LIB.replace("rate(a)", "rate(a, b=1)"))
    assert [skipped.path for skipped in check(tree).skipped] == ["blob.py"]


def test_without_a_change_there_is_nothing_to_say(tree: Repo) -> None:
    report = check(tree)
    assert report.findings == ()
    assert (report.budget.tokenizer, report.decision.mode) == ("none", "text")


def test_findings_come_in_order_and_once(tree: Repo) -> None:
    stage(tree, lib=LIB.replace("rate(a)", "rate(a, b)").replace("put(self, x)", "put(self)"))
    findings = check(tree).findings
    key = [(f.path or "", f.line or 0, f.message) for f in findings]
    assert key == sorted(set(key))
    assert all(isinstance(f, Finding) for f in findings)
