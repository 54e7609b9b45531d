"""The task, the packed prompt, its tokens, scores, pins and selection. Pure data, in prompt coordinates.

`repo.pack` copies everything that later stages need into the PromptDocument; they never look back at the
repository. All indices named `unit` are positions in `PromptDocument.units`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from agentctx.source import Resolution, Role, SymbolKind, UnitKind
from agentctx.spans import ByteSpan, LineSpan, TokenSpan, tiles

Int32 = npt.NDArray[np.int32]
Float32 = npt.NDArray[np.float32]


A = TypeVar("A", bound=npt.NDArray[np.generic])


def readonly(array: A) -> A:
    """The array itself, made read-only."""
    array.setflags(write=False)
    return array


# ---------------------------------------------------------------- the task


@dataclass(frozen=True, slots=True)
class TestRef:
    """`PATH[::NAME...][[param]]` as given; `names` are the parts after the path, without the parameter."""

    __test__ = False  # not a test class

    path: str
    names: tuple[str, ...] = ()
    param: str | None = None

    @property
    def id(self) -> str:
        base = "::".join((self.path, *self.names))
        return f"{base}[{self.param}]" if self.param is not None else base


@dataclass(frozen=True, slots=True)
class FocusRef:
    """`PATH`, `PATH:LINE` or `PATH#SYMBOL` as given (focus and user pins)."""

    path: str
    line: int | None = None
    symbol: str | None = None

    @property
    def text(self) -> str:
        if self.symbol is not None:
            return f"{self.path}#{self.symbol}"
        return self.path if self.line is None else f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Task:
    """What the user asks for. `logs` are (name, raw bytes)."""

    request: str = ""
    tests: tuple[TestRef, ...] = ()
    focus: tuple[FocusRef, ...] = ()
    pins: tuple[FocusRef, ...] = ()
    logs: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True, slots=True)
class Frame:
    """One traceback frame. `path` is repository-relative when `in_repo`, else as written in the log."""

    path: str
    line: int
    function: str | None
    in_repo: bool


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the logs say. Frames are in log order, outermost first within each traceback.

    `excerpt` is the cleaned log text that goes into the prompt (ANSI removed, errors and frames kept).
    `notes` are sentences for the report: what was not understood, what was cut.
    """

    frames: tuple[Frame, ...] = ()
    failing: tuple[TestRef, ...] = ()
    error_lines: tuple[str, ...] = ()
    mentions: tuple[str, ...] = ()  # identifiers, most telling first
    excerpt: str = ""
    text: str = ""  # the whole cleaned log, for lexical ranking
    notes: tuple[str, ...] = ()


# ---------------------------------------------------------------- the packed prompt


class Section(StrEnum):
    """Parts of every prompt, in this order: stable first, so that prefix caches hit."""

    SYSTEM = "system"
    CODE = "code"
    EDITED = "edited"  # code of files with uncommitted changes
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
    """A repository definition that the packed code defines or refers to. `header` is None if it wasn't packed."""

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


@dataclass(frozen=True, slots=True)
class PromptLink:
    """A use in a packed unit: what it may refer to. `via` is the import unit that brings the name in."""

    unit: int
    name: str
    role: Role
    state: Resolution
    targets: tuple[str, ...]  # symbol ids, keys of PromptDocument.definitions
    path: str | None
    line: int | None
    via: int | None = None


@dataclass(frozen=True, slots=True)
class PackFacts:
    """What the task is about, as symbol ids and unit indices."""

    targets: tuple[str, ...] = ()
    targets_guessed: bool = False
    frames: tuple[str, ...] = ()  # definitions in the traceback, deepest first
    frame_units: tuple[int, ...] = ()  # the units that hold the frames' lines
    failing_tests: tuple[str, ...] = ()
    fixtures: tuple[str, ...] = ()  # fixtures that the failing tests use
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


# ---------------------------------------------------------------- tokens


class Tokenizer(Protocol):
    """A tokenizer with byte offsets."""

    @property
    def name(self) -> str:
        """For the report: the model's name, the file, or 'estimate'."""

    @property
    def digest(self) -> str:
        """SHA-256 (hex) over vocabulary, merges, pre-tokenizer and special tokens. Equal digests: equal ids."""

    def encode(self, text: str, *, special: bool = False) -> tuple[list[int], list[int]]:
        """Ids, and for each the UTF-8 byte offset where it starts.

        With `special` the text may hold special tokens (chat scaffolding); without, such strings are
        encoded as ordinary text, so that repository code can't forge a chat turn.
        """

    def count_batch(self, texts: Sequence[str]) -> list[int]:
        """Number of tokens of each text (encoded as ordinary text)."""

    def decode(self, ids: Sequence[int]) -> str: ...


