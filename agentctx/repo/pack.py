"""Ranked units -> the PromptDocument that fills the window. Pure.

Sections come in the order system, code, edited code, tests, log, request, tail; files by path. Everything that
later stages need (definitions, links, what the task is about) is copied in, in prompt coordinates.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agentctx.assemble import Assembled, Block, Gap, Key, Piece, assemble, indentation
from agentctx.prompt import ChatFrame, Evidence, PackFacts, PromptDocument, PromptFile, Section, Task, Tokenizer
from agentctx.repo.choose import Choice, Chooser, UnitKey, choose, links_by_unit, units_of
from agentctx.repo.locate import Located
from agentctx.repo.logtext import log_pieces
from agentctx.repo.packlinks import definitions_and_links
from agentctx.repo.rank import Ranked, task_query, test_text, unit_scores
from agentctx.source import FileSyntax, Link, RepoGraph, Resolution, SymbolKind, UnitKind


@dataclass(frozen=True, slots=True)
class PackInput:
    """What is packed. `data` holds the bytes of every indexed file; `comment` a path's line comment."""

    graph: RepoGraph
    data: Mapping[str, bytes]
    task: Task
    evidence: Evidence
    located: Located
    ranking: Sequence[Ranked]
    changed: frozenset[str]  # files with uncommitted changes: they go behind the stable ones
    comment: Callable[[str], tuple[str, str]]


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


Links = Mapping[UnitKey, list[Link]]
TEST_SHARE = 0.25  # of the window, at most; as much again for the log
_SPARE = (8, 32, 128, 512)  # tokens that the next round leaves, as long as the estimates were too low; then all


def pack(given: PackInput, frame: Frame, tokenizer: Tokenizer, window: int, budget: int) -> Packed:
    """Fill `window` tokens, of which `budget` will be kept.

    What must be said (system, request, tail) is packed even if it is more.
    """
    links = links_by_unit(given.graph)
    count = _counter(given, tokenizer)
    blocks_before, blocks_after, notes = _fixed_blocks(given, frame, tokenizer, window, links)
    tests = {block.file.path for block in blocks_after if block.file is not None}
    fixed = _count_blocks([*blocks_before, *blocks_after], tokenizer)
    room = max(0, window - fixed)
    for spare in (*_SPARE, window, 0):
        choice = choose(given.graph, links, given.located, given.ranking, count, room, budget)
        code = _code_blocks(given, choice, tests)
        made = assemble([*blocks_before, *code, *blocks_after])
        n_tokens = _count_units(made, tokenizer)
        if n_tokens <= window or not room:
            break
        room = max(0, room - (n_tokens - window) - spare)
    document = _document(given, choice, made, _known_files(given, {*choice.units, *tests}))
    return Packed(document, n_tokens, (*notes, *_lost_pins(given.located, made)))


def _lost_pins(located: Located, made: Assembled) -> Iterator[str]:
    """A pin is a promise: what of it the window couldn't hold is said, file by file."""
    for path in sorted({path for path, _ in located.pinned}):
        units = [key for key in located.pinned if key[0] == path]
        lost = sum(1 for key in units if key not in made.index)
        if lost:
            yield f"{lost} of {len(units)} pinned units of {path} don't fit the window; a larger --window holds them"


def _counter(given: PackInput, tokenizer: Tokenizer) -> Callable[[Sequence[UnitKey]], list[int]]:
    return lambda keys: tokenizer.count_batch([unit_bytes(given, key).decode("utf-8", "replace") for key in keys])


def unit_bytes(given: PackInput, key: UnitKey) -> bytes:
    span = given.graph.files[key[0]].units[key[1]].span
    return given.data[key[0]][span.start : span.end]


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
    tests, test_notes = _test_blocks(given, tokenizer, int(window * TEST_SHARE), links)
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


def _test_blocks(
    given: PackInput, tokenizer: Tokenizer, room: int, links: Links
) -> tuple[list[Block], tuple[str, ...]]:
    """The failing tests with their fixtures; those that don't fit are shown by their header."""
    chooser = Chooser(given.graph, links, _counter(given, tokenizer), room)
    symbols = (*given.located.failing_tests, *given.located.fixtures)
    in_part = sum(not _add_test(chooser, given, symbol, first=symbol == symbols[0]) for symbol in symbols)
    in_part += sum(not chooser.add_bare(key) for key in given.located.test_units)
    _add_helpers(chooser, given, links)
    for key in given.located.pinned:
        if key[0] in chooser.chosen.units:
            chooser.add_bare(key)
    notes: tuple[str, ...] = ()
    if in_part:
        limit = "they exceed a quarter of the window"
        notes = (
            f"{in_part} of {len(symbols) + len(given.located.test_units)} failing tests and fixtures are in part "
            f"or not packed at all: {limit}",
        )
    units = {path: frozenset(chosen) for path, chosen in sorted(chooser.chosen.units.items())}
    blocks = _file_blocks(given, units, Section.TESTS, {})
    return blocks, notes


