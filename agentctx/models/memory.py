"""How much memory a model needs, how much there is, and the refusal when it doesn't fit."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from agentctx.errors import NotEnoughMemory
from agentctx.prompt import ModelInfo

_LIBRARY_BYTES = 400_000_000  # torch and transformers imported, before any weights

# Per query and key, while a mask is made: the distance of their positions, and what of it is hidden or seen, in full
# layers and in sliding ones (11.2 measured).
_MASK_BYTES = 12


@dataclass(frozen=True, slots=True)
class Available:
    """Bytes that can be had without swapping; None: could not be found out. `source` says who says so."""

    n_bytes: int | None
    source: str


def needed_bytes(
    info: ModelInfo, *, n_tokens: int, weight_bytes: float = 4.0, cache_bytes: float = 4.0, chunk: int = 512
) -> int:
    """Weights, KV cache for `n_tokens`, the activations and masks of one chunk, and the libraries.

    Args:
        weight_bytes: per parameter as loaded (4: float32, 2: float16, 0.5: four bits).
        cache_bytes: per cached value.
        chunk: tokens per forward.
    """
    weights = info.n_params * weight_bytes
    cache = 2 * info.n_layers * info.n_kv_heads * info.head_dim * n_tokens * cache_bytes
    # float32: one layer's hidden states, projections (about 12 of hidden size) and attention scores, twice
    rows = min(chunk, n_tokens)
    activations = 4 * rows * (12 * info.hidden_size + 2 * info.n_heads * n_tokens) + 4 * info.vocab_size
    masks = _MASK_BYTES * rows * n_tokens
    return int(weights + cache + activations + masks) + _LIBRARY_BYTES


def require(need: int, have: Available, what: str) -> tuple[str, ...]:
    """Raises NotEnoughMemory with both numbers. Returns notes: one when it can't be checked."""
    if have.n_bytes is None:
        return (f"{what} needs {need / 1e9:.1f} GB; {have.source}",)
    if need > have.n_bytes:
        raise NotEnoughMemory(
            f"{what} needs {need / 1e9:.1f} GB of memory; {have.n_bytes / 1e9:.1f} GB are free ({have.source})",
            hint="take a smaller model, a smaller --window, or close something",
        )
    return ()


def available(proc: Path = Path("/proc"), cgroups: Path = Path("/sys/fs/cgroup")) -> Available:
    """What the system, and the container around us, still allow. The paths are parameters for tests."""
    if sys.platform == "darwin":
        return _macos()
    found = [
        item for item in (_meminfo(proc), _cgroup_v2(proc, cgroups), _cgroup_v1(proc, cgroups)) if item is not None
    ]
    if not found:
        return Available(None, "how much memory is free could not be found out on this system")
    return min(found, key=lambda item: item.n_bytes or 0)


def available_on(name: str, free_bytes: int | None) -> Available:
    """Of a device with so much memory of its own; None: it takes the system's."""
    return available() if free_bytes is None else Available(free_bytes, name)


def _meminfo(proc: Path) -> Available | None:
    match = re.search(r"^MemAvailable:\s+(\d+) kB", _read(proc / "meminfo"), re.MULTILINE)
    return Available(int(match[1]) * 1024, "MemAvailable") if match else None


def _cgroup_v2(proc: Path, cgroups: Path) -> Available | None:
    match = re.search(r"^0::/(.*)$", _read(proc / "self" / "cgroup"), re.MULTILINE)
    if match is None:
        return None
    folder = cgroups / match[1]
    limits = []
    for level in [folder, *folder.parents]:  # a limit of any group around ours binds
        if level == cgroups.parent:
            break
        limits.append(_headroom(level, "memory.max", "memory.current", "file"))
    return _smallest(limits)


def _cgroup_v1(proc: Path, cgroups: Path) -> Available | None:
    match = re.search(r"^\d+:[\w,=]*\bmemory\b[\w,=]*:/(.*)$", _read(proc / "self" / "cgroup"), re.MULTILINE)
    if match is None:
        return None
    root = cgroups / "memory"
    names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_cache")
    return _smallest([_headroom(level, *names) for level in {root / match[1], root}])


def _headroom(folder: Path, limit_file: str, usage_file: str, cache_key: str) -> int | None:
    """Limit minus usage; file pages can be dropped, so they don't count as used. None: no limit."""
    limit, usage = _read(folder / limit_file).strip(), _read(folder / usage_file).strip()
    if not limit.isdigit() or not usage.isdigit() or int(limit) >= 1 << 60:
        return None
    cached = re.search(rf"^{cache_key} (\d+)$", _read(folder / "memory.stat"), re.MULTILINE)
    return max(0, int(limit) - int(usage) + (int(cached[1]) if cached else 0))


def _smallest(limits: list[int | None]) -> Available | None:
    known = [limit for limit in limits if limit is not None]
    return Available(min(known), "the container's memory limit") if known else None


def _read(path: Path) -> str:
    """An empty text where the kernel offers no such file."""
    try:
        return path.read_text("ascii", errors="replace")
    except OSError:
        return ""


def _macos() -> Available:
    try:
        text = subprocess.run(["vm_stat"], capture_output=True, text=True, check=True, timeout=5).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return Available(None, f"how much memory is free could not be found out ({error})")
    return parse_vm_stat(text)


def parse_vm_stat(text: str) -> Available:
    """The output of macOS' vm_stat."""
    size = re.search(r"page size of (\d+) bytes", text)
    pages = re.findall(r"^Pages (?:free|inactive|speculative|purgeable):\s+(\d+)\.", text, re.MULTILINE)
    if size is None or not pages:
        return Available(None, "how much memory is free could not be read from vm_stat")
    return Available(int(size[1]) * sum(map(int, pages)), "vm_stat")


def peak_bytes() -> int | None:
    """The most memory that this process has held so far; None where the system doesn't tell (Windows)."""
    try:
        import resource
    except ImportError:
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(most if sys.platform == "darwin" else most * 1024)  # macOS counts bytes, Linux KiB
