"""What the formats of JavaScript tools share: stack frames, where a test lies, titles. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agentctx.repo.logs.found import RawFrame

SCRIPT = r"[cm]?[jt]sx?|vue|svelte|astro"  # file name extensions
_LEADS = ("at ", "\u276f ", "\u203a ")  # V8's frames; vitest's; ava's
_PLACE = re.compile(r"^(.+?):(\d+)(?::(\d+))?$")
_ALIAS = re.compile(r"^(.*?)(\w+) \[as ([^\]]+)\]$")
_FIREFOX = re.compile(r"^\s*([^\s@]*)@((?:https?|file|webpack(?:-internal)?|resource)://?\S+?):(\d+):(\d+)$")
_TEST_FILE = re.compile(r"(?:[._-](?:test|spec|cy|e2e)|^test[\w-]*)\.[cm]?[jt]sx?$")
_TEST_FOLDER = re.compile(r"(?:^|/)(?:__tests__|tests?|specs?|e2e|cypress)/")
_PLACELESS = re.compile(r"^\s*at (?:.* \()?(?:<\w+>|native|index \d+)\)?(?: \{)?$")
_DURATION = re.compile(r" \((?:\d+(?:\.\d+)? ?(?:ms|s|m)|retry x\d+)(?:, [^)]*)?\)$| \d+(?:\.\d+)?m?s$")
MAX_PATH = 500


def frame_of(line: str) -> RawFrame | None:
    """The frame that a line of a stack trace is: `at f (path:1:2)`, `at path:1:2`, vitest's, ava's or Firefox's."""
    text = line.strip()
    lead = next((lead for lead in _LEADS if text.startswith(lead)), None)
    if lead is not None:
        return _frame(text.removeprefix(lead), bare=lead != "at ")
    if "@" in text and (found := _FIREFOX.match(text)):
        return RawFrame(found[2], int(found[3]), _function(found[1]))
    return None


def stack_line(line: str) -> RawFrame | None:
    """The same without its lead, as TAP's `stack` has it: `f (path:1:2)` or `path:1:2`."""
    return frame_of(line) or _frame(line.strip(), bare=False)


def _frame(text: str, *, bare: bool) -> RawFrame | None:
    text = text.removeprefix("async ").removeprefix("new ").removesuffix(" {")
    function = ""
    if text.endswith(")") and (cut := text.rfind(" (")) >= 0:
        function, text = text[:cut], text[cut + 2 : -1]
    elif bare:
        function, _, text = text.rpartition(" ")
    found = _PLACE.match(text) if len(text) < MAX_PATH else None
    if found is None or (found[3] is None and not bare) or not _is_path(found[1]):
        return None
    return RawFrame(found[1], int(found[2]), _function(function))


def _is_path(text: str) -> bool:
    if text.endswith(".rs"):
        return False  # a backtrace of Rust has places like these
    return "/" in text or "\\" in text or "." in text or text.startswith("node:")


def _function(text: str) -> str | None:
    """`Cart.pay [as checkout]` is Cart.checkout; what has no name of its own is None."""
    if found := _ALIAS.match(text):
        text = found[1] + found[3]
    text = text.removeprefix("async ").removeprefix("new ")
    return None if not text or text.endswith(("<anonymous>", "<computed>")) or "/<" in text else text


def is_internal(frame: RawFrame) -> bool:
    """Whether the frame lies in the runtime, which is in no repository."""
    return frame.path.startswith(("node:", "<", "internal/", "native ")) or frame.path in ("native", "anonymous")


def is_placeless(line: str) -> bool:
    """Whether a line is a frame of the runtime that names no file: `at Array.map (<anonymous>)`."""
    return _PLACELESS.match(line) is not None


def outermost_first(frames: Sequence[RawFrame]) -> list[RawFrame]:
    """Frames in written order, which is innermost first, without those of the runtime."""
    return [frame for frame in reversed(frames) if not is_internal(frame)]


def test_path(frames: Sequence[RawFrame]) -> str:
    """Where a test that only its titles name lies, from its frames (outermost first): a test file, else where the
    outermost of several stands; '' where nothing tells."""
    own = [frame.path for frame in frames if "node_modules" not in frame.path]
    for path in own:
        if _TEST_FILE.search(path.replace("\\", "/").rpartition("/")[2]):
            return path
    for path in own:
        if _TEST_FOLDER.search(path.replace("\\", "/")):
            return path
    return own[0] if len(own) > 1 else ""


test_path.__test__ = False  # type: ignore[attr-defined]  # pytest takes it for a test where it is imported


def untimed(title: str) -> str:
    """A title without the duration that reporters write after it."""
    return _DURATION.sub("", title.strip())
