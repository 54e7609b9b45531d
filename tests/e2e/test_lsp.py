"""The language server as a subprocess, driven as three editors do: what they can, and the units that they count in."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcException
from pytest_lsp import LanguageClient, client_capabilities, make_test_lsp_client

ROOT = Path(__file__).parents[2]
SERVER = [sys.executable, "-m", "agentctx", "lsp"]
PIN = "shop/rates.py#surcharge"

# `surcharge` is referred to behind an astral character (2 units of UTF-16, 4 of UTF-8) and 'é' (1 and 2).
PRICES = '''"""Prices."""

from shop.rates import surcharge


def price(net: int) -> int:
    """What the customer pays."""
    return "\U0001d6ff é" and surcharge(net)
'''
REQUEST = "Make price right. " + "The customer pays what the table of rates says, and not a cent more than that. " * 5
LINE = 7  # of the call, counted from 0
BEFORE = '    return "\U0001d6ff é" and '

# Its signature and the first paragraph of its doc are one unit, which the budget can't hold; nor is there a line for
# it (`--on-omission flag`, see `connected`).
RATES = (
    '"""Rates."""\n\n\ndef surcharge(net: int) -> int:\n    """The surcharge.\n'
    + "\n".join(
        f"    Rule {n}: an order of {n * 17} cents or more has the rate number {n} of the table." for n in range(90)
    )
    + '\n    """\n    return net * 3\n'
)


@dataclass(frozen=True)
class Kind:
    """An editor: where its capabilities come from, its units, and whether it asks for diagnostics."""

    name: str
    encoding: str
    pulls: bool


VSCODE_OLD = Kind("visual_studio_code", "utf-16", pulls=False)
VSCODE = Kind("visual_studio_code", "utf-16", pulls=True)
NEOVIM = Kind("neovim", "utf-8", pulls=False)
NEOVIM_NEW = Kind("neovim", "utf-8", pulls=True)
KINDS = [
    pytest.param(VSCODE_OLD, id="vscode-push"),
    pytest.param(VSCODE, id="vscode-pull"),
    pytest.param(NEOVIM, id="neovim-push"),
    pytest.param(NEOVIM_NEW, id="neovim-pull"),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "a shop"
    for path, text in {"shop/__init__.py": "", "shop/prices.py": PRICES, "shop/rates.py": RATES}.items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    for command in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    return folder


class Editor:
    """One connected editor. Versions of texts are counted here, as editors do."""

    def __init__(self, client: LanguageClient, kind: Kind, root: Path) -> None:
        self.client = client
        self.kind = kind
        self.root = root
        self.versions: dict[str, int] = {}
        self.states: list[str] = []

    def uri(self, path: str) -> str:
        return (self.root / path).as_uri()

    def units(self, text: str) -> int:
        return len(text.encode()) if self.kind.encoding == "utf-8" else len(text.encode("utf-16-le")) // 2

    def open(self, path: str, text: str) -> None:
        self.versions[path] = 1
        item = lsp.TextDocumentItem(self.uri(path), "python", 1, text)
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))

    def type(self, path: str, text: str) -> None:
        """Replace the whole text."""
        self.versions[path] += 1
        document = lsp.VersionedTextDocumentIdentifier(self.versions[path], self.uri(path))
        change = lsp.TextDocumentContentChangeWholeDocument(text)
        self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(document, [change]))

    def save(self, path: str) -> None:
        self.client.text_document_did_save(lsp.DidSaveTextDocumentParams(lsp.TextDocumentIdentifier(self.uri(path))))

    def close(self, path: str) -> None:
        self.client.text_document_did_close(lsp.DidCloseTextDocumentParams(lsp.TextDocumentIdentifier(self.uri(path))))

    def watched(self, path: str) -> None:
        """The editor's file watcher saw a change on disk."""
        event = lsp.FileEvent(self.uri(path), lsp.FileChangeType.Changed)
        self.client.workspace_did_change_watched_files(lsp.DidChangeWatchedFilesParams([event]))

    async def request(self, method: str, params: object = None) -> Any:
        answer = await self.client.protocol.send_request_async(method, params)
        return answer._asdict() if hasattr(answer, "_asdict") else answer

    async def set_task(self, **fields: Any) -> Any:
        return await self.request("agentctx/setTask", fields)

    async def settled(self) -> dict[str, Any]:
        """The status once the server does nothing any more."""
        for _ in range(600):
            status: dict[str, Any] = await self.request("agentctx/status")
            if status["state"] != "running":
                return status
            await asyncio.sleep(0.05)
        raise AssertionError("still running after 30 seconds")

    async def findings(self, path: str) -> list[lsp.Diagnostic]:
        """What the editor shows, its own way."""
        if self.kind.pulls:
            report = await self.pull(path)
            assert isinstance(report, lsp.RelatedFullDocumentDiagnosticReport)
            return list(report.items)
        await self.settled()
        return list(self.client.diagnostics.get(self.uri(path), ()))

    async def pull(self, path: str, previous: str | None = None) -> lsp.DocumentDiagnosticReport:
        document = lsp.TextDocumentIdentifier(self.uri(path))
        params = lsp.DocumentDiagnosticParams(document, previous_result_id=previous)
        return await self.client.text_document_diagnostic_async(params)

    async def hover(self, path: str, line: int, character: int = 0) -> str:
        document = lsp.TextDocumentIdentifier(self.uri(path))
        found = await self.client.text_document_hover_async(lsp.HoverParams(document, lsp.Position(line, character)))
        assert found is not None
        assert isinstance(found.contents, lsp.MarkupContent)
        return found.contents.value

    async def actions(
        self, path: str, place: lsp.Position, diagnostics: list[lsp.Diagnostic], only: list[str] | None = None
    ) -> list[lsp.CodeAction]:
        context = lsp.CodeActionContext(diagnostics, only=only)
        params = lsp.CodeActionParams(lsp.TextDocumentIdentifier(self.uri(path)), lsp.Range(place, place), context)
        found = await self.client.text_document_code_action_async(params)
        return [action for action in found or [] if isinstance(action, lsp.CodeAction)]


