"""Annotations for the web pages of CI services: GitHub's `::error file=..,line=..::`, Azure's `##vso[...]`. Pure."""

from __future__ import annotations

import re
from typing import ClassVar
from urllib.parse import unquote

from agentctx.repo.logs.diagnostics import add_place
from agentctx.repo.logs.found import Found, RawFrame

_GITHUB = re.compile(r"^\s*::error ([^:\n]*(?::(?!:)[^:\n]*)*)::(.*)$")
_AZURE = re.compile(r"^\s*##vso\[task\.logissue ([^\]]*type=error[^\]]*)\](.*)$")
_FIELD = re.compile(r"(\w+)=([^,;]*)")
_PATHS = ("file", "sourcepath")
_LINES = ("line", "linenumber")


class AnnotationFormat:
    """One line, one place."""

    wakes: ClassVar[tuple[str, ...]] = ("::error ", "##vso[task.logissue ")
    busy: ClassVar[bool] = False

    def __init__(self) -> None:
        self._found = Found()

    def feed(self, at: int, line: str) -> None:
        found = _GITHUB.match(line) or _AZURE.match(line)
        fields = dict(_FIELD.findall(found[1])) if found else {}
        path = next((unquote(fields[name]) for name in _PATHS if fields.get(name)), "")
        number = next((fields[name] for name in _LINES if fields.get(name, "").isdecimal()), "")
        if found is None or not path:
            return
        lines = unquote(found[2]).split("\n")
        where = f"{path}:{number}: " if path not in lines[0] else ""
        add_place(self._found, at, RawFrame(path, int(number or 1)), lines[0], [where + lines[0], *lines[1:]])

    def finish(self) -> Found:
        return self._found
