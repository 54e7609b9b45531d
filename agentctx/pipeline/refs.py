"""Tests and places as people write them -> TestRef, FocusRef, paths relative to the repository."""

from __future__ import annotations

import os
import re
from pathlib import Path

from agentctx.errors import TaskError
from agentctx.prompt import FocusRef, TestRef

_LINE = re.compile(r"^(.*):(\d+)$")


def parse_test(text: str, root: Path, here: Path | None = None) -> TestRef:
    """`PATH[::NAME...][[param]]`; a parameter may hold `::` and brackets of its own."""
    path, _, rest = text.partition("::")
    param: str | None = None
    opening = rest.find("[")
    if opening >= 0 and rest.endswith("]"):
        rest, param = rest[:opening], rest[opening + 1 : -1]
    names = tuple(name for name in rest.split("::") if name)
    return TestRef(relative(path, root, here), names, param)


def parse_focus(text: str, root: Path, here: Path | None = None) -> FocusRef:
    """`PATH`, `PATH:LINE` or `PATH#SYMBOL`."""
    path, mark, symbol = text.partition("#")
    if mark:
        return FocusRef(relative(path, root, here), symbol=symbol)
    found = _LINE.match(text)
    if found and not (root / text).exists():
        return FocusRef(relative(found[1], root, here), line=int(found[2]))
    return FocusRef(relative(text, root, here))


def relative(path: str, root: Path, here: Path | None = None) -> str:
    """The path relative to the root, with slashes. `here`: a folder that it may be relative to instead.

    Raises:
        TaskError: it is empty or leads out of the repository.
    """
    if not path:
        raise TaskError("an empty path was given")
    given = Path(path.replace("\\", "/") if os.sep == "\\" else path)
    if not given.is_absolute():
        seen_from = here if here is not None and not (root / given).exists() and (here / given).exists() else root
        given = seen_from / given
    try:
        return Path(os.path.normpath(given)).relative_to(root).as_posix()
    except ValueError:
        pass
    try:
        return given.resolve().relative_to(root.resolve()).as_posix()
    except ValueError as error:
        raise TaskError(f"'{path}' lies outside of the repository {root}") from error
