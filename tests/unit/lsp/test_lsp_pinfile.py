"""A pin goes into agentctx.toml, and nothing else there changes."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentctx.lsp.pinfile import add_pin

PIN = "a/b.py#C.m"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("", f'pins = ["{PIN}"]\n', id="new file"),
        pytest.param("budget = 8\n", f'budget = 8\npins = ["{PIN}"]\n', id="no pins"),
        pytest.param("budget = 8", f'budget = 8\npins = ["{PIN}"]\n', id="no final newline"),
        pytest.param("budget = 8\r\n", f'budget = 8\r\npins = ["{PIN}"]\r\n', id="crlf"),
        pytest.param("[runs.x]\na = 1\n", f'pins = ["{PIN}"]\n\n[runs.x]\na = 1\n', id="before the first table"),
        pytest.param(
            'x = [\n["not a table"],\n]\n[runs]\n',
            f'x = [\n["not a table"],\n]\npins = ["{PIN}"]\n\n[runs]\n',
            id="brackets",
        ),
        pytest.param("pins = []\n", f'pins = ["{PIN}"]\n', id="empty"),
        pytest.param('pins = ["x.py"] # why\n', f'pins = ["{PIN}", "x.py"] # why\n', id="one line"),
        pytest.param(
            'pins = [  # mine\n    "x.py",  # why\n]\n',
            f'pins = [  # mine\n    "{PIN}",\n    "x.py",  # why\n]\n',
            id="lines with comments",
        ),
        pytest.param("pins = [\r\n]\r\n", f'pins = [\r\n  "{PIN}",\r\n]\r\n', id="empty lines"),
        pytest.param('"pins" = ["x.py"]\n', f'"pins" = ["{PIN}", "x.py"]\n', id="quoted key"),
        pytest.param(
            'x = """\npins = []\n"""\npins = ["y.py"]\n',
            f'x = """\npins = []\n"""\npins = ["{PIN}", "y.py"]\n',
            id="key within text",
        ),
        pytest.param('[t]\npins = ["y.py"]\n', f'pins = ["{PIN}"]\n\n[t]\npins = ["y.py"]\n', id="key of a table"),
    ],
)
def test_add_pin(before: str, after: str) -> None:
    made = add_pin(before, PIN)
    assert made is not None
    assert made.apply(before) == after


def test_a_new_key_repeats_what_it_replaces() -> None:
    made = add_pin("budget = 8\n", PIN, ["x.py"])
    assert made is not None
    assert tomllib.loads(made.apply("budget = 8\n"))["pins"] == [PIN, "x.py"]


@pytest.mark.parametrize("text", [f'pins = ["{PIN}"]', "pins = [", 'pins = "x"', "pins = [1]", "pins.x = 1"])
def test_nothing_to_do_or_nothing_sensible(text: str) -> None:
    assert add_pin(text, PIN) is None


@given(st.text(), st.lists(st.text(min_size=1), max_size=3), st.sampled_from(["", "k = 1\n", "[t]\nk = 1\n", "# c"]))
def test_the_result_is_valid_and_has_the_pin(pin: str, old: list[str], rest: str) -> None:
    made = add_pin(rest, pin, old)
    if made is None:  # a character that TOML has no escape for in JSON's form
        assert not pin.isprintable() or any(not one.isprintable() for one in old)
        return
    table = tomllib.loads(made.apply(rest))
    assert table.pop("pins") == [pin, *dict.fromkeys(old)]
    assert table == tomllib.loads(rest)
