"""The hook as pre-commit runs it: installed from a clone of this checkout, on repositories with unfinished work."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from agentctx.vcs import clean_environment
from tests.trees import ROOT, Repo

HOOK = "agentctx-check"
_USER = dict(os.environ)  # before any test's environment is made: pip's configuration is the user's

PRICES = "def price(net):\n    return net\n\n\ndef label(net):\n    return f'{net} cents'\n"
TILL = "from shop.prices import price\n\n\ndef total(nets):\n    return sum(price(net) for net in nets)\n"
COMMITTED = {
    "shop/__init__.py": "",
    "shop/prices.py": PRICES,
    "shop/till.py": TILL,
    "README.md": "# Shop\n",
}
CHANGED = PRICES.replace("def price(net):", "def price(net, rate):")
CALLER = "shop/till.py:5"


@dataclass(frozen=True)
class PreCommit:
    """`pre-commit ARGS`, with a folder of its own for the environments that it makes."""

    environment: Mapping[str, str]

    def __call__(self, cwd: Path, *args: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pre_commit", *args]
        return subprocess.run(command, cwd=cwd, env=self.environment, capture_output=True, text=True)


@pytest.fixture(scope="session")
def hook_repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The committed state of this checkout, as a repository of its own."""
    target = tmp_path_factory.mktemp("hook") / "agentctx"
    subprocess.run(["git", "clone", "-q", str(ROOT), str(target)], env=_user_environment(), check=True)
    return target


@pytest.fixture(scope="session")
def pre_commit(tmp_path_factory: pytest.TempPathFactory) -> PreCommit:
    home = tmp_path_factory.mktemp("pre-commit")
    own = {
        "AGENTCTX_CACHE_DIR": str(home / "agentctx"),
        "AGENTCTX_CONFIG_DIR": str(home / "config"),
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_SYSTEM": os.devnull,
        "PRE_COMMIT_HOME": str(home / "store"),
        "PRE_COMMIT_COLOR": "never",
    }
    return PreCommit({**_user_environment(), **own})


def _user_environment() -> dict[str, str]:
    return {key: value for key, value in _USER.items() if not key.startswith(("AGENTCTX_", "GIT_"))}


@pytest.fixture
def shop(empty: Repo) -> Repo:
    empty.commit(COMMITTED)
    return empty


@pytest.fixture
def hooked(shop: Repo, hook_repository: Path, pre_commit: PreCommit) -> Repo:
    """The shop with the hook installed: `git commit` runs it."""
    revision = Repo(hook_repository).git("rev-parse", "HEAD").strip()
    config = f"repos:\n- repo: {hook_repository}\n  rev: {revision}\n  hooks:\n  - id: {HOOK}\n"
    shop.commit({".pre-commit-config.yaml": config})
    done = pre_commit(shop.root, "install")
    assert done.returncode == 0, done.stdout + done.stderr
    return shop


@pytest.fixture
def commit(hooked: Repo, pre_commit: PreCommit) -> Callable[[], subprocess.CompletedProcess[str]]:
    """`git commit` of what is staged, as a user runs it."""
    identity = ("-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgSign=false")

    def run() -> subprocess.CompletedProcess[str]:
        command = ["git", *identity, "commit", "-m", "staged"]
        return subprocess.run(command, cwd=hooked.root, env=pre_commit.environment, capture_output=True, text=True)

    return run


def stage_with_unfinished_work(repo: Repo) -> None:
    """A changed signature in the index. On disk it is unchanged again, and its caller is another one on other lines."""
    repo.write({"shop/prices.py": CHANGED})
    repo.git("add", "shop/prices.py")
    repo.write(
        {
            "shop/prices.py": PRICES + "\n\nLATER = 'not staged'\n",
            "shop/till.py": "'''Not staged.'''\n\n" + TILL.replace("price(net)", "price(net, 2)"),
            "shop/new.py": "from shop.prices import price\n\n\nprice(1)\n",
            "notes for me.txt": b"\xff\x00 untracked\r\n",
        }
    )
    (repo.root / "shop/new.py").chmod(0o755)


