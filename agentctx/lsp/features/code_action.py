"""textDocument/codeAction: "Pin SYMBOL for the current task", as an edit of `agentctx.toml`.

The session selects again when it sees the edit: in the editor's buffer, on disk, or by the command that `resolve` adds.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs
from lsprotocol import types as lsp
from pygls.workspace import PositionCodec

from agentctx.lsp.convert import FilePositions, encode
from agentctx.lsp.features.diagnostics import SOURCE, pin_of, uri_in
from agentctx.lsp.features.task import plain
from agentctx.lsp.job import Selected
from agentctx.lsp.pinfile import add_pin
from agentctx.lsp.view import View, name_span
from agentctx.settings import PROJECT_FILE
from agentctx.source import SymbolKind

PIN_KIND = "quickfix.agentctx.pin"
PIN_COMMAND = "agentctx.pin"
_PINNABLE = (SymbolKind.CLASS, SymbolKind.FUNCTION, SymbolKind.METHOD, SymbolKind.CONSTANT)


def code_actions(
    view: View, path: str, params: lsp.CodeActionParams, codec: PositionCodec, *, versioned: bool
) -> list[lsp.CodeAction]:
    """An action for each definition that the diagnostics or the cursor name and that isn't pinned yet.

    Args:
        versioned: Whether the client takes document changes: they can create `agentctx.toml` and name the version
            that they are for. Without them a pin lasts for the session only while there is no such file.
    """
    selected = view.fresh(path)
    only = params.context.only
    if selected is None or (only and not any(_is_within(PIN_KIND, kind) for kind in only)):
        return []
    pins: dict[str, list[lsp.Diagnostic]] = {}
    for diagnostic in params.context.diagnostics:
        for pin in _pins_of(diagnostic):
            pins.setdefault(pin, []).append(diagnostic)
    for pin in _at_cursor(view, selected, path, params.range.start, codec):
        pins.setdefault(pin, [])
    known = {*view.pins, *selected.saved_pins}
    return [_action(view, selected, pin, found, codec, versioned) for pin, found in pins.items() if pin not in known]


def _is_within(kind: str, asked: lsp.CodeActionKind | str) -> bool:
    """Kinds are hierarchical: who asks for `quickfix` gets `quickfix.agentctx.pin` too."""
    asked = asked.value if isinstance(asked, lsp.CodeActionKind) else asked
    return asked == "" or kind == asked or kind.startswith(f"{asked}.")


def _pins_of(diagnostic: lsp.Diagnostic) -> list[str]:
    """The pins that we put into a diagnostic of ours; clients hand them back as they please."""
    if diagnostic.source != SOURCE:
        return []
    data = diagnostic.data
    pins = data.get("pins", []) if isinstance(data, dict) else getattr(data, "pins", [])
    return [pin for pin in pins if isinstance(pin, str)]


def _at_cursor(
    view: View, selected: Selected, path: str, position: lsp.Position, codec: PositionCodec
) -> Iterator[str]:
    """What the name at the cursor refers to, or the definition whose name it is."""
    positions = view.positions(selected, path, codec)
    if positions is None:
        return
    offset, line = positions.offset(position), position.line + 1
    for link in selected.links.get((path, line), ()):
        span = name_span(link.reference, selected.data[path])
        if span.start <= offset <= span.end:
            yield from map(pin_of, link.targets)
    for symbol in selected.graph.files[path].symbols if path in selected.graph.files else ():
        if symbol.kind in _PINNABLE and symbol.name_span.start <= offset <= symbol.name_span.end:
            yield pin_of(symbol.id)


def _action(
    view: View,
    selected: Selected,
    pin: str,
    diagnostics: list[lsp.Diagnostic],
    codec: PositionCodec,
    versioned: bool,
) -> lsp.CodeAction:
    title = f"Pin {pin.partition('#')[2] or pin} for the current task"
    return lsp.CodeAction(
        title=title,
        kind=PIN_KIND,
        diagnostics=diagnostics,
        edit=pin_edit(view, selected, pin, codec, versioned=versioned),
        data={"pin": pin},
    )


def resolve(action: lsp.CodeAction) -> lsp.CodeAction:
    """The action with the command that pins at once, for editors that leave the edited file unsaved and to themselves.

    It is not there from the start because editors that know their open files don't need it: the edit tells us.
    """
    pin = plain(action.data).get("pin")
    if not isinstance(pin, str):
        return action
    return attrs.evolve(action, command=lsp.Command(title=action.title, command=PIN_COMMAND, arguments=[pin]))


def pin_edit(
    view: View, selected: Selected, pin: str, codec: PositionCodec, *, versioned: bool
) -> lsp.WorkspaceEdit | None:
    """The edit of the configuration; None where it can't be made: the command alone pins, for the session."""
    file, saved = view.open.get(PROJECT_FILE), view.root / PROJECT_FILE
    exists = file is not None or saved.is_file()
    if not exists and not versioned:
        return None
    text = file.text if file is not None else _read(view) if exists else ""
    made = add_pin(text, pin, selected.saved_pins) if text is not None else None
    if text is None or made is None:
        return None
    place = FilePositions(encode(text), codec).position(len(encode(text[: made.at])))
    uri = uri_in(view, PROJECT_FILE)
    change = lsp.TextEdit(lsp.Range(place, place), made.new)
    if not versioned:
        return lsp.WorkspaceEdit(changes={uri: [change]})
    document = lsp.OptionalVersionedTextDocumentIdentifier(uri, file.version if file is not None else None)
    edit = lsp.TextDocumentEdit(document, [change])
    create = [] if exists else [lsp.CreateFile(uri, options=lsp.CreateFileOptions(ignore_if_exists=True))]
    return lsp.WorkspaceEdit(document_changes=[*create, edit])


def _read(view: View) -> str | None:
    """The configuration on disk; None when it isn't text, which `settings` reports."""
    try:
        return (view.root / PROJECT_FILE).read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
