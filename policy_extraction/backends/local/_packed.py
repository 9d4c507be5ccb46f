"""Linear layers in oneDNN's weight layout, for measurements on the CPU.

PyTorch sends float32 products to MKL, which uses half of the vector width on some processors. Packed weights made an
extraction twice as fast, at the same precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

MAX_BYTES = 2 * 1024**3  # the packed copy doubles the memory of the weights
TYPICAL_ROWS = 1024  # tokens in a batch, a hint for the layout


def packs(x: Any) -> bool:
    """Whether `product` can multiply this tensor."""
    import torch

    return x.dtype == torch.float32 and x.device.type == "cpu" and _available()


def product(x: Any, weight: Any) -> Any:
    """x · weightᵀ for float32 matrices on the CPU."""
    import torch

    return torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")


def _available() -> bool:
    import torch

    return torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")


@contextmanager
def packed_linears(model: Any) -> Iterator[None]:
    """Run the float32 linear layers of `model` with packed weights inside the block."""
    import torch

    layers = (
        []
        if not _available()
        else [
            module
            for module in model.modules()
            if type(module) is torch.nn.Linear
            and module.weight.dtype == torch.float32
            and module.weight.device.type == "cpu"
            and "forward" not in module.__dict__  # accelerate moves weights inside a forward of its own
        ]
    )
    if sum(layer.weight.nbytes for layer in layers) > MAX_BYTES:
        layers = []
    try:
        with suppress(AttributeError, RuntimeError):  # PyTorch's private operators may change
            for layer, forward in [(layer, _packed_forward(layer)) for layer in layers]:
                layer.forward = forward
        yield
    finally:
        for layer in layers:
            layer.__dict__.pop("forward", None)


def _packed_forward(layer: Any) -> Any:
    import torch

    weight = torch.ops.mkldnn._reorder_linear_weight(layer.weight.detach(), TYPICAL_ROWS)
    bias = None if layer.bias is None else layer.bias.detach()

    def forward(x: torch.Tensor) -> torch.Tensor:
        return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")

    return forward
