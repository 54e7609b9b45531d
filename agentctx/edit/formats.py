"""A model's answer -> EditPatch: the formats by name, and what every answer must fulfil."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

from agentctx.edit.apply import check_syntax, new_contents
from agentctx.edit.search_replace import SearchReplace
from agentctx.edit.target import EditTarget
from agentctx.edit.unified_diff import UnifiedDiff
from agentctx.edit.whole_function import WholeFunction
from agentctx.errors import UsageError
from agentctx.prompt import EditPatch


class EditFormat(Protocol):
    """A way for a model to say what to change."""

    @property
    def name(self) -> str: ...

    def parse(self, text: str, target: EditTarget | None, read: Callable[[str], bytes]) -> EditPatch:
        """The edit that `text` asks for.

        `read` gives a file's bytes by its path from the repository's root and raises FileNotFoundError for a
        path that isn't there.

        Raises:
            EditFormatError: the answer doesn't say clearly what to change.
        """


FORMATS: Mapping[str, EditFormat] = {
    "search-replace": SearchReplace(),
    "function": WholeFunction(),
    "diff": UnifiedDiff(),
}


def edit_format(name: str) -> EditFormat:
    """The format called `name`.

    Raises:
        UsageError: there is none.
    """
    try:
        return FORMATS[name]
    except KeyError as error:
        raise UsageError(f"unknown edit format {name!r}", hint=f"one of {', '.join(sorted(FORMATS))}") from error


def parse_answer(text: str, form: EditFormat, target: EditTarget | None, read: Callable[[str], bytes]) -> EditPatch:
    """`form.parse`, with the new content of each Python file compiled: an edit that breaks a file is refused here.

    Raises:
        EditFormatError: the answer is unclear, or a file would no longer compile.
    """
    patch = form.parse(text, target, read)
    old = {edit.path: None if not edit.base_digest else read(edit.path) for edit in patch.files}
    contents = new_contents(patch, old.__getitem__)
    notes = [check_syntax(path, old[path], new) for path, new in contents.items()]
    return replace(patch, notes=(*patch.notes, *filter(None, notes)))
