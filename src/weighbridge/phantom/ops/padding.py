"""Padding: constant, and the three that repeat the edge."""

from typing import Any

import numpy as np

from weighbridge.phantom.operations import VALUE_LIMIT, operation, sizes
from weighbridge.phantom.ops.kernels import Gradients, Needs, Saved, apply, in_format_of, new, record
from weighbridge.phantom.tensor import Shape, Tensor, numel


def _padded_shape(tensor: Tensor, amounts: Shape) -> Shape:
    shape = list(tensor.shape)
    for index in range(len(amounts) // 2):
        shape[-1 - index] += amounts[2 * index] + amounts[2 * index + 1]
    if any(size < 0 for size in shape):
        raise RuntimeError(f"padding {list(amounts)} of a tensor of shape {list(tensor.shape)} leaves a negative size")
    return tuple(shape)


@operation("pad", "constant_pad_nd", where=("functional",))
def pad(input: Tensor, pad: Any, mode: str = "constant", value: Any = None) -> Tensor:
    """Amounts are given from the last dimension on, before and after."""
    amounts = sizes((tuple(pad),))
    if len(amounts) % 2 or len(amounts) // 2 > len(input.shape):
        raise RuntimeError(f"padding of {len(amounts)} numbers for a tensor of {len(input.shape)} dimensions")
    if mode == "circular":
        return _circular(input, amounts)
    return _constant(input, amounts, value) if mode == "constant" else _edges(input, amounts, mode)


def _constant(tensor: Tensor, amounts: Shape, value: Any) -> Tensor:
    shape = _padded_shape(tensor, amounts)
    out = in_format_of(tensor, shape, tensor.dtype)
    if tensor.value is not None and min(amounts, default=0) >= 0 and numel(shape) <= VALUE_LIMIT:
        width = [(0, 0)] * (len(shape) - len(amounts) // 2) + [
            (amounts[2 * i], amounts[2 * i + 1]) for i in reversed(range(len(amounts) // 2))
        ]
        out.value = np.pad(tensor.value, width, constant_values=value or 0)
    return record("pad", out, [tensor], [], _cropped(amounts), kind="copy")


def _cropped(amounts: Shape) -> Any:
    """constant_pad_nd's gradient is a padding by the negative amounts: views, and one copy at the end."""

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved, needs
        found = grad
        for index in range(len(amounts) // 2):
            before, after = amounts[2 * index : 2 * index + 2]
            dim = len(grad.shape) - 1 - index
            if before > 0 or after > 0:
                start = max(before, 0)
                found = apply("narrow", found, dim, start, found.shape[dim] - start - max(after, 0))
        rest = tuple(max(-amount, 0) for amount in amounts)
        return [_constant(found, rest, 0) if any(rest) else apply("clone", found)]

    return backward


def _edges(tensor: Tensor, amounts: Shape, mode: str) -> Tensor:
    shape, source = _padded_shape(tensor, amounts), tensor.shape
    if mode == "reflect":
        for index in range(len(amounts) // 2):
            if max(amounts[2 * index : 2 * index + 2]) >= source[-1 - index]:
                raise RuntimeError("Padding size should be less than the corresponding input dimension")

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved, needs
        return [new(source, grad.dtype)]

    kind = "reflection_pad" if mode == "reflect" else "replication_pad"
    return record(kind, in_format_of(tensor, shape, tensor.dtype), [tensor], [tensor], backward, kind="copy")


def _circular(tensor: Tensor, amounts: Shape) -> Tensor:
    source = tensor.shape
    out = new(_padded_shape(tensor, amounts), tensor.dtype)

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved, needs
        return [new(source, grad.dtype)]

    return record("circular_pad", out, [tensor], [], backward, kind="copy")
