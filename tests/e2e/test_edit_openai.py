"""`agentctx edit --engine openai`: from a failing test to a landed edit, through a server in this process."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from agentctx.cli.main import invoke
from agentctx.report.schema import load_schema
from tests.fake_server import FakeServer, Reply
from tests.trees import Repo

BODY = "    if not values:\n        return 0.0\n    return sum(values) / len(values)\n"
HEADER = "def mean(values: Sequence[float]) -> float:\n"
BLOCK = (
    "tallies/basic.py\n<<<<<<< SEARCH\n    return sum(values) / len(values)\n=======\n"
    "    return sum(values) / len(values) if values else 0.0\n>>>>>>> REPLACE\n"
)
DIFF = (
    "--- a/tallies/basic.py\n+++ b/tallies/basic.py\n@@ -13,2 +13,2 @@\n"
    '     """The mean of the values. The mean of an empty list is 0.0."""\n'
    "-    return sum(values) / len(values)\n+    return sum(values) / len(values) if values else 0.0\n"
)
TEST = "tests/test_basic.py::test_mean_of_empty_list_is_zero"
CHECK = f'{sys.executable} -S -c "from tallies.basic import mean; assert mean([]) == 0"'
MEAN = ("--focus", "tallies/basic.py#mean", "--check-cmd", CHECK)  # much quicker than a test
KEY = "sk-proj-THISISTHEKEY0123456789abcdef"
GITHUB = "ghp_" + "a1B2c3D4e5" * 4


@pytest.fixture
def project(repo: Callable[[str], Repo]) -> Repo:
    return repo("mean_empty")


@pytest.fixture
def edit(project: Repo, capfd: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """`edit(URL, ...)`: exit code, stdout, stderr."""

    def run(url: str, *args: str) -> tuple[int, str, str]:
        common = ["edit", "mean([]) must be 0.0", "--repo", str(project.root), "--engine", "openai", "--url", url]
        code = invoke([*common, *args])
        out = capfd.readouterr()
        return code, out.out, out.err

    return run


def as_json(done: tuple[int, str, str]) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(done[1])
    jsonschema.validate(report, load_schema())
    return report


Edit = Callable[..., tuple[int, str, str]]


@pytest.mark.parametrize(
    ("form", "answer"),
    [
        ("function", f"```python\n{HEADER}{BODY}```\n"),
        ("function", f"\n{BODY}```"),
        ("function", f"Here is the corrected function:\n\n```python\n{HEADER}{BODY}```\nIt works now."),
        ("function", f"<think>\n```python\nno\n```</think>{HEADER}{BODY}"),
        ("search-replace", BLOCK),
        ("search-replace", f"Sure:\n\n```\n{BLOCK}```\n"),
        ("diff", f"```diff\n{DIFF}```\n"),
        ("diff", f"{DIFF}```\n"),
        ("diff", DIFF),
    ],
    ids=[
        "whole",
        "continued",
        "with prose",
        "with thoughts",
        "blocks",
        "fenced blocks",
        "diff",
        "continued diff",
        "raw",
    ],
)
def test_a_right_answer_lands(server: FakeServer, edit: Edit, project: Repo, form: str, answer: str) -> None:
    server.replies = [Reply([answer])]
    done = edit(server.url, *MEAN, "--edit-format", form, "--apply", "--format", "json")
    assert done[0] == 0, done
    report = as_json(done)
    assert report["edit"]["outcome"] == "landed"
    assert report["decision"]["mode"] == "text"
    text = (project.root / "tallies/basic.py").read_text()
    assert "if not values" in text.partition("def span")[0] or "if values else" in text


def test_what_is_sent_and_what_is_said(server: FakeServer, edit: Edit) -> None:
    server.models = [{"id": "coder", "max_model_len": 8192}]
    server.replies = [Reply([f"```python\n{HEADER}{BODY}```\n"])]
    done = edit(server.url, "--test", TEST, "--format", "json")
    report = as_json(done)
    [body] = server.chats
    system, user = body["messages"]
    assert system["content"].startswith("You fix bugs.")
    assert user["content"].startswith("Repository code:")
    assert "def mean" in user["content"]
    assert "exactly as they are:\n```python\ndef mean(values" in user["content"]
    assert "test_mean_of_empty_list_is_zero" in user["content"]
    assert "stop" not in body
    engine = report["engine"]
    assert engine["name"] == "openai"
    assert engine["host"] == f"127.0.0.1:{server.port}"
    assert (engine["model"], engine["context"]) == ("coder", 8192)
    assert (engine["prompt_tokens"], engine["cached_tokens"]) == (900, 640)
    assert engine["ttft"] > 0
    assert not engine["secrets_kept"]
    assert report["budget"]["tokenizer"] == "estimate"
    assert report["budget"]["kept"] <= report["budget"]["limit"]
    assert report["edit"]["candidates"][0]["tokens"] == 20
    assert {"load_main", "prefill", "decode", "ttft"} <= report["timings"].keys()


def test_the_text_report(server: FakeServer, edit: Edit) -> None:
    server.replies = [Reply([f"```python\n{HEADER}{BODY}```\n"], usage=None)]
    _, out, _ = edit(server.url, *MEAN)
    assert f"engine openai (--engine): coder at 127.0.0.1:{server.port}, context unknown" in out
    assert "unknown prompt tokens, unknown of them cached" in out
    assert "the server doesn't say how long its context is" in out
    assert "not applied" in out


def test_several_samples(server: FakeServer, edit: Edit) -> None:
    bad = "```python\n" + HEADER + "    return 1.0\n```"
    server.replies = [Reply([bad, f"```python\n{HEADER}{BODY}```"])]
    report = as_json(edit(server.url, *MEAN, "--samples", "2", "--temperature", "0.7", "--format", "json"))
    assert [one["status"] for one in report["edit"]["candidates"]] == ["failed", "passed"]


def test_a_wrong_answer_changes_nothing(server: FakeServer, edit: Edit, project: Repo) -> None:
    server.replies = [Reply(["I can't do that."])]
    code, out, _ = edit(server.url, *MEAN, "--apply")
    assert code == 1
    assert "nothing landed" in out
    assert not project.git("status", "--porcelain")


# ---------------------------------------------------------------- failures


@pytest.mark.parametrize(
    ("reply", "code", "said"),
    [
        (Reply(status=401, error={"error": {"message": f"bad key {KEY}"}}), 4, "refuses the API key"),
        (Reply(status=404, error={"error": {"message": "no"}}), 4, "has no model"),
        (Reply(status=400, error={"error": {"message": "context length exceeded"}}), 2, "too long"),
        (Reply(raw=b"data: <html>\n\n"), 4, "no chat completion"),
    ],
)
def test_exit_codes(
    server: FakeServer, edit: Edit, project: Repo, monkeypatch: pytest.MonkeyPatch, reply: Reply, code: int, said: str
) -> None:
    monkeypatch.setenv("AGENTCTX_API_KEY", KEY)
    server.replies = [reply]
    done = edit(server.url, *MEAN, "--apply")
    assert done[0] == code, done
    assert said in done[2]
    assert KEY not in done[1] + done[2]
    assert not project.git("status", "--porcelain")
    assert project.git("worktree", "list", "--porcelain").count("worktree ") == 1


def test_no_server(edit: Edit) -> None:
    pytest.importorskip("openai")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code, _, err = edit(f"http://127.0.0.1:{port}", *MEAN)
    assert code == 4
    assert f"can't reach a server at 127.0.0.1:{port}" in err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--force-sparse", "--drafter", "smollm2"], "--force-sparse can't be had"),
        (["--baseline"], "--baseline needs a model that runs here"),
        (["--samples", "2"], "needs --temperature"),
    ],
)
def test_what_a_server_cannot_do(server: FakeServer, edit: Edit, args: list[str], said: str) -> None:
    code, _, err = edit(server.url, *MEAN, *args)
    assert code == 2
    assert said in err
    assert not server.chats


def test_an_address_is_needed(project: Repo, capfd: pytest.CaptureFixture[str]) -> None:
    assert invoke(["edit", "x", "--repo", str(project.root), "--engine", "openai"]) == 2
    assert "needs the address of a server" in capfd.readouterr().err


def test_options_of_a_server_do_not_hinder_a_selection(
    project: Repo, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """They may stand in a file; a server's name for a model is no model of this machine."""
    for name, value in (("ENGINE", "openai"), ("URL", "http://localhost:9/v1"), ("MODEL", "some/served-model")):
        monkeypatch.setenv(f"AGENTCTX_{name}", value)
    assert invoke(["select", "mean of nothing", "--repo", str(project.root)]) == 0
    assert "tokenizer estimate" in capfd.readouterr().out


