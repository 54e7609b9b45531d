"""The whole job on the embedded model, as a user runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable

import jsonschema
import pytest

from agentctx.models.folder import ModelFolder
from agentctx.report.schema import load_schema
from tests.trees import Repo

TEST = "tests/test_basic.py::test_mean_of_empty_list_is_zero"


@pytest.mark.model
@pytest.mark.slow
def test_edit_on_smollm2(repo: Callable[[str], Repo], model_folder: ModelFolder) -> None:
    """What a 135M model writes is not ours to promise; that only a passing edit lands, and what is reported, is."""
    project = repo("mean_empty")
    model = str(model_folder.path)
    command = [
        sys.executable, "-m", "agentctx", "edit", "mean of an empty list must be 0.0", "--repo", str(project.root),
        "--test", TEST, "--model", model, "--drafter", model, "--budget", "700", "--force-sparse", "--samples", "4",
        "--temperature", "0.7", "--seed", "100", "--max-new", "40", "--apply", "--baseline", "--format", "json",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, check=False, timeout=600)
    assert done.returncode in (0, 1), done.stderr.decode()
    report = json.loads(done.stdout)
    jsonschema.validate(report, load_schema())
    assert report["decision"]["mode"] == "sparse"
    assert (report["decision"]["drafter_layers"], report["decision"]["scorer"]) == (6, "hybrid")  # calibrated
    assert report["budget"]["kept"] <= 700 < report["budget"]["packed"]
    assert {"load_main", "score", "prefill", "decode", "ttft", "prefill_dense"} <= set(report["timings"])
    assert [finding for finding in report["findings"] if finding["code"] == "baseline"]
    landed = report["edit"]["outcome"] == "landed"
    assert landed == (done.returncode == 0)
    changed = project.git("status", "--porcelain").split()
    assert changed == (["M", "tallies/basic.py"] if landed else [])
    passes = subprocess.run([sys.executable, "-m", "pytest", "-q", TEST], cwd=project.root, capture_output=True)
    assert (passes.returncode == 0) == landed
