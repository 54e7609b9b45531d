"""`agentctx bench qps` from the command line, against a server in this process that knows the contract."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("openai")

from agentctx.cli.main import invoke
from agentctx.models.convert import convert
from agentctx.spec.engines.vllm_plugin.contract import LENGTH, SPANS
from tests.fake_vllm import ANSWER, HANG, FakeVllm, is_sparse, serve_vllm
from tests.trees import Repo
from tests.unit.models.tiny_models import make_tiny

SMALL = (
    "--tokens",
    "1500",
    "--keep",
    "0.4",
    "--requests",
    "3",
    "--seconds",
    "0",
    "--rate",
    "50",
    "--rate",
    "100",
    "--max-tokens",
    "2",
)
KEY = "sk-proj-THISISTHEKEY0123456789abcdef"
GITHUB = "ghp_" + "a1B2c3D4e5" * 4
Done = tuple[int, str, str]
Qps = Callable[..., Done]


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    tiny = make_tiny(tmp_path_factory.mktemp("gguf"), 1)
    folder = tmp_path_factory.mktemp("converted") / "tiny"
    folder.mkdir()
    convert(tiny.gguf, folder, name="tiny", sha256=tiny.model.sha256)
    return folder


@pytest.fixture(scope="module")
def model(weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The served model's folder here: without weights, and with a longer context."""
    folder = tmp_path_factory.mktemp("described") / "tiny"
    folder.mkdir()
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        shutil.copy(weights / name, folder / name)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": 4096}))
    return folder


@pytest.fixture
def project(repo: Callable[[str], Repo]) -> Repo:
    return repo("mean_empty")


@pytest.fixture
def vllm() -> Iterator[FakeVllm]:
    yield from serve_vllm(FakeVllm())


@pytest.fixture
def qps(model: Path, project: Repo, capfd: pytest.CaptureFixture[str]) -> Qps:
    """`qps(...)`: exit code, stdout, stderr."""

    def run(*args: str | Path) -> Done:
        code = invoke(["bench", "qps", "--repo", str(project.root), *map(str, args)])
        out = capfd.readouterr()
        return code, out.out, out.err

    return run


def as_json(done: Done) -> dict[str, Any]:
    assert done[0] == 0, done
    data: dict[str, Any] = json.loads(done[1])
    return data


def test_both_ways_at_every_rate(qps: Qps, vllm: FakeVllm, model: Path) -> None:
    vllm.n_cached = 0
    found = as_json(qps("--url", vllm.url, "--model", model, *SMALL, "--prompts", "2", "--format", "json"))
    assert [(row["way"], row["rate"]) for row in found["rows"]] == [
        ("dense", 50.0), ("sparse", 50.0), ("dense", 100.0), ("sparse", 100.0),
    ]  # fmt: skip
    for row in found["rows"]:
        assert (row["sent"], row["answered"], row["timeouts"], row["errors"], row["n_cached"]) == (3, 3, 0, [], 0)
        assert row["ttft_median_s"] <= row["latency_median_s"]
    assert [one["tests"] for one in found["prompts"]] == [["tests/test_aggregators.py"], ["tests/test_basic.py"]]
    assert found["highest"]["sparse"] == {"rate": 100.0, "open": True}
    assert (found["ratio"], found["stopped"], found["setting"]["drafter"]) == (None, "", None)
    assert found["setting"]["model"] == "tiny"
    # What went over the wire: one of each way alone, then three at each rate, by turns of the two prompts.
    dense, sparse = ([body for body in vllm.bodies if is_sparse(body) is way] for way in (False, True))
    assert (len(dense), len(sparse)) == (7, 7)
    sizes = {(one["tokens"], one["kept"]) for one in found["prompts"]}
    assert {len(body["prompt"]) for body in dense} == {size[0] for size in sizes}
    for body in sparse:
        assert (body["vllm_xargs"][LENGTH], len(body["prompt"])) in sizes
        spans = body["vllm_xargs"][SPANS]
        places = [at for start, end in zip(spans[::2], spans[1::2], strict=True) for at in range(start, end)]
        [whole] = {tuple(one["prompt"]) for one in dense if len(one["prompt"]) == body["vllm_xargs"][LENGTH]}
        assert [whole[at] for at in places] == body["prompt"]
    salts = [body["cache_salt"] for body in vllm.bodies]
    assert len({*salts}) == len(salts)
    assert all(len(salt) <= 128 and not {"@", "/", "\\"} & {*salt} for salt in salts)


