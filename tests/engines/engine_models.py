"""Tiny random models, written by transformers and read by both engines; masked dense forwards as the oracle."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agentctx.models.exports import make_export
from agentctx.models.folder import ModelFolder
from agentctx.prompt import PromptDocument, PromptUnit, Section, SparsePrompt, TokenizedPrompt, TokenScores
from agentctx.source import UnitKind
from agentctx.spans import ByteSpan
from agentctx.spec import engines
from agentctx.spec.engines.byte_tokenizer import EOS, VOCAB_SIZE, ByteTokenizer
from agentctx.spec.protocols import Drafter, ModelInfo
from agentctx.spec.scorers.base import Asked, Scorer, Shallow
from agentctx.spec.scorers.published import SpecPrefill

COMMON: dict[str, Any] = {
    "vocab_size": VOCAB_SIZE,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "eos_token_id": EOS,
    "bos_token_id": None,
    "pad_token_id": 0,
}


def score(drafter: Drafter, prompt: TokenizedPrompt, scorer: Scorer | None = None, *, chunk: int = 512) -> TokenScores:
    """What `windows.score_in_windows` does with a prompt that fits, with chunks of any size."""
    scorer = scorer or SpecPrefill()
    reading, scoring = scorer.begin(Asked.of(drafter, prompt))
    facts = drafter.read(prompt.ids, replace(reading, chunk=chunk), scoring)
    return TokenScores(scoring.values(), "d", scorer.name, facts.n_layers, facts.seconds, facts.n_steps)


def first(layers: int) -> Scorer:
    """SpecPrefill on the first layers."""
    return Shallow(SpecPrefill(), layers)


def build(folder: Path, model_type: str, **extra: Any) -> Path:
    """A model folder with random weights, large enough that attention is far from uniform."""
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    config = transformers.AutoConfig.for_model(model_type, **{**COMMON, **extra})
    torch.manual_seed(0)
    model = transformers.AutoModelForCausalLM.from_config(config).float()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.normal_(0, 0.5)
            elif parameter.ndim == 1:
                parameter.normal_(1, 0.1)
            else:
                scale = 1.0 if "embed" in name else 1.5
                parameter.normal_(0, scale / parameter.shape[-1] ** 0.5)
    model.save_pretrained(folder)
    return folder


def describe(folder: Path, name: str = "tiny") -> ModelInfo:
    config = json.loads((folder / "config.json").read_text())
    return ModelInfo(
        name=name,
        folder=str(folder),
        n_layers=config["num_hidden_layers"],
        n_params=100_000,
        hidden_size=config["hidden_size"],
        n_heads=config["num_attention_heads"],
        n_kv_heads=config["num_key_value_heads"],
        head_dim=config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"],
        vocab_size=config["vocab_size"],
        max_position=config["max_position_embeddings"],
        tokenizer_digest=ByteTokenizer().digest,
        architecture=config["model_type"],
    )


@dataclass
class Oracle:
    """The same weights in transformers' eager attention, with an explicit mask: no cache, no gaps, no code of ours."""

    model: Any
    ids: list[int] = field(default_factory=list)

    def logits(self, ids: np.ndarray, kept: np.ndarray) -> np.ndarray:
        """float32 (T, V): a dense forward in which nobody sees the dropped tokens."""
        return self._run(ids, kept).logits[0].numpy()

    def attentions(self, ids: np.ndarray) -> list[np.ndarray]:
        """Per layer float32 (H, T, T)."""
        found = self._run(ids, np.arange(len(ids)), output_attentions=True).attentions
        return [layer[0].numpy() for layer in found]

    def _run(self, ids: np.ndarray, kept: np.ndarray, **options: Any) -> Any:
        import torch

        n = len(ids)
        seen = torch.zeros(n, dtype=torch.bool)
        seen[torch.as_tensor(kept, dtype=torch.long)] = True
        allowed = torch.tril(torch.ones(n, n, dtype=torch.bool)) & (seen[None] | torch.eye(n, dtype=torch.bool))
        config = self.model.config
        window = getattr(config, "sliding_window", None)
        near = allowed if window is None else allowed & torch.triu(torch.ones(n, n, dtype=torch.bool), 1 - window)
        full, sliding = (
            torch.zeros(1, 1, n, n).masked_fill(~one, torch.finfo(torch.float32).min) for one in (allowed, near)
        )
        by_type = {"full_attention": full, "sliding_attention": sliding}
        mask = by_type if getattr(config, "layer_types", None) else sliding
        with torch.inference_mode():
            return self.model(
                input_ids=torch.as_tensor(ids, dtype=torch.long)[None],
                position_ids=torch.arange(n)[None],
                attention_mask=mask,
                use_cache=False,
                **options,
            )


