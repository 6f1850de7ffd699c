"""What must be changed in torch and transformers while fake tensors stand in for a GPU's."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn

from weighbridge.simulate.attention import CudaAttention

TRACING_QUESTIONS = ("is_tracing", "is_fake_tensor")  # transformers builds masks under tracing that it never builds on a GPU


def _no(*_args: Any, **_kwargs: Any) -> bool:
    return False


def _apply(module: nn.Module, function: Callable[[Any], Any], recurse: bool = True) -> nn.Module:
    """nn.Module._apply without swap_tensors, which refuses tensors that something refers to weakly, as the tracker does."""
    if recurse:
        for child in module.children():
            _apply(child, function)
    for name, parameter in module._parameters.items():  # noqa: SLF001  # torch's own table
        if parameter is not None:
            with torch.no_grad():
                moved = function(parameter.data)
            if moved is not parameter.data and (moved.dtype != parameter.dtype or moved.device != parameter.device):
                module._parameters[name] = nn.Parameter(moved, requires_grad=parameter.requires_grad)  # noqa: SLF001  # torch's own table
    for name, buffer in module._buffers.items():  # noqa: SLF001  # torch's own table
        if buffer is not None:
            module._buffers[name] = function(buffer)  # noqa: SLF001  # torch's own table
    return module


def _plain_data(data: Any) -> Any:
    """Lists of one-element tensors as lists of numbers: torch.tensor would look past the fake mode for them."""
    if isinstance(data, list | tuple):
        return [_plain_data(item) for item in data]
    return data.item() if isinstance(data, torch.Tensor) and data.numel() == 1 else data


def _tensor(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def tensor(data: Any, **options: Any) -> torch.Tensor:
        return original(_plain_data(data) if isinstance(data, list | tuple) else data, **options)

    return tensor


@contextlib.contextmanager
def as_on_a_gpu(attention: CudaAttention) -> Iterator[None]:
    """Within: attention takes CUDA's kernels, transformers does not feel traced, modules can be moved."""
    changes: list[tuple[Any, str, Any]] = [
        (module, question, _no)
        for name, module in list(sys.modules.items())
        if name.startswith("transformers") and module is not None
        for question in TRACING_QUESTIONS
        if question in vars(module)
    ]
    changes += [
        (torch, "tensor", _tensor(torch.tensor)),
        (torch.nn.functional, "scaled_dot_product_attention", attention),
        (nn.Module, "_apply", _apply),
    ]
    saved = [(owner, name, getattr(owner, name)) for owner, name, _ in changes]
    for owner, name, value in changes:
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in saved:
            setattr(owner, name, value)