@dataclass(frozen=True, slots=True, eq=False)
class TokenizedPrompt:
    """Each unit is encoded by itself, so a token belongs to exactly one unit and counts add up."""

    document: PromptDocument
    ids: Int32  # int32 (T,)
    starts: Int32  # int32 (T+1,) byte offsets in document.text; starts[T] == len(text)
    unit_starts: Int32  # int32 (U+1,) token offsets of the units
    tokenizer: str = ""
    tokenizer_digest: str = ""

    @property
    def n_tokens(self) -> int:
        return int(self.ids.shape[0])

    def unit_tokens(self, unit: int) -> TokenSpan:
        return TokenSpan(int(self.unit_starts[unit]), int(self.unit_starts[unit + 1]))


@dataclass(frozen=True, slots=True, eq=False)
class TokenScores:
    """A drafter's importance of every prompt token."""

    values: Float32  # float32 (T,)
    drafter: str
    scorer: str  # "specprefill", "early-exit"
    n_layers: int  # layers that ran
    seconds: float
    n_lookahead: int = 8


# ---------------------------------------------------------------- pins and selection


class PinReason(StrEnum):
    """Names are a contract: they appear in reports. Tiers are in `PIN_TIERS`."""

    SYSTEM = "system"
    TOOLS = "tools"
    REQUEST = "request"
    TAIL = "tail"
    LOG_EVIDENCE = "log-evidence"
    FAILING_TEST = "failing-test"
    FRAME = "frame"
    TARGET = "target"
    CALLER = "caller"
    USER = "user"
    CALLEE = "callee"
    TYPE = "type"
    BASE = "base"
    OVERRIDE = "override"
    IMPLEMENTS = "implements"
    IMPORT = "import"
    CONSTANT = "constant"
    FIELD = "field"
    RE_EXPORT = "re-export"
    CONFIG = "config"


PIN_TIERS: Mapping[PinReason, int] = {
    **dict.fromkeys((PinReason.SYSTEM, PinReason.TOOLS, PinReason.REQUEST, PinReason.TAIL), 0),
    **dict.fromkeys(
        (
            PinReason.LOG_EVIDENCE,
            PinReason.FAILING_TEST,
            PinReason.FRAME,
            PinReason.TARGET,
            PinReason.CALLER,
            PinReason.USER,
        ),
        1,
    ),
    **dict.fromkeys(
        (
            PinReason.CALLEE,
            PinReason.TYPE,
            PinReason.BASE,
            PinReason.OVERRIDE,
            PinReason.IMPLEMENTS,
            PinReason.IMPORT,
            PinReason.CONSTANT,
            PinReason.FIELD,
            PinReason.RE_EXPORT,
            PinReason.CONFIG,
        ),
        2,
    ),
}


@dataclass(frozen=True, slots=True)
class Pin:
    """An atomic group: all of `units` are kept, or `core` alone with the group marked `reduced`."""

    reason: PinReason
    units: tuple[int, ...]  # sorted, spine included
    subject: str  # symbol id, path or section, for people
    core: tuple[int, ...] = ()  # what a reduced group keeps; () = can't be reduced
    guessed: bool = False
    distance: int = 0  # hops from a target; drops the farthest first

    @property
    def tier(self) -> int:
        return PIN_TIERS[self.reason]


@dataclass(frozen=True, slots=True)
class Pins:
    """Every pin, by tier, then rule order, then first unit. `findings`: what should be pinned and isn't packed."""

    pins: tuple[Pin, ...] = ()
    findings: tuple[Finding, ...] = ()


class Why(StrEnum):
    """How a unit came to be kept."""

    PINNED = "pinned"
    SCORED = "scored"
    SPINE = "spine"
    REPAIRED = "repaired"


@dataclass(frozen=True, slots=True)
class KeptUnit:
    unit: int
    tier: int
    why: Why
    pins: tuple[PinReason, ...] = ()
    score: float = 0.0
    reduced: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """Something about the run that the user must know. `code` is stable: 'budget', 'guessed-target', ..."""

    code: str
    severity: str  # 'error' | 'warning' | 'note'
    message: str
    path: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Selection:
    """Units to keep: sorted by index, closed under spines, `n_tokens <= limit` unless a finding says why not."""

    kept: tuple[KeptUnit, ...]
    limit: int
    n_tokens: int
    findings: tuple[Finding, ...] = ()

    def __post_init__(self) -> None:
        order = [kept.unit for kept in self.kept]
        if order != sorted(set(order)):
            raise ValueError("kept units must be sorted and distinct")

    @property
    def units(self) -> frozenset[int]:
        return frozenset(kept.unit for kept in self.kept)


# ---------------------------------------------------------------- omissions


