"""How many threads to compute with: physical cores (two hyper-threads share one vector unit), within the quota. And
whether they multiply bfloat16."""

from __future__ import annotations

import math
import os
from pathlib import Path

_TOPOLOGY = Path("/sys/devices/system/cpu")
_CGROUP = Path("/sys/fs/cgroup")
_CPUINFO = Path("/proc/cpuinfo")
_MULTIPLIES_BFLOAT16 = frozenset({"avx512_bf16", "amx_bf16"})


def physical_cores(topology: Path = _TOPOLOGY, cgroup: Path = _CGROUP) -> int:
    """Cores that this process may use, at least 1; logical processors where the topology can't be read."""
    usable = _affinity()
    siblings = {_siblings(topology, cpu) for cpu in usable}
    quota = _quota(cgroup)
    return max(1, len(siblings) if quota is None else min(len(siblings), math.ceil(quota)))


def multiplies_bfloat16(cpuinfo: Path = _CPUINFO) -> bool:
    """Whether bfloat16 is faster here than float32: twice, by AVX-512's instructions (docs/lab.md). Without them it is
    widened first, and slower. False where it can't be found out, and on ARM, where it was not measured."""
    try:
        text = cpuinfo.read_text()
    except OSError:
        return False
    flags = next((line for line in text.splitlines() if line.startswith("flags")), "")
    return not _MULTIPLIES_BFLOAT16.isdisjoint(flags.split())


def _affinity() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _siblings(topology: Path, cpu: int) -> str:
    """The processors that share a core with `cpu`, as the kernel writes them; itself where it doesn't say."""
    try:
        return (topology / f"cpu{cpu}" / "topology" / "thread_siblings_list").read_text().strip()
    except OSError:
        return str(cpu)


def _quota(cgroup: Path) -> float | None:
    """CPUs that the control group allows (version 2, then 1), None without a limit."""
    try:
        limit, period = (cgroup / "cpu.max").read_text().split()
        return None if limit == "max" else int(limit) / int(period)
    except (OSError, ValueError):
        pass  # version 1, or no control groups at all
    try:
        limit = (cgroup / "cpu" / "cpu.cfs_quota_us").read_text()
        period = (cgroup / "cpu" / "cpu.cfs_period_us").read_text()
        return int(limit) / int(period) if int(limit) > 0 else None
    except (OSError, ValueError):
        return None
