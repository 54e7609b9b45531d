"""Mutated logs of every tool, a few of those that `agentctx bench fuzz --logs` reads."""

from __future__ import annotations

import random

import pytest

from agentctx.bench.fuzz import logs as fuzz_logs
from tests.casefile import CASES


@pytest.fixture(scope="module")
def seeds() -> list[fuzz_logs.Seed]:
    return fuzz_logs.seeds_below([CASES / "logs", CASES / "logs_others"])


def test_mutated_logs_are_read(seeds: list[fuzz_logs.Seed]) -> None:
    found = fuzz_logs.run(150, 20, seeds)
    assert found.failures == ()
    assert found.n_failing_tests > 150


def test_a_case_is_the_same_each_time(seeds: list[fuzz_logs.Seed]) -> None:
    assert fuzz_logs.mutated(7, 1, seeds) == fuzz_logs.mutated(7, 1, seeds)
    assert fuzz_logs.mutated(7, 1, seeds) != fuzz_logs.mutated(8, 1, seeds)


def test_seeds_are_logs_with_their_repositories(seeds: list[fuzz_logs.Seed]) -> None:
    assert len(seeds) > 100
    jest = next(seed for seed in seeds if seed.name == "jest.md")
    assert b"test/cart.test.js" in jest.data
    assert "test/cart.test.js" in jest.paths


def test_every_mutation_takes_an_empty_log(seeds: list[fuzz_logs.Seed]) -> None:
    for mutation in fuzz_logs.MUTATIONS:
        mutation(b"", b"", random.Random(1))
