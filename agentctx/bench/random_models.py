"""Models with random weights where a benchmark expects fetched ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

from agentctx.bench.shapes import Shape
from agentctx.models import memory
from agentctx.prompt import ModelInfo, Tokenizer
from agentctx.spec.engines.byte_tokenizer import BYTE_CHAT, ByteTokenizer
from agentctx.spec.engines.choice import Choice
from agentctx.spec.protocols import ChatFrame, Drafter, Engine

ENGINE = Choice("torch", "--random-weights")


@dataclass(slots=True)
class RandomModel:
    """Implements `pipeline.services.Model`. A byte is a token: there is no tokenizer to fetch.

    `n_tokens`: of the longest prompt.
    """

    shape: Shape
    n_tokens: int
    say: Callable[[str], None]
    address: None = None
    engine: Choice = ENGINE
    tokenizer: Tokenizer = field(default_factory=ByteTokenizer)
    chat: ChatFrame = BYTE_CHAT
    loaded: Engine | None = None

    @property
    def info(self) -> ModelInfo:
        return self.shape.info()

    def load_engine(self) -> Engine:
        from agentctx.spec.engines.torch_random import random_engine

        if self.loaded is None:
            self._require_memory(self.info, "the model")
            self.loaded = random_engine(
                self.shape.config(), self.info.name, tokenizer=self.tokenizer, chat=self.chat, info=self.info
            )
        return self.loaded

    def load_drafter(self, n_layers: int | None) -> Drafter:
        from agentctx.spec.engines.torch_random import random_drafter

        self._require_memory(self.shape.info(n_layers), "the drafter")
        return random_drafter(
            self.shape.config(), self.info.name, tokenizer=self.tokenizer, info=self.info, n_layers=n_layers
        )

    def _require_memory(self, info: ModelInfo, what: str) -> None:
        """Raises NotEnoughMemory."""
        from agentctx.spec.engines.torch_random import device, require

        where = device()
        need = memory.needed_bytes(
            info,
            n_tokens=self.n_tokens,
            weight_bytes=where.value_bytes,
            cache_bytes=where.value_bytes,
            chunk=where.chunk,
        )
        said = f"{what} {info.name}"
        if where.free is None:
            notes = memory.require(need, memory.available(), said)
        else:
            require(where, need, said)
            notes = ()
        self.say(f"making {said}: {need / 1e9:.1f} GB of memory, {where.dtype} on {where.name}")
        for note in notes:
            self.say(note)


def described(main: Shape, drafter: Shape) -> dict[str, Any]:
    """For the JSON: the shapes, and where they ran."""
    from agentctx.spec.engines.torch_random import SEED, device

    where = device()
    return {
        "model": asdict(main),
        "drafter": asdict(drafter),
        "seed": SEED,
        "dtype": where.dtype,
        "device": where.name,
        "peak_bytes": where.peak,
    }
