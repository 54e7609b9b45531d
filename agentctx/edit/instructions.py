"""What to tell the model about each format, how its answer starts, and where it stops. Pure.

Short on purpose: models of 0.1 to 1.5 billion parameters copy an example better than they follow a list of rules.
"""

from __future__ import annotations

from agentctx.edit.target import EditTarget
from agentctx.edit.whole_function import answer_prefix as _function_prefix
from agentctx.errors import UsageError

STOP_FENCE = "\n```"

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
            f"Write the corrected {kind} `{target.qualname}` of {target.path}, whole, in one ```python block. "
            "Change what is wrong, keep the rest, and leave nothing out."
        )
    if format_name == "function":
        raise UsageError("the function format needs a target", hint="name one with --focus PATH#SYMBOL")
    raise UsageError(f"unknown edit format {format_name!r}")


def answer_prefix(format_name: str, target: EditTarget | None = None) -> str:
    """What the assistant's turn starts with ('' = nothing): for `function` the fence and the target's own header."""
    if format_name == "function" and target is not None:
        return _function_prefix(target)
    return "```diff\n" if format_name == "diff" else ""


def stop_strings(format_name: str) -> tuple[str, ...]:
    """Texts at which generation ends."""
    return (STOP_FENCE,) if format_name in ("function", "diff") else ()