@asynccontextmanager
async def connected(kind: Kind, root: Path, options: object = None) -> AsyncIterator[Editor]:
    capabilities = client_capabilities(kind.name)
    assert capabilities.text_document is not None
    assert capabilities.workspace is not None
    if kind.pulls:
        capabilities.text_document.diagnostic = lsp.DiagnosticClientCapabilities()
        capabilities.workspace.diagnostics = lsp.DiagnosticWorkspaceClientCapabilities(refresh_support=True)
    client = make_test_lsp_client()
    editor = Editor(client, kind, root)

    @client.feature("agentctx/statusChanged")
    def status_changed(params: Any) -> None:
        editor.states.append(params.state)

    @client.feature(lsp.CLIENT_REGISTER_CAPABILITY)
    def register(params: lsp.RegistrationParams) -> None:
        assert [one.method for one in params.registrations] == [lsp.WORKSPACE_DID_CHANGE_WATCHED_FILES]

    env = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("GIT_", "AGENTCTX_"))},
        "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "error",
        "AGENTCTX_CACHE_DIR": str(root.parent / "cache"),
        "AGENTCTX_CONFIG_DIR": str(root.parent / "config"),
        "AGENTCTX_ON_OMISSION": "flag",  # signature lines would leave nothing to report
    }
    flag = ["--stdio"] if kind.name == "visual_studio_code" else []  # its client library adds that by itself
    await client.start_io(*SERVER, *flag, env=env)
    params = lsp.InitializeParams(
        capabilities=capabilities,
        workspace_folders=[lsp.WorkspaceFolder(uri=root.as_uri(), name="shop")],
        initialization_options=options,
    )
    result = await client.initialize_session(params)
    assert str(result.capabilities.position_encoding or "utf-16") == kind.encoding
    assert (result.capabilities.diagnostic_provider is not None) == kind.pulls
    yield editor
    await client.shutdown_session()
    await client.stop()


