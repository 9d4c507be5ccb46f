"""How much of a model's work fits a memory budget."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from meanfield import InputError

GIB = 1024**3
DEFAULT_BUDGET = GIB
# Larger passes don't make a processor faster, and what is written to memory between layers leaves its caches.
MOST_TOKENS_CPU = 1536
LEAST_TOKENS = 64
LOGIT_BYTES = 20  # a logit, as it is and in double precision, and the exponentials that are summed


@dataclass(frozen=True)
class Footprint:
    """Bytes of one token: in the key-value cache, in a layer at work, and where its predictions are wanted."""

    cached: int
    working: int
    predicted: int

    def tokens(self, budget: int, longest: int) -> int:
        """Tokens of a pass beside the cache of a sequence of `longest` tokens; InputError if there is no room."""
        each = 2 * self.cached + self.working
        room = (budget - longest * self.cached - self.predicted) // each
        if room < LEAST_TOKENS:
            least = longest * self.cached + self.predicted + LEAST_TOKENS * each
            raise InputError(
                f"memory_budget = {budget}: expected at least {least} bytes for prompts of {longest} tokens, beside "
                "the weights"
            )
        return room

    def passes(self, budget: int, longest: int) -> int:
        """Passes of `MOST_TOKENS_CPU` tokens side by side, each with a cache of its own; one at least."""
        each = MOST_TOKENS_CPU * (2 * self.cached + self.working) + longest * self.cached + self.predicted
        return max(1, budget // each)

    @property
    def wanted(self) -> int:
        """How many tokens more a prediction counts."""
        return -(-self.predicted // (2 * self.cached + self.working))


def footprint(model: Any) -> Footprint:
    """Of a causal language model of transformers, from its configuration and the cache of a pass over two tokens."""
    config = model.config.get_text_config()
    size = model.dtype.itemsize
    hidden = config.hidden_size
    heads = getattr(config, "num_attention_heads", 1)
    queries = heads * (getattr(config, "head_dim", None) or hidden // heads)
    inner = max(getattr(config, "intermediate_size", None) or 0, 4 * hidden)
    cached = _cached(model)
    # A residual stream, its norm and their copies; three arrays of the inner layer; queries, keys and values, attended
    # to in rows that repeat some of them, and outputs.
    working = size * (6 * hidden + 3 * inner + 8 * queries) + 4 * cached // config.num_hidden_layers
    return Footprint(cached, working, LOGIT_BYTES * config.vocab_size)


def _cached(model: Any) -> int:
    """Bytes that one token takes in the key-value cache; 0 where there is none."""
    import torch

    with torch.inference_mode():
        output = model(input_ids=torch.tensor([[0, 0]], device=model.device), use_cache=True)
    layers = getattr(getattr(output, "past_key_values", None), "layers", ())
    tensors = (getattr(layer, name, None) for layer in layers for name in ("keys", "values"))
    return sum(x.nbytes for x in tensors if x is not None) // 2


def check_budget(budget: object) -> None:
    """InputError unless it is None or a positive whole number."""
    if budget is not None and (isinstance(budget, bool) or not isinstance(budget, int) or budget < 1):
        raise InputError(f"memory_budget = {budget!r}: expected a number of bytes, as in 2 * 1024**3")
