"""What `bench index` measures in a process of its own; prints one JSON object."""

from __future__ import annotations

import json
import re
import resource
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

from agentctx.pipeline.index import link, read_tree
from agentctx.pipeline.services import Clock
from agentctx.repo.catalog import Catalog
from agentctx.repo.pool import n_cores
from agentctx.repo.store import IndexMemory, IndexStore
from agentctx.repo.survey import survey, update
from agentctx.repo.working_set import Wanted

UPDATES = 60
LINKED = 3


def main(kind: str, root: str, cache: str, processes: str) -> None:
    """`kind`: survey or update; `processes`: '' for as many as there are cores."""
    run = {"survey": _survey, "update": _update}[kind]
    found = run(Path(root), Path(cache), int(processes) if processes else None)
    sys.stdout.write(json.dumps(found))


def _survey(root: Path, cache: Path, processes: int | None) -> dict[str, float]:
    """Until the catalog can be asked."""
    start = time.perf_counter()
    found = survey(root, store=IndexStore.of(cache, root), processes=processes)
    Catalog({path: row.row for path, row in found.rows.items()})
    seconds = time.perf_counter() - start
    return {
        "seconds": seconds,
        "files": len(found.entries),
        "parsed": found.n_parsed,
        "bytes": sum(entry.n_bytes for entry in found.entries.values()),
        "peak_rss": peak_rss(processes or n_cores()),
        "cpu": _cpu(),
    }


def peak_rss(processes: int) -> int:
    """Bytes; an upper bound: this process's peak, and its largest child's for each of its workers."""
    unit = 1 if sys.platform == "darwin" else 1024
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    return _own_peak(unit) + processes * unit * child


def _own_peak(unit: int) -> int:
    """Linux keeps `ru_maxrss` over exec, so it would hold the peak of whoever started this process; VmHWM doesn't."""
    try:
        found = re.search(r"^VmHWM:\s+(\d+) kB$", Path("/proc/self/status").read_text("ascii"), re.MULTILINE)
    except OSError:
        found = None
    if found is not None:
        return int(found[1]) * 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _cpu() -> float:
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in both)


def _update(root: Path, cache: Path, processes: int | None) -> dict[str, object]:
    """A file is saved; until the catalog knows what it defines. Told which file, and not told."""
    memory, store = IndexMemory(), IndexStore.of(cache, root)
    known = survey(root, store=store, memory=memory, processes=processes)
    code = [entry for entry in known.entries.values() if entry.language is not None]
    chosen = [code[at * len(code) // UPDATES] for at in range(min(UPDATES, len(code)))]
    told = [_saved(root, entry.path, at, memory, store, told=True) for at, entry in enumerate(chosen)]
    untold = [_saved(root, entry.path, at, memory, store, told=False) for at, entry in enumerate(chosen)]
    services = _Services(cache, memory)
    linked = []
    for _ in range(LINKED):
        clock = Clock()
        tree = read_tree(root, services, clock)
        link(tree, services, clock, Wanted(paths=(chosen[0].path,)))
        linked.append(clock.seconds["index"])
    return {"told": _percentiles(told), "untold": _percentiles(untold), "link": min(linked)}


def _saved(
    root: Path, path: str, number: int, memory: IndexMemory, store: IndexStore, *, told: bool
) -> tuple[float, float]:
    """(seconds, seconds of this process's CPU)."""
    name = f"saved_{number}_{int(told)}"
    with (root / path).open("a", encoding="utf-8") as file:
        file.write(f"\n{name} = 1\n")
    start, worked = time.perf_counter(), time.process_time()
    if told:
        update(memory, [path], store)
    else:
        survey(root, store=store, memory=memory)
    catalog = Catalog({row.path: row.row for row in memory.rows.values() if row.entry is not None})
    seconds, cpu = time.perf_counter() - start, time.process_time() - worked
    if path not in catalog.mentioning(name):
        raise AssertionError(f"{name} isn't known to be in {path}")
    return seconds, cpu


def _percentiles(measured: list[tuple[float, float]]) -> dict[str, float]:
    wall, cpu = (sorted(column) for column in zip(*measured, strict=True))
    found: dict[str, float] = {"n": len(measured), "max": wall[-1]}
    for name, column in (("", wall), ("cpu_", cpu)):
        cuts = quantiles(column, n=20, method="inclusive")
        found |= {f"{name}p50": cuts[9], f"{name}p95": cuts[18]}
    return found


@dataclass(frozen=True, slots=True)
class _Services:
    """As much of `pipeline.services.Services` as reading and linking use."""

    cache_dir: Path
    memory: IndexMemory

    def progress(self, message: str) -> None:
        return