@pytest.mark.parametrize("kind", KINDS)
async def test_from_no_task_to_a_pin(kind: Kind, root: Path) -> None:
    async with connected(kind, root) as editor:
        editor.open("shop/prices.py", PRICES)
        assert await editor.findings("shop/prices.py") == []
        assert "No current task" in await editor.hover("shop/prices.py", LINE)

        started = await editor.set_task(request=REQUEST, focus=["shop/prices.py#price"], budget=700)
        assert started["state"] == "running"
        imported, finding = await editor.findings("shop/prices.py")
        assert imported.range == lsp.Range(lsp.Position(2, 23), lsp.Position(2, 32))
        start = editor.units(BEFORE)
        assert finding.range == lsp.Range(lsp.Position(LINE, start), lsp.Position(LINE, start + 9))
        assert finding.severity == lsp.DiagnosticSeverity.Error
        assert finding.code == "dropped"
        assert "'surcharge' is not in the prompt" in finding.message
        (related,) = finding.related_information or ()
        assert related.location == lsp.Location(
            editor.uri("shop/rates.py"), lsp.Range(lsp.Position(3, 4), lsp.Position(3, 13))
        )

        kept = await editor.hover("shop/prices.py", LINE)
        assert "**kept**" in kept
        assert "tier 1" in kept
        assert "`target`" in kept
        assert " tokens" in kept
        dropped = await editor.hover("shop/rates.py", 3)
        assert "**dropped**" in dropped or "Not packed" in dropped

        (action,) = await editor.actions("shop/prices.py", finding.range.start, [finding])
        assert action.title == "Pin surcharge for the current task"
        assert action.kind == "quickfix.agentctx.pin"
        assert action.edit is not None
        create, change = action.edit.document_changes or ()
        assert isinstance(create, lsp.CreateFile)
        assert isinstance(change, lsp.TextDocumentEdit)
        assert create.uri == change.text_document.uri == editor.uri("agentctx.toml")
        (root / "agentctx.toml").write_text(change.edits[0].new_text)
        assert tomllib.loads((root / "agentctx.toml").read_text()) == {"pins": [PIN]}

        assert (await editor.settled())["state"] == "ready"
        assert await editor.actions("shop/prices.py", finding.range.start, []) == []
        await editor.set_task(request=REQUEST, focus=["shop/prices.py#price"], budget=6000)
        assert await editor.findings("shop/prices.py") == []
        assert "`user`" in await editor.hover("shop/rates.py", 3)
        assert {"running", "ready"} <= set(editor.states)


@pytest.mark.parametrize("kind", [KINDS[0], KINDS[3]])
async def test_unsaved_text_counts_and_stale_answers_are_not_given(kind: Kind, root: Path) -> None:
    task = {"request": REQUEST, "focus": ["shop/prices.py#price"]}
    async with connected(kind, root, {"budget": 700, "task": task}) as editor:
        editor.open("shop/prices.py", PRICES)
        _, before = await editor.findings("shop/prices.py")
        assert (await editor.settled())["limit"] <= 700

        editor.type("shop/prices.py", "# one\n# two\n" + PRICES)
        assert "being made" in await editor.hover("shop/prices.py", LINE + 2)
        assert await editor.actions("shop/prices.py", before.range.start, [before]) == []
        assert await editor.request("agentctx/spans", {"uri": editor.uri("shop/prices.py")}) == []
        _, after = await editor.findings("shop/prices.py")
        assert after.range.start == lsp.Position(LINE + 2, before.range.start.character)
        assert "**kept**" in await editor.hover("shop/prices.py", LINE + 2)
        spans = await editor.request("agentctx/spans", {"uri": editor.uri("shop/prices.py")})
        kept = [span["range"] for span in spans if span["kept"]]
        assert any(place["start"]["line"] <= LINE + 2 <= place["end"]["line"] for place in kept)

        # The same result isn't sent twice; that of another text is.
        first = await editor.pull("shop/prices.py")
        assert isinstance(first, lsp.RelatedFullDocumentDiagnosticReport)
        again = await editor.pull("shop/prices.py", first.result_id)
        assert isinstance(again, lsp.RelatedUnchangedDocumentDiagnosticReport)

        editor.type("shop/prices.py", PRICES.replace("surcharge(net)", "net").replace("import surcharge", "import *"))
        changed = await editor.pull("shop/prices.py", first.result_id)
        assert isinstance(changed, lsp.RelatedFullDocumentDiagnosticReport)
        assert list(changed.items) == []
        assert await editor.findings("shop/prices.py") == []
        assert (root / "shop/prices.py").read_text(encoding="utf-8") == PRICES


