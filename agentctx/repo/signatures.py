"""Whether a changed signature can break its callers. Pure; Python only so far."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

_TYPE_PARAMETERS = re.compile(r"^((?:async\s+)?def\s+\w+)\s*\[")


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a caller must know. `positional` are names in order, '' for those that can't be given by name."""

    positional: tuple[str, ...]
    n_required: int  # of the positional ones: the first n
    keyword_required: frozenset[str]
    keyword_optional: frozenset[str]
    var_positional: bool
    var_keyword: bool
    is_async: bool

    @property
    def names(self) -> frozenset[str]:
        """All that can be given by name."""
        return frozenset(self.positional) - {""} | self.keyword_required | self.keyword_optional


def parameters(signature: str) -> Parameters | None:
    """The parameters of a one-line `def` signature, None for what isn't one (or can't be parsed)."""
    text = _without_type_parameters(signature.strip().removesuffix(":"))
    if not text.startswith(("def ", "async def ")):
        return None
    try:
        body = ast.parse(text + ": pass").body
    except SyntaxError:
        return None
    if len(body) != 1 or not isinstance(node := body[0], ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    args = node.args
    has_default = [default is not None for default in args.kw_defaults]
    named = [arg.arg for arg in args.kwonlyargs]
    positional = (*("" for _ in args.posonlyargs), *(arg.arg for arg in args.args))
    return Parameters(
        positional=positional,
        n_required=len(positional) - len(args.defaults),
        keyword_required=frozenset(n for n, d in zip(named, has_default, strict=True) if not d),
        keyword_optional=frozenset(n for n, d in zip(named, has_default, strict=True) if d),
        var_positional=args.vararg is not None,
        var_keyword=args.kwarg is not None,
        is_async=isinstance(node, ast.AsyncFunctionDef),
    )


def _without_type_parameters(text: str) -> str:
    """`def f[T: (int, str)](a: T)` -> `def f(a: T)`: callers don't see them, and older Pythons can't parse them."""
    found = _TYPE_PARAMETERS.match(text)
    if found is None:
        return text
    depth = 0
    for at in range(found.end() - 1, len(text)):
        depth += {"[": 1, "]": -1}.get(text[at], 0)
        if not depth:
            return found[1] + text[at + 1 :]
    return text


def severity_of_change(old: str, new: str) -> str | None:
    """'error' when calls of the old signature may fail or mean something else, 'note' when they still work.

    None: the parameters are the same (a changed annotation or return type is no change for a caller).
    'warning': they differ and can't be compared.
    """
    before, after = parameters(old), parameters(new)
    if before is None or after is None:
        return None if " ".join(old.split()) == " ".join(new.split()) else "warning"
    if before == after:
        return None
    return "note" if _accepts(after, before) else "error"


def _accepts(after: Parameters, before: Parameters) -> bool:
    """Whether every call that fitted `before` fits `after` with the same meaning."""
    return (
        after.is_async == before.is_async
        and _places_agree(after, before)
        and (after.var_keyword or (not before.var_keyword and before.names <= after.names))
        and _needs_no_more(after, before)
    )


def _places_agree(after: Parameters, before: Parameters) -> bool:
    """What is given by position arrives at the same parameter, or in `*rest`."""
    for old, new in zip(before.positional, after.positional, strict=False):
        if old not in ("", new) and (new or old in after.names):
            return False
    longer = len(after.positional) > len(before.positional)
    shorter = len(after.positional) < len(before.positional)
    if before.var_positional:
        return after.var_positional and not longer
    return after.var_positional or not shorter


def _needs_no_more(after: Parameters, before: Parameters) -> bool:
    """Whatever `after` requires was given in every call: at its place, or by name."""
    required = {*after.positional[before.n_required : after.n_required], *after.keyword_required}
    return required <= before.keyword_required
