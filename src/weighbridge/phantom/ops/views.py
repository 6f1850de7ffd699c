"""Views and copies: the operations that change how a storage is looked at, and those that copy because they cannot."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from weighbridge.base.dtypes import DType
from weighbridge.phantom.operations import (
    broadcast_shapes,
    dimension,
    operation,
    preserved_strides,
    record,
    record_view,
    sizes,
    sum_to_shape,
)
from weighbridge.phantom.tensor import Shape, Tensor, contiguous_strides, is_contiguous, numel

Saved = Sequence[Tensor | None]


def view_strides(tensor: Tensor, shape: Shape) -> Shape | None:
    """Strides under which `tensor` can be seen as `shape` without a copy, or None (ATen/TensorUtils.cpp: computeStride)."""
    if is_contiguous(tensor) or numel(tensor.shape) == 0:
        return contiguous_strides(shape)
    if not tensor.shape:
        return tuple([1] * len(shape))
    strides = [0] * len(shape)
    target = len(shape) - 1
    base = tensor.stride[-1]
    seen = placed = 1
    for index in range(len(tensor.shape) - 1, -1, -1):
        seen *= tensor.shape[index]
        breaks = index == 0 or (tensor.shape[index - 1] != 1 and tensor.stride[index - 1] != seen * base)
        if not breaks:
            continue
        while target >= 0 and (placed < seen or shape[target] == 1):
            strides[target] = placed * base
            placed *= shape[target]
            target -= 1
        if placed != seen:
            return None
        if index > 0:
            base = tensor.stride[index - 1]
            seen = placed = 1
    return tuple(strides) if target == -1 else None


def inferred(tensor: Tensor, shape: Shape) -> Shape:
    """`shape` with its -1 worked out; RuntimeError where the sizes do not fit."""
    total = numel(tensor.shape)
    if -1 in shape:
        known = -numel(shape)
        if known == 0 or total % known:
            raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {total}")
        shape = tuple(total // known if size == -1 else size for size in shape)
    if numel(shape) != total:
        raise RuntimeError(f"shape '{list(shape)}' is invalid for input of size {total}")
    return shape


def seen(tensor: Tensor, shape: Shape, stride: Shape, value: Any = None) -> Tensor:
    """Another look at a tensor's storage."""
    return Tensor(shape, tensor.dtype, tensor.storage, stride, value)


def _as_shape(shape: Shape) -> Any:
    def backward(saved: Saved, grad: Tensor, needs: Sequence[bool]) -> list[Tensor | None]:
        del saved, needs
        return [reshape(grad, shape)]

    return backward


@operation("reshape", "_unsafe_view")
def reshape(input: Tensor, *shape: Any, **keywords: Any) -> Tensor:
    """A view where the strides allow it, else a copy."""
    target = inferred(input, sizes(shape or (keywords["shape"],)))
    strides = view_strides(input, target)
    source = input if strides is not None else contiguous(input)
    out = seen(source, target, contiguous_strides(target) if strides is None else strides, _reshaped(input.value, target))
    return record_view("view", source, out, _as_shape(input.shape))


def _reshaped(value: Any, shape: Shape) -> Any:
    if value is None:
        return None
    constant = value.size and all(step == 0 or size == 1 for step, size in zip(value.strides, value.shape, strict=True))
    return np.broadcast_to(value[(0,) * value.ndim], shape) if constant else value.reshape(shape)


@operation("view", where=("method",))
def view(input: Tensor, *shape: Any, dtype: DType | None = None, size: Any = None) -> Tensor:
    """Another shape over the same storage, or the same bytes as another dtype."""
    wanted = dtype if dtype is not None else shape[0] if len(shape) == 1 and isinstance(shape[0], DType) else None
    if wanted is not None:
        return _bytes_as(input, wanted)
    target = inferred(input, sizes(shape if size is None else (size,)))
    strides = view_strides(input, target)
    if strides is None:
        raise RuntimeError("view size is not compatible with input tensor's size and stride. Use .reshape(...) instead.")
    out = seen(input, target, strides, _reshaped(input.value, target))
    return record_view("view", input, out, _as_shape(input.shape))


