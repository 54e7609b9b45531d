"""JavaScript and TypeScript: relative modules, index files, path aliases, workspace packages, CommonJS."""

from __future__ import annotations

import re
from collections.abc import Mapping

from agentctx.repo.resolvers.javascript_configs import (
    CONFIG_NAMES,
    Package,
    Targets,
    aliases,
    folder_of,
    join,
    matched,
    packages,
)
from agentctx.repo.resolvers.rules import Rules, Space, words
from agentctx.source import FileSyntax, Import, Symbol, SymbolKind

_ENDS = (".ts", ".tsx", ".mts", ".cts", ".d.ts", ".js", ".jsx", ".mjs", ".cjs")
_AS_SOURCE = {
    ".js": (".ts", ".tsx", ".jsx", ".d.ts"),
    ".jsx": (".tsx",),
    ".mjs": (".mts", ".d.mts"),
    ".cjs": (".cts", ".d.cts"),
}
_DECLARED = {".js": ".d.ts", ".mjs": ".d.mts", ".cjs": ".d.cts"}
_GETTER = re.compile(r"(?:(?:static|public|private|protected|override|abstract|readonly)\s+)*get\s")
_BUILTINS = words(
    """
    Array ArrayBuffer Boolean Buffer Date Error EvalError Function Infinity Intl JSON Map Math NaN Number Object
    Promise Proxy RangeError ReferenceError Reflect RegExp Set String Symbol SyntaxError TypeError URIError URL
    WeakMap WeakSet arguments clearInterval clearTimeout console decodeURIComponent document encodeURIComponent
    exports fetch global globalThis isNaN module parseFloat parseInt process require setImmediate setInterval
    setTimeout undefined window queueMicrotask structuredClone describe it test expect beforeEach afterEach
    beforeAll afterAll before after jest vi any unknown never void string number boolean object symbol bigint
    Partial Record Pick Omit Readonly Required Exclude Extract NonNullable Parameters ReturnType InstanceType
    """
)
_MEMBERS = words(
    """
    add all apply assign at bind call catch charAt charCodeAt clear concat constructor create default delete
    defineProperty done emit end endsWith entries every exec exports filter finally find findIndex flat flatMap
    forEach freeze from get getTime hasOwnProperty has includes indexOf init isArray join keys length log map
    match message name next now of on once parse pop prototype push race reduce reject remove replace resolve
    reverse run send set shift size slice some sort splice split start startsWith stringify substring test text
    then toFixed toLowerCase toString toUpperCase trim type unshift update value valueOf values write
    """
)


