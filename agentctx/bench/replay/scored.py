"""Scorers on bug fixes, packed as the product packs them: what each keeps of the edited lines, at several keep rates.

`code`: the scorer alone decides which units of the packed code are kept, within a share of the code's tokens, each with
its spine. `prompt`: the product's whole selection, with pins and repairs, within a share of the window.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from agentctx.bench.replay.baselines import bm25_scores, random_scores
from agentctx.bench.replay.cases import Case, mirror, needed
from agentctx.bench.replay.packed import packed
from agentctx.config import RunOptions
from agentctx.errors import AgentctxError
from agentctx.pipeline.decide import identity
from agentctx.pipeline.fit import Fitter
from agentctx.pipeline.prefixes import DrafterStore, PrefixMemory, memo_key
from agentctx.pipeline.services import Model, Services
from agentctx.prompt import Float32, Section, TokenizedPrompt
from agentctx.source import Resolution, Role, SymbolKind
from agentctx.spec.draft import Draft, unit_sizes
from agentctx.spec.index import PromptIndex
from agentctx.spec.protocols import Drafter
from agentctx.spec.scorers import make
from agentctx.spec.scorers.base import Asked, Scorer
from agentctx.spec.scorers.calibration import Calibration
from agentctx.spec.scorers.joint import read_jointly
from agentctx.spec.select import Float64, fill, rank_scores

CODE, PROMPT = "code", "prompt"
BASELINES = ("random", "bm25", "rank")
SEEDS = 20  # of random
Places = Mapping[str, Sequence[tuple[str, int]]]  # by definition that the fix calls: where it stands
Lines = frozenset[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """One case, scorer, way of selecting and keep rate. `have` of `need` definitions that the fix calls are kept.

    `prompt`: of the repository's `names` that kept code and tests use, `safe` ones are kept or there as a signature.
    """

    case: str
    repo: str
    scorer: str
    way: str
    keep: float
    recall: float = 0.0
    all: float = 0.0
    need: int = 0
    have: float = 0.0
    names: float = 0.0
    safe: float = 0.0
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """`work`: folder in which the values of a case are kept for the next run; `window` in tokens."""

    model: Model
    scorers: tuple[str, ...]
    known: Calibration | None
    keeps: tuple[float, ...]
    ways: tuple[str, ...]
    window: int
    work: Path

    def made(self) -> list[Scorer]:
        return [make(name, self.known) for name in self.scorers]


def scored(
    cases: Sequence[Case],
    clones: Path,
    setting: Setting,
    services: Services,
    options: RunOptions,
    say: Callable[[str], None],
) -> Iterator[ScoredRow]:
    """The rows of every case; a case that fails is a row with its error for each scorer, way and keep rate.

    Raises:
        UsageError: a repository has no clone, or no such scorer.
        ModelUnavailable, NotEnoughMemory: the drafter can't be loaded.
    """
    drafter: Drafter | None = None
    scorers = setting.made()
    store = DrafterStore(setting.model.info.weights_digest, setting.work, PrefixMemory())
    for number, case in enumerate(cases, 1):
        started = time.monotonic()
        try:
            fitter, places = _packed(case, clones, setting, services, options)
            keys = {scorer.name: _key(setting, scorer, options, fitter.tokenized) for scorer in scorers}
            known = {name: store.values(key) for name, key in keys.items()}
            values = {name: found[0] for name, found in known.items() if found is not None}
            missing = [scorer for scorer in scorers if scorer.name not in values]
            if missing:
                drafter = drafter if drafter is not None else _drafter(setting, scorers)
                store.form = drafter.form
                read = read_jointly(drafter, missing, Asked.of(drafter, fitter.tokenized))
                for name, found in read.items():
                    store.keep_values(keys[name], found)
                values.update(read)
            yield from _rows(case, fitter, scorers, values, places, setting)
        except AgentctxError as error:
            for name in (*BASELINES, *setting.scorers):
                for way in setting.ways:
                    for keep in setting.keeps:
                        yield ScoredRow(case.id, case.repo, name, way, keep, error=error.message)
        say(f"{number} of {len(cases)}: {case.id}, {time.monotonic() - started:.0f} s")
    for problem in dict.fromkeys(store.problems):
        say(problem)


def seconds_of(
    cases: Sequence[Case], clones: Path, setting: Setting, services: Services, options: RunOptions
) -> dict[str, float]:
    """Seconds that each scorer takes by itself, mean over these cases; before the first a run that isn't counted."""
    scorers = setting.made()
    found: dict[str, list[float]] = {scorer.name: [] for scorer in scorers}
    drafter = _drafter(setting, scorers) if cases and scorers else None
    for case in cases:
        fitter, _ = _packed(case, clones, setting, services, options)
        for n, scorer in enumerate((*scorers[:1], *scorers)):
            assert drafter is not None
            reading, scoring = scorer.begin(Asked.of(drafter, fitter.tokenized))
            started = time.perf_counter()
            drafter.read(fitter.tokenized.ids, reading, scoring)
            scoring.values()
            if n:
                found[scorer.name].append(time.perf_counter() - started)
    return {name: sum(own) / len(own) for name, own in found.items() if own}


