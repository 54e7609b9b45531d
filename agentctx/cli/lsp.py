"""`agentctx lsp`."""

from __future__ import annotations

import click

from agentctx.errors import UsageError


@click.command(short_help="Start the language server (stdio).")
@click.option("--stdio", is_flag=True, help="speak over stdin and stdout: the default, which editors ask for by name")
@click.option("--tcp", is_flag=True, help="listen on a TCP port instead of stdin and stdout")
@click.option("--host", default="127.0.0.1", show_default=True, help="address to listen on (with --tcp)")
@click.option("--port", default=2087, show_default=True, type=click.IntRange(0, 65535), help="port (with --tcp)")
def lsp(stdio: bool, tcp: bool, host: str, port: int) -> None:
    """Start the language server: omission findings, why a span is kept or dropped, and pinning, in the editor."""
    from agentctx.cli.services import CliServices
    from agentctx.lsp.server import serve
    from agentctx.repo.store import IndexMemory

    if stdio and tcp:
        raise UsageError("--stdio and --tcp contradict each other", hint="give one of them")
    serve(CliServices(quiet=True, memory=IndexMemory()), tcp=(host, port) if tcp else None)
