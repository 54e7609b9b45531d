"""`agentctx bench fuzz`: it finds what is wrong, and says so."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random

from click.testing import CliRunner

from agentctx.bench.fuzz.files import closed, kept_text, wrong_units
from agentctx.bench.fuzz.mutate import mutated
from agentctx.cli.main import main
from agentctx.repo.parse import parse
from tests.languages import samples
from tests.unit_checks import source


def write_samples(folder: Path) -> None:
    for files in samples().values():
        for name, data in files[:1]:
            (folder / name).write_bytes(data)
    (folder / "named.txt").mkdir()
    (folder / "a.log").write_text("FAILED tests/test_a.py::test_x - assert 1 == 2\n")


def test_whole_and_broken_samples(tmp_path: Path) -> None:
    write_samples(tmp_path)
    ran = CliRunner().invoke(main, ["bench", "fuzz", str(tmp_path), "--files", "56", "--logs", "5", "--format", "json"])
    assert ran.exit_code == 0, ran.output
    shown = json.loads(ran.output)
    assert shown["files"]["n_files"] == 56
    assert len(shown["files"]["by_language"]) == 14
    assert {failure["kind"] for failure in shown["files"]["failures"]} <= {"errors"}
    assert (shown["logs"]["n"], shown["logs"]["failures"]) == (5, [])


def test_one_language_as_text(tmp_path: Path) -> None:
    write_samples(tmp_path)
    ran = CliRunner().invoke(main, ["bench", "fuzz", str(tmp_path), "--files", "5", "--language", "go"])
    assert ran.exit_code == 0
    assert "5 files" in ran.output
    assert "go 5;" in ran.output
    assert "0 crashes" in ran.output
    ran = CliRunner().invoke(main, ["bench", "fuzz", str(tmp_path), "--files", "0", "--logs", "4"])
    assert ran.output.startswith("4 mutated logs, ")
    assert ran.output.endswith(" failing tests found in them\n0 failures\n")
    (tmp_path / "a.log").unlink()
    ran = CliRunner().invoke(main, ["bench", "fuzz", str(tmp_path), "--files", "0", "--logs", "4"])
    assert "no logs" in str(ran.exception)
    ran = CliRunner().invoke(main, ["bench", "fuzz", str(tmp_path), "--language", "cobol"])
    assert "no files in cobol" in str(ran.exception)


def test_wrong_units_are_seen() -> None:
    file = source("a.go", "package a\n\nfunc f() {\n\ta()\n\tb()\n\tc()\n}\n")
    syntax = parse(file)
    assert wrong_units(file, syntax) == ""
    header, body = syntax.units[1], syntax.units[2]
    units = (*syntax.units[:1], replace(header, spine=()), replace(body, spine=(1,)), *syntax.units[3:])
    assert "not closed" not in wrong_units(file, replace(syntax, units=units))
    units = (*syntax.units[:2], replace(body, spine=(1,)), *syntax.units[3:])
    assert wrong_units(file, replace(syntax, units=units)) == "the spine of unit 2 is not closed"
    assert wrong_units(file, replace(syntax, units=syntax.units[:-1])) == "the units don't tile the file"


def test_kept_text() -> None:
    file = source("a.go", "package a\n\nfunc f() {\n\ta()\n\n\tb()\n}\n")
    syntax = parse(file)
    body = next(unit.index for unit in syntax.units if unit.kind.value == "body")
    assert kept_text(file, syntax, closed(syntax, [body])) == (
        b"// ... 2 lines left out ...\nfunc f() {\n\ta()\n\n\t// ... 1 line left out ...\n}\n"
    )


def test_mutations_are_the_same_for_the_same_seed() -> None:
    data = b"def f():\n    return 1\n" * 20
    assert mutated(data, Random(3)) == mutated(data, Random(3))
    assert len({mutated(data, Random(seed)) for seed in range(50)}) > 40
