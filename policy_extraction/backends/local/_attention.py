"""Attention of the tokens of a tree to their predecessors in it.

All tokens of a pass follow a common prefix. A row is a path through the tree behind the prefix; its tokens see the
prefix and their predecessors in the row. Rows that share tokens repeat them in attention only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from policy_extraction.backends.local._packed import packs, product
from policy_extraction.backends.local._parallel import check_awaited
from policy_extraction.backends.local._source import transformers

NAME = "meanfield_tree"


class UnsupportedError(Exception):
    """The model's attention is not the plain causal attention that the tree needs."""


@dataclass
class Prefix:
    """Keys and values of the tokens before a pass, shape (heads, tokens, size), by layer."""

    capacity: int
    length: int = 0
    layers: dict[int, tuple[Any, Any]] = field(default_factory=dict)

    def write(self, new: dict[int, tuple[Any, Any]], place: slice, start: int) -> None:
        """Put the tokens `place` of `new` at `start`, and forget all tokens from there on."""
        self.length = start + place.stop - place.start
        for layer, both in new.items():
            if layer not in self.layers:
                self.layers[layer] = tuple(x.new_empty(x.shape[0], self.capacity, x.shape[2]) for x in both)
            for kept, x in zip(self.layers[layer], both, strict=True):
                kept[:, start : self.length] = x[:, place]


@dataclass
class Branches:
    """The input of one pass's attention, and the keys and values that it keeps in `new`."""

    prefix: Prefix
    rows: Sequence[Any]  # for each length, the token numbers of the rows of this length, shape (rows, length)
    home: Any  # for each token, its place in the concatenated rows
    kept: Any  # numbers of the tokens whose keys and values are kept
    longest: int  # tokens of the longest sequence; a window of this size hides nothing
    new: dict[int, tuple[Any, Any]] = field(default_factory=dict)


CURRENT: ContextVar[Branches] = ContextVar("branches")
"""The branches of the forward pass that runs in this thread."""


@contextmanager
def branching(model: Any) -> Iterator[None]:
    """Replace the attention of `model` inside the block by attention over branches."""
    transformers().AttentionInterface.register(NAME, _attend)
    configs = {id(c): c for c in (model.config, model.config.get_text_config())}.values()
    before = [config._attn_implementation for config in configs]
    try:
        for config in configs:
            config._attn_implementation = NAME
        yield
    finally:
        for config, name in zip(configs, before, strict=True):
            config._attn_implementation = name


def _attend(
    module: Any, query: Any, key: Any, value: Any, attention_mask: Any, scaling: float | None = None, **options: Any
) -> tuple[Any, None]:
    """An attention function as transformers calls it; arrays have the shape (1, heads, tokens, size)."""
    import torch

    check_awaited()
    branches = CURRENT.get()
    window = options.get("sliding_window")
    if attention_mask is not None or (window is not None and window < branches.longest):
        raise UnsupportedError("attention does not reach back to the beginning")
    if any(options.get(name) is not None for name in ("softcap", "s_aux", "position_bias")):
        raise UnsupportedError("attention scores are changed")
    if not getattr(module, "is_causal", True):
        raise UnsupportedError("attention looks ahead")
    layer, prefix = module.layer_idx, branches.prefix
    if len(branches.kept):
        branches.new[layer] = key[0][:, branches.kept], value[0][:, branches.kept]
    before = [x[:, : prefix.length] for x in (prefix.layers[layer] if prefix.length else (key[0], value[0]))]
    attend = _attend_packed if packs(query) and key.shape[-1] == value.shape[-1] else _attend_masked
    outputs = [attend(*(x[0][:, rows] for x in (query, key, value)), *before, scaling) for rows in branches.rows]
    return torch.cat(outputs)[branches.home][None], None


def _attend_masked(q: Any, k: Any, v: Any, keys: Any, values: Any, scaling: float | None) -> Any:
    """Attention in rows of shape (heads, rows, length, size); returns (rows x length, heads, size)."""
    import torch

    n_rows, length = q.shape[1:3]
    past, repeats = keys.shape[1], q.shape[0] // k.shape[0]
    k, v = (
        torch.cat([before[:, None].expand(-1, n_rows, -1, -1), x], 2).transpose(0, 1).repeat_interleave(repeats, 1)
        for before, x in ((keys, k), (values, v))
    )
    mask = torch.ones(length, past + length, dtype=torch.bool, device=q.device).tril(past)
    attention = torch.nn.functional.scaled_dot_product_attention
    return attention(q.transpose(0, 1), k, v, attn_mask=mask, scale=scaling).transpose(1, 2).flatten(0, 1)


def _attend_packed(q: Any, k: Any, v: Any, keys: Any, values: Any, scaling: float | None) -> Any:
    """The same with oneDNN's products, which are faster on the CPU than those in PyTorch's attention."""
    import torch

    n_heads, n_rows, length, size = q.shape
    n_shared, past = k.shape[0], keys.shape[1]
    q = q * (size**-0.5 if scaling is None else scaling)
    # Heads that share keys are rows of one product.
    q = q.view(n_shared, -1, n_rows, length, size).permute(2, 0, 1, 3, 4).reshape(n_rows, n_shared, -1, size)
    keys = torch.cat([keys, k[:, 0]], 1)
    values = torch.cat([values, v[:, 0]], 1).transpose(1, 2).contiguous()
    hidden = torch.full((length, length), -torch.inf).triu(1)
    out = torch.empty_like(q)
    for row in range(n_rows):
        keys[:, past:] = k[:, row]
        values[:, :, past:] = v[:, row].transpose(1, 2)
        for head in range(n_shared):
            scores = product(q[row, head], keys[head])
            scores.view(-1, length, past + length)[:, :, past:] += hidden
            out[row, head] = product(scores.softmax(-1), values[head])
    return out.view(n_rows, n_heads, length, size).transpose(1, 2).flatten(0, 1)
