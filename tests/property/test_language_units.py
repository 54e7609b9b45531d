"""Units of all languages but Python: they tile, spines are closed, what is kept parses; over whole and broken code."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentctx.bench.fuzz.files import wrong_units
from agentctx.bench.fuzz.mutate import mutated
from agentctx.repo import languages
from agentctx.repo.parse import parse
from tests.languages import CAPTURED, parsed, samples
from tests.unit_checks import check_kept, check_units, source

relaxed = settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])

NESTED = {
    "bash": ("if a; then\n", "fi\n"),
    "c": ("{\n", "}\n"),
    "cpp": ("{\n", "}\n"),
    "csharp": ("namespace A {\n", "}\n"),
    "go": ("func f() {\n", "}\n"),
    "java": ("class A {\n", "}\n"),
    "javascript": ("if (a) {\n", "}\n"),
    "kotlin": ("class A {\n", "}\n"),
    "php": ("<?php if (a) {\n", "}\n"),
    "ruby": ("if a\n", "end\n"),
    "rust": ("mod a {\n", "}\n"),
    "scala": ("object A {\n", "}\n"),
    "tsx": ("if (a) {\n", "}\n"),
    "typescript": ("namespace A {\n", "}\n"),
}


@pytest.mark.parametrize("language", CAPTURED)
def test_samples_are_whole_and_have_every_kind_of_unit(language: str) -> None:
    kinds = set()
    for number in range(len(samples()[language])):
        file, syntax = parsed(language, number)
        assert syntax.language == language or (language, syntax.language) == ("c", "cpp")
        assert not syntax.n_errors
        check_units(file, syntax)
        kinds |= {unit.kind.value for unit in syntax.units}
    assert {"header", "body", "close"} <= kinds


@relaxed
@given(
    st.sampled_from(CAPTURED),
    st.integers(0, 2),
    st.integers(0, 2**32),
    st.floats(0, 1),
    st.sampled_from([b"\n", b"\r\n"]),
)
def test_what_is_kept_parses(language: str, number: int, seed: int, share: float, endings: bytes) -> None:
    file, syntax = parsed(language, number, endings)
    random = Random(seed)
    check_kept(file, syntax, [unit.index for unit in syntax.units if random.random() < share])


@pytest.mark.parametrize("language", CAPTURED)
def test_broken_code_still_has_units(language: str) -> None:
    for seed in range(60):
        random = Random(f"{language}:{seed}")
        name, data = random.choice(samples()[language])
        file = source(name, mutated(data, random))
        syntax = parse(file)
        assert not wrong_units(file, syntax)
        assert [unit.lines.start for unit in syntax.units[1:]] == [unit.lines.end + 1 for unit in syntax.units[:-1]]


@pytest.mark.parametrize("language", CAPTURED)
def test_deep_nesting(language: str) -> None:
    opening, closing = NESTED[language]
    suffix = languages.LANGUAGES[language].extensions[0]
    for text in (opening * 3000, opening * 60 + closing * 60, "(" * 5000, "a" + ".b()" * 1000 + "\n"):
        file = source(f"deep.{suffix}", text)
        check_units(file, parse(file))


@pytest.mark.parametrize("language", CAPTURED)
def test_small_and_odd_files(language: str) -> None:
    suffix = languages.LANGUAGES[language].extensions[0]
    for data in (
        b"",
        b"\n",
        b"\r\n\r\n",
        b"\0",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"// a",
        b"# a\n\n",
        b"/* a\n",
        b"\x0c\n x",
    ):
        file = source(f"odd.{suffix}", data)
        check_units(file, parse(file))
