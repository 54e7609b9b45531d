"""What was learned of one drafter: the weights of its heads, a probe of its states, and how to fuse them with the
ranking. A small JSON file, made by `agentctx bench calibrate`; some ship. Pure but for reading it.

The file names the drafter's weights by digest: it is of no use for any other.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from agentctx.errors import EngineUnavailable, ModelUnavailable
from agentctx.prompt import Float32, readonly

SCHEMA = 1


@dataclass(frozen=True, slots=True, eq=False)
class HeadWeights:
    """`weights`: float32 (G, L, H). Features are unit sums of attention / size^power."""

    groups: tuple[str, ...]
    weights: Float32
    power: float

    @property
    def depth(self) -> int:
        """Layers up to the deepest head with a weight."""
        return 1 + int(np.flatnonzero(np.abs(self.weights).sum(axis=(0, 2)))[-1])

    def of(self, group: str, layer: int) -> Float32 | None:
        """float32 (H,), None where all are 0."""
        if group not in self.groups or layer >= self.weights.shape[1]:
            return None
        found: Float32 = self.weights[self.groups.index(group), layer]
        return found if found.any() else None


@dataclass(frozen=True, slots=True, eq=False)
class ProbeWeights:
    """A token's value: state @ direction + sum over groups of (state @ keys) . (mean query state @ queries[group]).

    `direction`: (D,), `keys`: (D, R), `queries`: by group, (D, R); float32. States are those after `depth` layers.
    """

    depth: int
    direction: Float32
    keys: Float32
    queries: Mapping[str, Float32]


@dataclass(frozen=True, slots=True)
class Fusion:
    """Log odds of a unit: log(worth + floor) + heads * their value + probe * its value in units of its spread over the
    units of the prompt."""

    floor: float
    heads: float
    probe: float


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """`heads`: the (layer, head) pairs of QRHead. `about`: sources, counts, figures of what it is worth."""

    drafter: str
    digest: str
    heads: tuple[tuple[int, int], ...]
    evidence: HeadWeights
    fusion: Fusion
    probe: ProbeWeights | None
    about: Mapping[str, Any]

    @property
    def digest_of_all(self) -> str:
        """SHA-256 (hex) of its file."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()

    def to_json(self) -> str:
        probe = self.probe
        raw: dict[str, Any] = {
            "schema": SCHEMA,
            "drafter": self.drafter,
            "digest": self.digest,
            "heads": [list(pair) for pair in self.heads],
            "evidence": _of_heads(self.evidence),
            "fusion": {name: getattr(self.fusion, name) for name in Fusion.__slots__},
            "about": dict(self.about),
        }
        if probe is not None:
            raw["probe"] = {
                "depth": probe.depth,
                "direction": _packed(probe.direction),
                "keys": _packed(probe.keys),
                "queries": {group: _packed(matrix) for group, matrix in probe.queries.items()},
            }
        return json.dumps(raw, separators=(",", ":"), sort_keys=True) + "\n"


def needed(known: Calibration | None, scorer: str) -> Calibration:
    """What is known of the drafter.

    Raises:
        EngineUnavailable: nothing is.
    """
    if known is None:
        raise EngineUnavailable(
            f"the scorer {scorer} is learned, and nothing was learned for this drafter",
            hint="agentctx bench calibrate --drafter NAME, or take --scorer selective-icr",
        )
    return known


@cache
def shipped(digest: str) -> Calibration | None:
    """What ships for the drafter with these weights."""
    entry = files("agentctx.spec.scorers") / "data" / file_name(digest)
    if not digest or not entry.is_file():
        return None
    found = from_json(entry.read_text(encoding="utf-8"), entry.name)
    return found if found.digest == digest else None


def file_name(digest: str) -> str:
    """Of the file that ships for the drafter with these weights."""
    return f"{digest[:16]}.json"


def load(path: Path, digest: str) -> Calibration:
    """A file of `agentctx bench calibrate`.

    Raises:
        ModelUnavailable: there is none, it is damaged, or it is of another drafter.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ModelUnavailable(
            f"can't read the calibration {path}: {reason}", hint="agentctx bench calibrate --drafter NAME makes one"
        ) from error
    found = from_json(text, str(path))
    if found.digest != digest:
        raise ModelUnavailable(
            f"{path} was made for {found.drafter}, whose weights are others ({found.digest[:12]}, not {digest[:12]})",
            hint="agentctx bench calibrate --drafter NAME",
        )
    return found


def from_json(text: str, name: str) -> Calibration:
    """Raises: ModelUnavailable, naming what is wrong."""
    try:
        raw = json.loads(text)
        if raw["schema"] != SCHEMA:
            raise ValueError(f"its format is {raw['schema']}, this version reads {SCHEMA}")
        return Calibration(
            drafter=str(raw["drafter"]),
            digest=str(raw["digest"]),
            heads=tuple((int(layer), int(head)) for layer, head in raw["heads"]),
            evidence=_heads(raw["evidence"]),
            fusion=Fusion(**{key: float(raw["fusion"][key]) for key in Fusion.__slots__}),
            probe=_probe(raw["probe"]) if "probe" in raw else None,
            about=dict(raw["about"]),
        )
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise ModelUnavailable(
            f"the calibration ({name}) is damaged: {error if isinstance(error, ValueError) else repr(error)}",
            hint="make it again with `agentctx bench calibrate`, or take the option away",
        ) from error


def _of_heads(found: HeadWeights) -> dict[str, Any]:
    return {"groups": list(found.groups), "power": found.power, "weights": _packed(found.weights)}


def _heads(raw: Mapping[str, Any]) -> HeadWeights:
    found = HeadWeights(tuple(raw["groups"]), _unpacked(raw["weights"], 3), float(raw["power"]))
    if found.weights.shape[0] != len(found.groups) or not found.weights.any():
        raise ValueError("no weights of heads, or not those of its groups")
    return found


def _probe(raw: Mapping[str, Any]) -> ProbeWeights:
    queries = {str(group): _unpacked(matrix, 2) for group, matrix in raw["queries"].items()}
    return ProbeWeights(int(raw["depth"]), _unpacked(raw["direction"], 1), _unpacked(raw["keys"], 2), queries)


def _packed(values: Float32) -> dict[str, Any]:
    """float16, little-endian, base64: ten bits of a learned weight are more than it is worth."""
    return {"shape": list(values.shape), "float16": base64.b64encode(values.astype("<f2").tobytes()).decode("ascii")}


def _unpacked(raw: Mapping[str, Any], n_dimensions: int) -> Float32:
    shape = tuple(int(n) for n in raw["shape"])
    values = np.frombuffer(base64.b64decode(raw["float16"]), dtype="<f2").astype(np.float32)
    if len(shape) != n_dimensions or not np.isfinite(values).all():
        raise ValueError("weights of the wrong shape, or not all finite")
    return readonly(values.reshape(shape))