def oracle_of(folder: Path) -> Oracle:
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    return Oracle(model.eval())


CLOSE: dict[str, float] = {"rtol": 0, "atol": 1e-4}
TOLERANCES: dict[str, dict[str, float]] = {}  # engine -> where it differs from CLOSE, and why


def prepare(engine_name: str, folder: Path) -> None:
    """Whatever an engine needs beside the folder: an export that loses nothing."""
    if engine_name in engines.exporting():
        make_export(ModelFolder("tiny", folder, None), engine_name, "float32", engines.load_exporter(engine_name))


# Engines that tell log-probabilities: their logits are compared up to a constant, and never bit by bit, because what a
# prefix cache holds already isn't computed again in the same batch.
UP_TO_A_CONSTANT = frozenset({"vllm"})


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits.astype(np.float64) - logits.max(-1, keepdims=True)
    out: np.ndarray = shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))
    return out


MODELS: dict[str, dict[str, Any]] = {
    "llama": {"model_type": "llama", "tie_word_embeddings": False},
    "qwen2": {"model_type": "qwen2", "tie_word_embeddings": True, "rope_theta": 1_000_000.0},
}


# What an engine needs of a tiny model: vLLM's attention on CPUs has no heads narrower than 32.
SHAPES: dict[str, dict[str, Any]] = {"vllm": {"hidden_size": 128, "intermediate_size": 96}}


def prompt_ids(n: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, n).astype(np.int32)


def tokenized(ids: np.ndarray) -> TokenizedPrompt:
    """A prompt of one unit, a byte per token."""
    n = len(ids)
    document = PromptDocument(
        bytes(int(i) % 256 for i in ids), (PromptUnit(0, Section.CODE, UnitKind.TEXT, ByteSpan(0, n)),)
    )
    return TokenizedPrompt(document, ids, np.arange(n + 1, dtype=np.int32), np.asarray([0, n], np.int32))


def sparse(ids: np.ndarray, kept: np.ndarray) -> SparsePrompt:
    return SparsePrompt(ids[kept], kept.astype(np.int32), len(ids))


KEPT = np.asarray([*range(7), *range(20, 31), *range(32, 40), 55, *range(80, 96)])  # of 96 tokens; several gaps


DAMAGES = ("missing weight", "truncated", "no weights", "no config", "bad json")


def harm(folder: Path, damage: str) -> None:
    """Make a whole folder one of DAMAGES."""
    from safetensors.numpy import load_file, save_file

    weights = folder / "model.safetensors"
    if damage == "missing weight":
        tensors = load_file(weights)
        del tensors["model.layers.1.mlp.up_proj.weight"]
        save_file(tensors, weights, metadata={"format": "pt"})
    elif damage == "truncated":
        weights.write_bytes(weights.read_bytes()[:-1000])
    elif damage == "no weights":
        weights.unlink()
    elif damage == "no config":
        (folder / "config.json").unlink()
    elif damage == "bad json":
        (folder / "config.json").write_text("{")
    else:
        raise ValueError(damage)
