"""Which changes of a signature break a caller."""

from __future__ import annotations

from typing import Any

import pytest

from agentctx.repo.signatures import parameters, severity_of_change

SAME, NOTE, ERROR, WARNING = None, "note", "error", "warning"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        # nothing that a caller sees
        ("def f(a)", "def f(a)", SAME),
        ("def f(a)", "def f(a: int) -> str", SAME),
        ("def f(a=1)", "def f(a=2)", SAME),
        ("def f(a: int) -> int", "def f(a: str) -> str:", SAME),
        ("def f(*, a, b)", "def f(*, b, a)", SAME),
        ("def f[T: (int, list[str])](a: T) -> T", "def f(a)", SAME),
        ("def f(a, /)", "def f(b, /)", SAME),
        # calls still work
        ("def f(a)", "def f(a, b=1)", NOTE),
        ("def f(a, b)", "def f(a, b=1)", NOTE),
        ("def f(a)", "def f(a, *rest)", NOTE),
        ("def f(a)", "def f(a, **more)", NOTE),
        ("def f(a)", "def f(a, *, b=1)", NOTE),
        ("def f(a, *, b)", "def f(a, *, b=1)", NOTE),
        ("def f(*, a=1)", "def f(**more)", NOTE),
        ("def f(*, b)", "def f(b)", NOTE),
        ("def f(*, b=1)", "def f(b=1)", NOTE),
        ("def f(a, /)", "def f(a)", NOTE),
        ("def f(a, b)", "def f(*rest, **more)", NOTE),
        ("def f(a, /, b)", "def f(*rest, b)", ERROR),
        ("def f(*rest)", "def f(*rest, a=1)", NOTE),
        # calls fail, or mean something else
        ("def f(a)", "def f()", ERROR),
        ("def f(a)", "def f(b)", ERROR),
        ("def f(a)", "def f(a, b)", ERROR),
        ("def f(a, b)", "def f(b, a)", ERROR),
        ("def f(a, b=1)", "def f(a, b)", ERROR),
        ("def f(a)", "def f(*, a)", ERROR),
        ("def f(a)", "def f(a, /)", ERROR),
        ("def f(a, *, b=1)", "def f(a, *, b)", ERROR),
        ("def f(a)", "def f(a, *, b)", ERROR),
        ("def f(*, a)", "def f()", ERROR),
        ("def f(a, *rest)", "def f(a)", ERROR),
        ("def f(a, **more)", "def f(a)", ERROR),
        ("def f(a, *rest)", "def f(a, b=1, *rest)", ERROR),
        ("def f(a, b)", "def f(b, **more)", ERROR),
        ("def f(a, b=1)", "def f(a, *, b=1)", ERROR),
        ("def f(a, b)", "def f(a, *rest)", ERROR),
        ("def f(a)", "async def f(a)", ERROR),
        ("async def f(a)", "def f(a)", ERROR),
        # not understood
        ("fn f(a)", "fn f(b)", WARNING),
        ("fn  f(a)", "fn f(a)", SAME),
        ("def f(a)", "def f(", WARNING),
    ],
)
def test_severity(old: str, new: str, expected: str | None) -> None:
    assert severity_of_change(old, new) == expected


def test_what_a_caller_must_know() -> None:
    found = parameters("async def f(a, /, b, c=1, *rest, d, e=2, **more) -> int:")
    assert found is not None
    assert (found.positional, found.n_required, found.is_async) == (("", "b", "c"), 2, True)
    assert (found.keyword_required, found.keyword_optional) == ({"d"}, {"e"})
    assert (found.var_positional, found.var_keyword) == (True, True)


@pytest.mark.parametrize("text", ["", "class A", "def", "def f(a", "lambda a: a", "def f(a): pass; x"])
def test_what_is_no_signature(text: str) -> None:
    assert parameters(text) is None


def _bind(signature: str, args: tuple[int, ...], given: tuple[str, ...]) -> dict[str, int] | type[TypeError]:
    """What the call binds, by parameter; a TypeError's class where it doesn't fit."""
    space: dict[str, Any] = {}
    exec(f"{signature}: return dict(locals())", space)  # fixed texts, from below
    try:
        return space["f"](*args, **dict.fromkeys(given, 9))  # type: ignore[no-any-return]
    except TypeError:
        return TypeError


def _renamed(before: dict[str, int], after: dict[str, int], positional_only: bool) -> dict[str, int]:
    """The first parameter under its new name where no caller can know the old one."""
    if not (positional_only and after):
        return before
    first, *others = before
    return {next(iter(after)): before[first], **{name: before[name] for name in others}}


SHAPES = ["", "a", "b", "a=1", "a, b", "b, a", "a, b=1", "a=1, b=1", "a, /", "a, /, b=1", "a=1, /", "*, a", "*, a=1",
          "*, a, b=1", "a, *, b", "a, *, b=1", "b=1, *, a=1"]  # fmt: skip


def test_against_python_itself() -> None:
    """`note` means: every call that fitted still fits and binds the same values to the same names."""
    calls = [(tuple(range(n)), given) for n in range(3) for given in ((), ("a",), ("b",), ("a", "b"))]
    for old in SHAPES:
        for new in SHAPES:
            fits = True
            for call in calls:
                before, after = (_bind(f"def f({shape})", *call) for shape in (old, new))
                if isinstance(before, dict):
                    fits &= isinstance(after, dict) and _renamed(before, after, "/" in old).items() <= after.items()
            if old != new:
                assert severity_of_change(f"def f({old})", f"def f({new})") == ("note" if fits else "error"), (old, new)