def test_ctrl_c_while_the_server_thinks(server: FakeServer, project: Repo) -> None:
    server.replies = [Reply(["x" * 400], size=600, delay=0.0, gap=30.0)]
    process = subprocess.Popen(
        [sys.executable, "-m", "agentctx", "edit", "x", *MEAN, "--engine", "openai", "--url", server.url],
        cwd=project.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    deadline = time.monotonic() + 60
    while not server.chats and time.monotonic() < deadline and process.poll() is None:
        time.sleep(0.05)
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=20)
    assert process.returncode == 130, err
    assert not project.git("status", "--porcelain")
    assert project.git("worktree", "list", "--porcelain").count("worktree ") == 1


# ---------------------------------------------------------------- secrets


@pytest.fixture
def with_secrets(project: Repo) -> Repo:
    code = (project.root / "tallies/basic.py").read_text()
    code = code.replace("def mean(", f'API = "{GITHUB}"\n\n\ndef mean(')
    code = code.replace(
        "    return sum(values) / len(values)\n", f'    tag = "{KEY}"\n    return sum(values) / len(values)\n'
    )
    project.commit(
        {
            "tallies/basic.py": code,
            "credentials.json": f'{{"token": "{GITHUB}"}}\n',
            "secrets.yaml": "mean: hunter2hunter2\n",
            ".env": "MEAN=hunter2hunter2\n",
        }
    )
    return project


