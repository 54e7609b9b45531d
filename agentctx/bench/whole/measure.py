"""Whether selections keep whole what they keep: no unit is cut, and no file's kept text has new syntax errors.

Files of a repository are packed a few at a time (`whole_pack`). Random scores stand for what a ranking would say; the
product's own selection then keeps a tenth to nine tenths of the prompt. What is looked at is the text that
`assemble.restrict` writes of that, marks for left-out lines included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil
from pathlib import Path
from random import Random

import numpy as np

from agentctx.assemble import restrict
from agentctx.bench.fuzz.files import n_errors
from agentctx.bench.whole.pack import Group, chosen_files, packed
from agentctx.errors import BudgetError
from agentctx.prompt import PromptDocument
from agentctx.repo.languages import language_of
from agentctx.source import FileSyntax, UnitKind
from agentctx.spec.keep import keep
from agentctx.spec.leads import LEAD_SHARE
from agentctx.spec.select import SelectOptions

SHARES = tuple(tenth / 10 for tenth in range(1, 10))
TOGETHER = 6  # files of one prompt


@dataclass(frozen=True, slots=True)
class WholeFailure:
    """`kind`: split (a unit is cut, moved or kept without its spine) or errors (kept text has more than the file)."""

    kind: str
    language: str
    path: str
    share: float
    detail: str
    whole: bool  # whether the file had no syntax error before


@dataclass(slots=True)
class Tally:
    """Of one language. A text is what one selection keeps of one file."""

    n_files: int = 0
    n_plain: int = 0  # files that their grammar couldn't be used on
    n_broken: int = 0  # files with syntax errors of their own
    n_texts: int = 0
    n_units: int = 0  # kept units that were compared with the file


@dataclass(slots=True)
class WholeResult:
    n_repositories: int = 0
    n_selections: int = 0
    n_refused: int = 0  # shares too small for what is never dropped
    languages: dict[str, Tally] = field(default_factory=dict)
    failures: list[WholeFailure] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        """No unit is split, and no file that had no syntax error has one now."""
        return not any(failure.kind == "split" or failure.whole for failure in self.failures)

    def n_split(self, language: str) -> int:
        return sum(failure.kind == "split" and failure.language == language for failure in self.failures)

    def n_wrong_files(self, language: str, *, whole: bool) -> int:
        """Files of which some kept text has more syntax errors than they have."""
        found = (failure for failure in self.failures if failure.kind == "errors" and failure.whole == whole)
        return len({failure.path for failure in found if failure.language == language})


@dataclass(frozen=True, slots=True)
class Written:
    """A selection as text: the kept units of the prompt, the prompt of them alone, and their places in it."""

    share: float
    kept: frozenset[int]
    text: PromptDocument
    moved: Mapping[int, int]


def run(folders: Sequence[Path], per_language: int, seed: int, only: Sequence[str] = ()) -> WholeResult:
    """Each folder is a repository by itself: at most so many files of each language, of `only` these if given."""
    result = WholeResult(n_repositories=len(folders))
    for folder in folders:
        files = chosen_files(folder, per_language, seed, only)
        for number, start in enumerate(range(0, len(files), TOGETHER)):
            random = Random(f"{seed}:{folder.name}:{number}")
            _check_group(packed(files[start : start + TOGETHER], random), random, folder.name, result)
    return result


def _check_group(group: Group, random: Random, repository: str, result: WholeResult) -> None:
    written = list(_selections(group, random, result))
    for path, syntax in group.syntax.items():
        tally = result.languages.setdefault(_language(syntax), Tally())
        tally.n_files += 1
        tally.n_plain += syntax.language is None
        tally.n_broken += syntax.n_errors > 0
        for failure in check_file(group, path, written, tally):
            result.failures.append(replace(failure, path=f"{repository}/{path}"))


def _selections(group: Group, random: Random, result: WholeResult) -> Iterator[Written]:
    for share in SHARES:
        scores = np.array([random.random() for _ in group.document.units])
        limit = max(1, ceil(share * group.tokenized.n_tokens))
        options = SelectOptions(limit, lead_share=random.choice((1.0, LEAD_SHARE)))
        try:
            selection, _ = keep(group.tokenized, scores, group.pins, options, index=group.index)
        except BudgetError:
            result.n_refused += 1
            continue
        result.n_selections += 1
        yield Written(share, selection.units, *restrict(group.document, selection.units))


def check_file(group: Group, path: str, selections: Sequence[Written], tally: Tally) -> Iterator[WholeFailure]:
    """What is wrong with what the selections keep of one file: of split units all, of syntax errors the first."""
    syntax = group.syntax[path]
    language = _language(syntax)
    before = n_errors(group.data[path], syntax.language) if syntax.language is not None else 0
    seen: set[bytes] = set()
    is_worse = False
    for written in selections:
        units = [number for number in range(len(syntax.units)) if group.places[(path, number)] in written.kept]
        if not units:
            continue
        tally.n_texts += 1
        tally.n_units += len(units)
        for wrong in split_units(group, path, units, written):
            yield WholeFailure("split", language, path, written.share, wrong, not before)
        text = shown(written.text, path)
        if syntax.language is None or text in seen or is_worse:
            continue
        seen.add(text)
        found = n_errors(text, syntax.language)
        if found > before:
            is_worse = True
            detail = f"{found} > {before} of {len(units)}/{len(syntax.units)} units"
            yield WholeFailure("errors", language, path, written.share, detail, not before)


def split_units(group: Group, path: str, units: Sequence[int], written: Written) -> Iterator[str]:
    """Kept units of a file that aren't there byte for byte, in whole lines, in their order and with their spine.

    `units` are numbers of the file. A last line that lacks its newline gets one.
    """
    data, place = group.data[path], -1
    for number in units:
        own = group.syntax[path].units[number]
        raw = data[own.span.start : own.span.end]
        at = written.moved.get(group.places[(path, number)], -1)
        name = f"lines {own.lines.start}-{own.lines.end}"
        if any(group.places[(path, other)] not in written.kept for other in own.spine):
            yield f"{name}: kept without its spine"
        elif at <= place or written.text.units[at].path != path:
            yield f"{name}: not in its place"
        elif written.text.unit_text(at) not in (raw, raw + b"\n"):
            yield f"{name}: not as in the file"
        elif own.span.start and data[own.span.start - 1 : own.span.start] != b"\n":
            yield f"{name}: starts within a line"
        place = max(place, at)


def shown(text: PromptDocument, path: str) -> bytes:
    """What is kept of a file, with the marks for left-out lines and without the line that names it."""
    units = (unit for unit in text.units if unit.path == path and unit.kind is not UnitKind.FILE)
    return b"".join(text.unit_text(unit.index) for unit in units)


def _language(syntax: FileSyntax) -> str:
    return syntax.language or language_of(syntax.path) or "text"