def state(repo: Repo) -> dict[str, object]:
    """Every byte and mode of the work tree, and what git knows of it."""
    files = sorted(path for path in repo.root.rglob("*") if path.is_file() and ".git" not in path.parts)
    found: dict[str, object] = {
        path.relative_to(repo.root).as_posix(): (path.stat().st_mode, path.read_bytes()) for path in files
    }
    for args in (["ls-files", "-s"], ["status", "--porcelain=v2", "-z"], ["stash", "list"], ["rev-parse", "HEAD"]):
        found["git " + " ".join(args)] = repo.git(*args)
    return found


def test_the_manifest_is_valid(pre_commit: PreCommit) -> None:
    done = pre_commit(ROOT, "validate-manifest", ".pre-commit-hooks.yaml")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_caller_that_is_not_in_the_change(shop: Repo, hook_repository: Path, pre_commit: PreCommit) -> None:
    stage_with_unfinished_work(shop)
    before = state(shop)
    assert before["git status --porcelain=v2 -z"].count("MM") == 1  # type: ignore[attr-defined]
    done = pre_commit(shop.root, "try-repo", str(hook_repository), HOOK, "--verbose")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "Failed" in done.stdout
    assert CALLER in done.stdout
    assert "price(net) -> " in done.stdout
    assert "shop/new.py:4" in done.stdout  # untracked: pre-commit leaves it where it is, and so it is seen
    assert "files were modified" not in done.stdout
    assert state(shop) == before


def test_git_commit_is_refused(hooked: Repo, commit: Callable[[], subprocess.CompletedProcess[str]]) -> None:
    stage_with_unfinished_work(hooked)
    before = state(hooked)
    done = commit()
    assert done.returncode == 1
    assert CALLER in done.stderr
    assert state(hooked) == before


def test_a_caller_that_is_in_the_change(hooked: Repo, commit: Callable[[], subprocess.CompletedProcess[str]]) -> None:
    head = hooked.git("rev-parse", "HEAD")
    hooked.write({"shop/prices.py": CHANGED, "shop/till.py": TILL.replace("price(net)", "price(net, 2)")})
    hooked.git("add", "-A")
    hooked.write({"shop/till.py": TILL})
    done = commit()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Passed" in done.stderr
    assert hooked.git("rev-parse", "HEAD^") == head
    assert hooked.git("status", "--porcelain") == " M shop/till.py\n"
    assert (hooked.root / "shop/till.py").read_text() == TILL


def test_a_stub_is_checked(hooked: Repo, commit: Callable[[], subprocess.CompletedProcess[str]]) -> None:
    hooked.write({"shop/prices.pyi": "def price(net: int) -> int: ...\n"})
    hooked.git("add", "-A")
    done = commit()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Passed" in done.stderr


def test_without_staged_python_nothing_is_checked(
    hooked: Repo, commit: Callable[[], subprocess.CompletedProcess[str]]
) -> None:
    stage_with_unfinished_work(hooked)
    hooked.git("reset", "-q")
    hooked.write({"README.md": "# The shop\n"})
    hooked.git("add", "README.md")
    done = commit()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Skipped" in done.stderr
    assert hooked.git("show", "--name-only", "--format=") == "README.md\n"


def test_outside_of_pre_commit_the_check_says_the_same(shop: Repo, own_world: Path) -> None:
    stage_with_unfinished_work(shop)
    before = state(shop)
    agentctx = shutil.which("agentctx", path=str(Path(sys.executable).parent))
    assert agentctx is not None
    command = [agentctx, "check", "--staged"]
    done = subprocess.run(command, cwd=shop.root, env=clean_environment(), capture_output=True, text=True)
    assert done.returncode == 1
    assert CALLER in done.stdout
    assert state(shop) == before
