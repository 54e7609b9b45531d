"""Failures -> the part of a log that goes into the prompt: foreign frames elided, repeats collapsed, capped. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from agentctx.prompt import TestRef
from agentctx.repo.logs.callstacks import RUNTIME
from agentctx.repo.logs.frames import frame_path, innermost_first

LIMIT = 16_000  # bytes of all excerpts of one task
MIN_SHARE = 1_200  # bytes that one failure gets at least, where there are many
RESERVE = 600  # bytes for the line that names the failures left out
MAX_LISTED = 8  # parameters and tests that a line lists

_LOCATION = re.compile(r"^((?:[A-Za-z]:)?[^\s:][^:\n]*):\d+:(?: (?:in )?\S.*)?$")
_ERROR = re.compile(
    r"^E\s|^\s*(?:\[cause\]: |[\w.]+ \[)?[A-Za-z_][\w.]*(?:Error|Exception|Failed|Warning|Exit)\b"
    r"|^\s*(?:Expected|Received|expected|actual|got|want|left|right)\b\s*:"
    r"|\b(?:error|panicked)\b.*:"
)


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure with its path mapped. `place`: what equal failures share."""

    lines: tuple[str, ...]
    test: TestRef | None
    label: str
    place: tuple[object, ...]

    @property
    def title(self) -> str:
        return f"{self.label} {self.test.id}" if self.test is not None else ""


@dataclass(frozen=True, slots=True)
class Excerpt:
    text: str
    n_cut: int  # failures that were shortened or left out


