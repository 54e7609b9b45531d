"""A pin into the text of `agentctx.toml`: where to insert what. Pure; comments and layout stay as they are."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_KEY = re.compile(r"^[ \t]*(?:pins|\"pins\"|'pins')[ \t]*=[ \t]*(?=\[)", re.MULTILINE)
_OPENS_LINES = re.compile(r"\[[ \t]*(?:#[^\n]*?)?(?P<end>\r?\n)(?=(?P<indent>[ \t]*))")
_TABLE = re.compile(r"^[ \t]*\[", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Insertion:
    """Insert `new` at the character `at`."""

    at: int
    new: str

    def apply(self, text: str) -> str:
        return text[: self.at] + self.new + text[self.at :]


def add_pin(text: str, pin: str, inherited: Sequence[str] = ()) -> Insertion | None:
    """What to insert so that `pins` has `pin` too, as its first element.

    Args:
        text: The file's text, '' for a new file.
        inherited: Pins of another file that a new `pins` here would replace.

    Returns:
        None when `pins` has it, or the text is no valid TOML.
    """
    before = _pins(text)
    if before is None:
        return None
    there, known = before
    if pin in known:
        return None
    wanted = [pin, *(known if there else dict.fromkeys(inherited))]
    for made in _into_array(text, pin, empty=not known) if there else [_new_key(text, wanted)]:
        if _pins(made.apply(text)) == (True, wanted):
            return made
    return None


def _pins(text: str) -> tuple[bool, list[str]] | None:
    """Whether there is a key `pins`, and its value; None for invalid text or another type."""
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return None
    pins = table.get("pins", [])
    if not isinstance(pins, list) or not all(isinstance(pin, str) for pin in pins):
        return None
    return "pins" in table, pins


def _new_key(text: str, pins: Sequence[str]) -> Insertion:
    """A new key, before the first table: what comes after belongs to that table."""
    line_end = "\r\n" if "\r\n" in text else "\n"
    line = f"pins = [{', '.join(map(_quoted, pins))}]{line_end}"
    table = _first_table(text)
    if table is not None:
        return Insertion(table, line + line_end)
    return Insertion(len(text), line if not text or text.endswith("\n") else line_end + line)


def _into_array(text: str, pin: str, *, empty: bool) -> Iterator[Insertion]:
    """Into each array that may be the one: the caller finds out which is (others are in strings or tables)."""
    for key in _KEY.finditer(text):
        start = key.end()
        line = _OPENS_LINES.match(text, start)
        if line is not None:
            yield Insertion(line.end(), f"{line['indent'] or '  '}{_quoted(pin)},{line['end']}")
        else:
            yield Insertion(start + 1, _quoted(pin) + ("" if empty else ", "))


def _first_table(text: str) -> int | None:
    """Where the first table header starts: a line with a bracket before which the text is complete."""
    for found in _TABLE.finditer(text):
        try:
            tomllib.loads(text[: found.start()])
        except tomllib.TOMLDecodeError:
            continue
        return found.start()
    return None


def _quoted(text: str) -> str:
    """A TOML basic string; JSON's escapes are valid there (U+007F apart, which no path has)."""
    return json.dumps(text, ensure_ascii=False)
