"""JSON-RPC as editors speak it, where the server library is stricter."""

from __future__ import annotations

from typing import Any

from pygls.protocol import LanguageServerProtocol


class Protocol(LanguageServerProtocol):
    """Takes requests and notifications of ours without `params`, which JSON-RPC allows; they arrive as None.

    The library can't read them, and never answers: VS Code's client leaves `params` out where there are none.
    """

    def structure_message(self, data: dict[str, Any]) -> Any:
        if "jsonrpc" in data and "method" in data:
            data.setdefault("params", None)
        return super().structure_message(data)
