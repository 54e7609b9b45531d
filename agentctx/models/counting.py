"""Which tokenizer counts: that of --model, else --tokenizer FILE, else the default model's, else the estimate."""

from __future__ import annotations

from pathlib import Path

from agentctx.errors import ModelUnavailable
from agentctx.models import hub
from agentctx.models.estimate import EstimateTokenizer
from agentctx.models.folder import ModelFolder, read_manifest
from agentctx.models.registry import find_known, unknown_model
from agentctx.models.store import default_model, local_folder, resolve
from agentctx.models.tokenizer import FileTokenizer
from agentctx.models.tokenizer_digest import digests_of


def tokenizer_for(model: str | None, tokenizer_file: str | None, cache: Path) -> FileTokenizer:
    """The tokenizer that counts. Never imports torch, never downloads weights.

    A model that this machine doesn't know (a server's name for it) is counted with `tokenizer_file` if that
    is given; the tokenizer's name says which it is.

    Raises:
        ModelUnavailable: the model can't be found and there is no `tokenizer_file`, or a file is damaged.
    """
    if model is not None:
        try:
            return _of_model(model, cache)
        except ModelUnavailable:
            if tokenizer_file is None:
                raise
    if tokenizer_file is not None:
        return _of_file(Path(tokenizer_file).expanduser(), tokenizer_file, cache)
    default = default_model(cache)
    return EstimateTokenizer() if default is None else _of_model(default, cache)


def tokenizer_or_estimate(tokenizer_file: str | None, cache: Path) -> FileTokenizer | EstimateTokenizer:
    """What counts for a model that isn't here: a local model's tokenizer might count too little.

    Raises:
        ModelUnavailable: the file is missing or damaged.
    """
    if tokenizer_file is None:
        return EstimateTokenizer()
    return _of_file(Path(tokenizer_file).expanduser(), tokenizer_file, cache)


def tokenizer_of(folder: ModelFolder, *, cache: Path | None = None) -> FileTokenizer:
    """A model folder's own tokenizer."""
    digest = folder.manifest.tokenizer_digest if folder.manifest else None
    file = folder.path / "tokenizer.json"
    return FileTokenizer.load(file, name=folder.name, digest=digest, digests=digests_of(cache))


def _of_model(model: str, cache: Path) -> FileTokenizer:
    if find_known(model) is not None:
        return tokenizer_of(resolve(model, cache), cache=cache)
    path = local_folder(model)
    if path is None:
        if not hub.is_hub_id(model):
            raise unknown_model(model)
        path = hub.snapshot(model, hub.TOKENIZER)
    # whether the weights are whole doesn't matter for counting
    return tokenizer_of(ModelFolder(model, path, read_manifest(path)), cache=cache)


def _of_file(path: Path, given: str, cache: Path) -> FileTokenizer:
    """A tokenizer.json, or a folder that holds one."""
    file = path / "tokenizer.json" if path.is_dir() else path
    return FileTokenizer.load(file, name=given, digests=digests_of(cache))