def _bytes_as(tensor: Tensor, dtype: DType) -> Tensor:
    width = tensor.shape[-1] * tensor.dtype.itemsize
    if width % dtype.itemsize:
        raise RuntimeError(f"cannot view {tensor.dtype.name} of size {tensor.shape[-1]} as {dtype.name}")
    out = Tensor((*tensor.shape[:-1], width // dtype.itemsize), dtype, tensor.storage)
    return record_view("view", tensor, out, _as_dtype(tensor.dtype)) if dtype.kind >= 2 else out


def _as_dtype(dtype: DType) -> Any:
    def backward(saved: Saved, grad: Tensor, needs: Sequence[bool]) -> list[Tensor | None]:
        del saved, needs
        return [_bytes_as(grad, dtype)]

    return backward


@operation("view_as", "reshape_as", where=("method",))
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """Reshape to another tensor's shape."""
    return reshape(input, other.shape)


@operation("permute")
def permute(input: Tensor, *dims: Any, **keywords: Any) -> Tensor:
    """Dimensions in another order."""
    order = [dimension(input, index) for index in sizes(dims or (keywords["dims"],))]
    if sorted(order) != list(range(len(input.shape))):
        raise RuntimeError(f"permute(dims): the dimensions {order} do not match a tensor of rank {len(input.shape)}")
    inverse = [order.index(index) for index in range(len(order))]
    out = seen(
        input,
        tuple(input.shape[index] for index in order),
        tuple(input.stride[index] for index in order),
        None if input.value is None else input.value.transpose(order),
    )

    def backward(saved: Saved, grad: Tensor, needs: Sequence[bool]) -> list[Tensor | None]:
        del saved, needs
        return [permute(grad, *inverse)]

    return record_view("permute", input, out, backward)


@operation("transpose", "swapaxes", "swapdims")
def transpose(input: Tensor, dim0: Any = 0, dim1: Any = 1, *, axis0: Any = None, axis1: Any = None) -> Tensor:
    """Two dimensions exchanged."""
    if not input.shape:
        return input
    first, second = dimension(input, dim0 if axis0 is None else axis0), dimension(input, dim1 if axis1 is None else axis1)
    shape, stride = list(input.shape), list(input.stride)
    shape[first], shape[second] = shape[second], shape[first]
    stride[first], stride[second] = stride[second], stride[first]
    out = seen(input, tuple(shape), tuple(stride), None if input.value is None else input.value.swapaxes(first, second))

    def backward(saved: Saved, grad: Tensor, needs: Sequence[bool]) -> list[Tensor | None]:
        del saved, needs
        return [transpose(grad, first, second)]

    return record_view("transpose", input, out, backward)


@operation("t")
def t(input: Tensor) -> Tensor:
    """The transpose of a matrix; a vector is itself."""
    return transpose(input, 0, 1) if len(input.shape) == 2 else input


@operation("adjoint")
def adjoint(input: Tensor) -> Tensor:
    """The last two dimensions exchanged."""
    return transpose(input, -2, -1)


@operation("movedim", "moveaxis")
def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Dimensions moved to other places."""
    moved = [dimension(input, i) for i in (source if isinstance(source, list | tuple) else (source,))]
    places = [dimension(input, i) for i in (destination if isinstance(destination, list | tuple) else (destination,))]
    order = [index for index in range(len(input.shape)) if index not in moved]
    for place, index in sorted(zip(places, moved, strict=True)):
        order.insert(place, index)
    return permute(input, *order)


@operation("unsqueeze")
def unsqueeze(input: Tensor, dim: Any = 0) -> Tensor:
    """A dimension of one put in."""
    rank = len(input.shape)
    place = dimension(rank + 1, dim)
    shape, stride = list(input.shape), list(input.stride)
    stride.insert(place, stride[place] * shape[place] if place < rank else 1)
    shape.insert(place, 1)

    def backward(saved: Saved, grad: Tensor, needs: Sequence[bool]) -> list[Tensor | None]:
        del saved, needs
        return [squeeze(grad, place)]

    out = seen(input, tuple(shape), tuple(stride), None if input.value is None else np.expand_dims(input.value, place))
    return record_view("unsqueeze", input, out, backward)


@operation("squeeze")
def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Dimensions of one taken out."""
    rank = range(len(input.shape))
    asked = rank if dim is None else [dimension(input, i) for i in (dim if isinstance(dim, list | tuple) else (dim,))]
    keep = [index for index in rank if input.shape[index] != 1 or index not in asked]
    shape = tuple(input.shape[index] for index in keep)
    out = seen(input, shape, tuple(input.stride[index] for index in keep), _reshaped(input.value, shape))
    source = input.shape

    def backward(saved: Saved, grad: Tensor, needs: Sequence[bool]) -> list[Tensor | None]:
        del saved, needs
        return [grad if grad.shape == source else reshape(grad, source)]

    return record_view("squeeze", input, out, backward)


@operation("expand", where=("method",))
def expand(input: Tensor, *shape: Any, size: Any = None, implicit: bool = False) -> Tensor:
    """Dimensions of one repeated without a copy."""
    del implicit
    target = sizes(shape if size is None else (size,))
    extra = len(target) - len(input.shape)
    if extra < 0:
        raise RuntimeError(f"expand: {len(target)} sizes for a tensor of rank {len(input.shape)}")
    old, strides = (1,) * extra + input.shape, (0,) * extra + input.stride
    target = tuple(before if after == -1 else after for before, after in zip(old, target, strict=True))
    if any(before not in {1, after} for before, after in zip(old, target, strict=True)):
        raise RuntimeError(f"The expanded size {target} must match the existing size {input.shape}")
    source = input.shape

    def backward(saved: Saved, grad: Tensor, needs: Sequence[bool]) -> list[Tensor | None]:
        del saved, needs
        return [sum_to_shape(grad, source)]

    stride = tuple(0 if before == 1 and after != 1 else step for before, after, step in zip(old, target, strides, strict=True))
    out = seen(input, target, stride, None if input.value is None else np.broadcast_to(input.value, target))
    return record_view("expand", input, out, backward)


@operation("expand_as", where=("method",))
def expand_as(input: Tensor, other: Tensor) -> Tensor:
    """Expand to another tensor's shape."""
    return expand(input, other.shape)


@operation("broadcast_to")
def broadcast_to(input: Tensor, *size: Any) -> Tensor:
    """Expand under numpy's name."""
    return expand(input, *size)


@operation("broadcast_tensors", where=("torch",))
def broadcast_tensors(*tensors: Tensor) -> tuple[Tensor, ...]:
    """All tensors expanded to their common shape."""
    shape = broadcast_shapes(*[tensor.shape for tensor in tensors])
    return tuple(expand(tensor, shape) for tensor in tensors)


@operation("flatten", "ravel")
def flatten(input: Tensor, start_dim: Any = 0, end_dim: Any = -1) -> Tensor:
    """Neighbouring dimensions joined."""
    if not input.shape:
        return reshape(input, 1)
    first, last = dimension(input, start_dim), dimension(input, end_dim)
    return reshape(input, (*input.shape[:first], numel(input.shape[first : last + 1]), *input.shape[last + 1 :]))


@operation("unflatten")
def unflatten(input: Tensor, dim: Any, sizes_: Any = None, **keywords: Any) -> Tensor:
    """One dimension split into several."""
    place = dimension(input, dim)
    parts = sizes((keywords.get("sizes", keywords.get("unflattened_size")) if sizes_ is None else sizes_,))
    if -1 in parts:
        known = -numel(parts)
        parts = tuple(input.shape[place] // known if part == -1 else part for part in parts)
    return reshape(input, input.shape[:place] + parts + input.shape[place + 1 :])


@operation("contiguous", where=("method",))
def contiguous(input: Tensor, *_: Any, memory_format: Any = None) -> Tensor:
    """Itself where it lies in row-major order, else a copy."""
    del memory_format
    return input if is_contiguous(input) else clone(input, memory_format="contiguous")


@operation("clone")
def clone(input: Tensor, memory_format: Any = None) -> Tensor:
    """A copy, laid out like the original where that is dense."""
    wanted = memory_format is not None and "preserve" not in str(memory_format)
    stride = contiguous_strides(input.shape) if wanted else preserved_strides(input)
    out = Tensor(input.shape, input.dtype, None, stride, input.value)
    return record("clone", out, [input], [], _identity, kind="copy")  # type: ignore[no-any-return] # record returns its outputs


def _identity(saved: Saved, grad: Tensor, needs: Sequence[bool]) -> list[Tensor | None]:
    del saved, needs
    return [grad]


@operation("detach", "alias")
def detach(input: Tensor) -> Tensor:
    """The same storage outside the tape."""
    return seen(input, input.shape, input.stride, input.value)