class SymbolState(StrEnum):
    """What the selection did to a symbol that kept text refers to."""

    KEPT = "kept"  # all of its packed units
    SIGNATURE = "signature"  # at least its header
    DROPPED = "dropped"
    AMBIGUOUS = "ambiguous"  # several candidates, none of them kept
    UNKNOWN = "unknown"  # not resolvable: said, never counted as fine


class OmissionAction(StrEnum):
    NONE = "none"
    REPAIRED = "repaired"  # its header (or import) was added
    FLAGGED = "flagged"
    NOT_PACKED = "not-packed"  # it was outside the window, so nothing could be added


@dataclass(frozen=True, slots=True)
class Omission:
    """A symbol that kept text refers to, and what became of it. `severity` is 'none' when all is well.

    `symbol` is its id; the name where it is ambiguous or unknown; `path:line` for an import statement.
    """

    symbol: str
    name: str
    kind: str  # a SymbolKind, 'import', or 'unknown'
    path: str | None
    line: int | None
    state: SymbolState
    severity: str  # 'error' | 'warning' | 'note' | 'none'
    action: OmissionAction
    referenced_from: tuple[tuple[str, int | None], ...] = ()  # (path or section, line), sorted
    candidates: tuple[str, ...] = ()  # when ambiguous: symbol ids, sorted

    @property
    def is_finding(self) -> bool:
        return self.state not in (SymbolState.KEPT, SymbolState.SIGNATURE)


@dataclass(frozen=True, slots=True)
class OmissionReport:
    """Every symbol that kept text refers to: worst first, then by symbol."""

    omissions: tuple[Omission, ...] = ()

    @property
    def findings(self) -> tuple[Omission, ...]:
        """Those that are neither kept nor kept as a signature."""
        return tuple(omission for omission in self.omissions if omission.is_finding)

    @property
    def repaired(self) -> tuple[Omission, ...]:
        return tuple(omission for omission in self.omissions if omission.action is OmissionAction.REPAIRED)

    @property
    def counts(self) -> Mapping[str, int]:
        """How many symbols are in each state; every state occurs."""
        counts = dict.fromkeys((state.value for state in SymbolState), 0)
        for omission in self.omissions:
            counts[omission.state.value] += 1
        return counts


@dataclass(frozen=True, slots=True, eq=False)
class SparsePrompt:
    """What the main model prefills: kept ids at their original positions."""

    ids: Int32  # int32 (K,)
    positions: Int32  # int32 (K,) strictly increasing, < total
    total: int  # the original length; decoding continues at this position

    def __post_init__(self) -> None:
        if self.ids.shape != self.positions.shape or self.ids.ndim != 1 or not len(self.ids):
            raise ValueError("ids and positions must be equally long, one-dimensional and not empty")
        if (np.diff(self.positions) <= 0).any() or self.positions[0] < 0 or self.positions[-1] >= self.total:
            raise ValueError("positions must increase strictly within 0..total")

    def runs(self) -> tuple[tuple[int, int, int], ...]:
        """Maximal contiguous runs as (first kept index, end kept index, original position of the first)."""
        cuts = np.flatnonzero(np.diff(self.positions) != 1) + 1
        edges = [0, *cuts.tolist(), len(self.ids)]
        return tuple((a, b, int(self.positions[a])) for a, b in pairwise(edges))


# ---------------------------------------------------------------- the answer


@dataclass(frozen=True, slots=True)
class Completion:
    text: str
    ids: tuple[int, ...]
    finish: str  # 'stop' | 'length'
    seconds: float


@dataclass(frozen=True, slots=True)
class Hunk:
    """Replace bytes `span` of the file's old content by `new`."""

    span: ByteSpan
    new: bytes


@dataclass(frozen=True, slots=True)
class FileEdit:
    """Edits of one file. `base_digest` is the SHA-256 of the content that the hunks refer to ('' = new file)."""

    path: str
    base_digest: str
    hunks: tuple[Hunk, ...]


@dataclass(frozen=True, slots=True)
class EditPatch:
    files: tuple[FileEdit, ...]
    notes: tuple[str, ...] = ()  # e.g. "matched up to whitespace"


# ---------------------------------------------------------------- models


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What can be said of a model without loading its weights."""

    name: str  # as the user knows it
    folder: str
    n_layers: int
    n_params: int
    hidden_size: int
    n_heads: int
    n_kv_heads: int
    head_dim: int
    vocab_size: int
    max_position: int
    tokenizer_digest: str
    architecture: str
    tied: bool = True  # the output head is the embedding; else `n_params` counts both


@dataclass(frozen=True, slots=True)
class ChatFrame:
    """The chat template around one system and one user message, as text with special tokens.

    A prompt is `before_system + SYSTEM + before_user + USER + after_user`; empty strings for a model
    without a template.
    """

    before_system: str = ""
    before_user: str = ""
    after_user: str = ""
