"""What a model's config.json says of its rotary embedding, in the spellings of all versions of transformers. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def rope_of(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """The parameters; empty where nothing is said."""
    return config.get("rope_parameters") or config.get("rope_scaling") or {}


def rope_type(config: Mapping[str, Any]) -> str:
    return _type(rope_of(config))


def rope_types(config: Mapping[str, Any]) -> list[str]:
    """Sorted; some models have one for each type of layers."""
    rope = rope_of(config)
    nested: list[Mapping[str, Any]] = [own for own in rope.values() if isinstance(own, dict)]
    return sorted({_type(own) for own in nested or [rope]})


def rope_base(config: Mapping[str, Any]) -> float | None:
    """None where it isn't named."""
    named = rope_of(config).get("rope_theta") or config.get("rope_theta")
    return float(named) if named else None


def _type(rope: Mapping[str, Any]) -> str:
    return str(rope.get("rope_type") or rope.get("type") or "default")