class JavaScriptRules(Rules):
    languages = frozenset({"javascript", "typescript", "tsx"})
    config_names = CONFIG_NAMES
    builtins = _BUILTINS
    builtin_members = _MEMBERS
    passthrough = frozenset({"prototype"})
    objects = True
    export_prefixes = ("exports.", "")

    def __init__(self, files: Mapping[str, FileSyntax], configs: Mapping[str, bytes]) -> None:
        super().__init__(files, configs)
        self._aliases = aliases(configs)
        found = packages(configs)
        self._packages = {package.name: package for package in reversed(found)}
        self._at = {package.folder: package for package in found}
        self._by_folder = sorted(found, key=lambda package: -len(package.folder))
        self._found: dict[tuple[str, str], tuple[Space, ...]] = {}

    def spaces(self, item: Import) -> tuple[Space, ...]:
        key = (folder_of(item.path), item.module)
        if key not in self._found:
            path = self._module(*key)
            self._found[key] = (Space(self._with_declarations(path)),) if path is not None else ()
        return self._found[key]

    def _with_declarations(self, path: str) -> tuple[str, ...]:
        """A file and the declaration file beside it, or the one that its package names."""
        stem, dot, end = path.rpartition(".")
        beside = stem + _DECLARED.get(dot + end, "/")
        others = [beside] if beside in self.files else []
        for package in self._by_folder:
            mains = [found for main in package.mains if (found := self._file(join(package.folder, main))) is not None]
            if path in mains:
                others += [main for main in mains if main.endswith((".d.ts", ".d.mts", ".d.cts"))]
        return tuple(dict.fromkeys((path, *others)))

    def dotted(self, path: str, name: str) -> tuple[Space, ...]:
        """`exports` is the file itself; `module` is known for what `submodules` finds in it."""
        return (Space((path,), "module" if name == "module" else ""),) if name in ("exports", "module") else ()

    def submodules(self, item: Import) -> tuple[Space, ...]:
        is_own = (item.level, item.module, item.name) == (-1, "module", "exports")
        return (Space((item.path,)),) if is_own else ()

    def reads(self, symbol: Symbol) -> bool:
        return symbol.kind is SymbolKind.METHOD and _GETTER.match(symbol.signature) is not None

    def _module(self, folder: str, module: str) -> str | None:
        if module.startswith((".", "/")):
            return self._file(join(folder, module))
        return self._aliased(folder, module) or self._package(folder, module)

    def _aliased(self, folder: str, module: str) -> str | None:
        for alias in self._aliases:
            if not alias.folder or folder == alias.folder or folder.startswith(f"{alias.folder}/"):
                for target in matched(((alias.pattern, (alias.target,)),), module):
                    found = self._file(join("", target))
                    if found is not None:
                        return found
        return None

    def _package(self, folder: str, module: str) -> str | None:
        """A package of the repository itself, a file inside of one, or a name (`#x`) of the package around."""
        if module.startswith("#"):
            around = (p for p in self._by_folder if not p.folder or f"{folder}/".startswith(f"{p.folder}/"))
            return next((found for package in around if (found := self._target(package, package.inner, module))), None)
        parts = module.split("/")
        depth = 2 if module.startswith("@") else 1
        package, rest = self._packages.get("/".join(parts[:depth])), "/".join(parts[depth:])
        if package is None:
            return None
        if rest:
            found = self._target(package, package.exports, rest)
            return found or self._file(join(package.folder, rest)) or self._file(join(package.folder, f"src/{rest}"))
        others = ("src/index", "index", "src/main", "lib/index", f"src/{parts[-1]}")
        found = self._package_main(package.folder)
        return found or next((found for one in others if (found := self._file(join(package.folder, one)))), None)

    def _target(self, package: Package, patterns: Targets, wanted: str) -> str | None:
        targets = matched(patterns, wanted)
        return next((found for target in targets if (found := self._built(package, target))), None)

    def _built(self, package: Package, target: str) -> str | None:
        """The file that a package hands out; for one that is built (`dist/x.js`) its source (`src/x.ts`)."""
        found = self._file(join(package.folder, target))
        if found is not None:
            return found
        inside = join("", target).split("/")
        sources = ["/".join(["src", *inside[at:]]) for at in range(len(inside))]
        return next((found for one in sources if (found := self._file(join(package.folder, _bare(one))))), None)

    def _file(self, stem: str) -> str | None:
        """The file that a module path means: as it stands, with an ending, as TypeScript, as a folder."""
        if stem in self.files:
            return stem
        bare, dot, end = stem.rpartition(".")
        for other in _AS_SOURCE.get(dot + end, ()):
            if bare + other in self.files:
                return bare + other
        tries = [stem + end for end in _ENDS] + [join(stem, f"index{end}") for end in _ENDS]
        return next((path for path in tries if path in self.files), None) or self._package_main(stem)

    def _package_main(self, folder: str) -> str | None:
        package = self._at.get(folder)
        return (
            next((found for main in package.mains if (found := self._built(package, main))), None) if package else None
        )


def _bare(path: str) -> str:
    """Without the ending of a built file, so that any source fits."""
    for end in (".d.ts", ".d.mts", ".d.cts", ".mjs", ".cjs", ".js"):
        if path.endswith(end):
            return path.removesuffix(end)
    return path
