"""`agentctx lsp`: which function answers which message. Registration only; stdout belongs to the protocol."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, cast

from lsprotocol import types as lsp
from pygls import uris
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.workspace import PositionCodec

from agentctx import __version__, settings, vcs
from agentctx.errors import AgentctxError, TaskError
from agentctx.lsp.convert import path_of
from agentctx.lsp.features.code_action import PIN_COMMAND, PIN_KIND, code_actions, resolve
from agentctx.lsp.features.diagnostics import SOURCE, diagnostics, report
from agentctx.lsp.features.hover import hover
from agentctx.lsp.features.spans import spans
from agentctx.lsp.features.task import plain, status, task_request
from agentctx.lsp.job import OpenFile, Selector, TaskRequest
from agentctx.lsp.protocol import Protocol
from agentctx.lsp.session import DEBOUNCE, Session
from agentctx.lsp.view import State, View
from agentctx.pipeline.select import run
from agentctx.pipeline.services import Services

log = logging.getLogger(__name__)


class Server(LanguageServer):
    """One client, one session: it begins with `initialize`."""

    def __init__(self, selector: Selector, environment: Mapping[str, str]) -> None:
        super().__init__(SOURCE, __version__, protocol_cls=Protocol)
        self.selector = selector
        self.environment = environment
        self._session: Session | None = None

    @property
    def session(self) -> Session:
        assert self._session is not None, "the server library refuses requests before initialize"
        return self._session

    def begin(self, root: Path, task: TaskRequest) -> None:
        self._session = Session(root, self.selector, self.environment, task, self._changed)

    @property
    def codec(self) -> PositionCodec:
        return self.workspace.position_codec

    @property
    def pulls(self) -> bool:
        """Whether the client asks for diagnostics and can be told to ask again; else we push them."""
        text, workspace = self.client_capabilities.text_document, self.client_capabilities.workspace
        refresh = workspace.diagnostics.refresh_support if workspace and workspace.diagnostics else False
        return bool(text and text.diagnostic and refresh)

    @property
    def takes_document_changes(self) -> bool:
        workspace = self.client_capabilities.workspace
        edit = workspace.workspace_edit if workspace else None
        operations = edit.resource_operations or () if edit else ()
        return bool(edit and (edit.document_changes or lsp.ResourceOperationKind.Create in operations))

    def path(self, uri: str) -> str | None:
        return path_of(uri, self.session.root)

    def look(self) -> View:
        """The session as it is, after a look at the configuration on disk."""
        self.session.look()
        return self.session.snapshot()

    def _changed(self, view: View) -> None:
        """Tell the client what is new: the state, and where diagnostics have to be looked at again."""
        self.protocol.notify("agentctx/statusChanged", status(view))
        if view.state is State.RUNNING:
            return  # the client moves old findings along with the text until new ones are there
        if self.pulls:
            self.workspace_diagnostic_refresh(None)
            return
        for path, file in view.open.items():
            self.push(file.uri, diagnostics(view, path, self.codec), file.version)

    def push(self, uri: str, found: list[lsp.Diagnostic], version: int | None = None) -> None:
        self.text_document_publish_diagnostics(lsp.PublishDiagnosticsParams(uri, found, version))


def make_server(selector: Selector, environment: Mapping[str, str]) -> Server:
    """The server with all its features."""
    server = Server(selector, environment)
    _lifecycle(server)
    _documents(server)
    _queries(server)
    _tasks(server)
    return server


def serve(services: Services, *, tcp: tuple[str, int] | None = None) -> None:
    """Serve one client until it ends the session: over stdin and stdout, or over a TCP connection."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    server = make_server(
        lambda root, task, options, overlay: run("lsp", root, task, options, services, overlay), os.environ
    )
    if tcp is not None:
        server.start_tcp(*tcp)
    else:
        server.start_io(sys.stdin.buffer, _claim_stdout())


def _claim_stdout() -> BinaryIO:
    """Standard output for the protocol alone: whatever else is written there goes to standard error."""
    sys.stdout.flush()
    ours = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return cast(BinaryIO, ours)


# ---------------------------------------------------------------- registration


def _lifecycle(server: Server) -> None:
    @server.feature(lsp.INITIALIZE)
    def initialize(ls: Server, params: lsp.InitializeParams) -> None:
        task = TaskRequest()
        try:
            options = plain(params.initialization_options)
            task = task_request({"budget": options.get("budget"), **plain(options.get("task"))})
        except TaskError as error:
            log.warning("initializationOptions: %s", error.message)
        ls.begin(_root(params), task)
        if ls.pulls:
            _pull(ls)

    @server.feature(lsp.INITIALIZED)
    async def initialized(ls: Server, params: lsp.InitializedParams) -> None:
        if not ls.pulls:
            _pull(ls)  # not advertised, but who asks is answered
        ls.session.touch(0.0)
        await _watch(ls)

    @server.feature(lsp.SHUTDOWN)
    def shutdown(ls: Server, params: None) -> None:
        ls.session.shut_down()