def _key(setting: Setting, scorer: Scorer, options: RunOptions, tokenized: TokenizedPrompt) -> str:
    learned = setting.known.digest_of_all if setting.known is not None else ""
    info = setting.model.info
    return memo_key(tokenized, info, identity(scorer.name, options, learned), scorer.depth(info.n_layers))


def _packed(
    case: Case, clones: Path, setting: Setting, services: Services, options: RunOptions
) -> tuple[Fitter, Places]:
    """The window of a case, and where the definitions stand that its fix calls."""
    clone = mirror(clones, case.repo)
    understood, fitter = packed(case, clone, setting.window, options, services, setting.model.tokenizer)
    return fitter, needed(clone, case, understood.index.data) if case.language == "py" else {}


def _drafter(setting: Setting, scorers: Sequence[Scorer]) -> Drafter:
    layers = setting.model.info.n_layers
    return setting.model.load_drafter(max(scorer.depth(layers) for scorer in scorers) if scorers else layers)


# ---------------------------------------------------------------- selecting


def _rows(
    case: Case,
    fitter: Fitter,
    scorers: Sequence[Scorer],
    values: Mapping[str, Float32],
    places: Places,
    setting: Setting,
) -> Iterator[ScoredRow]:
    tokenized = fitter.tokenized
    by_name: dict[str, list[Float64]] = {
        "random": [random_scores(tokenized, seed) for seed in range(SEEDS)],
        "bm25": [bm25_scores(tokenized)],
        "rank": [rank_scores(tokenized.document)],
        **{scorer.name: [scorer.aggregate(tokenized, values[scorer.name])] for scorer in scorers},
    }
    for name, tries in by_name.items():
        for way in setting.ways:
            for keep in setting.keeps:
                chosen = [_kept(fitter, scores, keep, way) for scores in tries]
                kept = [lines_of(fitter.full, units) for units in chosen]
                hits = [len(case.gold_lines & lines) for lines in kept]
                have = [sum(not lines.isdisjoint(of) for of in places.values()) for lines in kept]
                used = [names_used(fitter.index, units) if way == PROMPT else (0, 0) for units in chosen]
                yield ScoredRow(
                    case=case.id,
                    repo=case.repo,
                    scorer=name,
                    way=way,
                    keep=keep,
                    recall=float(np.mean(hits)) / len(case.gold_lines),
                    all=float(np.mean([hit == len(case.gold_lines) for hit in hits])),
                    need=len(places),
                    have=float(np.mean(have)),
                    names=float(np.mean([names for names, _ in used])),
                    safe=float(np.mean([safe for _, safe in used])),
                )


def _kept(fitter: Fitter, scores: Float64, keep: float, way: str) -> frozenset[int]:
    if way != PROMPT:
        return code_units(fitter, scores, keep)
    limit = max(1, int(np.ceil(keep * fitter.tokenized.n_tokens)))
    try:
        return fitter.select(scores, limit)[0].units
    except AgentctxError:
        return frozenset()  # less than what is never dropped


def names_used(index: PromptIndex, units: frozenset[int]) -> tuple[int, int]:
    """Definitions that kept code and tests use (no modules; to be imported is no use), and those of them whose header
    or signature line is kept."""
    document = index.document
    used = {
        target
        for unit in units
        if document.units[unit].section in (Section.CODE, Section.EDITED, Section.TESTS)
        for link in index.links[unit]
        if link.state is Resolution.RESOLVED and link.role is not Role.IMPORT
        for target in link.targets
        if document.definitions[target].kind is not SymbolKind.MODULE
    }
    known = [document.definitions[target] for target in used]
    return len(used), sum(one.header in units or one.line in units for one in known)


def code_units(fitter: Fitter, scores: Float64, keep: float) -> frozenset[int]:
    """The best units (of `fitter.full`) of the packed code within a share of its tokens, with their spines."""
    tokenized = fitter.full
    sizes = unit_sizes(tokenized)
    code = [unit.section in (Section.CODE, Section.EDITED) for unit in tokenized.document.units]
    total = sum(size for size, own in zip(sizes, code, strict=True) if own)
    draft = Draft(fitter.index, sizes, int(keep * total), 0)
    fill(draft, np.where(code, fitter.spread(scores), -np.inf))
    return frozenset(unit for unit in draft.kept if code[unit])


def lines_of(tokenized: TokenizedPrompt, units: frozenset[int]) -> Lines:
    found: set[tuple[str, int]] = set()
    for number in units:
        unit = tokenized.document.units[number]
        if unit.path is not None and unit.lines is not None:
            found.update((unit.path, line) for line in range(unit.lines.start, unit.lines.end + 1))
    return frozenset(found)
