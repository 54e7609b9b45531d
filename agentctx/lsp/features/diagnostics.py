"""textDocument/diagnostic, and the same findings for clients that only take them pushed."""

from __future__ import annotations

from collections.abc import Iterator

from lsprotocol import types as lsp
from pygls.workspace import PositionCodec

from agentctx.lsp.convert import FilePositions, uri_of
from agentctx.lsp.job import Selected
from agentctx.lsp.view import View, name_span
from agentctx.prompt import Omission, OmissionAction, SymbolState
from agentctx.source import Link

SOURCE = "agentctx"
SEVERITIES = {
    "error": lsp.DiagnosticSeverity.Error,
    "warning": lsp.DiagnosticSeverity.Warning,
    "note": lsp.DiagnosticSeverity.Information,
}


def diagnostics(view: View, path: str, codec: PositionCodec) -> list[lsp.Diagnostic]:
    """The findings of the current task in one file, by position. None while the file is newer than the selection."""
    selected = view.fresh(path)
    positions = view.positions(selected, path, codec) if selected is not None else None
    if selected is None or positions is None:
        return []
    found = [*_omissions(view, selected, path, positions, codec), *_findings(selected, path, positions)]
    return sorted(found, key=lambda one: (one.range.start.line, one.range.start.character, one.message))


def report(
    view: View, path: str, codec: PositionCodec, previous: str | None
) -> lsp.RelatedFullDocumentDiagnosticReport | lsp.RelatedUnchangedDocumentDiagnosticReport:
    """The answer to a pull. Nothing is sent again to a client that has the result of this very selection."""
    result = result_id(view, path)
    if previous == result:
        return lsp.RelatedUnchangedDocumentDiagnosticReport(result_id=result)
    return lsp.RelatedFullDocumentDiagnosticReport(items=diagnostics(view, path, codec), result_id=result)


def result_id(view: View, path: str) -> str:
    """Names the selection and the text that diagnostics are of."""
    file = view.open.get(path)
    return f"{view.number}.{file.version if file is not None else 'saved'}"


def pin_of(symbol: str) -> str:
    """The pin that keeps a symbol: `path#Qual.name`; for a module its path, for an import `path:line`."""
    path, mark, name = symbol.partition("::")
    return f"{path}#{name.partition('~')[0]}" if mark else path


def _omissions(
    view: View, selected: Selected, path: str, positions: FilePositions, codec: PositionCodec
) -> Iterator[lsp.Diagnostic]:
    for omission in selected.report.omissions.findings:
        severity = SEVERITIES.get(omission.severity)
        if severity is None:
            continue
        related = _related(view, selected, omission, codec)
        lines = sorted({line for used_in, line in omission.referenced_from if used_in == path and line is not None})
        for place in (place for line in lines for place in _places(selected, path, line, omission, positions)):
            yield lsp.Diagnostic(
                range=place,
                message=_message(omission),
                severity=severity,
                code=omission.state.value,
                source=SOURCE,
                related_information=related,
                data={"pins": [pin_of(symbol) for symbol in _symbols(omission)]},
            )


def _symbols(omission: Omission) -> tuple[str, ...]:
    return omission.candidates or ((omission.symbol,) if omission.state is SymbolState.DROPPED else ())


def _places(selected: Selected, path: str, line: int, omission: Omission, positions: FilePositions) -> list[lsp.Range]:
    """Where on the line the references stand; the whole line when it is not a reference that was left out."""
    links = selected.links.get((path, line), ())
    named = [link for link in links if link.reference.name == omission.name]
    exact = [link for link in named if omission.symbol in link.targets] or named
    if omission.kind == "import":
        exact = [link for link in links if _comes_by(link, selected, omission)]
    spans = (name_span(link.reference, selected.data[path]) for link in exact)
    return [positions.range(span) for span in spans] or [positions.line(line)]


def _comes_by(link: Link, selected: Selected, omission: Omission) -> bool:
    """Whether the import statement that was left out brings the name in."""
    if link.via is None or omission.line is None or link.reference.path != omission.path:
        return False
    return selected.graph.files[link.reference.path].units[link.via].lines.holds(omission.line)


def _related(
    view: View, selected: Selected, omission: Omission, codec: PositionCodec
) -> list[lsp.DiagnosticRelatedInformation]:
    """Where the definitions are that are not in the prompt."""
    found = []
    for symbol in (selected.graph.symbols[one] for one in _symbols(omission) if one in selected.graph.symbols):
        positions = view.positions(selected, symbol.path, codec)
        if positions is None:
            continue
        location = lsp.Location(uri_in(view, symbol.path), positions.range(symbol.name_span))
        found.append(
            lsp.DiagnosticRelatedInformation(location, f"{symbol.kind.value} {symbol.qualname} is defined here")
        )
    return found


def uri_in(view: View, path: str) -> str:
    """The client's own URI of an open file, else one that we make."""
    file = view.open.get(path)
    return file.uri if file is not None else uri_of(path, view.root)


def _message(omission: Omission) -> str:
    name = f"'{omission.name}'"
    if omission.state is SymbolState.DROPPED:
        outside = omission.action is OmissionAction.NOT_PACKED
        reason = "it is outside of the window" if outside else "there was no room in the budget"
        return f"{name} is not in the prompt of the current task, but code that is kept refers to it: {reason}"
    if omission.state is SymbolState.AMBIGUOUS:
        return f"{name} may be any of {len(omission.candidates)} definitions, and not all of them are in the prompt"
    return f"{name} could not be resolved: whether its definition is in the prompt is unknown"


def _findings(selected: Selected, path: str, positions: FilePositions) -> Iterator[lsp.Diagnostic]:
    """Findings of the run that have a place in this file."""
    for finding in selected.report.findings:
        if finding.path != path or finding.line is None:
            continue
        yield lsp.Diagnostic(
            range=positions.line(finding.line),
            message=finding.message,
            severity=SEVERITIES[finding.severity],
            code=finding.code,
            source=SOURCE,
        )
