"""Golden cases as Markdown that one can read: prose, an options line, files as named code blocks, `expected`.

    # What the case is about

    options: key=value; other=value

    `src/pkg/a.py`

    ```python
    ...
    ```

    `expected`

    ```text
    ...
    ```

A test renders what it got as text and calls `check`. With AGENTCTX_UPDATE_CASES=1 `check` writes that text into the
case's `expected` block instead of comparing; read the diff before you commit it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

CASES = Path(__file__).parent / "cases"
EXPECTED = "expected"
_BLOCK = re.compile(
    r"^`(?P<name>[^`\n]+)`:?\n\n?(?P<fence>```+)(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=fence)[ ]*$", re.M | re.S
)
_OPTIONS = re.compile(r"^options:(.*)$", re.MULTILINE)
_TITLE = re.compile(r"^# (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Case:
    """`files`: name -> text, in the order of the case. `expected` is '' in a new case."""

    path: Path
    title: str
    options: Mapping[str, str]
    files: Mapping[str, str]
    expected: str

    def check(self, got: str) -> None:
        """Compare `got` with the expected block, or rewrite the block."""
        got = got.rstrip("\n") + "\n"
        if os.environ.get("AGENTCTX_UPDATE_CASES") == "1" and got != self.expected:
            self.path.write_text(_replaced(self.path.read_text("utf-8"), got), "utf-8")
            return
        assert got == self.expected, f"{self.path.name}: run with AGENTCTX_UPDATE_CASES=1 to see the difference in git"


def case_paths(stage: str) -> list[Path]:
    """The case files of one stage, a folder of tests/cases. A stage without cases is a mistake."""
    paths = sorted((CASES / stage).glob("*.md"))
    assert paths, f"no cases in {CASES / stage}"
    return paths


def read_case(path: Path) -> Case:
    text = path.read_text("utf-8")
    title = _TITLE.search(text)
    assert title, f"{path.name} has no '# title'"
    blocks = {found["name"]: found["body"] for found in _BLOCK.finditer(text)}
    expected = blocks.pop(EXPECTED, None)
    assert expected is not None, f"{path.name} has no `expected` block"
    # The options come before the first block, so that no file's text is taken for them.
    first = _BLOCK.search(text)
    found = _OPTIONS.search(text, 0, first.start() if first else len(text))
    return Case(path, title[1], _options(found[1] if found else ""), blocks, expected)


def _options(text: str) -> dict[str, str]:
    pairs = [part.partition("=") for part in text.split(";") if part.strip()]
    return {key.strip(): value.strip() for key, _, value in pairs}


def _replaced(text: str, got: str) -> str:
    for found in _BLOCK.finditer(text):
        if found["name"] == EXPECTED:
            fence = found["fence"]
            while fence in got:
                fence += "`"
            head = text[found.start() : found.start("fence")]
            return f"{text[: found.start()]}{head}{fence}{found['info']}\n{got}{fence}{text[found.end() :]}"
    raise AssertionError("no expected block")
