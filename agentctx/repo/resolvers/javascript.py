"""JavaScript and TypeScript: relative modules, index files, path aliases, workspace packages, CommonJS."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from agentctx.repo.resolvers.imported import Imported
from agentctx.repo.resolvers.rules import Rules, Space, words
from agentctx.source import FileSyntax, Import

if TYPE_CHECKING:
    from tree_sitter import Node

_ENDS = (".ts", ".tsx", ".mts", ".cts", ".d.ts", ".js", ".jsx", ".mjs", ".cjs")
_AS_SOURCE = {".js": (".ts", ".tsx", ".jsx"), ".jsx": (".tsx",), ".mjs": (".mts",), ".cjs": (".cts",)}
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
_COMMENT = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_TRAILING = re.compile(r",(\s*[}\]])")


class JavaScriptRules(Rules):
    languages = frozenset({"javascript", "typescript", "tsx"})
    config_names = frozenset({"tsconfig.json", "jsconfig.json", "tsconfig.base.json", "package.json"})
    builtins = _BUILTINS
    builtin_members = _MEMBERS
    passthrough = frozenset({"prototype"})
    export_prefixes = ("", "exports.", "module.exports.")

    def __init__(self, files: Mapping[str, FileSyntax], configs: Mapping[str, bytes]) -> None:
        super().__init__(files, configs)
        read = {path: _loads(data) for path, data in sorted(configs.items())}
        self._aliases = sorted(_aliases(read), key=lambda a: (-len(a[0]), a[1]))
        self._packages = dict(_packages(read))
        self._found: dict[tuple[str, str], tuple[Space, ...]] = {}

    def spaces(self, item: Import) -> tuple[Space, ...]:
        key = (_folder(item.path), item.module)
        if key not in self._found:
            path = self._module(*key)
            self._found[key] = (Space((path,)),) if path is not None else ()
        return self._found[key]

    def _module(self, folder: str, module: str) -> str | None:
        if module.startswith((".", "/")):
            return self._file(posixpath.normpath(posixpath.join(folder, module)))
        return self._aliased(folder, module) or self._package(module)

    def _aliased(self, folder: str, module: str) -> str | None:
        for scope, pattern, target in self._aliases:
            if scope and folder != scope and not folder.startswith(f"{scope}/"):
                continue
            before, star, after = pattern.partition("*")
            if star and module.startswith(before) and module.endswith(after):
                found = self._file(
                    posixpath.normpath(target.replace("*", module[len(before) : len(module) - len(after)]))
                )
            elif module == pattern:
                found = self._file(posixpath.normpath(target))
            else:
                continue
            if found is not None:
                return found
        return None

    def _package(self, module: str) -> str | None:
        """A package of the repository itself, or a file inside of one."""
        parts = module.split("/")
        depth = 2 if module.startswith("@") else 1
        name, rest = "/".join(parts[:depth]), "/".join(parts[depth:])
        if name not in self._packages:
            return None
        folder, mains = self._packages[name]
        if rest:
            return self._file(_join(folder, rest)) or self._file(_join(folder, f"src/{rest}"))
        candidates = (*mains, "src/index", "index", "src/main", "lib/index", f"src/{name.rpartition('/')[2]}")
        return next((found for main in candidates if (found := self._file(_join(folder, main))) is not None), None)

    def _file(self, stem: str) -> str | None:
        """The file that a module path means: as it stands, with an ending, as TypeScript, as a folder."""
        stem = "" if stem == "." else stem
        if stem in self.files:
            return stem
        bare, dot, end = stem.rpartition(".")
        for other in _AS_SOURCE.get(dot + end, ()):
            if bare + other in self.files:
                return bare + other
        tries = [stem + end for end in _ENDS] + [_join(stem, f"index{end}") for end in _ENDS]
        return next((path for path in tries if path in self.files), None)


def _aliases(read: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(folder that it holds in, pattern, target from the root) of `paths` and `baseUrl`."""
    for path, config in read.items():
        options = config.get("compilerOptions") if isinstance(config, dict) else None
        if not isinstance(options, dict) or path.endswith("package.json"):
            continue
        folder = _folder(path)
        base = options.get("baseUrl")
        root = _join(folder, base) if isinstance(base, str) else folder
        paths = options.get("paths")
        for pattern, targets in sorted(paths.items()) if isinstance(paths, dict) else ():
            for target in targets if isinstance(targets, list) else ():
                if isinstance(target, str):
                    yield folder, pattern, _join(root, target)
        if isinstance(base, str):
            yield folder, "*", _join(root, "*")


def _packages(read: Mapping[str, Any]) -> Iterator[tuple[str, tuple[str, tuple[str, ...]]]]:
    """Package name -> (folder, what its entry may be)."""
    for path, config in read.items():
        if (
            path.rpartition("/")[2] == "package.json"
            and isinstance(config, dict)
            and isinstance(config.get("name"), str)
        ):
            keys = ("source", "types", "typings", "module", "main", "browser")
            mains = [config[key] for key in keys if isinstance(config.get(key), str)]
            yield config["name"], (_folder(path), tuple(mains))


