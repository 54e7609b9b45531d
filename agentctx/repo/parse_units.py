"""A syntax tree -> drafts of units: the rows that must stay together, and what each needs around it.

Works on the captures `unit.*` of the language's query. The walk is a stack of generators, so that nesting in
the code never is nesting of calls. Rows are 0-based; a draft's rows hold its leading comments but not the blank
rows after it (`parse_place` gives every row that is left to a unit).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tree_sitter import Node

from agentctx.repo.parse_draft import GROUP_LINES, Atom, Context, Draft, expand_errors, is_comment
from agentctx.repo.parse_lines import Lines
from agentctx.source import UnitKind

WHOLE_DEFINITION_LINES = 3

Steps = Iterator["Steps"]


class UnitWalk:
    """One walk over one tree. `tags`: node id -> capture name without its prefix."""

    def __init__(self, lines: Lines, tags: Mapping[int, str], formatted: frozenset[int]) -> None:
        self.lines = lines
        self.tags = tags
        self.formatted = formatted  # rows of string interpolations: such a string is no doc
        self.drafts: list[Draft] = []
        self.floor = -1  # the last row that is taken

    def run(self, root: Node) -> list[Draft]:
        """The drafts of the whole tree, in order, never overlapping."""
        stack: list[Steps] = [self._module(root)]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
            else:
                stack.append(step)
        return self.drafts

    # ---- helpers

    def _rows(self, node: Node) -> tuple[int, int]:
        first, (last, column) = node.start_point[0], node.end_point
        return first, max(first, last - 1 if column == 0 else last)

    def _lead(self, row: int) -> int:
        """The first row of the comments directly above `row` that are not indented deeper than it."""
        column = self.lines.column(row)
        while row - 1 > self.floor and self.lines.is_comment(row - 1) and self.lines.column(row - 1) <= column:
            row -= 1
        return row

    def _emit(
        self,
        kind: UnitKind,
        first: int,
        last: int,
        context: Context,
        *,
        owner: int | None = None,
        group: list[int] | None = None,
    ) -> int:
        """Adds a draft and gives its index. Rows that are taken already (broken code) stay where they are."""
        self.floor = max(self.floor, last)
        if self.drafts and first <= self.drafts[-1].last:
            self.drafts[-1].last = max(self.drafts[-1].last, last)
            return len(self.drafts) - 1
        draft = Draft(kind, first, last, context, context.owner if owner is None else owner)
        index = len(self.drafts)
        if group is not None:
            group.append(index)
            draft.group = group
        self.drafts.append(draft)
        return index

    def _statements(self, block: Node | None) -> list[Node]:
        return [] if block is None else [child for child in block.named_children if not is_comment(child)]

    def _atoms(self, nodes: Sequence[Node]) -> Iterator[Atom]:
        """Statements in order, joined where they share a row, a `\\`, or document each other."""
        pending: Atom | None = None
        for node in expand_errors(nodes):
            first, last = self._rows(node)
            tag = self.tags.get(node.id, "")
            if pending is None:
                pending = Atom(node, first, last, tag)
                continue
            documents = tag == "string" and pending.tag in ("", "shared") and first == pending.last + 1
            if first > pending.last and self.lines.is_first(node.start_byte, first) and not documents:
                yield pending
                pending = Atom(node, first, last, tag)
            else:
                joined = pending.tag if pending.tag == tag == "import" else "shared"
                pending = Atom(pending.node, pending.first, max(pending.last, last), joined)
        if pending is not None:
            yield pending

    # ---- one step per construct

    def _module(self, root: Node) -> Steps:
        nodes = self._statements(root)
        context = Context()
        if nodes and self._is_doc(nodes[0]) and self._alone(nodes):
            first, _ = self._rows(nodes[0])
            self._doc(nodes[0], UnitKind.STATEMENT, self._lead(first), context, None)
            nodes = nodes[1:]
        yield self._block(nodes, context)

    def _block(self, nodes: Sequence[Node], context: Context) -> Steps:
        group: tuple[int, int] | None = None
        for atom in self._atoms(nodes):
            lead = self._lead(atom.first)
            if atom.tag in ("", "string", "inert", "shared"):
                joins = group is not None and lead == group[1] + 1 and atom.last - group[0] < GROUP_LINES
                if group is not None and not joins:
                    self._emit(context.kind, *group, context)
                group = (group[0] if group is not None and joins else lead, atom.last)
                self.floor = atom.last
                continue
            if group is not None:
                self._emit(context.kind, *group, context)
                group = None
            yield from self._special(atom, lead, context)
        if group is not None:
            self._emit(context.kind, *group, context)

    def _special(self, atom: Atom, lead: int, context: Context) -> Steps:
        node = atom.node
        if atom.tag == "import":
            self._emit(UnitKind.IMPORT, lead, atom.last, context)
        elif atom.tag in ("function", "class", "decorated"):
            yield self._definition(node, lead, atom.last, context)
        elif atom.tag in ("clause", "required"):
            yield self._clause(node, lead, context, None)
        elif atom.tag in ("compound", "linked") and atom.last - atom.first < GROUP_LINES:
            kind = UnitKind.IMPORT if self._only_imports(node) else context.kind
            self._emit(kind, lead, atom.last, context)
        else:
            yield self._compound(node, lead, atom, context)

    def _definition(self, node: Node, lead: int, last: int, context: Context) -> Steps:
        inner = node.child_by_field_name("definition") or node if self.tags[node.id] == "decorated" else node
        block = self._child(inner, "block")
        items = self._statements(block)
        first, end = self._rows(inner)
        if end - first < WHOLE_DEFINITION_LINES or not self._splits(items):
            self._emit(UnitKind.HEADER, lead, last, context, owner=inner.id)
            return
        kind = UnitKind.FIELDS if self.tags[inner.id] == "class" else UnitKind.BODY
        if self._is_doc(items[0]) and self._alone(items):
            header = self._doc(items[0], UnitKind.HEADER, lead, context, inner.id)
            items = items[1:]
        else:
            self.floor = max(self.floor, self._head_end(inner))
            header = self._emit(UnitKind.HEADER, lead, self._lead(self._rows(items[0])[0]) - 1, context, owner=inner.id)
        yield self._block(items, Context(kind, header, inner.id))

    def _compound(self, node: Node, lead: int, atom: Atom, context: Context) -> Steps:
        group: list[int] | None = [] if atom.tag == "linked" else None
        head, items = self._head(node, lead, context, group)
        inside = replace(context, parent=head)
        yield self._block(items, inside)
        for child in node.children:
            tag = self.tags.get(child.id)
            if tag in ("clause", "required"):
                first = self._lead(self._rows(child)[0])
                yield self._clause(child, first, inside, group if tag == "required" else None)

    def _clause(self, node: Node, lead: int, context: Context, group: list[int] | None) -> Steps:
        head, items = self._head(node, lead, context, group)
        yield self._block(items, replace(context, parent=head))

    def _head(self, node: Node, lead: int, context: Context, group: list[int] | None) -> tuple[int, list[Node]]:
        """Emits the rows up to the block's first statement; gives the draft and the statements that are left."""
        block = self._child(node, "block")
        items = self._statements(block)
        end = self._head_end(node)
        if not self._splits(items):
            end = max([end, *(self._rows(item)[1] for item in items)])
            items = []
        else:
            self.floor = max(self.floor, end)
            end = max(end, self._lead(self._rows(items[0])[0]) - 1)
        return self._emit(UnitKind.BLOCK, lead, max(lead, end), context, group=group), items

    def _head_end(self, node: Node) -> int:
        """The last row of what stands before the node's block or its first clause."""
        end = node.start_point[0]
        for child in node.children:
            if self.tags.get(child.id) in ("block", "clause", "required"):
                break
            if not is_comment(child):
                end = max(end, self._rows(child)[1])
        return end

    # ---- docs

    def _doc(self, doc: Node, kind: UnitKind, lead: int, context: Context, owner: int | None) -> int:
        """Emits what ends with the doc: one draft, or first paragraph + DOC + DOC_END. Gives the first one."""
        first, last = self._rows(doc)
        cut = self._second_paragraph(first, last)
        if cut is None or cut[1] >= last:
            return self._emit(kind, lead, last, context, owner=owner)
        group: list[int] = []
        header = self._emit(kind, lead, cut[0], context, owner=owner, group=group)
        inside = replace(context, parent=header, owner=owner if owner is not None else context.owner)
        self._emit(UnitKind.DOC, cut[1], last - 1, inside)
        self._emit(UnitKind.DOC_END, last, last, replace(inside, parent=context.parent), group=group)
        return header

    def _second_paragraph(self, first: int, last: int) -> tuple[int, int] | None:
        """(last row of the first paragraph, first row of the second) of the doc in these rows."""
        row = first
        if not self.lines.text(row).lstrip(b"rRuUbB").strip(b"\"'\\"):
            row += 1  # the text starts below the quotes
        while row < last and not self.lines.is_blank(row):
            row += 1
        end = row - 1
        while row < last and self.lines.is_blank(row):
            row += 1
        return (end, row) if first <= end < row - 1 and row <= last else None

    def _is_doc(self, node: Node) -> bool:
        if self.tags.get(node.id) != "string":
            return False
        first, last = self._rows(node)
        return not any(row in self.formatted for row in range(first, last + 1))

    def _alone(self, items: Sequence[Node]) -> bool:
        """Whether the first statement shares no row with the second."""
        last = self._rows(items[0])[1]
        return len(items) == 1 or (
            self._rows(items[1])[0] > last and self.lines.is_first(items[1].start_byte, self._rows(items[1])[0])
        )

    def _splits(self, items: Sequence[Node]) -> bool:
        """Whether the first of a block's statements starts a row of its own."""
        return bool(items) and self.lines.is_first(items[0].start_byte, items[0].start_point[0])

    def _child(self, node: Node, tag: str) -> Node | None:
        return next((child for child in node.children if self.tags.get(child.id) == tag), None)

    def _only_imports(self, node: Node) -> bool:
        """Whether all simple statements of this (small) statement are imports or do nothing."""
        found, stack = False, [node]
        while stack:
            outer = stack.pop()
            in_block = self.tags.get(outer.id) == "block"
            for child in outer.named_children:
                tag = self.tags.get(child.id)
                found = found or tag == "import"
                if tag in ("block", "clause", "required", "compound", "linked"):
                    stack.append(child)
                elif in_block and tag not in ("import", "inert") and not is_comment(child):
                    return False
        return found
