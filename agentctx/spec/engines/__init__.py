"""The engines that run a model: a name, and the module that is imported when it is asked for.

Only `cli`, `lsp.server` and `bench` choose one; everything else receives the Protocols of `spec.protocols`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, cast

from agentctx.errors import EngineUnavailable
from agentctx.spec.engines.modules import (
    ConnectingModule,
    Device,
    DeviceModule,
    DraftingModule,
    EngineModule,
    RandomModule,
    TextEngineModule,
)
from agentctx.spec.engines.wishes import Wish


@dataclass(frozen=True, slots=True)
class EngineEntry:
    module: str
    needs: tuple[str, ...] = ()  # packages
    extra: str | None = None  # of agentctx, that installs them
    drafts_with: str | None = None  # the engine that runs its drafters; None = itself
    exporter: str | None = None  # the module whose `export` writes the form that it runs; None = it runs any folder
    device: str | None = None  # the module that knows where it runs models; None: in main memory, or on others' devices
    randomizer: str | None = None  # the module that makes models with random weights
    takes_text: bool = False  # a server: text goes in, no weights are loaded here
    connects: bool = False  # with an address: to a server that takes token ids
    weight_bytes: float | None = 4.0  # per parameter as it is loaded; None: on devices that we don't see


ENGINES: dict[str, EngineEntry] = {
    "torch": EngineEntry(
        "agentctx.spec.engines.torch",
        ("torch", "transformers", "safetensors"),
        "torch",
        device="agentctx.spec.engines.torch_device",
        randomizer="agentctx.spec.engines.torch_random",
    ),
    "mlx": EngineEntry(
        "agentctx.spec.engines.mlx",
        ("mlx", "mlx_lm"),
        "mlx",
        weight_bytes=2.0 if sys.platform == "darwin" else 4.0,
    ),
    "openvino": EngineEntry(
        "agentctx.spec.engines.openvino",
        ("openvino",),
        "openvino",
        drafts_with="torch",
        exporter="agentctx.spec.engines.openvino_export",
    ),
    "vllm": EngineEntry(
        "agentctx.spec.engines.vllm", ("vllm",), "vllm", drafts_with="torch", connects=True, weight_bytes=None
    ),
    "reference": EngineEntry("agentctx.spec.engines.reference"),
    "openai": EngineEntry("agentctx.spec.engines.openai", ("openai",), "openai", drafts_with="torch", takes_text=True),
}


def load(name: str) -> EngineModule:
    """The module of engine `name`. Raises EngineUnavailable: unknown, a package is missing, or it takes only text."""
    if takes_text(name):
        raise EngineUnavailable(
            f"engine {name} sends text to a server; this command needs a model that it runs itself",
            hint="`agentctx edit` can use a server",
        )
    return cast(EngineModule, _module(name))


def load_drafting(name: str) -> DraftingModule:
    """The module of an engine that runs drafters. Raises EngineUnavailable: it doesn't, or as `load` does."""
    other = _entry(name).drafts_with
    if other is not None:
        raise EngineUnavailable(
            f"engine {name} shows no attention, so it runs no drafter", hint=f"the {other} engine drafts for it"
        )
    return cast(DraftingModule, _module(name))


def load_text(name: str) -> TextEngineModule:
    """The module of an engine for servers. Raises EngineUnavailable: a package is missing."""
    return cast(TextEngineModule, _module(name))


def takes_text(name: str) -> bool:
    """Whether the engine sends text to a server."""
    return name in ENGINES and ENGINES[name].takes_text


def load_connecting(name: str) -> ConnectingModule:
    """The module of an engine that `connects`. Raises EngineUnavailable: a package is missing."""
    return cast(ConnectingModule, _module(name))


def connects(name: str) -> bool:
    """Whether the engine can also be a server that takes token ids."""
    return name in ENGINES and ENGINES[name].connects


def _module(name: str) -> object:
    entry = _entry(name)
    return _import(name, entry, entry.module)


def _entry(name: str) -> EngineEntry:
    """Raises EngineUnavailable for an unknown name."""
    entry = ENGINES.get(name)
    if entry is None:
        raise EngineUnavailable(f"there is no engine {name!r}", hint=f"choose one of: {', '.join(ENGINES)}")
    return entry