def make_excerpt(failures: Sequence[Failure], in_repo: Callable[[str], bool], limit: int) -> Excerpt:
    """The failures' text in order, within `limit` bytes."""
    groups = _collapse(failures)
    if len(groups) > 1:
        limit -= RESERVE
    share = max(MIN_SHARE, limit // max(1, len(groups)))
    parts: list[str] = []
    used = n_cut = 0
    for group in groups:
        head = replace(group[0], lines=tuple(elide_foreign(group[0].lines, in_repo)))
        # What short failures leave over, the ones after them may use.
        room = min(max(share, share * (len(parts) + 1) - used), limit - used)
        text, cut = _render(head, group[1:], room)
        if used + len(text.encode()) + 1 > limit:
            n_cut += len(groups) - len(parts)
            parts.append(_left_out([other[0] for other in groups[len(parts) :]]))
            break
        parts.append(text)
        used += len(text.encode()) + 2
        n_cut += cut
    return Excerpt("\n\n".join(parts), n_cut)


def elide_foreign(lines: Sequence[str], in_repo: Callable[[str], bool]) -> list[str]:
    """Frames outside the repository become one line per run. The frame that raised stays: the last, in JavaScript's
    order the first one."""
    entries = _entries(lines)
    out: list[str] = []
    n_elided = 0
    for i, (path, entry) in enumerate(entries):
        near = i - 1 if innermost_first(entry[0]) else i + 1
        raised = not 0 <= near < len(entries) or entries[near][0] is None
        if path is not None and not in_repo(path) and not (raised and path != RUNTIME):
            n_elided += 1
            continue
        if n_elided:
            out.append(f"  [... {n_elided} frame{'s' * (n_elided > 1)} outside the repository]")
            n_elided = 0
        out += [line for line in entry if line]
    return out


def _entries(lines: Sequence[str]) -> list[tuple[str | None, list[str]]]:
    """Lines grouped by the frame they belong to; None for lines of no frame.

    Native and short frames open with their location, long ones close with it ('' separates those).
    """
    entries: list[tuple[str | None, list[str]]] = []
    pending: list[str] = []
    in_frame = False
    for line in lines:
        opens = frame_path(line)
        if opens is not None:
            if pending:
                entries.append((None, pending))
            pending, in_frame = [], True
            entries.append((opens, [line]))
        elif in_frame and line.lstrip("|+ ") and line.startswith((" ", "|")) and not _bare(line):
            entries[-1][1].append(line)
        elif line == "" or not (closes := _LOCATION.match(line)):
            in_frame = False
            pending.append(line)
        else:
            in_frame = False
            entries.append((closes[1], [*pending, line]))
            pending = []
    if pending:
        entries.append((None, pending))
    return entries


def _bare(line: str) -> bool:
    """In an exception group, whether the line stands at its bar: an exception, a rule."""
    inner = re.sub(r"^\s*[|+] ?", "", line)
    return inner != line and not inner.startswith(" ")


def _collapse(failures: Sequence[Failure]) -> list[list[Failure]]:
    groups: dict[tuple[object, ...], list[Failure]] = {}
    for i, failure in enumerate(failures):
        name = (failure.test.path, failure.test.names) if failure.test else ()
        key = (name, failure.label, failure.place) if failure.place or name else (i,)
        groups.setdefault(key, []).append(failure)
    return list(groups.values())


def _render(head: Failure, repeats: Sequence[Failure], room: int) -> tuple[str, int]:
    title = [head.title] if head.title else []
    tail = _repeats(head, repeats)
    room -= sum(len(line.encode()) + 1 for line in (*title, *tail))
    lines, cut = shorten(head.lines, room)
    return "\n".join((*title, *lines, *tail)), int(cut)


def _repeats(head: Failure, repeats: Sequence[Failure]) -> list[str]:
    """One line that says how many failures are alike, and how their errors differ."""
    if not repeats:
        return []
    params = [f"[{other.test.param}]" for other in repeats if other.test and other.test.param is not None]
    more = ", ..." if len(params) > MAX_LISTED else ""
    name = head.test.names[-1] if head.test and head.test.names else "this"
    listed = f": {', '.join(params[:MAX_LISTED])}{more}" if params else ""
    out = [f"[... {len(repeats)} more failure{'s' * (len(repeats) > 1)} of {name} at the same place{listed}]"]
    seen = {line.strip() for line in head.lines}
    errors = dict.fromkeys(line for other in repeats for line in other.lines if _ERROR.match(line))
    return out + [line for line in errors if line.strip() not in seen][:MAX_LISTED]


def shorten(lines: Sequence[str], room: int) -> tuple[list[str], bool]:
    """Lines within `room` bytes: errors, locations and `>` lines first, then the rest from the end."""
    sizes = [len(line.encode()) + 1 for line in lines]
    if sum(sizes) <= room:
        return list(lines), False
    telling = [i for i, line in enumerate(lines) if _is_telling(line)]
    rest = sorted(set(range(len(lines))) - set(telling), reverse=True)
    # The first error line and the deepest places matter most.
    order = [*telling[:1], *reversed(telling[1:]), *rest]
    keep: set[int] = set()
    left = room - 40
    for i in order:
        if sizes[i] > left:
            if not keep and left > 80:
                return [lines[i].encode()[:left].decode(errors="ignore") + " ..."], True
            continue
        left -= sizes[i]
        keep.add(i)
    return _with_gaps(lines, keep), True


def _is_telling(line: str) -> bool:
    return bool(line.startswith(">") or _ERROR.match(line) or _LOCATION.match(line) or frame_path(line) is not None)


def _with_gaps(lines: Sequence[str], keep: set[int]) -> list[str]:
    out: list[str] = []
    for i, line in enumerate(lines):
        if i in keep:
            out.append(line)
        elif not out or out[-1] != "[...]":
            out.append("[...]")
    return out


def _left_out(heads: Sequence[Failure]) -> str:
    named = [head.test.id for head in heads if head.test]
    more = ", ..." if len(named) > MAX_LISTED else ""
    listed = f": {', '.join(named[:MAX_LISTED])[: RESERVE - 100]}{more}" if named else ""
    return f"[... {len(heads)} more failure{'s' * (len(heads) > 1)} left out{listed}]"
