"""What go build and go vet report: `path:line:col: message`, under `# package`. Pure."""

from __future__ import annotations

import re
from typing import ClassVar

from agentctx.repo.logs.compilers import Reported

_ERROR = re.compile(r"^(?:vet: )?(?P<path>(?:[A-Za-z]:)?[^\s:]+\.(?:go|s|c|h)):(?P<line>\d+):\d+: (?P<message>\S.*)$")


class GoBuildFormat(Reported):
    """Lines that begin with a tab go on with the message."""

    wakes: ClassVar[tuple[str, ...]] = (".go:",)

    def match(self, line: str) -> re.Match[str] | None:
        found = _ERROR.match(line) if ".go:" in line else None
        return None if found and found["message"].startswith(("warning:", "note:", "error:")) else found

    def goes_on(self, line: str) -> bool:
        return line.startswith(("\t", "        "))
