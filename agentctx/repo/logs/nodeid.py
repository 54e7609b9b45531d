"""pytest's names for tests: node ids in summaries, titles above failures. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection

from agentctx.repo.logs.found import RawTest

_LABEL = re.compile(r"^ERROR (?:at (?:setup|teardown) of|collecting) ")
_NAME = re.compile(r"^[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_ENDS = re.compile(r"\](?= - |$)")


def parse_node_id(at: int, text: str, titles: Collection[tuple[tuple[str, ...], str | None]] = ()) -> RawTest | None:
    """The test that `PATH::NAME[param] - message` names, or None when it names none.

    A parameter may itself hold `] - `; then `titles`, the (names, parameter) seen above failures, decide, else its own
    brackets.
    """
    cut = text.find(".py::")
    cut = cut + 3 if cut >= 0 else text.find("::")
    if cut <= 0:
        path = text.split(" - ")[0].strip()
        return RawTest(at, path, ()) if _is_path(path) else None
    path, rest = text[:cut], text[cut + 2 :]
    bracket = rest.find("[")
    message = rest.find(" - ")
    if bracket < 0 or 0 <= message < bracket:
        return RawTest(at, path, _names(rest if message < 0 else rest[:message]))
    names = _names(rest[:bracket])
    return RawTest(at, path, names, _param(rest[bracket + 1 :], names, titles))


def parse_title(at: int, title: str) -> tuple[str, RawTest | None]:
    """(label, test) of a title above a failure: `ERROR at setup of TestX.test_y[param]`."""
    found = _LABEL.match(title)
    label = found[0].strip() if found else "FAILED"
    subject = title[found.end() :] if found else title
    if label == "ERROR collecting":
        return label, RawTest(at, subject, ())
    name = _NAME.match(subject)
    if name is None:
        return label, None
    rest = subject[name.end() :]
    # What follows in spaces is a sub-test's description: 'TestU.test_u (i=1)'.
    param = rest[1 : rest.rindex("]")] if rest.startswith("[") and "]" in rest else None
    return label, RawTest(at, "", tuple(name[0].split(".")), param)


def _names(text: str) -> tuple[str, ...]:
    return tuple(part for part in text.strip().split("::") if part and part != "()")


def _param(text: str, names: tuple[str, ...], titles: Collection[tuple[tuple[str, ...], str | None]]) -> str:
    ends = [found.start() for found in _ENDS.finditer(text)]
    for end in ends:
        if (names, text[:end]) in titles:
            return text[:end]
    balanced = [end for end in ends if text[:end].count("[") == text[:end].count("]")]
    return text[: (balanced or ends)[0]] if ends else text.rstrip("]")


def _is_path(text: str) -> bool:
    return bool(text) and (text.endswith((".py", ".rst", ".txt", ".md")) or "/" in text) and " " not in text[:1]