def test_a_second_run_has_other_salts(qps: Qps, vllm: FakeVllm, model: Path) -> None:
    args = (
        "--url",
        vllm.url,
        "--model",
        model,
        "--tokens",
        "1500",
        "--keep",
        "0.4",
        "--rate",
        "50",
        "--requests",
        "1",
        "--seconds",
        "0",
    )
    for _ in range(2):
        assert qps(*args, "--prompts", "1")[0] == 0
    assert len({body["cache_salt"] for body in vllm.bodies}) == len(vllm.bodies) == 8


def test_a_way_that_fails_is_not_tried_at_higher_rates(qps: Qps, vllm: FakeVllm, model: Path) -> None:
    """The server holds one dense request alone, and refuses them from the second on."""
    n_dense = 0

    def behave(body: dict[str, Any]) -> str | int:
        nonlocal n_dense
        n_dense += not is_sparse(body)
        return ANSWER if is_sparse(body) or n_dense == 1 else 503

    vllm.behave = behave
    code, out, err = qps("--url", vllm.url, "--model", model, *SMALL, "--prompts", "2")
    assert code == 0, err
    assert "dense at 50/s: 3 x HTTP 503: no, 503" in out
    assert "dense      100  not tried: it failed at 50/s" in out
    assert "dense none, sparse 100/s (the highest that was tried); no ratio: give a lower --rate" in out
    assert "2 prompts: tests/test_aggregators.py, tests/test_basic.py" in err
    assert n_dense == 4


def test_timeouts_are_counted_and_a_server_that_is_stuck_ends_it(qps: Qps, vllm: FakeVllm, model: Path) -> None:
    """Each way is answered once, alone. Then dense requests hang; the sparse one that comes next alone is refused."""
    known = set()

    def behave(body: dict[str, Any]) -> str | int:
        if is_sparse(body) not in known:
            known.add(is_sparse(body))
            return ANSWER
        return 500 if is_sparse(body) else HANG

    vllm.behave = behave
    args = (
        "--rate",
        "50",
        "--requests",
        "2",
        "--seconds",
        "0",
        "--timeout",
        "0.4",
        "--tokens",
        "1500",
        "--keep",
        "0.4",
    )
    found = as_json(qps("--url", vllm.url, "--model", model, *args, "--prompts", "1", "--format", "json"))
    dense, sparse = found["rows"]
    assert (dense["sent"], dense["timeouts"], dense["answered"], dense["ttft_median_s"]) == (2, 2, 0, None)
    assert sparse["not_tried"] == "stopped"
    assert found["stopped"] == "the server didn't answer one sparse request alone: HTTP 500: no, 500"
    assert vllm.wait_for(lambda it: it.n_open == 0)


def test_seconds_hold_a_rate_with_more_requests(qps: Qps, vllm: FakeVllm, model: Path) -> None:
    args = ("--rate", "40", "--requests", "2", "--seconds", "0.1", "--tokens", "1500", "--keep", "0.4")
    found = as_json(qps("--url", vllm.url, "--model", model, *args, "--prompts", "1", "--format", "json"))
    assert [row["sent"] for row in found["rows"]] == [4, 4]


def test_named_tests_are_the_prompts(qps: Qps, vllm: FakeVllm, model: Path) -> None:
    tests = ("--test", "tests/test_spread.py", "--test", "tests/test_basic.py::test_mean_of_empty_list_is_zero")
    found = as_json(qps("fix it", "--url", vllm.url, "--model", model, *SMALL, *tests, "--format", "json"))
    assert [one["tests"] for one in found["prompts"]] == [
        ["tests/test_spread.py"],
        ["tests/test_basic.py::test_mean_of_empty_list_is_zero"],
    ]


def test_a_small_repository_is_said(qps: Qps, vllm: FakeVllm, model: Path, empty: Repo) -> None:
    test = "from add import add\n\ndef test_add():\n    assert add(1, 2) == 3\n"
    others = {"tests/__init__.py": "", "tests/conftest.py": "X = 1\n"}
    empty.commit({"add.py": "def add(a, b):\n    return a - b\n", "tests/test_add.py": test, **others})
    code, out, err = qps("--repo", empty.root, "--url", vllm.url, "--model", model, *SMALL, "--keep", "0.9")
    assert code == 0, err
    assert "1 prompts: tests/test_add.py\n" in err  # neither __init__ nor conftest holds a test
    assert "the repository has no 4 files with tests" in err
    assert "1 windows are shorter than --tokens 1500" in out


def test_a_drafter_scores(qps: Qps, vllm: FakeVllm, model: Path, weights: Path) -> None:
    pytest.importorskip("torch")
    args = ("--url", vllm.url, "--model", model, *SMALL, "--prompts", "1", "--drafter", weights, "--scorer", "window")
    code, out, err = qps(*args)
    assert code == 0, err
    assert "selection (scored by tiny)" in out
    assert "scorer window (--scorer)" in err