def load_exporter(name: str) -> Callable[..., Mapping[str, str]]:
    """What writes a model in the form that engine `name` runs: (source, target, name, weights, work) -> versions.

    Raises EngineUnavailable: unknown, it needs no export, or a package is missing.
    """
    entry = ENGINES.get(name)
    if entry is None or entry.exporter is None:
        raise EngineUnavailable(
            f"models aren't exported for engine {name!r}", hint=f"choose one of: {', '.join(exporting())}"
        )
    exporter: Callable[..., Mapping[str, str]] = _import(name, entry, entry.exporter).export
    return exporter


def load_random(name: str) -> RandomModule:
    """The module that makes models with random weights for engine `name`.

    Raises EngineUnavailable: unknown, it makes none, or a package is missing.
    """
    entry = _entry(name)
    if entry.randomizer is None:
        able = ", ".join(one for one, other in ENGINES.items() if other.randomizer is not None)
        raise EngineUnavailable(f"engine {name} makes no models with random weights", hint=f"choose one of: {able}")
    return cast(RandomModule, _import(name, entry, entry.randomizer))


def load_device(name: str) -> DeviceModule:
    """The module that knows where engine `name` runs models.

    Raises EngineUnavailable: unknown, it has no choice of devices, or a package is missing.
    """
    entry = _entry(name)
    if entry.device is None:
        raise EngineUnavailable(f"engine {name} has no choice of devices")
    return cast(DeviceModule, _import(name, entry, entry.device))


def place_of(name: str, wish: Wish, *, drafts: bool = False) -> Device | None:
    """Where engine `name` would run a model here, and in what; None: it has no choice, or sees to it by itself. Imports
    the packages of an engine that has one.

    Raises:
        UsageError: the wish isn't understood.
        EngineUnavailable: unknown engine, a package is missing, it has no choice, or there is no such device.
    """
    if _entry(name).device is not None:
        return load_device(name).device(wish, drafts=drafts)
    if wish.said:
        raise EngineUnavailable(f"{wish.said}: engine {name} has no choice of devices and widths", hint=_wider(name))
    return None


def _wider(name: str) -> str:
    if _entry(name).exporter is not None:
        return f"an export has its own weights: agentctx models fetch NAME --engine {name} --weights float32"
    return "--engine torch has"


def exporting() -> tuple[str, ...]:
    """The engines that run exports."""
    return tuple(name for name, entry in ENGINES.items() if entry.exporter is not None)


def _import(name: str, entry: EngineEntry, module: str) -> Any:
    try:
        return import_module(module)
    except (ImportError, OSError, RuntimeError) as error:  # not there, or there and broken
        raise EngineUnavailable(f"engine {name} can't be used: {error}", hint=_hint(entry)) from error


def drafter_engine(name: str) -> str:
    """The engine that runs the drafter for a main model on engine `name`."""
    entry = ENGINES.get(name)
    return name if entry is None or entry.drafts_with is None else entry.drafts_with


def available() -> tuple[tuple[str, bool, str], ...]:
    """(name, usable, reason) of every engine; imports none of their packages."""
    return tuple((name, *_check(entry)) for name, entry in ENGINES.items())


def weight_bytes(name: str) -> float | None:
    """Per parameter as engine `name` loads it from a plain folder; None: on devices that we don't see.

    Raises EngineUnavailable for an unknown name.
    """
    return _entry(name).weight_bytes


def usable(name: str) -> bool:
    """Whether an engine's packages are installed; imports none of them."""
    return name in ENGINES and _check(ENGINES[name])[0]


def _check(entry: EngineEntry) -> tuple[bool, str]:
    missing = [package for package in entry.needs if not _installed(package)]
    if missing:
        return False, f"{', '.join(missing)} not installed: {_hint(entry)}"
    return True, f"{', '.join(entry.needs)} installed" if entry.needs else "needs nothing"


def _installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ValueError:  # blocked, or imported without a spec
        return False


def _hint(entry: EngineEntry) -> str | None:
    return f'pip install "agentctx[{entry.extra}]"' if entry.extra else None
