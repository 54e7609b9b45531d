"""What the repository side says about code: files, units, symbols, references, the graph. Pure data.

Everything is frozen, ordered and made of tuples, so that equal input gives equal output, byte for byte.
A *file* path is POSIX and relative to the repository root. Lines are 1-based and inclusive.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from agentctx.spans import ByteSpan, LineSpan


class UnitKind(StrEnum):
    """What a unit is (DESIGN: units). Those from SCAFFOLD on occur in prompts only."""

    IMPORT = "import"
    STATEMENT = "statement"  # top-level statements
    HEADER = "header"  # decorators + signature + first paragraph of the doc
    DOC = "doc"  # the rest of a doc
    DOC_END = "doc-end"  # closes a split doc; goes with its header
    CLOSE = "close"  # closes a block (`}`, `end`); goes with its header
    FIELDS = "fields"  # class-level declarations
    BODY = "body"  # a group of statements in a body
    BLOCK = "block"  # the header of a compound statement or of one of its clauses
    TEXT = "text"  # a paragraph or section of a file without a grammar
    SCAFFOLD = "scaffold"  # chat template, system prompt
    FILE = "file"  # the line that names the file
    ELISION = "elision"  # the comment that stands for left-out lines
    LOG = "log"
    REQUEST = "request"
    SIGNATURE = "signature"  # a line that stands for a definition
    HEADING = "heading"  # introduces such lines; goes with them


MARKS = (UnitKind.FILE, UnitKind.ELISION)  # made for a prompt; no text of a file


class SymbolKind(StrEnum):
    MODULE = "module"
    CLASS = "class"  # any type: class, interface, trait, struct, enum, alias, namespace; see Symbol.form
    FUNCTION = "function"
    METHOD = "method"
    CONSTANT = "constant"
    FIELD = "field"


class Role(StrEnum):
    """How a reference uses a name."""

    CALL = "call"
    IMPORT = "import"
    BASE = "base"
    TYPE = "type"
    DECORATOR = "decorator"
    ATTRIBUTE = "attribute"
    NAME = "name"
    FIXTURE = "fixture"  # a test's parameter that a fixture provides
    MENTION = "mention"  # named in the log or the request
    STORE = "store"  # an attribute that is assigned to, but for those of `self`


class Resolution(StrEnum):
    """Whether a reference was resolved. `EXTERNAL`: to something outside the repository (library, builtin)."""

    RESOLVED = "resolved"
    AMBIGUOUS = "ambiguous"
    UNKNOWN = "unknown"
    EXTERNAL = "external"


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A scanned file. `data` is never decoded lossily; `digest` is the SHA-256 of `data` in hex."""

    path: str
    data: bytes
    digest: str
    language: str | None  # a key of repo.languages, None for plain text
    is_test: bool = False


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that was not read, and why. `reason` is a sentence for people."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Unit:
    """One indivisible piece of a file. The units of a file tile its bytes, in order."""

    index: int  # position in FileSyntax.units
    kind: UnitKind
    span: ByteSpan
    lines: LineSpan
    symbol: str | None  # id of the innermost definition that holds it
    spine: tuple[int, ...]  # units of this file that must be kept with it (transitively closed, sorted)


@dataclass(frozen=True, slots=True)
class Symbol:
    """A definition. `id` is `path::Qual.name` (`path` alone for a module); repeats get `~2`, `~3`, ..."""

    id: str
    name: str
    qualname: str
    kind: SymbolKind
    path: str
    span: ByteSpan  # decorators included
    name_span: ByteSpan
    lines: LineSpan
    header: int  # index of its header unit in the file (for constants: the unit that holds it)
    parent: str | None = None  # id of the enclosing class or function
    signature: str = ""  # one line, for people
    bases: tuple[str, ...] = ()  # dotted names as written
    decorators: tuple[str, ...] = ()  # dotted names as written, without arguments
    is_test: bool = False  # a test function or test class
    is_fixture: bool = False
    # of a CLASS: class, interface, trait, struct, enum, type, namespace, impl, suite; '' where all are classes;
    # `test` and `fixture`: defined by a call, so that no code can name it
    form: str = ""
    type: str | None = None  # declared type of a field or constant, return type of a function: dotted, bare
    value: str = ""  # what it holds, or what calling it gives, in the notation of its language's resolver
    # `name=x`, `autouse`: of a fixture; `plugin=m`: of pytest_plugins; `instance`: a field that only methods assign
    traits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Reference:
    """A use of a name that is not bound in its own function. `receiver` is the dotted text before the name."""

    path: str
    span: ByteSpan
    line: int
    name: str
    role: Role
    scope: str | None  # id of the innermost definition that holds it
    receiver: str | None  # '?' when it is not a plain dotted name; 'super()' for super()
    unit: int
    receiver_type: str | None = None  # where the function itself tells it: a dotted class name; Python: `python_exprs`


@dataclass(frozen=True, slots=True)
class Import:
    """One imported name. `import a.b as c` -> module 'a.b', name None; `from .m import x as y` -> level 1.

    `module` is as written (`./m`, `github.com/o/r/pkg`, `crate::a::b`, `java.util`); `level` is Python's only.
    """

    path: str
    module: str
    name: str | None  # '*' for a star import
    alias: str  # the name it binds in the file ('' for a star import)
    level: int
    unit: int
    scope: str | None
    line: int
    exported: bool = False  # the file hands the name on (`export {x} from`, `pub use`)


@dataclass(frozen=True, slots=True)
class LocalUse:
    """A use of a variable that its own function binds in other units, any of which would do. Such a variable is no
    symbol; `line` is that of the first use in the unit.
    """

    unit: int
    name: str
    line: int
    bound: tuple[int, ...]  # units of the same file, sorted


@dataclass(frozen=True, slots=True)
class FileSyntax:
    """All that parsing says about one file."""

    path: str
    language: str | None
    digest: str
    units: tuple[Unit, ...]
    symbols: tuple[Symbol, ...] = ()
    references: tuple[Reference, ...] = ()
    imports: tuple[Import, ...] = ()
    exports: tuple[str, ...] = ()  # __all__, or the names that the language exports by a list
    export_units: tuple[int, ...] = ()  # of each of them the unit that says so; () for __all__
    n_errors: int = 0  # ERROR and MISSING nodes
    is_test: bool = False
    package: str = ""  # the package or namespace that the file declares
    locals: tuple[LocalUse, ...] = ()


@dataclass(frozen=True, slots=True)
class Link:
    """A reference and what it resolves to: ids of repository symbols, sorted."""

    reference: Reference
    state: Resolution
    targets: tuple[str, ...]
    via: int | None = None  # the import unit (same file) that brings the name in
    handed: tuple[tuple[str, int], ...] = ()  # (path, unit) of the statements by which modules in between hand it on


@dataclass(frozen=True, slots=True)
class RepoGraph:
    """Resolved references, and the relations that follow from them. Keys are symbol ids; values sorted.

    `callers[s]`: definitions with a call of s. `callees[s]`: what s calls. `overrides[m]`: the methods that m
    overrides (nearest first). `overridden_by[m]`: methods that override m. `subclasses[c]`. `tests[s]`: test
    functions that reach s, nearest first. `fixtures[t]`: fixtures that test t uses, transitively.
    """

    files: Mapping[str, FileSyntax]
    symbols: Mapping[str, Symbol]
    links: tuple[Link, ...]
    callers: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    callees: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    overrides: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    overridden_by: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    subclasses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    tests: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    fixtures: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
