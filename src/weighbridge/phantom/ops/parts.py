"""Views of a part of a tensor: slices, splits, windows and diagonals."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from weighbridge.phantom.autograd import attach
from weighbridge.phantom.operations import (
    dimension,
    integer,
    operation,
    record_view,
    sizes,
)
from weighbridge.phantom.ops.views import seen
from weighbridge.phantom.session import current
from weighbridge.phantom.tensor import Shape, Tensor

Saved = Sequence[Tensor | None]


def slice_along(input: Tensor, dim: int, start: Any, stop: Any, step: Any = None) -> Tensor:
    """input[..., start:stop:step, ...] along one dimension."""
    bounds = slice(*(None if bound is None else integer(bound) for bound in (start, stop, step)))
    taken = range(*bounds.indices(input.shape[dim]))
    shape, stride = list(input.shape), list(input.stride)
    shape[dim] = len(taken)
    stride[dim] *= bounds.step or 1
    index = (slice(None),) * dim + (bounds,)
    out = seen(input, tuple(shape), tuple(stride), None if input.value is None else input.value[index])
    return record_view("slice", input, out, _scattered(input.shape))


def _scattered(shape: Shape) -> Any:
    """The gradient of taking a part: zeros with the part's gradient copied in."""

    def backward(saved: Saved, grad: Tensor, needs: Sequence[bool]) -> list[Tensor | None]:
        del saved, needs
        return [Tensor(shape, grad.dtype)]

    return backward


def _at(value: Any, place: int, index: int) -> Any:
    """One index of a value's dimension, as a view: a broadcast constant must not become an array."""
    return None if value is None else value[(slice(None),) * place + (index, ...)]


@operation("select")
def select(input: Tensor, dim: Any, index: Any) -> Tensor:
    """One index of a dimension, which goes away."""
    place = dimension(input, dim)
    number = integer(index)
    if not -input.shape[place] <= number < input.shape[place]:
        raise IndexError(f"index {number} is out of bounds for dimension {place} with size {input.shape[place]}")
    shape, stride = list(input.shape), list(input.stride)
    del shape[place], stride[place]
    out = seen(input, tuple(shape), tuple(stride), _at(input.value, place, number))
    return record_view("select", input, out, _scattered(input.shape))


@operation("narrow")
def narrow(input: Tensor, dim: Any, start: Any, length: Any) -> Tensor:
    """`length` indices of a dimension from `start` on."""
    first = integer(start)
    return slice_along(input, dimension(input, dim), first, first + integer(length))


def _parted(input: Tensor, place: int, lengths: Sequence[int], name: str) -> tuple[Tensor, ...]:
    outputs = []
    position = 0
    for length in lengths:
        shape = list(input.shape)
        shape[place] = length
        index = (slice(None),) * place + (slice(position, position + length),)
        outputs.append(seen(input, tuple(shape), input.stride, None if input.value is None else input.value[index]))
        position += length
    return _record_parts(name, input, outputs)


def _record_parts(name: str, input: Tensor, outputs: list[Tensor]) -> tuple[Tensor, ...]:
    """Several views of one tensor: their gradients are gathered into one new tensor."""
    source, shapes = input.shape, [output.shape for output in outputs]
    stacked = name == "unbind"

    def backward(saved: Saved, grads: Any, needs: Sequence[bool]) -> list[Tensor | None]:
        """Parts without a gradient count as zeros, which torch makes before it joins them."""
        del saved, needs
        parts = [grads] if isinstance(grads, Tensor) else grads
        dtype = next(grad.dtype for grad in parts if grad is not None)
        zeros = [Tensor(() if stacked else shape, dtype) for shape, grad in zip(shapes, parts, strict=True) if grad is None]
        joined = Tensor(source, dtype)
        del zeros
        return [joined]

    for output in outputs:
        output.base = input if input.base is None else input.base
    if input.requires_grad and current().grad_enabled:
        attach(name, outputs, [input], [], backward)
    return tuple(outputs)


