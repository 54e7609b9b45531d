"""Secrets out of a prompt before it leaves the machine, back into the answer, and never into a file. Pure.

Every value that is found in the prompt, or in a file that the prompt shows a part of, gets a placeholder of one line
that stands for it wherever it occurs. The answer's placeholders are turned back, so that an edit may stand next to
such a line; an edit of the line itself is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from agentctx.edit.apply import new_contents
from agentctx.edit.formats import EditFormat
from agentctx.edit.target import EditTarget
from agentctx.errors import EditRefused, UsageError
from agentctx.pipeline.secret_rules import find_secrets
from agentctx.prompt import EditPatch, PromptDocument, PromptUnit
from agentctx.report import SecretRow
from agentctx.source import UnitKind

MARK = "AGENTCTX_SECRET_"  # no text of a placeholder may break a string, a comment, YAML, or a line
_MARKED = re.compile(rf"{MARK}\d+\w*")
SHOWN = 5  # places that a refusal names
LEAST = 5  # characters: what is shorter stands in too many places that are no secret
_LINE = 16  # of a value of several lines, lines of this length are secrets by themselves


@dataclass(frozen=True, slots=True)
class Redaction:
    """`placeholders`: value -> what stands for it, longest value first. `rows`: where they were, never what."""

    placeholders: Mapping[str, str] = field(default_factory=dict, repr=False)
    rows: tuple[SecretRow, ...] = ()

    def hide(self, text: str) -> str:
        for value, mark in self.placeholders.items():
            text = text.replace(value, mark)
        return text

    def restore(self, text: str) -> str:
        back = {mark: value for value, mark in self.placeholders.items()}
        return _MARKED.sub(lambda match: back.get(match[0], match[0]), text)


def find(document: PromptDocument, read: Callable[[str], bytes]) -> Redaction:
    """What must not leave the machine of a prompt. `read` gives a whole file: a part of a key doesn't look like one."""
    text = document.text.decode("utf-8", "replace")
    paths = sorted({path for unit in document.units if (path := _file_of(unit)) is not None})
    values: dict[str, str] = {}
    for source in (text, *(read(path).decode("utf-8", "replace") for path in paths)):
        values |= _values(source)
    shown = sorted((value for value in values if value in text), key=lambda value: (text.index(value), -len(value)))
    marks = {
        value: f"{name}_{values[value].replace('-', '_')}"
        for value, name in zip(shown, _free_names(text), strict=False)
    }
    ordered = sorted(shown, key=lambda value: (-len(value), value))
    return Redaction({value: marks[value] for value in ordered}, tuple(_rows(document, values, ordered)))


def _file_of(unit: PromptUnit) -> str | None:
    """The file that a unit shows a part of; a signature line is of its definition's."""
    return unit.symbol.partition("::")[0] if unit.kind is UnitKind.SIGNATURE and unit.symbol is not None else unit.path


def refuse_secrets(document: PromptDocument, read: Callable[[str], bytes], host: str) -> None:
    """For a server on another machine that takes token ids: they can't be turned back as text can.

    Raises:
        UsageError: what is packed holds what looks like a secret.
    """
    rows = find(document, read).rows
    if rows:
        places = ", ".join(f"{row.path}{f':{row.line}' if row.line else ''} ({row.kind})" for row in rows[:SHOWN])
        more = f" and {len(rows) - SHOWN} more" if len(rows) > SHOWN else ""
        raise UsageError(
            f"the prompt holds what looks like secrets, {host} is another machine: {places}{more}",
            hint="--engine openai sends placeholders in their place; or take them out of the repository",
        )


def _values(text: str) -> dict[str, str]:
    """Value -> kind; of a value of several lines its long lines, too, since the prompt may hold some of them only."""
    out: dict[str, str] = {}
    for found in find_secrets(text):
        value = text[found.start : found.end]
        lines = [line.strip() for line in value.split("\n")]
        parts = [line for line in lines[1:] if len(line) >= _LINE and not line.startswith("-----")] if lines[1:] else []
        out |= {part: found.kind for part in (value, *parts) if len(part) >= LEAST}
    return out


def _free_names(text: str) -> Iterator[str]:
    """Placeholders whose number the text doesn't use already (a project may speak of them)."""
    number = 0
    while True:
        number += 1
        if f"{MARK}{number}" not in text:
            yield f"{MARK}{number}"


def _rows(document: PromptDocument, values: Mapping[str, str], ordered: Iterable[str]) -> Iterator[SecretRow]:
    """Each place once: a value that holds another one counts alone."""
    rows: set[tuple[str, int, str]] = set()
    for unit in document.units:
        text = document.unit_text(unit.index).decode("utf-8", "replace")
        for value in ordered:
            for line in _lines_of(text, value):
                rows.add((_file_of(unit) or unit.section.value, _line(unit, line), values[value]))
            text = text.replace(value, re.sub(r"[^\n]", "*", value))
    yield from (SecretRow(path, line or None, kind) for path, line, kind in sorted(rows))


def _lines_of(text: str, value: str) -> Iterator[int]:
    at = text.find(value)
    while at >= 0:
        yield text.count("\n", 0, at)
        at = text.find(value, at + len(value))


def _line(unit: PromptUnit, offset: int) -> int:
    return unit.lines.start + offset if unit.lines is not None else 0


# ---------------------------------------------------------------- the answer


@dataclass(frozen=True, slots=True)
class Guarded:
    """An edit format for answers to a prompt that was redacted."""

    inner: EditFormat
    redaction: Redaction

    @property
    def name(self) -> str:
        return self.inner.name

    def parse(self, text: str, target: EditTarget | None, read: Callable[[str], bytes]) -> EditPatch:
        """The edit that `text` asks for, with the values where the placeholders are.

        Raises:
            EditFormatError: the answer is unclear.
            EditRefused: it changes, adds or removes a line with a secret that the model was not shown.
        """
        patch = self.inner.parse(self.redaction.restore(text), target, read)
        old = {edit.path: read(edit.path) if edit.base_digest else None for edit in patch.files}
        for path, new in new_contents(patch, old.__getitem__).items():
            self._check(path, old[path] or b"", new or b"")
        return patch

    def _check(self, path: str, old: bytes, new: bytes) -> None:
        for value in (*self.redaction.placeholders, MARK):
            if _holding(old, value) != _holding(new, value):
                raise EditRefused(
                    f"the answer changes a line of {path} that holds a secret, which the model was not shown",
                    hint="make that change by hand, or use a server on this machine",
                )


def _holding(data: bytes, value: str) -> list[str]:
    """The lines of a file that hold a value, or a part of it, in order."""
    text = data.decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    if "\n" in value:
        return [value] * text.count(value)
    return [line for line in text.split("\n") if value in line]
