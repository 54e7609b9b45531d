"""Layers of options -> one record; what is refused, and how it is said."""

from __future__ import annotations

from dataclasses import fields

import pytest

from agentctx.config import EditFormat, FailOn, Layer, OnOmission, OverBudget, RunOptions, resolve
from agentctx.errors import ConfigError


def flags(**values: object) -> RunOptions:
    return resolve([Layer("flag", values)]).options


def test_without_layers_everything_is_a_default() -> None:
    resolved = resolve([])
    assert resolved.options == RunOptions()
    assert resolved.sources == dict.fromkeys((option.name for option in fields(RunOptions)), "default")


def test_the_first_layer_that_gives_an_option_wins() -> None:
    layers = [Layer("a", {"budget": 1}), Layer("b", {"budget": 2, "seed": 2}), Layer("c", {"seed": 3, "samples": 3})]
    resolved = resolve(layers)
    assert (resolved.options.budget, resolved.options.seed, resolved.options.samples) == (1, 2, 3)
    assert [resolved.sources[key] for key in ("budget", "seed", "samples", "model")] == ["a", "b", "c", "default"]


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("budget", "4096", 4096),
        ("keep", "0.25", 0.25),
        ("keep", 1, 1.0),
        ("drafter-layers", 3, 3),
        ("force_sparse", "YES", True),
        ("cache", "off", False),
        ("cache", False, False),
        ("protect", "a/*,b.py", ("a/*", "b.py")),
        ("protect", ["a,b", "c"], ("a,b", "c")),
        ("pins", "", ()),
        ("on_omission", "fail", OnOmission.FAIL),
        ("over-budget", "raise", OverBudget.RAISE),
        ("fail_on", "never", FailOn.NEVER),
        ("edit_format", "search-replace", EditFormat.SEARCH_REPLACE),
        ("check_cmd", "make test", "make test"),
    ],
)
def test_values_take_their_type(key: str, value: object, expected: object) -> None:
    assert getattr(flags(**{key: value}), key.replace("-", "_")) == expected
    assert type(getattr(flags(**{key: value}), key.replace("-", "_"))) is type(expected)


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("budget", 0, "--budget is 0; the least is 1"),
        ("budget", "many", "--budget is 'many': "),
        ("budget", True, "--budget is True: must be a whole number"),
        ("budget", 1.5, "--budget is 1.5: must be a whole number"),
        ("keep", 1.01, "--keep is 1.01; the most is 1"),
        ("keep", 0.0, "--keep is 0.0; the least is 0.001"),
        ("keep", "nan", "--keep is 'nan'"),
        ("check_timeout", "inf", "--check-timeout is 'inf'"),
        ("temperature", 2.5, "the most is 2"),
        ("samples", 257, "the most is 256"),
        ("seed", -1, "the least is 0"),
        ("cache", "maybe", "--cache is 'maybe': must be true or false"),
        ("cache", 1, "must be true or false"),
        ("model", "", "--model is '': must be text"),
        ("model", 3, "must be text"),
        ("protect", [1], "must be a list of text"),
        ("on_omission", "repare", "must be one of repair, flag, fail, dense"),
        ("fail_on", ["error"], "must be one of error, warning, note, never"),
    ],
)
def test_bad_values_are_named(key: str, value: object, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        flags(**{key: value})
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("key", "near"),
    [("budgit", "'budget'"), ("on_omision", "'on-omission'"), ("over-budgets", "'over-budget'"), ("test_cmd", None)],
)
def test_unknown_options_are_named_with_a_near_one(key: str, near: str | None) -> None:
    with pytest.raises(ConfigError) as caught:
        resolve([Layer("agentctx.toml", {key: 1})])
    assert caught.value.message == f"unknown option '{key}' in agentctx.toml"
    assert caught.value.hint is not None
    if near is not None:
        assert caught.value.hint == f"did you mean {near}?"


@pytest.mark.parametrize("pair", [{"budget": 9, "keep": 0.5}, {"force_sparse": True, "force_dense": True}])
def test_contradictions_in_one_source(pair: dict[str, object]) -> None:
    with pytest.raises(ConfigError, match=r"contradict each other \(both in flag\)"):
        flags(**pair)


def test_a_contradiction_across_sources_is_settled_by_precedence() -> None:
    resolved = resolve([Layer("flag", {"force_dense": True}), Layer("file", {"force_sparse": True})]).options
    assert (resolved.force_dense, resolved.force_sparse) == (True, False)
    resolved = resolve([Layer("AGENTCTX_KEEP", {"keep": 0.5}), Layer("file", {"budget": 100})]).options
    assert (resolved.keep, resolved.budget) == (0.5, None)