def _add_test(chooser: Chooser, given: PackInput, symbol: str, *, first: bool) -> bool:
    """A test, as much of it as fits. Says whether it is whole."""
    keys = units_of(given.graph, symbol)
    if chooser.add(keys):
        return True
    header = [(given.graph.symbols[symbol].path, given.graph.symbols[symbol].header)]
    cost = chooser.cost(chooser.closed(header, bare=True))
    if first and cost <= 2 * chooser.chosen.room:  # one is named, unless its parameters alone would put out the code
        chooser.chosen.room = max(chooser.chosen.room, cost)
    for key in (*header, *keys):
        chooser.add_bare(key)
    return False


def _add_helpers(chooser: Chooser, given: PackInput, links: Links) -> None:
    """What the tests use of test files (helpers, constants, base classes): whole while there is room, else headers."""
    seen: set[str] = set()
    todo = [(path, unit) for path, units in sorted(chooser.chosen.units.items()) for unit in sorted(units)]
    while todo:
        found = [target for key in todo for link in links.get(key, ()) for target in _certain(link)]
        todo = []
        for symbol in dict.fromkeys(found):
            known = given.graph.symbols[symbol]
            if symbol in seen or known.kind is SymbolKind.MODULE or not given.graph.files[known.path].is_test:
                continue
            seen.add(symbol)
            keys = units_of(given.graph, symbol) if known.kind is not SymbolKind.CLASS else []
            if not (keys and chooser.add(keys)):
                keys = [(known.path, known.header)]
                chooser.add(keys)
            todo.extend(key for key in keys if chooser.chosen.has(key))


def _certain(link: Link) -> tuple[str, ...]:
    return link.targets if link.state is Resolution.RESOLVED else ()


# ---------------------------------------------------------------- code


def _code_blocks(given: PackInput, choice: Choice, tests: Collection[str]) -> list[Block]:
    """Blocks of the chosen code; files in `tests` have their place in another section."""
    scores = _scores(given, choice)
    units = {path: chosen for path, chosen in choice.units.items() if path not in tests}
    stable = {path: chosen for path, chosen in units.items() if path not in given.changed}
    edited = {path: chosen for path, chosen in units.items() if path in given.changed}
    return [
        *_file_blocks(given, stable, Section.CODE, scores),
        *_file_blocks(given, edited, Section.EDITED, scores),
    ]


def _known_files(given: PackInput, paths: Collection[str]) -> dict[str, PromptFile]:
    return {path: _prompt_file(given, path) for path in sorted(paths)}


def _scores(given: PackInput, choice: Choice) -> dict[UnitKey, tuple[float, str]]:
    """Score and reasons of every chosen unit that belongs to a ranked chunk."""
    query = task_query(given.task, given.evidence, test_text(given.graph, given.data, given.located))
    out: dict[UnitKey, tuple[float, str]] = {}
    for one in given.ranking:
        path = one.chunk.path
        if one.score <= 0 or not choice.units.get(path, frozenset()).intersection(one.chunk.units):
            continue
        for unit, score in unit_scores(one, given.graph.files[path], given.data[path], query).items():
            out[(path, unit)] = (score, one.why)
    return out


def _file_blocks(
    given: PackInput,
    units: Mapping[str, frozenset[int]],
    section: Section,
    scores: Mapping[UnitKey, tuple[float, str]],
) -> list[Block]:
    blocks = []
    for path, chosen in sorted(units.items()):
        syntax = given.graph.files[path]
        pieces = [_piece(given, syntax, unit, scores) for unit in sorted(chosen)]
        blocks.append(Block(section, tuple(pieces), _prompt_file(given, path), _gaps(given, syntax, sorted(chosen))))
    return blocks


def _prompt_file(given: PackInput, path: str) -> PromptFile:
    syntax = given.graph.files[path]
    n_lines = syntax.units[-1].lines.end if syntax.units else 0
    return PromptFile(path, given.comment(path), n_lines, syntax.language)


def _piece(given: PackInput, syntax: FileSyntax, number: int, scores: Mapping[UnitKey, tuple[float, str]]) -> Piece:
    unit = syntax.units[number]
    score, why = scores.get((syntax.path, number), (0.0, ""))
    return Piece(
        key=(syntax.path, number),
        kind=unit.kind,
        text=unit_bytes(given, (syntax.path, number)),
        lines=unit.lines,
        symbol=unit.symbol,
        spine=tuple((syntax.path, other) for other in unit.spine),
        score=score,
        why=why,
    )


def _gaps(given: PackInput, syntax: FileSyntax, chosen: Sequence[int]) -> tuple[Gap | None, ...]:
    """What the window leaves out before each chosen unit and after the last."""
    gaps: list[Gap | None] = []
    following = 0
    for number in (*chosen, len(syntax.units)):
        gaps.append(_gap(given, syntax, following, number) if number > following else None)
        following = number + 1
    return tuple(gaps)


def _gap(given: PackInput, syntax: FileSyntax, first: int, end: int) -> Gap:
    lines = syntax.units[end - 1].lines.end - syntax.units[first].lines.start + 1
    return Gap(lines, indentation(unit_bytes(given, (syntax.path, first))))


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
