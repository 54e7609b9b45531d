"""The command line with a real model, SmolLM2-135M: skipped where it hasn't been fetched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentctx.models.folder import ModelFolder
from tests.reports import check_json
from tests.trees import ROOT, Repo

pytestmark = pytest.mark.model
LOG = ROOT / "fixtures/repos/leap_year/failure.log"
TEST = "tests/test_rules.py::test_1900_is_not_a_leap_year"


@pytest.fixture
def leap(repo: Callable[[str], Repo]) -> Repo:
    return repo("leap_year")


@pytest.fixture
def fetched(own_world: Path, model_folder: ModelFolder) -> Path:
    """A cache of the test's own that holds the model; returns its folder there."""
    folder = own_world / "cache" / "models"
    folder.mkdir(parents=True)
    link = folder / "smollm2"
    link.symlink_to(model_folder.path)
    return link


def agentctx(*args: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "COLUMNS": "100"}
    return subprocess.run(
        [sys.executable, "-m", "agentctx", *args], cwd=cwd, env=env, capture_output=True, text=True, check=False
    )


def report(done: subprocess.CompletedProcess[str]) -> Any:
    data = json.loads(done.stdout)
    check_json(data)
    return data


def test_the_fetched_model_counts(leap: Repo, fetched: Path) -> None:
    data = report(agentctx("select", "x", "--log", LOG, "--budget", "700", "--format", "json", cwd=leap.root))
    assert data["budget"]["tokenizer"] == "smollm2"
    assert data["budget"]["kept"] <= 700


def test_a_drafter_scores(leap: Repo, fetched: Path) -> None:
    args = ("select", "is_leap is wrong", "--log", LOG, "--budget", "600", "--window", "900", "--drafter", "smollm2")
    data = report(agentctx(*args, "--force-sparse", "--format", "json", cwd=leap.root))
    assert data["decision"]["mode"] == "sparse"
    assert data["decision"]["drafter"] == "smollm2"
    assert data["decision"]["reason"].startswith("--force-sparse")
    assert data["budget"]["kept"] <= 600
    assert {"load_drafter", "score"} <= set(data["timings"])
    assert data["decision"]["drafter_weights"] in ("float32 on cpu", "bfloat16 on cpu", "bfloat16 on cuda:0")
    narrow = [*args, "--force-sparse", "--drafter-device", "cpu", "--drafter-dtype", "bfloat16"]
    assert (
        report(agentctx(*narrow, "--format", "json", cwd=leap.root))["decision"]["drafter_weights"] == "bfloat16 on cpu"
    )
    assert "drafter smollm2 (bfloat16 on cpu)" in agentctx(*narrow, cwd=leap.root).stdout


def test_models_list_and_doctor(leap: Repo, fetched: Path) -> None:
    listed = json.loads(agentctx("models", "list", "--format", "json", cwd=leap.root).stdout)
    rows = {row["name"]: row for row in listed["models"]}
    assert (rows["smollm2"]["fetched"], rows["smollm2"]["path"]) == (True, str(fetched))
    assert not rows["qwen2.5-coder-0.5b"]["fetched"]
    same = agentctx("models", "check", "smollm2", "smollm2", "--format", "json", cwd=leap.root)
    assert same.returncode == 0, same.stderr
    doctor = json.loads(agentctx("doctor", "--format", "json", cwd=leap.root).stdout)
    assert [row["status"] for row in doctor["rows"] if row["name"] == "model"] == ["pass"]


def test_another_engine_than_there_is(leap: Repo, fetched: Path) -> None:
    done = agentctx("edit", "x", "--test", TEST, "--engine", "abacus", cwd=leap.root)
    assert done.returncode == 4, done.stderr
    assert "there is no engine 'abacus'" in done.stderr
    assert leap.git("status", "--porcelain") == ""


@pytest.mark.parametrize(
    ("wish", "code", "said"),
    [
        (["--device", "gpu"], 2, "--device gpu: choose auto, cpu, cuda or cuda:N"),
        (["--drafter", "smollm2", "--drafter-device", "tpu"], 2, "--drafter-device tpu: choose auto"),
        (["--device", "cuda:77"], 4, "--device cuda:77: torch"),
        (["--dtype", "float16"], 2, "'float16' is not one of 'auto', 'float32', 'bfloat16'"),
        (["--dtype", "bfloat16", "--engine", "reference"], 4, "engine reference has no choice of devices and widths"),
        (["--device", "cpu", "--engine", "openai", "--url", "http://127.0.0.1:9/v1"], 4, "engine openai has no choice"),
    ],
)
def test_a_place_that_there_is_not(leap: Repo, fetched: Path, wish: list[str], code: int, said: str) -> None:
    """Whoever wishes is told, before anything is read or written."""
    sparse = ["--force-sparse"] if "--drafter" in wish else []
    done = agentctx("edit", "x", "--test", TEST, "--model", "smollm2", *sparse, *wish, cwd=leap.root)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert leap.git("status", "--porcelain") == ""
