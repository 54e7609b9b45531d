"""`agentctx bench whole`: good on the samples, and it sees units that are cut, moved or alone, and new errors."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner

from agentctx.assemble import restrict
from agentctx.bench.whole.measure import Tally, WholeFailure, WholeResult, Written, check_file, run, shown, split_units
from agentctx.bench.whole.pack import Group, chosen_files, packed
from agentctx.cli.main import main
from tests.languages import samples

CODE = b"""import os


def one(a):
    \"\"\"What it says.\"\"\"
    if a:
        b = 1
        a = b + 1
    return os.sep * a


def two():
    \"\"\"Twice.\"\"\"
    for n in range(2):
        print(n)
        print(n)
        print(n)
    return one(1)
"""


def group(tmp_path: Path, data: bytes = CODE) -> Group:
    (tmp_path / "a.py").write_bytes(data)
    return packed(chosen_files(tmp_path, 9, 0), Random(0))


def written(made: Group, numbers: list[int]) -> Written:
    """A selection of these units of a.py and the line that names it."""
    kept = frozenset([0, *(made.places[("a.py", number)] for number in numbers)])
    return Written(0.5, kept, *restrict(made.document, kept))


def with_spine(made: Group, number: int) -> list[int]:
    return sorted({number, *made.syntax["a.py"].units[number].spine})


def test_samples_of_all_languages(tmp_path: Path) -> None:
    for files in samples().values():
        for name, data in files:
            (tmp_path / name).write_bytes(data)
    (tmp_path / "m.py").write_bytes(CODE)
    ran = CliRunner().invoke(main, ["bench", "whole", str(tmp_path), "--format", "json"])
    assert ran.exit_code == 0, ran.output
    found = json.loads(ran.output)
    assert (found["schema_version"], found["n_repositories"], found["failures"]) == (1, 1, [])
    assert len(found["languages"]) == 15
    assert found["n_selections"] > 40
    assert all(tally["n_units"] >= tally["n_texts"] >= tally["n_files"] for tally in found["languages"].values())


def test_one_language_as_text(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(CODE)
    (tmp_path / "b.go").write_bytes(samples()["go"][0][1])
    ran = CliRunner().invoke(main, ["bench", "whole", str(tmp_path), "--language", "go"])
    assert ran.exit_code == 0
    assert "| go | 1 | 0 | 0 | " in ran.output
    assert "python" not in ran.output
    ran = CliRunner().invoke(main, ["bench", "whole", str(tmp_path), "--language", "cobol"])
    assert "no source files in cobol" in str(ran.exception)


def test_the_same_seed_finds_the_same(tmp_path: Path) -> None:
    group(tmp_path)
    assert run([tmp_path], 5, 3) == run([tmp_path], 5, 3)


def test_files_are_chosen_by_language(tmp_path: Path) -> None:
    for name in ("a.py", "b.py", "c.py", "d.go"):
        (tmp_path / name).write_bytes(b"")
    assert [file.language for file in chosen_files(tmp_path, 2, 0)] == ["go", "python", "python"]


def test_split_units_are_seen(tmp_path: Path) -> None:
    made = group(tmp_path)
    last = len(made.syntax["a.py"].units) - 1
    units = with_spine(made, last)
    good = written(made, units)
    assert list(split_units(made, "a.py", units, good)) == []
    assert len(units) > 1
    bare = replace(good, kept=good.kept - {made.places[("a.py", units[0])]})
    assert "kept without its spine" in next(split_units(made, "a.py", [last], bare))
    lost = replace(good, moved={})
    assert "not in its place" in next(split_units(made, "a.py", units, lost))
    text = good.text.text.replace(b"return one(1)", b"return one(2)")
    changed = replace(good, text=replace(good.text, text=text))
    assert [wrong.partition(": ")[2] for wrong in split_units(made, "a.py", units, changed)] == ["not as in the file"]


def test_new_errors_are_seen(tmp_path: Path) -> None:
    made = group(tmp_path)
    units = list(range(len(made.syntax["a.py"].units)))
    good = written(made, units)
    assert shown(good.text, "a.py") == CODE
    broken = replace(good.text, text=good.text.text.replace(b"return one(1)", b"return one(1("))
    tally = Tally()
    found = list(check_file(made, "a.py", [good, replace(good, text=broken)], tally))
    assert [failure.kind for failure in found] == ["split", "errors"]
    assert found[1].detail.startswith("1 > 0 of ")
    assert found[1].whole
    assert (tally.n_texts, tally.n_units) == (2, 2 * len(units))


def test_what_counts_as_bad(tmp_path: Path) -> None:
    more = WholeFailure("errors", "go", "a.go", 0.1, "2 > 1", whole=False)
    result = WholeResult(failures=[more, replace(more, share=0.2)])
    assert result.is_good
    assert result.n_wrong_files("go", whole=False) == 1
    assert not WholeResult(failures=[replace(more, whole=True)]).is_good
    assert not WholeResult(failures=[replace(more, kind="split")]).is_good
    assert WholeResult(failures=[replace(more, kind="split")]).n_split("go") == 1


def test_failures_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group(tmp_path)
    monkeypatch.setattr("agentctx.bench.whole.measure.n_errors", lambda data, language: len(data) % 2 + (data != CODE))
    ran = CliRunner().invoke(main, ["bench", "whole", str(tmp_path), "--show", "1"])
    assert ran.exit_code == 1
    assert "| all | 1 |" in ran.output
    assert f"  errors python {tmp_path.name}/a.py keep 0." in ran.output
