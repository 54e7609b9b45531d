"""Names that members of Python's own types bear: a method of that name proves nothing about its receiver. Pure."""

from __future__ import annotations

import io
import re
from datetime import datetime, timedelta
from pathlib import Path, PurePath

_TYPES: tuple[type, ...] = (
    *(str, bytes, bytearray, int, float, bool, list, tuple, dict, set, frozenset, type, BaseException),
    *(io.TextIOWrapper, io.BufferedReader, io.BytesIO, io.StringIO, re.Pattern, re.Match, Path, PurePath),
    *(datetime, timedelta, type(lambda: None), type(iter(()))),
)
BUILTIN_MEMBERS: frozenset[str] = frozenset(name for kind in _TYPES for name in dir(kind))
OBJECT_MEMBERS: frozenset[str] = frozenset(dir(object)) | {
    *("__dict__", "__name__", "__qualname__", "__module__", "__mro__", "__bases__", "__annotations__", "__slots__"),
    *("__wrapped__", "__weakref__", "__subclasses__", "mro", "__call__", "__class_getitem__", "__func__", "__self__"),
}
