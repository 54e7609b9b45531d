"""The V2 model runner: what a model state returns from `prepare_inputs` goes to the model, and only there.

So positions are replaced in the model's inputs; slots, attention metadata, sampler and drafters keep the contiguous
ones.
"""

from __future__ import annotations

import functools
from typing import Any

from agentctx.spec.engines.vllm_plugin import seams
from agentctx.spec.engines.vllm_plugin.contract import Spans
from agentctx.spec.engines.vllm_plugin.requests import spans_of
from agentctx.spec.engines.vllm_plugin.seams import Patch


def patches() -> tuple[Patch, ...]:
    return (seams.patch(seams.V2_STATE, _resolve_sparse),)


def _resolve_sparse(old: Any) -> Any:
    @functools.wraps(old)
    def resolve_model_state_cls(vllm_config: Any, model: Any) -> Any:
        return sparse_state(old(vllm_config, model))

    return resolve_model_state_cls


@functools.cache
def sparse_state(base: Any) -> Any:
    """A subclass of a ModelState that puts the tokens of sparse requests at their original positions."""
    import torch

    class SparseState(base):  # type: ignore[misc]
        def __init__(self, vllm_config: Any, model: Any, encoder_cache: Any, device: Any) -> None:
            super().__init__(vllm_config, model, encoder_cache, device)
            # Captured graphs read one address: a buffer of our own where the base has none.
            own = getattr(self, "rope_state", None) is None
            self._positions = torch.zeros(self.max_num_tokens, dtype=torch.int64, device=device) if own else None
            self._shift = torch.zeros(self.max_num_reqs, dtype=torch.int64, device=device)
            self._sparse: dict[int, tuple[Spans, Any]] = {}  # row -> spans, original positions on the device
            self._rows: dict[str, int] = {}

        def add_request(self, req_index: int, new_req_data: Any) -> None:
            super().add_request(req_index, new_req_data)
            spans = spans_of(new_req_data)
            self._sparse.pop(req_index, None)
            self._shift[req_index] = 0 if spans is None else spans.shift
            if spans is not None:
                self._sparse[req_index] = spans, self._on_device(spans)
                self._rows[new_req_data.req_id] = req_index

        def remove_request(self, req_id: str) -> None:
            super().remove_request(req_id)
            row = self._rows.pop(req_id, None)
            if row is not None and row in self._sparse:
                del self._sparse[row]
                self._shift[row] = 0

        def prepare_inputs(self, input_batch: Any, req_states: Any) -> dict[str, Any]:
            inputs = dict(super().prepare_inputs(input_batch, req_states))
            if self._positions is None:
                positions = inputs["positions"]  # (axes, padded tokens)
            else:
                n_padded = input_batch.num_tokens_after_padding
                positions = self._positions[:n_padded]
                positions.copy_(input_batch.positions[:n_padded])
            if self._sparse:
                self._place(positions, input_batch)
            inputs["positions"] = positions
            return inputs

        def prepare_dummy_inputs(self, num_reqs: int, num_tokens: int) -> dict[str, Any]:
            inputs = dict(super().prepare_dummy_inputs(num_reqs, num_tokens))
            if self._positions is not None:
                inputs["positions"] = self._positions[:num_tokens]
            return inputs

        def _place(self, positions: Any, batch: Any) -> None:
            """Shift every token by its row's shift, then write the prompt's own positions over it.

            How far a row has come is known on the device only (speculation); but within a prompt the host is exact.
            """
            n = batch.num_tokens
            edges = batch.query_start_loc[: batch.num_reqs + 1]
            lengths = (edges[1:] - edges[:-1]).long()
            shift = self._shift[batch.idx_mapping[: batch.num_reqs].long()]
            positions[..., :n] += torch.repeat_interleave(shift, lengths, output_size=n)
            for i in range(batch.num_reqs):
                found = self._sparse.get(int(batch.idx_mapping_np[i]))
                computed = int(batch.num_computed_tokens_np[i])
                if found is None or computed >= found[0].n_kept:
                    continue
                spans, table = found
                first = int(batch.query_start_loc_np[i])
                count = min(int(batch.num_scheduled_tokens[i]), spans.n_kept - computed)
                positions[..., first : first + count] = table[computed : computed + count]

        def _on_device(self, spans: Spans) -> Any:
            table = torch.from_numpy(spans.kept)
            if self.device.type == "cpu":
                return table
            return table.pin_memory().to(self.device, non_blocking=True)

    SparseState.__name__ = SparseState.__qualname__ = f"Sparse{base.__name__}"
    return SparseState
