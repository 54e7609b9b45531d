"""What an expression of Python is made of, as a short text that can be evaluated once all files are known.

    name  {annotation}  @self  @cls  @super  $str  (a|b)  <a,b>     a name of the scope, an instance of an annotated
                                                                   type, a literal, one of several, a tuple
    x.name  x()  x[]  x#2  x*  x^  x%l  x%d  x%r                    attribute, call, item, element 2, what iterating,
                                                                   what `with` gives; a list of x, a dict to x,
                                                                   what `pytest.raises` gives for x
    !a.b  ?                                                         the module or attribute a.b; unknown

The names of local variables are gone: what they hold stands in their place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from tree_sitter import Node

from agentctx.repo.python_defs import Captures, first_named, names_directly, text_of
from agentctx.repo.python_flow import Event, Flow, How
from agentctx.repo.python_reach import MAX_CHOICES, choice, narrowing, plain_children, reaching, receiver_of
from agentctx.repo.python_scopes import Scope, ScopeKind, owner_of

MAX_TEXT = 200
MAX_DEPTH = 12
MAX_STEPS = 40  # attributes and calls of one expression
_LITERALS = {
    **dict.fromkeys(("string", "concatenated_string"), "$str"),
    **dict.fromkeys(("true", "false", "comparison_operator", "not_operator"), "$bool"),
    "integer": "$int",
    "float": "$float",
    "none": "$None",
}
_OPERATORS = {
    "+": "__add__",
    "-": "__sub__",
    "*": "__mul__",
    "/": "__truediv__",
    "//": "__floordiv__",
    "%": "__mod__",
    "|": "__or__",
    "&": "__and__",
    "^": "__xor__",
    "@": "__matmul__",
    "**": "__pow__",
    "<<": "__lshift__",
}
_TRANSPARENT = ("await", "parenthesized_expression", "list_splat")
_SAME = frozenset({"list", "sorted", "set", "tuple", "reversed", "iter", "frozenset", "copy", "deepcopy"})
_CAST = frozenset({"cast", "assert_type"})
_SPECIAL = frozenset({"super", "next", "TypeVar", "NewType", "enumerate", "zip", "raises"})
_QUOTES = re.compile(r"[\"']")
_COMMENT = re.compile(r"#[^\n]*")


class Exprs:
    """The texts of one file's expressions. `None` stands for what nobody can tell."""

    def __init__(self, data: bytes, captures: Captures, made: Sequence[Scope]) -> None:
        self._data = data
        self.flow = Flow(data, captures, made)
        self._known: dict[int, str | None] = {}
        self._depth = 0

    # ------------------------------------------------------------ expressions

    def value(self, node: Node, scope: Scope | None, at: int) -> str | None:
        """The text of an expression that stands at `at` in `scope`."""
        if self._depth >= MAX_DEPTH:
            return None
        self._depth += 1
        try:
            text = self._value(node, scope, at)
        finally:
            self._depth -= 1
        return text if text is None or len(text) <= MAX_TEXT else None

    def _value(self, node: Node, scope: Scope | None, at: int) -> str | None:
        """Goes inwards along attributes and calls; what is found on the way comes after the innermost part."""
        after: list[str] = []
        while True:
            step = self._step(node)
            if step is None:
                break
            node, suffix = step
            after.append(suffix)
            if len(after) > MAX_STEPS:
                return None
        inner = self._primary(node, scope, at)
        return inner + "".join(reversed(after)) if inner is not None else None

    def _step(self, node: Node) -> tuple[Node, str] | None:
        """One step inwards."""
        inner: Node | None = None
        suffix = ""
        match node.type:
            case "attribute":
                inner, name = node.child_by_field_name("object"), node.child_by_field_name("attribute")
                suffix = f".{text_of(self._data, name)}" if name is not None else ""
            case "call":
                inner = node.child_by_field_name("function")
                if inner is None or (inner.type in ("identifier", "attribute") and self._is_special(inner)):
                    return None
                suffix = "()"
            case "subscript":
                inner, suffix = node.child_by_field_name("value"), self._index(node)
            case "named_expression":
                inner = node.child_by_field_name("value")
            case "binary_operator":
                operator = node.child_by_field_name("operator")
                method = _OPERATORS.get(operator.type) if operator is not None else None
                if method is not None:
                    inner, suffix = node.child_by_field_name("left"), f".{method}()"
            case kind if kind in _TRANSPARENT:
                inner = first_named(node)
        return (inner, suffix) if inner is not None else None

    def _index(self, node: Node) -> str:
        index = node.child_by_field_name("subscript")
        if index is None or index.type == "slice":
            return ""
        return f"#{text_of(self._data, index)}" if index.type == "integer" else "[]"

    def _is_special(self, function: Node) -> bool:
        name = text_of(self._data, function).rpartition(".")[2]
        return name in _SAME or name in _CAST or name in _SPECIAL

    def _primary(self, node: Node, scope: Scope | None, at: int) -> str | None:
        kind = node.type
        if kind in _LITERALS:
            return _LITERALS[kind]
        match kind:
            case "identifier":
                return self.name(text_of(self._data, node), scope, at)
            case "call":
                return self._special(node, scope, at)
            case "conditional_expression" if len(node.named_children) == 3:
                first, _, last = node.named_children
                return self._one_of((first, last), scope, at)
            case "boolean_operator":
                return self._choice(node, scope, at)
            case "tuple" | "expression_list":
                return self._tuple(node, scope, at)
            case "list" | "set":
                return self._container(next(iter(plain_children(node)), None), "l", scope, at)
            case "list_comprehension" | "set_comprehension" | "generator_expression":
                body = node.child_by_field_name("body")
                return self._container(body, "l", self.flow.scope_at(node.start_byte), at)
            case "dictionary" | "dictionary_comprehension":
                pair = next((child for child in node.named_children if child.type == "pair"), None)
                value = pair.child_by_field_name("value") if pair is not None else None
                return self._container(value, "d", self.flow.scope_at(node.start_byte), at)
        return None

    def _special(self, call: Node, scope: Scope | None, at: int) -> str | None:
        """Calls whose result is known by what they are given."""
        function, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
        given = [child for child in arguments.named_children if not child.is_extra] if arguments is not None else []
        name = text_of(self._data, function).rpartition(".")[2] if function is not None else ""
        if name == "super":
            return "@super"
        if name == "TypeVar":
            bound = next(
                (c for c in given if c.type == "keyword_argument" and c.named_children[0].text == b"bound"), None
            )
            value = bound.child_by_field_name("value") if bound is not None else None
            return self._alias(value) if value is not None else "={}"
        if not given or given[0].type == "keyword_argument":
            return {"list": "$list", "set": "$list", "tuple": "$list"}.get(name)
        if name == "NewType":
            return self._alias(given[1]) if len(given) > 1 else None
        if name in _CAST:
            return self.annotation(given[0])
        inner = self.value(given[0], scope, at)
        if inner is None:
            return "$list" if name in ("list", "sorted", "set", "tuple", "frozenset") else None
        match name:
            case "next":
                return f"{inner}*"
            case "raises":
                kinds = plain_children(given[0]) if given[0].type == "tuple" else given[:1]
                raised = choice(f"{text}()" for kind in kinds if (text := self.value(kind, scope, at)) is not None)
                return f"{raised or '?'}%r"
            case "enumerate":
                return f"<$int,{inner}*>%l"
            case "zip":
                items = [self.value(child, scope, at) for child in given[:4]]
                return f"<{','.join('?' if item is None else f'{item}*' for item in items)}>%l"
        return inner

    def _alias(self, node: Node) -> str | None:
        text = self.annotation(node)
        return f"={text}" if text is not None else None

    def _choice(self, node: Node, scope: Scope | None, at: int) -> str | None:
        left, right = node.child_by_field_name("left"), node.child_by_field_name("right")
        if left is None or right is None:
            return None
        is_or = any(child.type == "or" for child in node.children)
        return self._one_of((left, right), scope, at) if is_or else self.value(right, scope, at)

    def _one_of(self, nodes: Iterable[Node], scope: Scope | None, at: int) -> str | None:
        return choice(self.value(node, scope, at) for node in nodes)

    def _tuple(self, node: Node, scope: Scope | None, at: int) -> str | None:
        items = [self.value(child, scope, at) or "?" for child in plain_children(node)[:MAX_CHOICES]]
        return f"<{','.join(items)}>" if items else "$list"

    def _container(self, item: Node | None, kind: str, scope: Scope | None, at: int) -> str | None:
        inner = self.value(item, scope, item.end_byte) if item is not None else None
        return f"{inner or '?'}%{kind}"

    def annotation(self, node: Node) -> str | None:
        """`{X}` of an annotation, or of an expression that names a type; without quotes, comments and white space."""
        text = _QUOTES.sub("", _COMMENT.sub("", text_of(self._data, node)))
        text = "".join(text.split())
        return None if "{" in text or "}" in text or not text else f"{{{text}}}"

    # ------------------------------------------------------------ variables

    def name(self, name: str, scope: Scope | None, at: int) -> str | None:
        """What a name holds at a position; the name itself where no function binds it."""
        owner = owner_of(name, scope)
        if owner is None:
            return name
        while scope is not None and scope is not owner and scope.kind is ScopeKind.COMPREHENSION:
            scope = scope.parent
        events = self.flow.events(owner, name)
        is_own = scope is owner
        narrowed = narrowing(events, at)
        if narrowed is not None:
            return self._event(narrowed, owner)
        if not events:
            return self._parameter(owner, name)
        reached, is_complete = (
            reaching(events, at) if is_own else ([e for e in events if e.how is not How.NARROWED], False)
        )
        texts = [self._event(event, owner) for event in reached]
        declared = next((e for e in events if e.how is How.TYPE), None)
        if declared is not None and (None in texts or not texts):
            texts.append(self._event(declared, owner))
        elif not is_complete:
            texts.append(self._parameter(owner, name))
        return choice(texts)

    def _event(self, event: Event, scope: Scope) -> str | None:
        """The text of an event, remembered; an event that needs itself tells nothing."""
        key = id(event)
        if key not in self._known:
            self._known[key] = None
            self._known[key] = self._made(event, scope)
        return self._known[key]

    def _made(self, event: Event, scope: Scope) -> str | None:
        node = event.node
        if event.how is How.TYPE:
            return self.annotation(node)
        if event.how in (How.RAISED, How.NARROWED):
            kinds = plain_children(node) if node.type == "tuple" else [node]
            texts = [self.value(kind, scope, node.start_byte) for kind in kinds]
            return choice(f"{text}()" if text is not None else None for text in texts)
        path = event.path
        if event.how is How.VALUE and path and node.type in ("tuple", "expression_list", "list"):
            items = plain_children(node)
            if path[0] < len(items) and not any(item.type == "list_splat" for item in items):
                node, path = items[path[0]], path[1:]
        text = self.value(node, scope, node.start_byte)
        if text is None:
            return None
        text += {How.ITEM: "*", How.ENTERED: "^"}.get(event.how, "")
        return text + "".join(f"#{i}" for i in path)

    def _parameter(self, scope: Scope, name: str) -> str | None:
        node = scope.parameters.get(name)
        if node is None:
            return None
        annotation = node.child_by_field_name("type")
        first = next(iter(scope.parameters))
        if name == first and (owner := receiver_of(self._data, scope.function)) is not None:
            return owner
        text = self.annotation(annotation) if annotation is not None else None
        if annotation is not None and node.type == "typed_parameter" and not names_directly(node):
            is_double = (inner := first_named(node)) is not None and inner.type == "dictionary_splat_pattern"
            return f"{text or '?'}%{'d' if is_double else 'l'}"
        default = node.child_by_field_name("value")
        if annotation is None and default is not None:
            return self.value(default, scope.parent, default.start_byte)
        return text


def returned(exprs: Exprs, returns: Sequence[Node]) -> str | None:
    """What a function without a return annotation gives: one of what it returns, or an iterator of what it yields."""
    texts: list[str | None] = []
    for node in returns:
        inner = first_named(node)
        text = exprs.value(inner, exprs.flow.scope_at(node.start_byte), node.start_byte) if inner is not None else None
        texts.append(f"{text}%l" if text is not None and node.type == "yield" else text)
    return choice(texts)
