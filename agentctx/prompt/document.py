"""The packed prompt, in prompt coordinates. Pure data.

`repo.pack` copies everything that later stages need into it; they never look back at the repository. All indices
named `unit` are positions in `PromptDocument.units`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from agentctx.source import Resolution, Role, SymbolKind, UnitKind
from agentctx.spans import ByteSpan, LineSpan, tiles


class Section(StrEnum):
    """Parts of every prompt, in this order: stable first, so that prefix caches hit."""

    SYSTEM = "system"
    CODE = "code"
    EDITED = "edited"  # code of files with uncommitted changes
    SIGNATURES = "signatures"  # a line each for definitions that kept code uses and that are left out
    TESTS = "tests"
    LOG = "log"
    REQUEST = "request"
    TAIL = "tail"


@dataclass(frozen=True, slots=True)
class PromptUnit:
    """A unit in the prompt. `spine`: units to keep whenever this one is kept (closed, sorted)."""

    index: int
    section: Section
    kind: UnitKind
    span: ByteSpan
    path: str | None = None
    lines: LineSpan | None = None
    symbol: str | None = None  # id of the innermost definition that holds it
    spine: tuple[int, ...] = ()
    score: float = 0.0  # rank score, higher is better, comparable within one document
    why: str = ""  # strongest reasons of the rank, for people


@dataclass(frozen=True, slots=True)
class Definition:
    """A repository definition that the packed code defines or refers to. `header` is None if it wasn't packed.

    `line`: the unit of the section of signatures that may stand for it, see `spec.signatures`.
    """

    symbol: str
    name: str
    kind: SymbolKind
    path: str
    lines: LineSpan
    header: int | None
    units: tuple[int, ...] = ()  # all of its packed units, header included; nested definitions too
    parent: str | None = None
    overrides: tuple[str, ...] = ()
    overridden_by: tuple[str, ...] = ()
    is_test: bool = False
    is_fixture: bool = False
    signature: str = ""
    line: int | None = None


@dataclass(frozen=True, slots=True)
class AbsentStatement:
    """A statement outside the window that a packed unit needs."""

    path: str
    line: int
    text: str


class NeedKind(StrEnum):
    REEXPORT = "re-export"  # by which a module in between hands on what is imported
    VARIABLE = "variable"  # that gives a function's variable its value


@dataclass(frozen=True, slots=True)
class Need:
    """Statements that a use needs besides its definition and its import. One of `units` will do.

    `absent` is the first of them where none is packed.
    """

    kind: NeedKind
    units: tuple[int, ...]
    absent: AbsentStatement | None = None


@dataclass(frozen=True, slots=True)
class PromptLink:
    """A use in a packed unit: what it may refer to. `via` is the import unit that brings the name in.

    `absent` is that import where it isn't packed. That of a function's variable has no target and is EXTERNAL: all
    that is said of it is what it needs.
    """

    unit: int
    name: str
    role: Role
    state: Resolution
    targets: tuple[str, ...]  # symbol ids, keys of PromptDocument.definitions
    path: str | None
    line: int | None
    via: int | None = None
    absent: AbsentStatement | None = None
    needs: tuple[Need, ...] = ()


@dataclass(frozen=True, slots=True)
class PackFacts:
    """What the task is about, as symbol ids and unit indices."""

    targets: tuple[str, ...] = ()
    targets_guessed: bool = False
    focused: bool = False  # the user said what is to be edited
    frames: tuple[str, ...] = ()  # definitions in the traceback, deepest first
    frame_units: tuple[int, ...] = ()  # the units that hold the frames' lines
    failing_tests: tuple[str, ...] = ()
    fixtures: tuple[str, ...] = ()  # fixtures that the failing tests use
    test_units: tuple[int, ...] = ()  # units of failing test code that no definition holds
    user_pins: tuple[int, ...] = ()  # units
    error_units: tuple[int, ...] = ()  # log units with the error lines


@dataclass(frozen=True, slots=True)
class PromptFile:
    """A file with packed units. `comment` opens and closes a line comment in its language."""

    path: str
    comment: tuple[str, str]
    n_lines: int
    language: str | None


@dataclass(frozen=True, slots=True)
class PromptDocument:
    """The packed prompt. Units tile `text`, in order."""

    text: bytes
    units: tuple[PromptUnit, ...]
    files: Mapping[str, PromptFile] = field(default_factory=dict)
    definitions: Mapping[str, Definition] = field(default_factory=dict)
    links: tuple[PromptLink, ...] = ()
    facts: PackFacts = PackFacts()

    def __post_init__(self) -> None:
        if not tiles([unit.span for unit in self.units], len(self.text)):
            raise ValueError("the units don't tile the prompt")

    def unit_text(self, unit: int) -> bytes:
        span = self.units[unit].span
        return self.text[span.start : span.end]
