"""GGUF file -> a local model folder that transformers loads without any hub.

Writes float16 safetensors tensor by tensor, some rows at a time, so that a 1.5B model is converted in well
under 1 GB of memory. Needs numpy, gguf and tokenizers; torch is never imported.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from agentctx.errors import UnavailableError
from agentctx.models.chat import chat_frame
from agentctx.models.folder import MANIFEST, FileRecord, Manifest
from agentctx.models.gguf_file import GgufHeader, GgufTensor, read_header
from agentctx.models.gguf_tokenizer import tokenizer_config, tokenizer_json
from agentctx.models.safetensors_file import TensorEntry, header_bytes
from agentctx.models.tokenizer_digest import digest_of

CONVERTER_VERSION = 1
_CHUNK_VALUES = 4_000_000  # values dequantised at once: 16 MB of float32

Progress = Callable[[str, int, int], None]  # what, done, total (bytes)

_RENAMES = (
    (re.compile(r"^token_embd\."), "model.embed_tokens."),
    (re.compile(r"^output_norm\."), "model.norm."),
    (re.compile(r"^output\."), "lm_head."),
    (re.compile(r"^blk\."), "model.layers."),
    (re.compile(r"\.attn_norm\."), ".input_layernorm."),
    (re.compile(r"\.ffn_norm\."), ".post_attention_layernorm."),
    (re.compile(r"\.attn_([qkv])\."), r".self_attn.\1_proj."),
    (re.compile(r"\.attn_output\."), ".self_attn.o_proj."),
    (re.compile(r"\.ffn_(gate|up|down)\."), r".mlp.\1_proj."),
)
_TENSOR_NAME = re.compile(
    r"(model\.embed_tokens|model\.norm|lm_head|model\.layers\.\d+\.(input_layernorm|post_attention_layernorm"
    r"|self_attn\.[qkvo]_proj|mlp\.(gate|up|down)_proj))\.(weight|bias)"
)
# llama.cpp derives these from rope settings; a model library computes them itself
_IGNORED = re.compile(r"rope_freqs\.weight|.*\.rotary_emb\.inv_freq")


def convert(source: Path, target: Path, *, name: str, sha256: str, progress: Progress | None = None) -> Manifest:
    """Write the model in `source` to the existing, empty folder `target`.

    Args:
        sha256: of `source`, as verified by the caller; recorded in the manifest.
        progress: called with bytes written so far.

    Raises:
        ModelUnavailable: an architecture, tensor type or tokenizer that isn't known here.
        UnavailableError: the `gguf` package is missing.
    """
    header = read_header(source)
    config = model_config(header)
    entries = plan(header)
    records = {"model.safetensors": _write_weights(header, entries, config, target / "model.safetensors", progress)}
    tokenizer, extra = tokenizer_json(header), tokenizer_config(header)
    documents = {"config.json": config, "tokenizer.json": tokenizer, "tokenizer_config.json": extra}
    for filename, document in documents.items():
        records[filename] = _write_json(target / filename, document)
    manifest = Manifest(
        name=name,
        source_sha256=sha256,
        converter=CONVERTER_VERSION,
        files=dict(sorted(records.items())),
        n_params=sum(entry.n_values for _, entry in entries),
        tokenizer_digest=digest_of(tokenizer),
        chat=chat_frame(extra),
    )
    _write_json(target / MANIFEST, manifest.to_dict())
    return manifest


def model_config(header: GgufHeader) -> dict[str, Any]:
    """config.json of a LlamaForCausalLM or Qwen2ForCausalLM with float16 weights."""
    arch = header.text("general.architecture")
    if arch not in ("llama", "qwen2"):
        raise header.refuse(f"its architecture is {arch!r}; known: llama, qwen2")
    hidden, n_heads = header.integer(f"{arch}.embedding_length"), header.integer(f"{arch}.attention.head_count")
    config: dict[str, Any] = {
        "architectures": ["LlamaForCausalLM" if arch == "llama" else "Qwen2ForCausalLM"],
        "model_type": arch,
        "dtype": "float16",
        "hidden_act": "silu",
        "hidden_size": hidden,
        "intermediate_size": header.integer(f"{arch}.feed_forward_length"),
        "num_hidden_layers": header.integer(f"{arch}.block_count"),
        "num_attention_heads": n_heads,
        "num_key_value_heads": header.integer(f"{arch}.attention.head_count_kv", n_heads),
        "head_dim": header.integer(f"{arch}.attention.key_length", hidden // n_heads),
        "max_position_embeddings": header.integer(f"{arch}.context_length"),
        "rms_norm_eps": _shortest(header.number(f"{arch}.attention.layer_norm_rms_epsilon")),
        "rope_theta": header.number(f"{arch}.rope.freq_base", 10000.0),
        "tie_word_embeddings": all(tensor.name != "output.weight" for tensor in header.tensors),
        "vocab_size": next(tensor.shape[0] for tensor in header.tensors if tensor.name == "token_embd.weight"),
        "use_cache": True,
    }
    for ours, theirs in (("bos", "bos"), ("eos", "eos"), ("pad", "padding")):
        key = f"tokenizer.ggml.{theirs}_token_id"
        if key in header.metadata:
            config[f"{ours}_token_id"] = header.integer(key)
    return config


def _shortest(value: float) -> float:
    """The decimal that a float32 was written from: 1e-06, not 9.999999974752427e-07."""
    return float(str(np.float32(value)))


def plan(header: GgufHeader) -> list[tuple[GgufTensor, TensorEntry]]:
    """Every tensor with its new name, in the order of the new names."""
    planned = []
    for tensor in header.tensors:
        if _IGNORED.fullmatch(tensor.name):
            continue
        name = tensor.name
        for pattern, replacement in _RENAMES:
            name = pattern.sub(replacement, name)
        if not _TENSOR_NAME.fullmatch(name):
            raise header.refuse(f"tensor {tensor.name!r} has no counterpart")
        planned.append((tensor, TensorEntry(name, "F16", tensor.shape)))
    return sorted(planned, key=lambda item: item[1].name)


def _write_weights(
    header: GgufHeader,
    planned: list[tuple[GgufTensor, TensorEntry]],
    config: Mapping[str, Any],
    path: Path,
    progress: Progress | None,
) -> FileRecord:
    digest, done = hashlib.sha256(), 0
    total = sum(entry.n_bytes for _, entry in planned)
    with header.path.open("rb") as source, path.open("wb") as out:

        def put(data: bytes | memoryview) -> None:
            digest.update(data)
            out.write(data)

        put(header_bytes([entry for _, entry in planned], {"format": "pt"}))
        for tensor, entry in planned:
            for rows in float16_rows(header, source, tensor, permuted_heads(header, tensor, config)):
                put(rows.data.cast("B"))
                done += rows.nbytes
                if progress is not None:
                    progress("convert", done, total)
            if done > total:
                raise header.refuse(f"{entry.name} is larger than its shape says")
        size = out.tell()
    return FileRecord(digest.hexdigest(), size)


def permuted_heads(header: GgufHeader, tensor: GgufTensor, config: Mapping[str, Any]) -> int | None:
    """Number of heads whose rows llama.cpp interleaved; it does so for q and k of llama-type files only."""
    if header.text("general.architecture") != "llama":
        return None
    if ".attn_q." in tensor.name:
        return int(config["num_attention_heads"])
    return int(config["num_key_value_heads"]) if ".attn_k." in tensor.name else None


def float16_rows(
    header: GgufHeader, source: BinaryIO, tensor: GgufTensor, heads: int | None
) -> Iterator[npt.NDArray[np.float16]]:
    """The tensor as contiguous float16 blocks of rows; a permuted one comes as one block."""
    blocks = _dequantised(header, source, tensor)
    if heads is None:
        yield from (_to_float16(header, tensor, block) for block in blocks)
        return
    whole = np.concatenate(list(blocks))
    half = whole.shape[0] // heads // 2
    ordered = whole.reshape(heads, half, 2, *whole.shape[1:]).swapaxes(1, 2).reshape(whole.shape)
    yield _to_float16(header, tensor, ordered)


def _to_float16(header: GgufHeader, tensor: GgufTensor, values: npt.NDArray[np.float32]) -> npt.NDArray[np.float16]:
    try:
        with np.errstate(over="raise"):
            return np.ascontiguousarray(values, dtype=np.float16)
    except FloatingPointError as error:
        raise header.refuse(f"{tensor.name} holds values beyond float16") from error


def _dequantised(header: GgufHeader, source: BinaryIO, tensor: GgufTensor) -> Iterator[npt.NDArray[np.float32]]:
    """Float32 blocks of whole rows, read from the file a few rows at a time."""
    gguf = _gguf()
    try:
        kind = gguf.GGMLQuantizationType(tensor.ggml_type)
        block_values, block_bytes = gguf.GGML_QUANT_SIZES[kind]
    except (ValueError, KeyError) as error:
        raise header.refuse(f"{tensor.name} has tensor type {tensor.ggml_type}") from error
    width = tensor.shape[-1]
    row_bytes = width // block_values * block_bytes
    n_rows = tensor.n_values // width
    if width % block_values or tensor.offset + n_rows * row_bytes > header.file_size:
        raise header.refuse(f"{tensor.name} passes the end of the file or has broken rows")
    step = max(1, _CHUNK_VALUES // width)
    source.seek(tensor.offset)
    for first in range(0, n_rows, step):
        rows = min(step, n_rows - first)
        raw = np.frombuffer(source.read(rows * row_bytes), dtype=np.uint8).reshape(rows, row_bytes)
        try:
            values = gguf.dequantize(raw, kind)
        except NotImplementedError as error:
            raise header.refuse(f"{tensor.name} has tensor type {kind.name}, which gguf can't read") from error
        yield values.reshape(rows, width) if len(tensor.shape) > 1 else values.reshape(width)


def _gguf() -> Any:
    try:
        import gguf
    except ImportError as error:
        raise UnavailableError(
            "converting a GGUF file needs the gguf package", hint="pip install 'agentctx[torch]'"
        ) from error
    return gguf


def _write_json(path: Path, document: Mapping[str, Any]) -> FileRecord:
    layout: dict[str, Any] = {"separators": (",", ":")} if path.name == "tokenizer.json" else {"indent": 2}
    raw = (json.dumps(document, ensure_ascii=False, **layout) + "\n").encode()
    path.write_bytes(raw)
    return FileRecord(hashlib.sha256(raw).hexdigest(), len(raw))
