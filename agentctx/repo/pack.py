"""Ranked units -> the PromptDocument that fills the window. Pure.

Sections come in the order system, code, edited code, tests, log, request, tail; files as `repo.order` says.
Everything that later stages need (definitions, links, what the task is about) is copied in, in prompt coordinates.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentctx.assemble import Assembled, Block, Key, Piece, assemble
from agentctx.prompt import ChatFrame, Evidence, PackFacts, PromptDocument, PromptFile, Section, Tokenizer
from agentctx.repo.choose import Choice, choose, links_by_unit
from agentctx.repo.locate import Located
from agentctx.repo.logtext import log_pieces
from agentctx.repo.offers import Limits, offers
from agentctx.repo.order import in_order
from agentctx.repo.packfiles import PackInput, counter, file_blocks, known_files
from agentctx.repo.packlinks import definitions_and_links
from agentctx.repo.packtests import Links, test_blocks
from agentctx.repo.rank import task_query, test_text
from agentctx.source import UnitKind


@dataclass(frozen=True, slots=True)
class Frame:
    """The text around what is packed. `answer` begins the assistant's turn."""

    system: str
    request: str
    chat: ChatFrame = ChatFrame()
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Packed:
    document: PromptDocument
    n_tokens: int
    notes: tuple[str, ...]


TEST_SHARE = 0.25  # of the window, at most; as much again for the log
MANY_TESTS = 8  # more tests than people name: they say less than the code, and get half of the share
_SPARE = (8, 32, 128, 512)  # tokens that the next round leaves, as long as the estimates were too low; then all


def pack(given: PackInput, frame: Frame, tokenizer: Tokenizer, window: int, budget: int) -> Packed:
    """Fill `window` tokens, of which `budget` will be kept.

    What must be said (system, request, tail) is packed even if it is more.
    """
    links = links_by_unit(given.graph)
    count = counter(given, tokenizer)
    blocks_before, blocks_after, notes = _fixed_blocks(given, frame, tokenizer, window, links)
    tests = {block.file.path for block in blocks_after if block.file is not None}
    tested = [piece.key for block in blocks_after if block.file is not None for piece in block.pieces if piece.lines]
    fixed = _count_blocks([*blocks_before, *blocks_after], tokenizer)
    room = max(0, window - fixed)
    query = task_query(given.task, given.evidence, test_text(given.graph, given.data, given.located))
    offered = offers(given.graph.files, given.data, given.ranking, query, Limits(budget, room))
    for spare in (*_SPARE, window, 0):
        choice = choose(given.graph, links, given.located, given.ranking, offered, count, room, budget, tested)
        code = _code_blocks(given, choice, tests)
        made = assemble([*blocks_before, *code, *blocks_after])
        n_tokens = _count_units(made, tokenizer)
        if n_tokens <= window or not room:
            break
        room = max(0, room - (n_tokens - window) - spare)
    document = _document(given, choice, made, known_files(given, {*choice.units, *tests}))
    return Packed(document, n_tokens, (*notes, *_lost_pins(given.located, made)))


def _lost_pins(located: Located, made: Assembled) -> Iterator[str]:
    """A pin is a promise: what of it the window couldn't hold is said, file by file."""
    for path in sorted({path for path, _ in located.pinned}):
        units = [key for key in located.pinned if key[0] == path]
        lost = sum(1 for key in units if key not in made.index)
        if lost:
            yield f"{lost} of {len(units)} pinned units of {path} don't fit the window; a larger --window holds them"


def _count_units(made: Assembled, tokenizer: Tokenizer) -> int:
    texts = [made.text[unit.span.start : unit.span.end].decode("utf-8", "replace") for unit in made.units]
    return sum(tokenizer.count_batch(texts))


def _count_blocks(blocks: Sequence[Block], tokenizer: Tokenizer) -> int:
    return _count_units(assemble(blocks), tokenizer)


# ---------------------------------------------------------------- what is always packed


