"""Which file a line of a traceback names, in any language: what the excerpt needs to elide foreign frames. Pure."""

from __future__ import annotations

import re

from agentctx.repo.logs.callstacks import RUNTIME, callstack_path
from agentctx.repo.logs.javascript import frame_of, is_internal, is_placeless

_NATIVE = re.compile(r'^[\s|]*File "([^"]+)", line \d+')
_NAMED = re.compile(r"^((?:[A-Za-z]:)?[^\s:][^:\n]*):\d+: in \S.*$")  # pytest's short style


def innermost_first(line: str) -> bool:
    """Whether the frame that a line is comes before those that called it."""
    return line.lstrip().startswith(("at ", "\u276f ", "\u203a ", "#", "from ", "frame #")) or "\n" in line


def frame_path(line: str) -> str | None:
    """The path of the frame that opens on this line."""
    if found := _NATIVE.match(line):
        return found[1]
    if ": in " in line and (found := _NAMED.match(line)):
        return found[1]
    if frame := frame_of(line):
        return RUNTIME if is_internal(frame) else frame.path
    return RUNTIME if is_placeless(line) else callstack_path(line)
