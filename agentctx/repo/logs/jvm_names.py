"""Tests of the JVM by class and method: where they lie and what their parts are. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from agentctx.repo.logs.callstacks import jvm_path
from agentctx.repo.logs.found import RawFrame, RawTest

_METHOD = re.compile(
    r"^(?P<name>[^\[({#]+)(?:[({][^)}]*[)}])?(?:\s*(?:\[(?P<param>.*?)\]|#(?P<number>\d+)))?(?: .*)?$", re.DOTALL
)


def jvm_test(
    at: int, class_name: str, method: str, frames: Iterable[RawFrame] = (), param: str | None = None
) -> RawTest:
    """The test `method`, `method[param]`, `method(Type)[2]` of a class by its full name; `$` is a nested class.

    A frame of the class tells its file; without one it is taken for Java.
    """
    found = _METHOD.match(method.strip())
    name = found["name"].strip() if found else method.strip()
    given = next((g for g in (found["param"], found["number"]) if g is not None), None) if found else None
    path = jvm_path(class_name)
    stem = path.removesuffix(".java")
    own = (f.path for f in frames if f.path.rpartition(".")[0] == stem)
    classes = class_name.rpartition(".")[2].split("$") if class_name else []
    return RawTest(at, next(own, path), (*classes, *([name] if name else [])), param or given)
