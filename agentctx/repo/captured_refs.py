"""References and imports of a file from its query's matches: all languages but Python. See docs/languages.md.

A bare name that a parameter or a local declaration binds is no reference; a member's receiver is written as a chain
(`chains`), and where it starts with a local, `receiver_type` says what that local is: a type's name, or `=` and the
chain of the value that it was given.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from agentctx.repo.captured_scopes import Bound, Scope, owner_of, receiver_type, scopes, types, values
from agentctx.repo.chains import chain
from agentctx.repo.local_uses import Seen
from agentctx.repo.parse_lines import Nesting
from agentctx.repo.resolvers.imported import WHOLE, Imported
from agentctx.source import Import, Reference, Role
from agentctx.spans import ByteSpan

Matches = Sequence[tuple[int, Mapping[str, Sequence[Node]]]]
ReadImports = Callable[[Node, bytes], Iterable[Imported]]

# The strongest role wins where several captures name one identifier.
_ROLES = {
    "ref.base": (6, Role.BASE),
    "ref.decorator": (5, Role.DECORATOR),
    "ref.call": (4, Role.CALL),
    "ref.type": (3, Role.TYPE),
    "ref.attribute": (2, Role.ATTRIBUTE),
    "ref.name": (1, Role.NAME),
    "ref": (0, Role.NAME),
}


@dataclass(frozen=True, slots=True)
class Collected:
    references: tuple[Reference, ...]
    imports: tuple[Import, ...]
    exports: Mapping[str, int]  # and the units that say so
    package: str
    values: Mapping[int, str]  # first byte of a definition's name -> what it holds, or what calling it gives
    locals: tuple[Seen, ...]
    types: Mapping[int, str]  # the same -> the declared type, where that is a type parameter


def collect(
    path: str,
    data: bytes,
    matches: Matches,
    definitions: Sequence[tuple[int, int, str]],
    functions: Sequence[tuple[int, int]],
    unit_at: Sequence[int],
    read_imports: ReadImports | None,
) -> Collected:
    """References, imports, exports and the package of one file.

    Args:
        definitions: (start byte, end byte, symbol id) of everything that can hold references.
        functions: (start byte, end byte) of those that bind parameters and locals.
        unit_at: row (0-based) -> unit.
        read_imports: an import statement -> what it imports.
    """
    gathered = _gather(matches)
    where = Nesting(definitions)
    imports = _imports(path, data, gathered, Nesting(definitions), unit_at, read_imports)
    ranges = scopes(data, gathered, functions)
    references = tuple(
        Reference(
            path, ByteSpan(start, node.end_byte), row + 1, name, role, where.at(start), receiver, unit_at[row], is_
        )
        for start, row, node, name, role, receiver, is_ in _uses(data, gathered, Nesting(ranges))
    )
    return Collected(
        references,
        imports,
        _exports(data, gathered, unit_at),
        _package(data, gathered),
        values(data, gathered, Nesting(ranges)),
        tuple(_local_variables(data, gathered, Nesting(ranges))),
        types(data, gathered, Nesting(ranges)),
    )


@dataclass(slots=True)
class _Gathered(Bound):
    uses: dict[int, tuple[Node, int, Role]] = field(default_factory=dict)  # first byte -> node, strength, role
    receivers: dict[int, Node] = field(default_factory=dict)  # first byte of the name -> its receiver
    imports: dict[int, Node] = field(default_factory=dict)  # first byte -> statement
    # what is exported where no name is given, the two names, the row
    exports: list[tuple[str, Node | None, Node | None, int]] = field(default_factory=list)
    packages: list[Node] = field(default_factory=list)
    quiet: list[Node] = field(default_factory=list)  # what holds no uses
    variables: list[Node] = field(default_factory=list)  # that can be nothing else


def _gather(matches: Matches) -> _Gathered:
    out = _Gathered()
    for _, match in matches:
        receiver = match.get("receiver") if len(match) > 1 else None
        for capture, nodes in match.items():
            known = _ROLES.get(capture)
            if known is not None:
                for node in nodes:
                    _add_use(out, node, *known)
                    if receiver and (receiver[0].is_named or node.start_byte not in out.receivers):
                        out.receivers[node.start_byte] = receiver[0]
            elif capture == "local":
                out.locals.extend((node, match) for node in nodes)
            elif capture == "local.inferred":
                out.inferred.extend(nodes)
            elif capture == "type":
                out.declared.extend((name, nodes[0]) for name in match.get("name", ()))
            elif capture == "value" or capture == "returned":
                names = match.get("name", ())
                out.given.extend((name, nodes[0]) for name in names)
            elif capture == "skip" or capture == "name":
                out.skipped.update(node.start_byte for node in nodes)
            elif capture == "variable":
                out.variables.extend(nodes)
            elif capture == "scope":
                out.scopes.extend(nodes)
            elif capture in ("unit.import", "import"):
                out.imports.update((node.start_byte, node) for node in nodes)
            elif capture == "export":
                public, local = match.get("export.name", (None,))[0], match.get("export.local", (None,))[0]
                out.exports.append(("default", public, local, nodes[0].start_point[0]))
            elif capture == "export.whole":
                out.exports.append((WHOLE, None, match["export.local"][-1], nodes[0].start_point[0]))
            elif capture == "quiet":
                out.quiet.extend(nodes)
            elif capture == "package":
                out.packages.extend(nodes)
    return out


def _add_use(out: _Gathered, node: Node, strength: int, role: Role) -> None:
    start = node.start_byte
    if start == node.end_byte:
        return  # a name that is missing
    known = out.uses.get(start)
    if known is None or strength > known[1]:
        out.uses[start] = (node, strength, role)


# first byte, row, node, name, role, receiver, what is known of the receiver
_Use = tuple[int, int, Node, str, Role, str | None, str | None]
# What `require` and `source` stand in has other uses beside the import.
_MIXED = ("declaration", "declarator", "expression", "expression_statement", "command", "call")
_PURE = frozenset({"import_declaration", "use_declaration", "namespace_use_declaration", "extern_crate_declaration"})


def _uses(data: bytes, gathered: _Gathered, where: Nesting[Scope]) -> Iterator[_Use]:
    """In the order of the file."""
    imports = [node for node in gathered.imports.values() if not node.type.endswith(_MIXED) or node.type in _PURE]
    quiet = Nesting((node.start_byte, node.end_byte, True) for node in (*imports, *gathered.packages, *gathered.quiet))
    for start in sorted(gathered.uses):
        receiver = gathered.receivers.get(start)
        if quiet.at(start) or (receiver is None and start in gathered.skipped):
            continue
        node, _, role = gathered.uses[start]
        name = _text(data, node)
        if name == "_":
            continue
        scope = where.at(start)
        if receiver is not None:
            text = chain(data, receiver) or "?"
            if role is Role.NAME:
                role = Role.ATTRIBUTE
            yield start, node.start_point[0], node, name, role, text, receiver_type(text, scope)
        elif owner_of(name, scope) is None:
            yield start, node.start_point[0], node, name, role, None, None


def _local_variables(data: bytes, gathered: _Gathered, where: Nesting[Scope]) -> Iterator[Seen]:
    """In the order of the file."""
    named = {start: node for start, (node, _, _) in gathered.uses.items() if start not in gathered.skipped}
    places = {node.start_byte: node for node in gathered.variables} | named
    for start in sorted(places.keys() - gathered.receivers.keys()):
        name = _text(data, places[start])
        owner = owner_of(name, where.at(start))
        if owner is not None:
            yield Seen(places[start].start_point[0], name, owner.rows.get(name, ()))


def _imports(
    path: str,
    data: bytes,
    gathered: _Gathered,
    where: Nesting[str],
    unit_at: Sequence[int],
    read: ReadImports | None,
) -> tuple[Import, ...]:
    out = []
    for node, one in _imported(data, gathered, read):
        row = node.start_point[0]
        scope = where.at(node.start_byte)
        out.append(Import(path, one.module, one.name, one.alias, 0, unit_at[row], scope, row + 1, one.exported))
    return tuple(out)


def imported(data: bytes, matches: Matches, read: ReadImports) -> list[Imported]:
    """What a file imports, in the order of `Collected.imports`."""
    return [one for _, one in _imported(data, _gather(matches), read)]


def _imported(data: bytes, gathered: _Gathered, read: ReadImports | None) -> list[tuple[Node, Imported]]:
    """Each name once, though a declaration and a declarator in it may both be captured."""
    out: dict[tuple[int, Imported], Node] = {}
    for start in sorted(gathered.imports) if read is not None else ():
        node = gathered.imports[start]
        assert read is not None
        for one in read(node, data):
            out.setdefault((node.start_point[0], one), node)
    return [(node, one) for (_, one), node in out.items()]


def _exports(data: bytes, gathered: _Gathered, unit_at: Sequence[int]) -> dict[str, int]:
    """With the units that say so: `public:local`, or the name alone where both are the same.

    `default:` is for a file's main export, `export=:` for one that stands for the whole module.
    """
    out: dict[str, int] = {}
    for unnamed, public, local, row in gathered.exports:
        name = _text(data, public) if public is not None else unnamed
        inner = _text(data, local) if local is not None else name
        out.setdefault(name if inner == name else f"{name}:{inner}", unit_at[row])
    return out


def _package(data: bytes, gathered: _Gathered) -> str:
    texts = [_text(data, node) for node in gathered.packages]
    return ".".join(text.replace("::", ".").replace("\\", ".").strip(". ") for text in texts if text)


def _text(data: bytes, node: Node | None) -> str:
    return data[node.start_byte : node.end_byte].decode("utf-8", "replace") if node is not None else ""
