"""What CI services and log drivers write before each line, taken off: time stamps, groups, sections. Pure.

Some can't be anything else and go wherever they stand; others, a time of day say, only where most lines have them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

# (a literal of it, the prefix)
_ALWAYS = (
    # `gh run view --log` ("job<TAB>step<TAB>"), then the time stamp of GitHub, Azure, GitLab or Jenkins
    (
        "T",
        re.compile(
            r"^(?:[^\t\n]+\t[^\t\n]+\t)?\[?\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z\]? ?(?:\d\d[OE][ +])?", re.M
        ),
    ),
    # GitHub's and Azure's commands; an annotation that names a file has a format of its own
    ("##[", re.compile(r"^##\[[a-z-]+\]", re.M)),
    ("::", re.compile(r"^::(?:group|endgroup|warning|notice|debug|error)(?![^\n]*\bfile=)[^:\n]*::", re.M)),
    ("section_", re.compile(r"^section_(?:start|end):\d+:[^\n]*$", re.M)),
    ("travis_", re.compile(r"^travis_(?:fold|time):\w+:[^\n]*$", re.M)),
    ("#", re.compile(r"^#\d+ \d+\.\d+ ", re.M)),  # BuildKit
)
_TIME = r"\d\d:\d\d:\d\d(?:[.,]\d+)?"
_MOSTLY = (
    re.compile(rf"^\[?\d{{4}}[-/]\d\d[-/]\d\d[ T]{_TIME}(?:Z|[+-]\d\d:?\d\d)?\]?:? ", re.M),
    re.compile(rf"^\[{_TIME}\](?:[A-Za-z]:[ \t]+| ?:[ \t]+| )(?:\[Step \d+/\d+\] )?", re.M),  # TeamCity and others
    re.compile(rf"^{_TIME} (?=\S| )", re.M),  # Jenkins' time stamper
    re.compile(rf"^[A-Z][a-z][a-z] [ \d]\d {_TIME} \S+ [\w./-]+(?:\[\d+\])?: ", re.M),  # journald
    re.compile(r"^\[[\w-]+:L\d+:\d+s\] ", re.M),  # Drone
    re.compile(r"^\d+\.\d{3}s? {1,2}(?=\S| )", re.M),  # seconds since the start
)
SAMPLE = 400  # lines that tell whether most have a prefix
MOST = 0.6


def strip_prefixes(text: str) -> str:
    """The text without them. Lines stay lines."""
    text = _without_commands(text)
    lines = _sample(text)
    for prefix in _MOSTLY:
        if lines and sum(prefix.match(line) is not None for line in lines) > MOST * len(lines):
            text = _without_commands(prefix.sub("", text))
            lines = _sample(text)
    return text


def _without_commands(text: str) -> str:
    for literal, prefix in _ALWAYS:
        if literal in text:
            text = prefix.sub("", text)
    return text


def _sample(text: str) -> Sequence[str]:
    """Lines that aren't blank, spread over the text."""
    lines = text.split("\n")
    return [line for line in lines[:: max(1, len(lines) // SAMPLE)] if line.strip()]