def _fixed_blocks(
    given: PackInput, frame: Frame, tokenizer: Tokenizer, window: int, links: Links
) -> tuple[list[Block], list[Block], tuple[str, ...]]:
    """Blocks before the code, blocks behind it (tests, log, request, tail), and notes."""
    chat = frame.chat
    between = chat.before_user or "\n\n"  # without a chat template the two would run into each other
    before = [_scaffold(Section.SYSTEM, [chat.before_system, frame.system, between, "Repository code:\n\n"])]
    share = TEST_SHARE if len(given.located.failing_tests) <= MANY_TESTS else TEST_SHARE / 2
    tests, test_notes = test_blocks(given, tokenizer, int(window * share), links)
    log, log_notes = log_pieces(given.evidence, tokenizer, int(window * TEST_SHARE))
    request = Piece(("request", 1), UnitKind.REQUEST, f"{frame.request}\n".encode("utf-8", "surrogateescape"))
    after = [
        *tests,
        *([Block(Section.LOG, log)] if log else []),
        Block(Section.REQUEST, (_heading("request", "Request:\n"), request)),
        _scaffold(Section.TAIL, [chat.after_user, frame.answer]),
    ]
    return before, after, (*test_notes, *log_notes)


def _scaffold(section: Section, texts: Sequence[str]) -> Block:
    pieces = [Piece((section.value, n), UnitKind.SCAFFOLD, text.encode()) for n, text in enumerate(texts) if text]
    return Block(section, tuple(pieces))


def _heading(name: str, text: str) -> Piece:
    return Piece((name, 0), UnitKind.SCAFFOLD, b"\n" + text.encode())


# ---------------------------------------------------------------- code


def _code_blocks(given: PackInput, choice: Choice, tests: Collection[str]) -> list[Block]:
    """Blocks of the chosen code, what will stay as it is first. `tests`: files of another section."""
    paths = in_order([path for path in choice.units if path not in tests], given, choice)
    stable = {path: choice.units[path] for path in paths if path not in given.changed}
    edited = {path: choice.units[path] for path in paths if path in given.changed}
    return [
        *file_blocks(given, stable, Section.CODE, choice.scores),
        *file_blocks(given, edited, Section.EDITED, choice.scores),
    ]


# ---------------------------------------------------------------- the document


def _document(given: PackInput, choice: Choice, made: Assembled, files: Mapping[str, PromptFile]) -> PromptDocument:
    definitions, links = definitions_and_links(given.graph, given.data, given.evidence, given.task, made)
    located = given.located
    return PromptDocument(
        text=made.text,
        units=made.units,
        files=files,
        definitions=definitions,
        links=links,
        facts=PackFacts(
            targets=choice.targets,
            targets_guessed=choice.guessed,
            focused=bool(given.task.focus),
            frames=tuple(s for s in located.frames if s in definitions),
            frame_units=_frame_units(given, made.index),
            failing_tests=located.failing_tests,
            fixtures=located.fixtures,
            test_units=tuple(made.index[key] for key in located.test_units if key in made.index),
            user_pins=tuple(sorted(made.index[key] for key in located.pinned if key in made.index)),
            error_units=_error_units(given.evidence, made),
        ),
    )


def _frame_units(given: PackInput, index: Mapping[Key, int]) -> tuple[int, ...]:
    """Packed units that hold a frame's line, of code and of tests."""
    found = set()
    for path, line in given.located.frame_lines:
        for unit in given.graph.files[path].units if path in given.graph.files else ():
            if unit.lines.holds(line) and (path, unit.index) in index:
                found.add(index[(path, unit.index)])
    return tuple(sorted(found))


def _error_units(evidence: Evidence, made: Assembled) -> tuple[int, ...]:
    """Log units that hold an error line."""
    errors = {line.strip() for line in evidence.error_lines if line.strip()}
    found = []
    for unit in made.units:
        if unit.kind is UnitKind.LOG:
            text = made.text[unit.span.start : unit.span.end].decode("utf-8", "replace")
            if any(error in text for error in errors):
                found.append(unit.index)
    return tuple(found)
