"""A LightGBM booster -> the data that `repo.ranking.model` reads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any


def stage(dump: Mapping[str, Any], names: Sequence[str], scale: float, shift: float) -> dict[str, Any]:
    """`dump`: what `Booster.dump_model()` gives. Thresholds keep seven digits, outputs six decimals."""
    trees = [tree(one["tree_structure"]) for one in dump["tree_info"]]
    return {"features": list(names), "scale": round(scale, 6), "shift": round(shift, 6), "trees": trees}


def tree(root: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Nodes in preorder. No recursion: a tree may be as deep as it has leaves."""
    out: dict[str, list[Any]] = {"f": [], "t": [], "r": [], "n": [], "v": []}
    stack: list[tuple[Mapping[str, Any], int | None]] = [(root, None)]  # the second: whose right child it is
    while stack:
        node, parent = stack.pop()
        if parent is not None:
            out["r"][parent] = len(out["f"])
        if "split_feature" not in node:
            out["f"].append(-1)
            out["v"].append(round(node["leaf_value"], 6))
            continue
        if node["decision_type"] != "<=":
            raise ValueError(f"a split by {node['decision_type']!r} can't be exported")
        threshold = float(f"{node['threshold']:.7g}")
        stack += [(node["right_child"], len(out["t"])), (node["left_child"], None)]
        out["f"].append(node["split_feature"])
        out["v"].append(round(node["internal_value"], 4))
        out["t"].append(threshold)
        out["r"].append(0)
        out["n"].append(int(_unknown_left(node, threshold)))
    return out


def _unknown_left(node: Mapping[str, Any], threshold: float) -> bool:
    """Where the library sends NaN: as it learned; where it never saw one, as if it were 0."""
    if node["missing_type"] == "NaN":
        return bool(node["default_left"])
    return threshold >= 0.0 or math.isclose(threshold, 0.0, abs_tol=1e-12)
