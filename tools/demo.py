"""The demo: a failing Python test goes in, a checked edit comes out, on an embedded model.

Copies `fixtures/repos/mean_empty` to a temporary folder, makes it a git repository, shows the test fail, runs
`agentctx edit --apply`, shows the test pass. Nothing outside of the temporary folder is touched.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

REPOS = Path(__file__).resolve().parent.parent / "fixtures" / "repos"
IGNORED = shutil.ignore_patterns("__pycache__", "manifest.toml", "failure*.log", "*.patch", ".pytest_cache")


def main() -> int:
    options = parse()
    source = REPOS / options.fixture
    manifest = tomllib.loads((source / "manifest.toml").read_text(encoding="utf-8"))
    case = manifest["case"][0]
    with tempfile.TemporaryDirectory(prefix="agentctx-demo-") as folder:
        root = Path(folder) / options.fixture
        shutil.copytree(source, root, ignore=IGNORED)
        git(root, "init", "-q")
        git(root, "add", "-A")
        git(root, "-c", "user.name=demo", "-c", "user.email=demo@localhost", "commit", "-q", "-m", "the project")
        tests = [str(test) for test in case["failing"]]
        say(f"the failing test: {' '.join(tests)}")
        if run_tests(root, tests, show=True) == 0:
            sys.exit("the fixture's test passes already; the demo can't show anything")
        code = edit(root, str(case["request"]), tests, options)
        if code:
            say(f"agentctx edit ended with exit code {code}; nothing was changed")
            return code
        say("the same test on the edited project")
        return run_tests(root, tests, show=True)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--fixture", default="mean_empty")
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--drafter", default="smollm2")
    parser.add_argument("--samples", type=int, default=24)
    parser.add_argument("--seed", type=int, default=100)
    return parser.parse_args()


def edit(root: Path, request: str, tests: list[str], options: argparse.Namespace) -> int:
    """One `agentctx edit`; its report goes to the terminal."""
    temperature = "0.7" if options.samples > 1 else "0"
    command = [
        sys.executable, "-m", "agentctx", "edit", request, "--repo", str(root),
        *[word for test in tests for word in ("--test", test)],
        "--model", options.model, "--drafter", options.drafter, "--budget", "1024", "--force-sparse",
        "--samples", str(options.samples), "--temperature", temperature, "--seed", str(options.seed),
        "--max-new", "200", "--check-cmd", f"'{sys.executable}' -m pytest -q --no-header", "--apply",
    ]  # fmt: skip
    say("agentctx " + " ".join(f'"{word}"' if " " in word else word for word in command[3:]))
    if options.model == "smollm2":
        print("(a model of 135 million parameters fixes little: it may draw up to 24 samples, each tried by the test)")
    return subprocess.run(command, check=False).returncode


def run_tests(root: Path, tests: list[str], *, show: bool) -> int:
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "--tb=line", *tests]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if show:
        print("\n".join(done.stdout.strip().splitlines()[-6:]))
    return done.returncode


def git(root: Path, *args: str) -> None:
    subprocess.run(["git", "-C", str(root), *args], check=True, capture_output=True)


def say(text: str) -> None:
    print(f"\n== {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
