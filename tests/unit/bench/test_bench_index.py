"""`agentctx bench index`: a tree of the size asked for, and figures that can be true."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from agentctx.bench.index.tree import make_tree
from agentctx.cli.main import main
from agentctx.repo.scan import scan

CODE = "def parse(text):\n    return text.split()\n"


def small(root: Path) -> Path:
    for name, text in {
        "a.py": CODE,
        "pkg/b.py": "import a\n\n\ndef use(): return a.parse('x')\n",
        "n.md": "# n\n",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


def test_a_tree_of_any_size_without_equal_files(tmp_path: Path) -> None:
    assert make_tree(small(tmp_path / "one"), tmp_path / "many", files=8) == 8
    files = scan(tmp_path / "many").files
    assert [file.path for file in files][:4] == [
        "copy00001/a.py",
        "copy00001/n.md",
        "copy00001/pkg/b.py",
        "copy00002/a.py",
    ]
    assert len({file.digest for file in files}) == len(files) == 8
    assert files[0].data == CODE.encode() + b"\n# copy 1\n"
    assert make_tree(small(tmp_path / "one"), tmp_path / "twice", copies=2) == 6


def test_the_figures(tmp_path: Path) -> None:
    repo = small(tmp_path / "one")
    done = CliRunner().invoke(main, ["bench", "index", "--repo", str(repo), "--files", "7", "--format", "json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.output)
    assert (found["schema_version"], found["files"]) == (1, 7)
    assert 0 < found["warm_survey"] < found["warm"]
    assert 0 < found["cold_survey"] < found["cold"] < found["select_cold"] + 60
    assert 10e6 < found["peak_rss"] < 2e9
    assert 0 < found["update"]["p50"] <= found["update"]["p95"] <= found["update"]["max"] < 10
    assert 0 < found["update"]["cpu_p50"] <= found["update"]["cpu_p95"]
    assert found["link"] > 0
    both = ["bench", "index", "--repo", str(repo), "--files", "7", "--copies", "2"]
    assert CliRunner().invoke(main, both, standalone_mode=False).exception is not None
