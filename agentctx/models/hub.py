"""The model hub, through huggingface_hub where that is installed."""

from __future__ import annotations

import re
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from agentctx.errors import ModelUnavailable, UnavailableError
from agentctx.models.folder import has_weights

_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_PROBE_SECONDS = 5
MODEL = ("*.json", "*.jinja", "*.safetensors")
TOKENIZER = ("tokenizer.json",)
DESCRIPTION = (  # no weights
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "generation_config.json",
    "chat_template.jinja",
)


def is_hub_id(name: str) -> bool:
    """`org/name`, as the hub spells its ids."""
    return _HUB_ID.fullmatch(name) is not None and ".." not in name


def snapshot(hub_id: str, files: tuple[str, ...] = MODEL) -> Path:
    """The folder of a hub model, downloaded if it isn't in the hub's own cache.

    Args:
        files: MODEL, TOKENIZER or DESCRIPTION.

    Raises:
        UnavailableError: huggingface_hub is not installed.
        ModelUnavailable: no network, no such model, or no access.
    """
    library = _library()
    what = f"model {hub_id!r}"
    cached = _cached(library, hub_id, files)
    if cached is not None and (files != MODEL or has_weights(cached)) and (cached / "tokenizer.json").is_file():
        return cached
    _require_reachable(library, what)
    try:
        return Path(library.snapshot_download(hub_id, allow_patterns=list(files)))
    except (OSError, ValueError, library.errors.HfHubHTTPError) as error:
        raise _mapped(what, error) from error


def _cached(library: Any, hub_id: str, patterns: tuple[str, ...]) -> Path | None:
    """What the hub's cache holds of it; older versions of the library don't check that all files are there."""
    try:
        return Path(library.snapshot_download(hub_id, allow_patterns=list(patterns), local_files_only=True))
    except (OSError, ValueError):
        return None


def download_file(repo: str, filename: str, folder: Path) -> Path:
    """One file of a hub repository, into `folder`. Raises like `snapshot`."""
    library = _library()
    what = f"{repo}/{filename}"
    _require_reachable(library, what)
    try:
        return Path(library.hf_hub_download(repo, filename, local_dir=folder))
    except (OSError, ValueError, library.errors.HfHubHTTPError) as error:
        raise _mapped(what, error) from error


def _mapped(what: str, error: Exception) -> ModelUnavailable:
    first_line = (str(error).strip().splitlines() or [type(error).__name__])[0]
    return ModelUnavailable(f"{what} could not be fetched from the hub: {first_line}")


def _require_reachable(library: Any, what: str) -> None:
    """One short request first: the library itself retries for half a minute without a network."""
    endpoint, offline = library.constants.ENDPOINT, library.constants.HF_HUB_OFFLINE
    hint = "give a local folder, or a name from: agentctx models list"
    if offline:
        raise ModelUnavailable(f"{what} is not in the cache, and HF_HUB_OFFLINE forbids to fetch it", hint=hint)
    request = urllib.request.Request(endpoint, method="HEAD")
    try:
        urllib.request.urlopen(request, timeout=_PROBE_SECONDS).close()
    except urllib.error.HTTPError as error:
        error.close()  # it answered
    except (OSError, ValueError) as error:
        raise ModelUnavailable(f"{what}: the model hub can't be reached ({error})", hint=hint) from error


def _library() -> Any:
    try:
        import huggingface_hub
        import huggingface_hub.constants
        import huggingface_hub.errors
    except ImportError as error:
        raise UnavailableError(
            "models from the hub need the huggingface_hub package", hint="pip install 'agentctx[torch]'"
        ) from error
    return huggingface_hub