def _root(params: lsp.InitializeParams) -> Path:
    """The work tree around the first workspace folder, or that folder; without a folder the current one."""
    folders = params.workspace_folders or []
    uri = folders[0].uri if folders else params.root_uri
    folder = Path(uris.to_fs_path(uri) or ".") if uri else Path(params.root_path or ".")
    top = vcs.top_level(folder) if folder.is_dir() else None
    if top is None or top.resolve() == folder.resolve():
        return Path(os.path.abspath(folder))  # the client's own spelling: its URIs begin with it
    return top


async def _watch(server: Server) -> None:
    """Ask to be told when files change outside of the editor, where the client can do that."""
    workspace = server.client_capabilities.workspace
    watching = workspace.did_change_watched_files if workspace else None
    if watching is None or not watching.dynamic_registration:
        return
    watchers = [lsp.FileSystemWatcher(pattern) for pattern in ("**/*.py", f"**/{settings.PROJECT_FILE}")]
    options = lsp.DidChangeWatchedFilesRegistrationOptions(watchers)
    registration = lsp.Registration("agentctx-files", lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES, options)
    await server.client_register_capability_async(lsp.RegistrationParams([registration]))


def _documents(server: Server) -> None:
    def put(ls: Server, uri: str) -> None:
        path = ls.path(uri)
        if path is not None:
            document = ls.workspace.get_text_document(uri)
            ls.session.put(path, OpenFile(uri, document.version or 0, document.source))

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    def opened(ls: Server, params: lsp.DidOpenTextDocumentParams) -> None:
        put(ls, params.text_document.uri)
        view = ls.session.snapshot()
        path = ls.path(params.text_document.uri)
        if path is not None and view.state is State.READY and not ls.pulls:
            ls.push(params.text_document.uri, diagnostics(view, path, ls.codec), params.text_document.version)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    def changed(ls: Server, params: lsp.DidChangeTextDocumentParams) -> None:
        put(ls, params.text_document.uri)

    @server.feature(lsp.TEXT_DOCUMENT_DID_SAVE)
    def saved(ls: Server, params: lsp.DidSaveTextDocumentParams) -> None:
        ls.session.written([ls.path(params.text_document.uri)], 0.0)

    @server.feature(lsp.TEXT_DOCUMENT_DID_CLOSE)
    def closed(ls: Server, params: lsp.DidCloseTextDocumentParams) -> None:
        path = ls.path(params.text_document.uri)
        if path is not None:
            ls.session.close(path)
        if not ls.pulls:
            ls.push(params.text_document.uri, [])

    @server.feature(lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES)
    def touched(ls: Server, params: lsp.DidChangeWatchedFilesParams) -> None:
        ls.session.written([ls.path(change.uri) for change in params.changes], DEBOUNCE)


def _pull(server: Server) -> None:
    options = lsp.DiagnosticOptions(inter_file_dependencies=True, workspace_diagnostics=False, identifier=SOURCE)

    @server.feature(lsp.TEXT_DOCUMENT_DIAGNOSTIC, options)
    async def pull(ls: Server, params: lsp.DocumentDiagnosticParams) -> lsp.DocumentDiagnosticReport:
        path = ls.path(params.text_document.uri)
        ls.session.look()
        view = await ls.session.settled()
        if path is None:
            return lsp.RelatedFullDocumentDiagnosticReport(items=[])
        return report(view, path, ls.codec, params.previous_result_id)


def _queries(server: Server) -> None:
    @server.feature(lsp.TEXT_DOCUMENT_HOVER)
    def on_hover(ls: Server, params: lsp.HoverParams) -> lsp.Hover | None:
        path = ls.path(params.text_document.uri)
        return hover(ls.look(), path, params.position, ls.codec) if path is not None else None

    @server.feature(
        lsp.TEXT_DOCUMENT_CODE_ACTION, lsp.CodeActionOptions(code_action_kinds=[PIN_KIND], resolve_provider=True)
    )
    def on_code_action(ls: Server, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        path = ls.path(params.text_document.uri)
        if path is None:
            return []
        return code_actions(ls.look(), path, params, ls.codec, versioned=ls.takes_document_changes)

    @server.feature(lsp.CODE_ACTION_RESOLVE)
    def on_resolve(ls: Server, action: lsp.CodeAction) -> lsp.CodeAction:
        return resolve(action)

    @server.feature("agentctx/spans")
    def on_spans(ls: Server, params: object) -> list[dict[str, Any]]:
        path = ls.path(str(_fields(params).get("uri", "")))
        return spans(ls.look(), path, ls.codec) if path is not None else []


def _tasks(server: Server) -> None:
    @server.feature("agentctx/setTask")
    def set_task(ls: Server, params: object) -> dict[str, Any]:
        try:
            ls.session.set_task(task_request(params, ls.session.root))
        except AgentctxError as error:
            raise JsonRpcInvalidParams(error.message) from error
        return status(ls.look())

    @server.feature("agentctx/status")
    def on_status(ls: Server, params: object) -> dict[str, Any]:
        return status(ls.look())

    @server.command(PIN_COMMAND)
    def pin(ls: Server, place: str) -> None:
        ls.session.pin(place)


def _fields(params: object) -> Mapping[str, Any]:
    try:
        return plain(params)
    except TaskError as error:
        raise JsonRpcInvalidParams(error.message) from error
