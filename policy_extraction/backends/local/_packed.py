"""Linear layers in oneDNN's weight layout, for measurements on the CPU.

PyTorch sends float32 products to MKL, which uses half of the vector width on some processors. Packed weights made an
extraction twice as fast, at the same precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

MAX_BYTES = 2 * 1024**3  # the packed copy doubles the memory of the weights
TYPICAL_ROWS = 1024  # tokens in a batch, a hint for the layout


def packs(x: Any) -> bool:
    """Whether `product` can multiply this tensor."""
    import torch

    known = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    return known and x.dtype == torch.float32 and x.device.type == "cpu"


def product(x: Any, weight: Any, bias: Any = None) -> Any:
    """x · weightᵀ + bias for float32 matrices on the CPU."""
    import torch

    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


@contextmanager
def packed_linears(model: Any) -> Iterator[None]:
    """Run the float32 linear layers of `model` with packed weights inside the block."""
    import torch

    linear = [layer for layer in model.modules() if type(layer) is torch.nn.Linear and packs(layer.weight)]
    # accelerate moves weights inside a forward of its own
    layers = [layer for layer in linear if "forward" not in layer.__dict__]
    if sum(layer.weight.nbytes for layer in layers) > MAX_BYTES:
        layers = []
    try:
        with suppress(AttributeError, RuntimeError):  # PyTorch's private operators may change
            weights = [torch.ops.mkldnn._reorder_linear_weight(x.weight.detach(), TYPICAL_ROWS) for x in layers]
            for layer, weight in zip(layers, weights, strict=True):
                bias = None if layer.bias is None else layer.bias.detach()
                layer.forward = partial(product, weight=weight, bias=bias)
        yield
    finally:
        for layer in layers:
            layer.__dict__.pop("forward", None)
