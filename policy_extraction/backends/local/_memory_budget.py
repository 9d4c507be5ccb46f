"""The size of passes that fit a memory budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from meanfield import InputError
from policy_extraction.backends.local._batches import cache_of, read

GIB = 1024**3
DEFAULT_BUDGET = GIB
# Larger passes are no faster on a processor, and their arrays do not fit its caches.
MOST_TOKENS_CPU = 1536
LEAST_TOKENS = 64
LOGIT_BYTES = 20  # a logit in single and in double precision, and its exponential


@dataclass(frozen=True)
class Footprint:
    """Bytes that one token takes."""

    cached: int  # in the key-value cache
    working: int  # in a running layer
    predicted: int  # if its predictions are wanted

    def tokens(self, budget: int, longest: int) -> int:
        """Tokens that a pass may have beside the cache of `longest` tokens; InputError if there is no room."""
        each = 2 * self.cached + self.working
        room = (budget - longest * self.cached - self.predicted) // each
        if room < LEAST_TOKENS:
            least = longest * self.cached + self.predicted + LEAST_TOKENS * each
            raise InputError(
                f"memory_budget = {budget}: expected at least {least} bytes for prompts of {longest} tokens, besides "
                "the weights"
            )
        return room

    def passes(self, budget: int, longest: int) -> int:
        """Concurrent passes of `MOST_TOKENS_CPU` tokens, each with its own cache; at least one."""
        each = MOST_TOKENS_CPU * (2 * self.cached + self.working) + longest * self.cached + self.predicted
        return max(1, budget // each)

    @property
    def wanted(self) -> int:
        """The number of tokens that a prediction counts for."""
        return -(-self.predicted // (2 * self.cached + self.working))


def footprint(model: Any) -> Footprint:
    """The footprint of a model, from its configuration and the cache of a pass over two tokens."""
    import torch

    with torch.inference_mode():
        layers = getattr(cache_of(read(model, [(0, 0)], None, ())), "layers", ())
    tensors = (getattr(layer, name, None) for layer in layers for name in ("keys", "values"))
    cached = sum(x.nbytes for x in tensors if x is not None) // 2
    config = model.config.get_text_config()
    size = model.dtype.itemsize
    hidden = config.hidden_size
    heads = getattr(config, "num_attention_heads", 1)
    queries = heads * (getattr(config, "head_dim", None) or hidden // heads)
    inner = max(getattr(config, "intermediate_size", None) or 0, 4 * hidden)
    # The residual stream, its norm and their copies; three arrays of the inner layer; queries, keys, values and
    # outputs, which attention partly repeats in rows.
    working = size * (6 * hidden + 3 * inner + 8 * queries) + 4 * cached // config.num_hidden_layers
    return Footprint(cached, working, LOGIT_BYTES * config.vocab_size)
