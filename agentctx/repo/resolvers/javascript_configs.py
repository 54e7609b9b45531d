"""What build files of JavaScript and TypeScript say about where modules are: path aliases, packages, their exports."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

CONFIG_NAMES = frozenset({"tsconfig.json", "jsconfig.json", "tsconfig.base.json", "package.json"})
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING = re.compile(r",(\s*[}\]])")
_MAINS = ("source", "types", "typings", "module", "main", "browser")
MAX_EXTENDED = 8

Targets = tuple[tuple[str, tuple[str, ...]], ...]  # pattern (one `*` at most) -> paths, best first


@dataclass(frozen=True, slots=True)
class Alias:
    """`paths` and `baseUrl` of a configuration. `folder`: where it holds; `target` is from the root."""

    folder: str
    pattern: str
    target: str


@dataclass(frozen=True, slots=True)
class Package:
    """A package.json. Targets are relative to `folder`; those of `inner` start with `#`."""

    name: str
    folder: str
    mains: tuple[str, ...]
    exports: Targets
    inner: Targets


@dataclass(frozen=True, slots=True)
class CompilerOptions:
    """Of all configurations: `customConditions`; of those in the root: `paths`, from the root."""

    conditions: tuple[str, ...]
    paths: Targets


def aliases(configs: Mapping[str, bytes]) -> tuple[Alias, ...]:
    """Those of the longest folder first, then those of the longest pattern."""
    read = _compiler_configs(configs)
    found = [Alias(join("", folder_of(path)), *one) for path in read for one in _paths(read, path)]
    return tuple(sorted(dict.fromkeys(found), key=lambda a: (-len(a.folder), a.pattern == "*", -len(a.pattern))))


def packages(configs: Mapping[str, bytes]) -> tuple[Package, ...]:
    """Sorted by path."""
    read = ((path, _loads(data)) for path, data in sorted(configs.items()) if _name(path) == "package.json")
    return tuple(_package(path, config) for path, config in read if isinstance(config, dict))


def compiler_options(configs: Mapping[str, bytes]) -> CompilerOptions:
    """What a compiler must be told of the configurations of a repository."""
    read = _compiler_configs(configs)
    conditions = [one for config in read.values() for one in _strings(_options(config).get("customConditions"))]
    paths: dict[str, list[str]] = {}
    for path in read:
        for pattern, target in _paths(read, path) if "/" not in path else ():
            if pattern != "*":
                paths.setdefault(pattern, []).append(target)
    return CompilerOptions(
        tuple(dict.fromkeys(conditions)), tuple((pattern, tuple(paths[pattern])) for pattern in sorted(paths))
    )


def _compiler_configs(configs: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    read = {path: _loads(data) for path, data in sorted(configs.items()) if _name(path) in CONFIG_NAMES}
    return {path: one for path, one in read.items() if isinstance(one, dict) and _name(path) != "package.json"}


def _paths(read: Mapping[str, dict[str, Any]], path: str) -> Iterator[tuple[str, str]]:
    """(pattern, target from the root) of a configuration and of what it extends."""
    seen: list[str] = []
    while path in read and path not in seen and len(seen) < MAX_EXTENDED:
        seen.append(path)
        options = _options(read[path])
        base = options.get("baseUrl")
        root = join(folder_of(path), base) if isinstance(base, str) else folder_of(path)
        paths = options.get("paths")
        for pattern, targets in sorted(paths.items()) if isinstance(paths, dict) else ():
            for target in _strings(targets):
                yield pattern, join(root, target)
        if isinstance(base, str):
            yield "*", join(root, "*")
        extended = read[path].get("extends")
        if not isinstance(extended, str):
            return
        wanted = join(folder_of(path), extended)
        path = wanted if wanted in read else f"{wanted}.json"


def _package(path: str, config: dict[str, Any]) -> Package:
    exports = config.get("exports")
    by_path = exports if isinstance(exports, dict) and any(key.startswith(".") for key in exports) else {".": exports}
    inner = config.get("imports")
    mains = [config[key] for key in _MAINS if isinstance(config.get(key), str)]
    return Package(
        name=config["name"] if isinstance(config.get("name"), str) else "",
        folder=folder_of(path),
        mains=tuple(dict.fromkeys((*mains, *_leaves(by_path.get("."))))),
        exports=tuple((key.removeprefix("./"), tuple(_leaves(value))) for key, value in by_path.items() if key != "."),
        inner=tuple((key, tuple(_leaves(value))) for key, value in inner.items()) if isinstance(inner, dict) else (),
    )


def _leaves(value: Any) -> list[str]:
    """All paths of nested conditions, in their order."""
    found: list[str] = []
    stack = [value]
    while stack:
        at = stack.pop()
        if isinstance(at, str):
            found.append(at)
        elif isinstance(at, dict | list):
            stack.extend(reversed(list(at.values()) if isinstance(at, dict) else at))
    return found


def matched(patterns: Targets, wanted: str) -> list[str]:
    """The targets of what `wanted` fits: an exact entry before those with a `*`."""
    found: list[str] = []
    for pattern, targets in sorted(patterns, key=lambda one: ("*" in one[0], -len(one[0]))):
        before, star, after = pattern.partition("*")
        if pattern == wanted:
            found += targets
        elif star and wanted.startswith(before) and wanted.endswith(after) and len(wanted) >= len(before + after):
            inside = wanted[len(before) : len(wanted) - len(after)]
            found += [target.replace("*", inside) for target in targets]
    return found


def _options(config: dict[str, Any]) -> dict[str, Any]:
    options = config.get("compilerOptions")
    return options if isinstance(options, dict) else {}


def _strings(value: Any) -> list[str]:
    return [one for one in value if isinstance(one, str)] if isinstance(value, list) else []


def _loads(data: bytes) -> Any:
    """JSON with comments and trailing commas; None where it can't be read (a broken config aliases nothing)."""
    text = _COMMENT.sub(lambda m: m[1] or "", data.decode("utf-8-sig", "replace"))
    try:
        return json.loads(_TRAILING.sub(r"\1", text))
    except (ValueError, RecursionError):
        return None


def _name(path: str) -> str:
    return path.rpartition("/")[2]


def folder_of(path: str) -> str:
    return path.rpartition("/")[0]


def join(folder: str, rest: str) -> str:
    """A path from the root, normalised; '' is the root."""
    joined = posixpath.normpath(posixpath.join(folder, rest))
    return "" if joined == "." else joined