def _loads(data: bytes) -> Any:
    """JSON with comments and trailing commas; None where it can't be read (a broken config aliases nothing)."""
    text = _COMMENT.sub(lambda m: m[1] or "", data.decode("utf-8-sig", "replace"))
    try:
        return json.loads(_TRAILING.sub(r"\1", text))
    except (ValueError, RecursionError):
        return None


def imports(statement: Node, data: bytes) -> Iterator[Imported]:
    """Imports, re-exports, `require` in declarations and assignments, `import x = require()`."""
    if statement.type == "export_statement":
        yield from _reexports(statement, data)
    elif statement.type == "import_statement":
        yield from _imports(statement, data)
    else:
        yield from _requires(statement, data)


def _imports(statement: Node, data: bytes) -> Iterator[Imported]:
    source = statement.child_by_field_name("source")
    if source is None:
        for child in statement.named_children:
            if child.type == "import_require_clause":
                module, name = child.child_by_field_name("source"), child.named_children[0]
                if module is not None:
                    yield Imported(_string(data, module), None, _text(data, name))
        return
    module_name = _string(data, source)
    clause = next((c for c in statement.named_children if c.type == "import_clause"), None)
    for part in clause.named_children if clause is not None else ():
        if part.type == "identifier":
            yield Imported(module_name, "default", _text(data, part))
        elif part.type == "namespace_import":
            yield Imported(module_name, None, _text(data, part.named_children[-1]))
        else:
            yield from _specifiers(part, data, module_name, exported=False)


def _specifiers(clause: Node, data: bytes, module: str, *, exported: bool) -> Iterator[Imported]:
    for one in clause.named_children:
        name, alias = one.child_by_field_name("name"), one.child_by_field_name("alias")
        if name is not None:
            text = _text(data, name).strip("\"'")
            yield Imported(module, text, _text(data, alias) if alias is not None else text, exported)


def _reexports(statement: Node, data: bytes) -> Iterator[Imported]:
    source = statement.child_by_field_name("source")
    if source is None:
        return
    module = _string(data, source)
    named = [c for c in statement.named_children if c.type in ("export_clause", "namespace_export")]
    if not named:
        yield Imported(module, "*", "", exported=True)
    for part in named:
        if part.type == "export_clause":
            yield from _specifiers(part, data, module, exported=True)
        else:
            yield Imported(module, None, _text(data, part.named_children[-1]), exported=True)


def _requires(statement: Node, data: bytes) -> Iterator[Imported]:
    """`const a = require('m')`, `{b: c} = require('m')`, `x = require('m').y`, `module.exports = require('m')`."""
    stack = [statement]
    while stack:
        node = stack.pop()
        if node.type in ("variable_declarator", "assignment_expression"):
            target = node.child_by_field_name("name") or node.child_by_field_name("left")
            value = node.child_by_field_name("value") or node.child_by_field_name("right")
            if target is not None and value is not None:
                yield from _required(target, value, data)
            if value is not None and value.type == "assignment_expression":
                stack.append(value)
        elif node.type in ("lexical_declaration", "variable_declaration", "expression_statement"):
            stack.extend(reversed(node.named_children))


def _required(target: Node, value: Node, data: bytes) -> Iterator[Imported]:
    member = None
    if value.type == "await_expression" and value.named_children:
        value = value.named_children[0]
    if value.type == "member_expression":
        prop, inner = value.child_by_field_name("property"), value.child_by_field_name("object")
        member = _text(data, prop) if prop is not None else None
        value = inner if inner is not None else value
    module = _required_module(value, data)
    if module is None:
        return
    text = _text(data, target)
    if target.type == "identifier":
        yield Imported(module, member, text)
    elif target.type == "object_pattern":
        for part in target.named_children:
            if part.type == "shorthand_property_identifier_pattern":
                yield Imported(module, _text(data, part), _text(data, part))
            elif part.type == "pair_pattern":
                key, local = part.child_by_field_name("key"), part.child_by_field_name("value")
                if key is not None and local is not None and local.type == "identifier":
                    yield Imported(module, _text(data, key), _text(data, local))
    elif text == "module.exports":
        yield Imported(module, member or "*", "default" if member else "", exported=True)
    elif text.startswith(("exports.", "module.exports.")):
        yield Imported(module, member, text.rpartition(".")[2], exported=True)


def _required_module(value: Node, data: bytes) -> str | None:
    function, arguments = value.child_by_field_name("function"), value.child_by_field_name("arguments")
    if value.type != "call_expression" or function is None or arguments is None:
        return None
    if _text(data, function) not in ("require", "import"):
        return None
    first = next(iter(arguments.named_children), None)
    return _string(data, first) if first is not None and first.type == "string" else None


def _text(data: bytes, node: Node) -> str:
    return data[node.start_byte : node.end_byte].decode("utf-8", "replace")


def _string(data: bytes, node: Node) -> str:
    return _text(data, node)[1:-1]


def _folder(path: str) -> str:
    return path.rpartition("/")[0]


def _join(folder: str, rest: str) -> str:
    joined = posixpath.normpath(posixpath.join(folder, rest))
    return "" if joined == "." else joined
