"""The real SmolLM2 and Qwen tokenizers, where they have been fetched."""

from __future__ import annotations

import json
import lzma
from importlib.resources import files
from pathlib import Path

import pytest

from agentctx.models.counting import tokenizer_of
from agentctx.models.estimate import EstimateTokenizer, merges_of
from agentctx.models.folder import open_folder
from agentctx.models.info import chat_of, info
from agentctx.models.registry import known
from tests.unit.models.tiny_models import require_fetched

pytestmark = pytest.mark.model

SOURCE = Path(__file__).parents[3] / "agentctx"


def sources() -> list[str]:
    texts = [path.read_text("utf-8") for path in sorted(SOURCE.rglob("*.py"))]
    return [text for text in texts if text]


def test_smollm2_folder_is_what_the_registry_says(user_cache: Path) -> None:
    folder = open_folder(require_fetched(user_cache, "smollm2"))
    about, model = info(folder), known("smollm2")
    assert (about.n_params, about.max_position) == (model.n_params, model.context)
    assert folder.manifest is not None
    assert folder.manifest.source_sha256 == model.sha256
    frame, _ = chat_of(folder)
    assert frame.before_system == "<|im_start|>system\n"
    assert frame.after_user == "<|im_end|>\n<|im_start|>assistant\n"


def test_smollm2_offsets_cut_at_the_bytes_of_each_token(user_cache: Path) -> None:
    tokenizer = tokenizer_of(open_folder(require_fetched(user_cache, "smollm2")))
    for text in [*sources()[:20], "naïve 日本語 🎉\u200d e\u0301 \r\n\t\x00 ﬁ𝕏"]:
        raw = text.encode()
        ids, starts = tokenizer.encode(text)
        ends = [*starts[1:], len(raw)]
        # each single token decodes to its bytes where those are whole characters
        for token, start, end in zip(ids, starts, ends, strict=True):
            piece = raw[start:end].decode("utf-8", errors="replace")
            if "\ufffd" not in piece:
                assert tokenizer.decode([token]) == piece
        assert tokenizer.decode(ids) == text
        assert tokenizer.count_batch([text]) == [len(ids)]


def test_smollm2_generates_sense(user_cache: Path) -> None:
    """The weights are not just equal to something, they work: greedy text of a trained model."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    path = require_fetched(user_cache, "smollm2")
    tokenizer = tokenizer_of(open_folder(path))
    model = transformers.AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32)
    ids, _ = tokenizer.encode("The capital of France is")
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0, -1]
    assert tokenizer.decode([int(logits.argmax())]) == " Paris"


def test_both_qwens_have_one_tokenizer_and_the_estimate_is_theirs(user_cache: Path) -> None:
    folders = [open_folder(require_fetched(user_cache, f"qwen2.5-coder-{size}b")) for size in ("0.5", "1.5")]
    assert info(folders[0]).tokenizer_digest == info(folders[1]).tokenizer_digest
    document = json.loads((folders[0].path / "tokenizer.json").read_bytes())
    shipped = files("agentctx.models").joinpath("data/merges.txt.xz").read_bytes()
    assert lzma.decompress(shipped) == merges_of(document)
    texts = sources()
    assert EstimateTokenizer().count_batch(texts) == tokenizer_of(folders[0]).count_batch(texts)