def test_no_secret_leaves_the_machine(server: FakeServer, edit: Edit, with_secrets: Repo) -> None:
    body = BODY.replace("    return sum", '    tag = "AGENTCTX_SECRET_2_openai_key"\n    return sum')
    server.replies = [Reply([f"```python\n{HEADER}{body}```\n"])]
    done = edit(server.far_url, *MEAN, "--apply", "--format", "json")
    assert GITHUB not in server.sent
    assert KEY not in server.sent
    assert "hunter2" not in server.sent
    report = as_json(done)
    assert GITHUB not in done[1]
    assert KEY not in done[1]
    assert report["engine"]["secrets_kept"]
    rows = {(row["path"], row["kind"]) for row in report["engine"]["secrets"]}
    assert {("tallies/basic.py", "openai-key"), ("tallies/basic.py", "github-token")} <= rows
    reasons = {row["path"]: row["reason"] for row in report["skipped"]}
    assert "not sent to another machine" in reasons["secrets.yaml"]
    assert done[0] == 0, done
    assert report["edit"]["diff"].count("AGENTCTX_SECRET_2_openai_key") == 1  # beside the edit
    text = (with_secrets.root / "tallies/basic.py").read_text()
    assert f'    tag = "{KEY}"\n' in text
    assert "AGENTCTX_SECRET" not in text


def test_an_edit_beside_a_secret_lands_with_its_value(server: FakeServer, edit: Edit, with_secrets: Repo) -> None:
    server.replies = [Reply([BLOCK])]
    done = edit(server.far_url, *MEAN, "--apply", "--edit-format", "search-replace")
    assert done[0] == 0, done
    text = (with_secrets.root / "tallies/basic.py").read_text()
    assert "if values else" in text
    assert KEY in text
    assert "AGENTCTX_SECRET" not in text


def test_an_edit_of_the_line_is_refused(server: FakeServer, edit: Edit, with_secrets: Repo) -> None:
    lines = 'tallies/basic.py\n<<<<<<< SEARCH\n    tag = "{0}"\n=======\n    tags = "{0}"\n>>>>>>> REPLACE\n'
    server.replies = [Reply([lines.format("AGENTCTX_SECRET_2_openai_key")])]
    code, out, _ = edit(server.far_url, *MEAN, "--apply", "--edit-format", "search-replace")
    assert code == 1
    assert "holds a secret, which the model was not shown" in out
    assert not with_secrets.git("status", "--porcelain")


def test_for_a_server_on_this_machine_nothing_is_held_back_and_that_is_said(
    server: FakeServer, edit: Edit, with_secrets: Repo
) -> None:
    server.replies = [Reply(["x"])]
    _, out, _ = edit(server.url, *MEAN)
    assert KEY in server.sent
    assert "secrets: not looked for, the server runs on this machine" in out


def test_the_key_is_read_from_the_environment_only(
    server: FakeServer, edit: Edit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "other")
    monkeypatch.setenv("AGENTCTX_API_KEY", KEY)
    server.replies = [Reply(["x"])]
    check = f'{sys.executable} -c "import os; print(sorted(os.environ)); raise SystemExit(1)"'
    done = edit(server.url, "--focus", "tallies/basic.py#mean", "--check-cmd", check, "--format", "json")
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert KEY not in done[1] + done[2]
    assert "AGENTCTX_API_KEY" not in done[1]
    monkeypatch.delenv("AGENTCTX_API_KEY")
    edit(server.url, *MEAN)
    assert server.asked[-1].headers["authorization"] == "Bearer other"


def test_no_key_in_any_file_of_a_run(
    server: FakeServer, edit: Edit, own_world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTCTX_API_KEY", KEY)
    server.replies = [Reply([f"```python\n{HEADER}{BODY}```\n"])]
    edit(server.url, *MEAN)
    for file in own_world.rglob("*"):
        assert not file.is_file() or KEY.encode() not in file.read_bytes()