@pytest.mark.parametrize("kind", [KINDS[0], KINDS[1]])
async def test_what_changes_nothing_starts_no_selection(kind: Kind, root: Path) -> None:
    async with connected(kind, root) as editor:
        await editor.set_task(request=REQUEST, focus=["shop/prices.py#price"], budget=700)
        await editor.settled()
        editor.states.clear()
        editor.open("shop/prices.py", PRICES)
        assert len(await editor.findings("shop/prices.py")) == 2
        assert "**kept**" in await editor.hover("shop/prices.py", LINE)
        editor.type("shop/prices.py", PRICES)
        editor.save("shop/prices.py")
        editor.close("shop/prices.py")
        editor.open("shop/prices.py", PRICES)
        assert len(await editor.findings("shop/prices.py")) == 2
        assert editor.states == []

        text = "# one\n" + PRICES
        editor.type("shop/prices.py", text)
        await editor.settled()
        editor.states.clear()
        (root / "shop/prices.py").write_text(text, encoding="utf-8")
        editor.save("shop/prices.py")
        editor.watched("shop/prices.py")
        await editor.settled()
        editor.watched("shop/prices.py")
        await editor.settled()
        assert editor.states == ["running", "ready"]

        editor.watched("shop/rates.py")
        await editor.settled()
        assert editor.states == ["running", "ready"] * 2
        assert len(await editor.findings("shop/prices.py")) == 2


async def test_the_pin_goes_into_an_open_configuration(root: Path) -> None:
    text = '# ours\npins = [\n    "shop/__init__.py",\n]\n'
    async with connected(NEOVIM, root) as editor:
        editor.open("shop/prices.py", PRICES)
        editor.open("agentctx.toml", text)
        await editor.set_task(request="x", focus=["shop/prices.py#price"], budget=700)
        assert (await editor.settled())["state"] == "ready"
        place = lsp.Position(LINE, editor.units(BEFORE) + 2)
        assert await editor.actions("shop/prices.py", place, [], only=["refactor"]) == []
        (action,) = await editor.actions("shop/prices.py", place, [], only=["quickfix"])
        assert action.edit is not None
        (change,) = action.edit.document_changes or ()
        assert isinstance(change, lsp.TextDocumentEdit)
        assert change.text_document.version == 1
        (edit,) = change.edits
        assert edit.range.start == edit.range.end == lsp.Position(2, 0)
        assert edit.new_text == f'    "{PIN}",\n'

        resolved = await editor.client.code_action_resolve_async(action)
        assert resolved.edit == action.edit
        assert resolved.command is not None
        await editor.client.workspace_execute_command_async(
            lsp.ExecuteCommandParams(resolved.command.command, arguments=resolved.command.arguments)
        )
        assert (await editor.settled())["state"] == "ready"
        assert await editor.actions("shop/prices.py", place, []) == []


async def test_parameters_may_be_left_out(root: Path) -> None:
    server = await asyncio.create_subprocess_exec(
        *SERVER, "--stdio", cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert server.stdin is not None
    assert server.stdout is not None

    def send(**fields: object) -> None:
        body = json.dumps({"jsonrpc": "2.0", **fields}).encode()
        server.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))

    async def answer() -> Any:
        head = await server.stdout.readuntil(b"\r\n\r\n")
        return json.loads(
            await server.stdout.readexactly(int(head.lower().partition(b"content-length:")[2].split()[0]))
        )

    send(id=1, method="initialize", params={"processId": None, "rootUri": root.as_uri(), "capabilities": {}})
    assert (await answer())["result"]["serverInfo"]["name"] == "agentctx"
    send(id=2, method="agentctx/status")
    assert (await answer())["result"]["state"] == "no-task"
    send(id=3, method="shutdown")
    assert (await answer())["result"] is None
    send(method="exit")
    assert await server.wait() == 0


async def test_mistakes_are_answered(root: Path) -> None:
    async with connected(VSCODE_OLD, root) as editor:
        with pytest.raises(JsonRpcException, match=r"no log file 'none\.log'"):
            await editor.set_task(request="x", logs=["none.log"])
        assert (await editor.settled())["state"] == "no-task"
        await editor.set_task(request="x", tests=["tests/none.py::test_a"])
        status = await editor.settled()
        assert status["state"] == "failed"
        assert "tests/none.py" in status["message"]
        (root / "agentctx.toml").write_text("budgett = 3\n")
        await editor.set_task(request="x")
        assert "unknown option 'budgett'" in (await editor.settled())["message"]
        await editor.set_task()
        assert (await editor.settled())["state"] == "no-task"