# ---------------------------------------------------------------- what can't be measured


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_without_an_address(qps: Qps, model: Path) -> None:
    code, out, err = qps("--model", model)
    assert (code, out) == (2, "")
    assert "bench qps needs the address of a running vLLM server" in err
    assert "--url http://localhost:8000/v1" in err


@pytest.mark.parametrize("engine", ["torch", "openai"])
def test_another_engine(qps: Qps, vllm: FakeVllm, model: Path, engine: str) -> None:
    code, _, err = qps("--model", model, "--url", vllm.url, "--engine", engine)
    assert code == 2
    assert f"bench qps measures a vLLM server, not engine {engine}" in err
    assert "--engine vllm --url" in err


def test_without_a_model(qps: Qps, vllm: FakeVllm) -> None:
    code, _, err = qps("--url", vllm.url)
    assert code == 2
    assert "bench qps needs --model" in err


def test_a_window_beyond_the_context(qps: Qps, vllm: FakeVllm, model: Path) -> None:
    code, _, err = qps("--url", vllm.url, "--model", model)
    assert code == 2
    assert "4096 tokens and 16 new ones are more than the 4096 that tiny reads" in err


def test_without_test_files(qps: Qps, vllm: FakeVllm, model: Path, empty: Repo) -> None:
    empty.commit({"add.py": "def add(a, b):\n    return a - b\n", "tests/conftest.py": "X = 1\n"})
    code, _, err = qps("--repo", empty.root, "--url", vllm.url, "--model", model, *SMALL)
    assert code == 2
    assert "no test files: a prompt is packed for each" in err
    assert "--test PATH" in err
    assert not vllm.bodies


def test_a_server_that_can_not_be_reached(qps: Qps, model: Path) -> None:
    port = closed_port()
    code, _, err = qps("--url", f"http://127.0.0.1:{port}", "--model", model, *SMALL)
    assert code == 4
    assert f"can't reach a server at 127.0.0.1:{port}" in err


def test_a_server_without_the_plugin(qps: Qps, vllm: FakeVllm, model: Path) -> None:
    vllm.plugin = False
    code, _, err = qps("--url", vllm.url, "--model", model, *SMALL)
    assert code == 4
    assert "has no agentctx plugin" in err
    assert 'pip install "agentctx[vllm]"' in err
    assert not vllm.bodies


def test_a_server_that_refuses_a_request_alone(qps: Qps, vllm: FakeVllm, model: Path) -> None:
    vllm.behave = lambda body: 400
    code, out, err = qps("--url", vllm.url, "--model", model, *SMALL)
    assert (code, out) == (4, "")
    assert "the server didn't answer one dense request alone: HTTP 400: no, 400" in err


def test_secrets_are_not_sent_to_another_machine(qps: Qps, vllm: FakeVllm, model: Path, project: Repo) -> None:
    basic = project.root / "tallies/basic.py"
    basic.write_text(f'TOKEN = "{GITHUB}"\n' + basic.read_text())
    args = ("--model", model, *SMALL, "--pin", "tallies/basic.py", "--test", "tests/test_basic.py")
    code, _, err = qps("--url", f"http://0.0.0.0:{vllm.port}", *args)  # leads here, and is no loopback address
    assert code == 2
    assert "the prompt holds what looks like secrets" in err
    assert GITHUB not in err
    assert not vllm.bodies


def test_a_key_is_never_shown(qps: Qps, vllm: FakeVllm, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTCTX_API_KEY", KEY)
    n_sent = 0

    def behave(body: dict[str, Any]) -> str | int:
        nonlocal n_sent
        n_sent += 1
        return ANSWER if n_sent <= 2 else 401

    vllm.behave = behave
    code, out, err = qps("--url", vllm.url, "--model", model, *SMALL, "--prompts", "1")
    assert code == 0, err
    assert "HTTP 401" in out
    assert KEY not in out + err


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_nothing_running(
    project: Repo, vllm: FakeVllm, model: Path, sent: signal.Signals
) -> None:
    """Two answers for the requests alone, then silence: all three of the first rate wait when it is interrupted."""
    left = iter([ANSWER, ANSWER])
    vllm.behave = lambda body: next(left, HANG)
    process = subprocess.Popen(
        [sys.executable, "-m", "agentctx", "bench", "qps", "--url", vllm.url, "--model", str(model), *SMALL],
        cwd=project.root,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    try:
        assert vllm.wait_for(lambda it: it.n_open == 3), process.poll()
        process.send_signal(sent)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, err
    assert out == ""
    assert err.endswith("agentctx: interrupted; nothing was left half done\n")
    assert vllm.wait_for(lambda it: (it.n_open, it.n_left) == (0, 3))