@operation("split", "split_with_sizes")
def split(input: Tensor, split_size: Any = None, dim: Any = 0, **keywords: Any) -> tuple[Tensor, ...]:
    """Parts of a given size, or of given sizes."""
    wanted = next((keywords[key] for key in ("split_size_or_sections", "split_sizes") if key in keywords), split_size)
    place = dimension(input, dim)
    total = input.shape[place]
    if isinstance(wanted, list | tuple):
        lengths = [integer(length) for length in wanted]
    elif isinstance(wanted, Tensor) and wanted.shape:
        lengths = [integer(part) for part in unbind(wanted)]
    else:
        step = integer(wanted)
        lengths = [min(step, total - start) for start in range(0, total, step)] if total else [0]
    if sum(lengths) != total:
        raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {total}, but got {lengths}")
    return _parted(input, place, lengths, "split")


@operation("chunk")
def chunk(input: Tensor, chunks: Any, dim: Any = 0) -> tuple[Tensor, ...]:
    """At most so many parts of equal size."""
    total = input.shape[dimension(input, dim)]
    return split(input, max(1, -(-total // integer(chunks))), dim)


@operation("tensor_split")
def tensor_split(input: Tensor, indices_or_sections: Any, dim: Any = 0) -> tuple[Tensor, ...]:
    """So many parts of nearly equal size, or parts between given places."""
    place = dimension(input, dim)
    total = input.shape[place]
    if isinstance(indices_or_sections, list | tuple) or (isinstance(indices_or_sections, Tensor) and indices_or_sections.shape):
        parts = unbind(indices_or_sections) if isinstance(indices_or_sections, Tensor) else indices_or_sections
        bounds = [0, *[min(total, integer(bound)) for bound in parts], total]
    else:
        count = integer(indices_or_sections)
        bounds = [index * (total // count) + min(index, total % count) for index in range(count + 1)]
    return tuple(slice_along(input, place, low, max(low, high)) for low, high in pairwise(bounds))


@operation("unbind")
def unbind(input: Tensor, dim: Any = 0) -> tuple[Tensor, ...]:
    """Every index of a dimension by itself."""
    place = dimension(input, dim)
    shape, stride = list(input.shape), list(input.stride)
    del shape[place], stride[place]
    outputs = [seen(input, tuple(shape), tuple(stride), _at(input.value, place, index)) for index in range(input.shape[place])]
    return _record_parts("unbind", input, outputs)


@operation("as_strided")
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: Any = 0) -> Tensor:
    """Any view of the storage."""
    del storage_offset
    out = seen(input, sizes((size,)), sizes((stride,)))
    return record_view("as_strided", input, out, _scattered(input.shape))


@operation("unfold", where=("method",))
def unfold(input: Tensor, *window: Any, **named: Any) -> Tensor:
    """Overlapping windows of a dimension as a view: `dimension`, `size` and `step`, in this order or by name."""
    where, size, step = (*window, *(named[name] for name in ("dimension", "size", "step")[len(window) :]))
    place, width, hop = dimension(input, where), integer(size), integer(step)
    shape = list(input.shape)
    shape[place] = (input.shape[place] - width) // hop + 1
    stride = list(input.stride)
    stride[place] *= hop
    out = seen(input, (*shape, width), (*stride, input.stride[place]))
    return record_view("unfold", input, out, _scattered(input.shape))


@operation("diagonal")
def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The diagonal of two dimensions, as the last one."""
    first, second = dimension(input, dim1), dimension(input, dim2)
    rows, columns = input.shape[first], input.shape[second]
    length = max(0, min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns))
    keep = [index for index in range(len(input.shape)) if index not in {first, second}]
    shape = (*[input.shape[index] for index in keep], length)
    stride = (*[input.stride[index] for index in keep], input.stride[first] + input.stride[second])
    value = None if input.value is None else np.diagonal(input.value, offset, first, second)
    return record_view("diagonal", input, seen(input, shape, stride, value), _scattered(input.shape))
