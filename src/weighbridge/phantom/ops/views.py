"""Views and copies: the operations that change how a storage is looked at, and those that copy because they cannot."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from weighbridge.base.dtypes import COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, DType
from weighbridge.phantom.operations import (
    broadcast_shapes,
    dimension,
    integer,
    operation,
    preserved_strides,
    record,
    record_view,
    sizes,
    sum_to_shape,
    to_dtype,
)
from weighbridge.phantom.session import current
from weighbridge.phantom.tensor import Shape, Tensor, contiguous_strides, dtype_named, is_contiguous, numel

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


def _seen(tensor: Tensor, shape: Shape, stride: Shape, value: Any = None) -> Tensor:
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
    out = _seen(source, target, contiguous_strides(target) if strides is None else strides, _reshaped(input.value, target))
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
    out = _seen(input, target, strides, _reshaped(input.value, target))
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
    out = _seen(
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
    out = _seen(input, tuple(shape), tuple(stride), None if input.value is None else input.value.swapaxes(first, second))

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

    out = _seen(input, tuple(shape), tuple(stride), None if input.value is None else np.expand_dims(input.value, place))
    return record_view("unsqueeze", input, out, backward)


@operation("squeeze")
def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Dimensions of one taken out."""
    rank = range(len(input.shape))
    asked = rank if dim is None else [dimension(input, i) for i in (dim if isinstance(dim, list | tuple) else (dim,))]
    keep = [index for index in rank if input.shape[index] != 1 or index not in asked]
    shape = tuple(input.shape[index] for index in keep)
    out = _seen(input, shape, tuple(input.stride[index] for index in keep), _reshaped(input.value, shape))
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
    out = _seen(input, target, stride, None if input.value is None else np.broadcast_to(input.value, target))
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
    return _seen(input, input.shape, input.stride, input.value)


def slice_along(input: Tensor, dim: int, start: Any, stop: Any, step: Any = None) -> Tensor:
    """input[..., start:stop:step, ...] along one dimension."""
    bounds = slice(*(None if bound is None else integer(bound) for bound in (start, stop, step)))
    taken = range(*bounds.indices(input.shape[dim]))
    shape, stride = list(input.shape), list(input.stride)
    shape[dim] = len(taken)
    stride[dim] *= bounds.step or 1
    index = (slice(None),) * dim + (bounds,)
    out = _seen(input, tuple(shape), tuple(stride), None if input.value is None else input.value[index])
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
    out = _seen(input, tuple(shape), tuple(stride), _at(input.value, place, number))
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
        outputs.append(_seen(input, tuple(shape), input.stride, None if input.value is None else input.value[index]))
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
        from weighbridge.phantom.autograd import attach  # noqa: PLC0415 - the tape stands above the operations

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
    outputs = [_seen(input, tuple(shape), tuple(stride), _at(input.value, place, index)) for index in range(input.shape[place])]
    return _record_parts("unbind", input, outputs)


@operation("as_strided")
def as_strided(input: Tensor, size: Any, stride: Any, storage_offset: Any = 0) -> Tensor:
    """Any view of the storage."""
    del storage_offset
    out = _seen(input, sizes((size,)), sizes((stride,)))
    return record_view("as_strided", input, out, _scattered(input.shape))


@operation("unfold", where=("method",))
def unfold(input: Tensor, dimension_: Any, size: Any, step: Any) -> Tensor:
    """Overlapping windows of a dimension as a view."""
    place, width, hop = dimension(input, dimension_), integer(size), integer(step)
    shape = list(input.shape)
    shape[place] = (input.shape[place] - width) // hop + 1
    stride = list(input.stride)
    stride[place] *= hop
    out = _seen(input, (*shape, width), (*stride, input.stride[place]))
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
    return record_view("diagonal", input, _seen(input, shape, stride, value), _scattered(input.shape))


_NAMED_CASTS = {"float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "long": "int64", "int": "int32",
                "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool", "cfloat": "complex64"}  # fmt: skip


def _named_cast(name: str) -> Any:
    def cast(input: Tensor, *_: Any, **__: Any) -> Tensor:
        return to_dtype(input, name)

    return cast


for _method, _name in _NAMED_CASTS.items():
    operation(_method, where=("method",))(_named_cast(_name))


@operation("type_as", where=("method",))
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """A cast to another tensor's dtype."""
    return to_dtype(input, other.dtype)


@operation("to", "type", where=("method",))
def to(input: Tensor, *arguments: Any, dtype: Any = None, copy: bool = False, memory_format: Any = None, **_: Any) -> Tensor:
    """A cast; moving between devices is nothing here, since all phantoms live on one."""
    wanted = dtype
    for argument in arguments:
        if isinstance(argument, DType):
            wanted = argument
        elif isinstance(argument, Tensor):
            wanted = argument.dtype
    if isinstance(wanted, str):
        wanted = dtype_named(wanted.rsplit(".", maxsplit=1)[-1])
    if wanted is None or wanted is input.dtype:
        return clone(input) if copy else input
    cast = to_dtype(input, wanted)
    if memory_format == "contiguous_format":  # the cast's own copy is dense, only its order differs
        cast.stride = contiguous_strides(cast.shape)
    return cast


@operation("view_as_complex", where=("torch",))
def view_as_complex(input: Tensor) -> Tensor:
    """Pairs of reals seen as complex numbers."""
    stride = tuple(step // 2 for step in input.stride[:-1])
    dtype = COMPLEX128 if input.dtype is FLOAT64 else COMPLEX64
    out = Tensor(input.shape[:-1], dtype, input.storage, stride)
    return record_view("view_as_complex", input, out, lambda saved, grad, needs: [view_as_real(grad)])  # noqa: ARG005 - the engine's call


@operation("view_as_real", where=("torch",))
def view_as_real(input: Tensor) -> Tensor:
    """Complex numbers seen as pairs of reals."""
    stride = (*[step * 2 for step in input.stride], 1)
    dtype = FLOAT64 if input.dtype is COMPLEX128 else FLOAT32
    out = Tensor((*input.shape, 2), dtype, input.storage, stride)
    return record_view("view_as_real", input, out, lambda saved, grad, needs: [view_as_complex(grad)])  # noqa: ARG005 - the engine's call
