"""Compiler options with which TypeScript is asked, whatever the repository's configuration leaves out. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from agentctx.repo.resolvers.javascript_configs import compiler_options

SHARED_OPTIONS: Mapping[str, object] = {
    "allowJs": True,
    "allowImportingTsExtensions": True,
    "esModuleInterop": True,
    "experimentalDecorators": True,
    "jsx": "preserve",
    "module": "esnext",
    "moduleResolution": "bundler",
    "noEmit": True,
    "resolveJsonModule": True,
    "target": "esnext",
    "types": [],
}


def module_options(configs: Mapping[str, bytes], place: Callable[[str], str]) -> dict[str, object]:
    """Of the repository's configuration what says where modules are. `place`: how a target of a path is written."""
    found = compiler_options(configs)
    options: dict[str, object] = {}
    if found.conditions:
        options["customConditions"] = list(found.conditions)
    if found.paths:
        options["paths"] = {pattern: [place(one) for one in many] for pattern, many in found.paths}
    return options
