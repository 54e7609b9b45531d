"""`agentctx lsp`."""

from __future__ import annotations

import click


@click.command(short_help="Start the language server (stdio).")
@click.option("--tcp", is_flag=True, help="listen on a TCP port instead of stdin and stdout")
@click.option("--host", default="127.0.0.1", show_default=True, help="address to listen on (with --tcp)")
@click.option("--port", default=2087, show_default=True, type=click.IntRange(0, 65535), help="port (with --tcp)")
def lsp(tcp: bool, host: str, port: int) -> None:
    """Start the language server: omission findings, why a span is kept or dropped, and pinning, in the editor."""
    from agentctx.cli.services import CliServices
    from agentctx.lsp.server import serve

    serve(CliServices(quiet=True), tcp=(host, port) if tcp else None)
