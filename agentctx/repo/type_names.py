"""Types as written -> the name of what they are, for telling what a receiver is. All languages but Python."""

from __future__ import annotations

import re
from functools import lru_cache

_LEAD = re.compile(
    r"(?:(?:const|mut|ref|out|in|final|readonly|volatile|struct|class|enum|union|static|inline|dyn|impl|async|val|var|"
    r"typename|extends|super|unsafe|extern|params|vararg|override|lateinit|private|public|protected|internal)\s+|'\w+\s+|[&*?:@]+\s*)+"
)
_NAME = re.compile(r"[A-Za-z_$][\w$]*(?:\s*(?:\.|::|\\)\s*[A-Za-z_$][\w$]*)*")
_NOTHING = frozenset({"null", "undefined", "None", "nil", "void", "never", "auto", "let", "Unit", "false"})
# Types of TypeScript that are made of others, and predicates.
_UNNAMED = re.compile(
    r"(?:typeof|keyof|new|infer|asserts|unique|import|abstract)\b|[\w$.]+(?:<[^<>]*>)?\s+(?:extends|is)\s"
)
# What stands for the thing inside of it: awaiting, unwrapping, dereferencing is no member of the type.
_WRAPPERS = frozenset(
    {
        *("Promise", "PromiseLike", "Awaited", "Readonly", "Partial", "Required", "NonNullable", "Task", "ValueTask"),
        *("Option", "Result", "Box", "Rc", "Arc", "Cell", "RefCell", "Mutex", "RwLock", "Cow", "Pin", "Ref", "RefMut"),
        *("Optional", "Future", "CompletableFuture", "Deferred", "Provider", "Supplier", "Lazy", "WeakReference"),
        *("shared_ptr", "unique_ptr", "weak_ptr", "optional", "reference_wrapper", "atomic", "Nullable"),
    }
)


@lru_cache(maxsize=4096)
def bare_type(text: str) -> str | None:
    """`const std::shared_ptr<a::B>&` -> 'a.B', `*pkg.T[K]` -> 'pkg.T', `Promise<R | null>` -> 'R'.

    None for containers, functions, unions of several types and what isn't a named type. A Go result list gives
    its first type.
    """
    at: str | None = text.strip()
    while at is not None:
        at = at.removeprefix("->").strip()
        if _UNNAMED.match(at) is not None or _is_function(at):
            return None
        if at.startswith("("):
            at = _first_result(at)
            continue
        lead = _LEAD.match(at)
        at = at[lead.end() :] if lead is not None else at
        alternatives = [part.strip() for part in _split(at, "|")]
        named = [part for part in alternatives if part not in _NOTHING]
        if len(alternatives) > 1:
            at = named[0] if len(named) == 1 else None
            continue
        match = _NAME.match(at)
        if match is None or match[0] in _NOTHING:
            return None
        name = re.sub(r"\s*(?:::|\\|\.)\s*", ".", match[0])
        rest = at[match.end() :].strip()
        if rest[:1] in ("<", "[") and name.rpartition(".")[2] in _WRAPPERS:
            at = _split(rest[1:].rpartition(">" if rest[0] == "<" else "]")[0], ",")[0].strip()
            continue
        return None if _is_array(rest) else name
    return None


def _is_function(text: str) -> bool:
    """`(a: A) => B`, `<T>(a: T) => B`, `(A) -> B`."""
    if text[:1] not in ("(", "<"):
        return False
    depth = 0
    for at, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if depth == 0 and char == ")":
            return text[at + 1 :].lstrip().startswith(("=>", "->"))
    return False


def _first_result(text: str) -> str | None:
    """The type of the first of `(r *pkg.R, err error)`."""
    inner = text[1:].rpartition(")")[0]
    first = _split(inner, ",")[0].strip() if inner else ""
    named = re.fullmatch(r"[a-z_]\w*\s+(\S.*)", first)
    return (named[1] if named is not None else first) or None


def _is_array(rest: str) -> bool:
    """Whether what follows a name makes it a list of it: `T[]`; `T[K]` are type arguments."""
    tail = rest
    if tail[:1] == "<":
        tail = tail.rpartition(">")[2]
    return re.match(r"\s*\[\s*\d*\s*\]", tail) is not None or tail.lstrip().startswith("...")


def _split(text: str, mark: str) -> list[str]:
    """`text` at `mark`, outside of brackets."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        if char in "<([{":
            depth += 1
        elif char in ")]}" or (char == ">" and text[at - 1 : at] != "-" and text[at - 1 : at] != "="):
            depth -= 1
        elif char == mark and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    parts.append(text[start:])
    return parts
