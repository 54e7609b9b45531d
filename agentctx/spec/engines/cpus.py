"""How many threads to compute with: physical cores (two hyper-threads share one vector unit), within the quota."""

from __future__ import annotations

import math
import os
from pathlib import Path

_TOPOLOGY = Path("/sys/devices/system/cpu")
_CGROUP = Path("/sys/fs/cgroup")


def physical_cores(topology: Path = _TOPOLOGY, cgroup: Path = _CGROUP) -> int:
    """Cores that this process may use, at least 1; logical processors where the topology can't be read."""
    usable = _affinity()
    siblings = {_siblings(topology, cpu) for cpu in usable}
    quota = _quota(cgroup)
    return max(1, len(siblings) if quota is None else min(len(siblings), math.ceil(quota)))


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
