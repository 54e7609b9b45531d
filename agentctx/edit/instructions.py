"""What to tell the model about each format, how its answer starts, and where it stops. Pure.

Short on purpose: models of 0.1 to 1.5 billion parameters copy an example better than they follow a list of rules.
"""

from __future__ import annotations

from agentctx.edit.target import EditTarget
from agentctx.edit.text import encoding_of
from agentctx.edit.whole_function import answer_prefix as _function_prefix
from agentctx.errors import UsageError

STOP_FENCE = "\n```"
QUOTED_LINES = 40  # a longer target is in the prompt as code only

_SEARCH_REPLACE = """\
Answer with one or more blocks of this form and nothing else:

path/of/the/file.py
<<<<<<< SEARCH
the old lines, copied exactly
=======
the new lines
>>>>>>> REPLACE

Copy enough old lines that they stand in only one place of the file."""

_DIFF = """\
Answer with a unified diff in one ```diff block and nothing else. Name the file in --- a/path and +++ b/path lines.
Copy three unchanged lines before and after each change."""


def instructions(format_name: str, target: EditTarget | None = None) -> str:
    """The text that asks for an answer in this format.

    Raises:
        UsageError: an unknown format, or `function` without a target.
    """
    if format_name == "search-replace":
        return _SEARCH_REPLACE
    if format_name == "diff":
        return _DIFF
    if format_name == "function" and target is not None:
        kind = "class" if target.header_text.lstrip().startswith("class") else "function"
        return (
            f"{_as_it_is(target, kind)}Write the corrected {kind} `{target.qualname}` of {target.path}, whole, in one "
            "```python block. Change what is wrong, keep the rest, and leave nothing out."
        )
    if format_name == "function":
        raise UsageError("the function format needs a target", hint="name one with --focus PATH#SYMBOL")
    raise UsageError(f"unknown edit format {format_name!r}")


def _as_it_is(target: EditTarget, kind: str) -> str:
    """The target's text once more, next to the answer: models of this size copy what they have just read."""
    if target.text.count(b"\n") > QUOTED_LINES:
        return ""
    text = target.text.decode(encoding_of(target.source)).replace("\r\n", "\n").rstrip("\n")
    return f"The {kind} as it is now:\n```python\n{target.indent}{text.lstrip()}\n```\n"


def answer_prefix(format_name: str, target: EditTarget | None = None) -> str:
    """What the assistant's turn starts with ('' = nothing): for `function` the fence and the target's own header."""
    if format_name == "function" and target is not None:
        return _function_prefix(target)
    return "```diff\n" if format_name == "diff" else ""


def stop_strings(format_name: str, target: EditTarget | None = None) -> tuple[str, ...]:
    """Texts at which generation ends.

    For `function` also the next definition at the target's depth: its own header is given, so what a model writes
    there is something else, and small models go on writing.
    """
    if format_name != "function":
        return (STOP_FENCE,) if format_name == "diff" else ()
    indents = dict.fromkeys(("", target.indent if target is not None else ""))
    beginnings = [f"\n{indent}{word}" for indent in indents for word in ("def ", "async def ", "class ", "@")]
    return (STOP_FENCE, *beginnings)


def without_stop(text: str, stops: tuple[str, ...]) -> str:
    """The text up to the first of `stops`; a closing fence stays, the answer's form needs it."""
    ends = [at for stop in stops if stop != STOP_FENCE and (at := text.find(stop)) >= 0]
    return text[: min(ends) + 1] if ends else text
