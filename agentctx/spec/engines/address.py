"""The address of a server: checked, completed, and whether it is this machine. Pure."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from agentctx.errors import ConfigError

_HINT = "for example --url http://localhost:8000/v1"


@dataclass(frozen=True, slots=True)
class Address:
    """`base` is what paths are added to; `host` (with its port) is what may be shown."""

    base: str
    host: str
    is_local: bool


def parse_address(url: str) -> Address:
    """An address as people write it; without a path it gets `/v1`.

    Raises:
        ConfigError: it is no http(s) address, or holds a password or a query (they may be secrets: not repeated).
    """
    parts, host, port = _split(url)
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise ConfigError("--url holds a user name, a query or a fragment", hint="a key goes into AGENTCTX_API_KEY")
    path = parts.path.rstrip("/").removesuffix("/chat/completions") or "/v1"
    shown = f"[{host}]" if ":" in host else host
    shown += f":{port}" if port is not None else ""
    return Address(f"{parts.scheme}://{shown}{path}", shown, _is_loopback(host))


def _split(url: str) -> tuple[SplitResult, str, int | None]:
    try:
        parts = urlsplit(url.strip())
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigError("--url is not an address", hint=_HINT) from error
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigError("--url must begin with http:// or https:// and name a host", hint=_HINT)
    return parts, host, port


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False  # a name: it may lead anywhere
