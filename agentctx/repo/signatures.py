"""Whether a changed signature can break its callers. Pure; Python only so far."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Parameters:
    """What a caller must know. `required` and `optional` are positional names in order."""

    required: tuple[str, ...]
    optional: tuple[str, ...]
    keyword_required: frozenset[str]
    keyword_optional: frozenset[str]
    var_positional: bool
    var_keyword: bool


def parameters(signature: str) -> Parameters | None:
    """The parameters of a one-line `def` signature, None for what isn't one (or can't be parsed)."""
    text = signature.strip().removesuffix(":")
    if not text.startswith(("def ", "async def ")):
        return None
    try:
        node = ast.parse(text + ": pass").body[0]
    except SyntaxError:
        return None
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return None
    args = node.args
    positional = [arg.arg for arg in (*args.posonlyargs, *args.args)]
    n_required = len(positional) - len(args.defaults)
    has_default = [default is not None for default in args.kw_defaults]
    named = [arg.arg for arg in args.kwonlyargs]
    return Parameters(
        required=tuple(positional[:n_required]),
        optional=tuple(positional[n_required:]),
        keyword_required=frozenset(n for n, d in zip(named, has_default, strict=True) if not d),
        keyword_optional=frozenset(n for n, d in zip(named, has_default, strict=True) if d),
        var_positional=args.vararg is not None,
        var_keyword=args.kwarg is not None,
    )


def severity_of_change(old: str, new: str) -> str | None:
    """'error' when calls of the old signature may fail or mean something else, 'note' when they still work.

    None: the parameters are the same (a changed annotation or return type is no change for a caller).
    """
    before, after = parameters(old), parameters(new)
    if before is None or after is None:
        return None if " ".join(old.split()) == " ".join(new.split()) else "warning"
    if before == after:
        return None
    return "note" if _accepts(after, before) else "error"


def _accepts(after: Parameters, before: Parameters) -> bool:
    """Whether every call that fitted `before` fits `after` with the same meaning."""
    old = (*before.required, *before.optional)
    new = (*after.required, *after.optional)
    if new[: len(old)] != old or len(after.required) > len(before.required):
        return False
    if not after.keyword_required <= before.keyword_required:
        return False
    lost = (before.keyword_required | before.keyword_optional) - (after.keyword_required | after.keyword_optional)
    if lost and not after.var_keyword:
        return False
    return (after.var_positional or not before.var_positional) and (after.var_keyword or not before.var_keyword)
