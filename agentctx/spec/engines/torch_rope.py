"""LongRoPE, held: short prompts and long ones have their own rotary frequencies.

transformers chooses them at each forward, by the last position in it, and writes them into the model. A prompt that
runs in chunks would begin with the short ones and end with the long ones, and two sessions would disturb each other.
Here they are chosen once, by the original length of the prompt, in a rotary embedding that belongs to the session.
"""

from __future__ import annotations

import copy
from typing import Any

from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from agentctx.spec.engines.folder import LONGROPE


def short_reach(rotary: Any) -> int | None:
    """Up to how many positions a rotary embedding turns by the short frequencies; None where it has only one set."""
    if rotary.rope_type != LONGROPE:
        return None
    return int(rotary.config.rope_parameters["original_max_position_embeddings"])


def held(rotary: Any, n_positions: int) -> Any:
    """A copy of a LongRoPE embedding that turns as for so many positions, however many it is given."""
    frequencies, scaling = ROPE_INIT_FUNCTIONS[LONGROPE](rotary.config, rotary.inv_freq.device, seq_len=n_positions)
    own = copy.copy(rotary)
    own.__dict__["_buffers"] = {**rotary._buffers, "inv_freq": frequencies}
    own.rope_type = "default"  # what transformers doesn't update
    own.attention_scaling = scaling
    return own
