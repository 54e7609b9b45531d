"""How fast and how large the index is: cold, warm, one file saved; and whole selections. Each in fresh processes."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentctx.bench.index.tree import make_tree, run_json

REQUEST = "the option parser must report which option was repeated"
_CHILD = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from agentctx.bench.index.child import main; main(*sys.argv[2:])"
)


@dataclass(frozen=True, slots=True)
class IndexFigures:
    """Seconds of whole processes but for `*_survey`, `update`, `untold` and `link`; bytes of memory.

    `update`, `untold`: p50 and p95 from a saved file to its answer, told which file it was and not told. `link`: the
    graph of a working set after that, with all syntax in memory.
    """

    files: int
    code_bytes: int
    cold: float
    cold_survey: float
    cold_cpu: float
    warm: float
    warm_survey: float
    peak_rss: int
    warm_rss: int
    update: Mapping[str, float]
    untold: Mapping[str, float]
    link: float
    select_cold: float
    select_warm: float

    def to_dict(self) -> dict[str, Any]:
        made = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {"schema_version": 1, **made, "files_per_second": round(self.files / self.cold_survey, 1)}


def measure(repo: Path, *, files: int | None, copies: int | None, processes: int | None) -> IndexFigures:
    """Measures on a copy of `repo` in a temporary folder, larger where `files` or `copies` say so.

    Raises:
        RepoError: `repo` has nothing to index, or a process failed.
    """
    with tempfile.TemporaryDirectory(prefix="agentctx-bench-") as folder:
        tree = Path(folder) / "tree"
        make_tree(repo, tree, files=files, copies=copies)
        wanted = str(processes) if processes is not None else ""
        cold, cold_all = _child("survey", tree, Path(folder) / "cache", wanted)
        time.sleep(2.1)  # until no file looks as if it might still be being written
        _child("survey", tree, Path(folder) / "cache", wanted)
        warm, warm_all = _child("survey", tree, Path(folder) / "cache", wanted)
        select_cold = _select(tree, Path(folder) / "other")
        select_warm = _select(tree, Path(folder) / "cache")
        updated, _ = _child("update", tree, Path(folder) / "cache", wanted)
    return IndexFigures(
        files=int(cold["files"]),
        code_bytes=int(cold["bytes"]),
        cold=cold_all,
        cold_survey=cold["seconds"],
        cold_cpu=cold["cpu"],
        warm=warm_all,
        warm_survey=warm["seconds"],
        peak_rss=int(cold["peak_rss"]),
        warm_rss=int(warm["peak_rss"]),
        update=updated["told"],
        untold=updated["untold"],
        link=updated["link"],
        select_cold=select_cold,
        select_warm=select_warm,
    )


def _child(kind: str, tree: Path, cache: Path, processes: str) -> tuple[dict[str, Any], float]:
    command = [sys.executable, "-c", _CHILD, json.dumps(sys.path), kind, str(tree), str(cache), processes]
    start = time.perf_counter()
    out = run_json(command, dict(os.environ))
    return json.loads(out), time.perf_counter() - start


def _select(tree: Path, cache: Path) -> float:
    """Seconds of `agentctx select`; the tokenizer is the estimate, the index is what counts here."""
    command = [sys.executable, "-m", "agentctx", "select", REQUEST, "--repo", str(tree), "--format", "json"]
    environment = {
        **os.environ,
        "AGENTCTX_CACHE_DIR": str(cache),
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
    }
    start = time.perf_counter()
    run_json(command, environment)
    return time.perf_counter() - start


def as_text(found: IndexFigures) -> str:
    """A table for people."""
    rows = [
        ("files", f"{found.files}, {found.code_bytes / 1e6:.1f} MB"),
        ("cold", f"{found.cold:.2f} s ({found.files / found.cold_survey:.0f} files/s, {found.cold_cpu:.1f} s of CPU)"),
        ("warm", f"{found.warm:.2f} s, of these {found.warm_survey:.2f} s after the interpreter's start"),
        ("peak memory, cold", f"{found.peak_rss / 2**20:.0f} MiB, all processes"),
        ("peak memory, warm", f"{found.warm_rss / 2**20:.0f} MiB"),
        ("one file saved", _milliseconds(found.update)),
        ("... not told which", _milliseconds(found.untold)),
        ("graph after that", f"{found.link * 1000:.0f} ms"),
        ("select, cold", f"{found.select_cold:.2f} s"),
        ("select, warm", f"{found.select_warm:.2f} s"),
    ]
    return "\n".join(f"{name:<20} {value}" for name, value in rows)


def _milliseconds(found: Mapping[str, float]) -> str:
    cpu = f"{found['cpu_p50'] * 1000:.1f} and {found['cpu_p95'] * 1000:.1f} ms of CPU"
    return f"p50 {found['p50'] * 1000:.1f} ms, p95 {found['p95'] * 1000:.1f} ms ({cpu})"
