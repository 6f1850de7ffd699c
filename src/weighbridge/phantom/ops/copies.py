"""Copies in another arrangement: repeats, flips, triangles, diagonals, and writing a whole tensor."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weighbridge.base.dtypes import INT64
from weighbridge.base.errors import DataDependent
from weighbridge.phantom.operations import (
    OPERATIONS,
    VALUE_LIMIT,
    cast_value,
    charge,
    dimension,
    elementwise_output,
    integer,
    new_or_target,
    numpy_dtype,
    operation,
    preserved_strides,
    propagate,
    record,
    sizes,
)
from weighbridge.phantom.ops.indexing import tracked_alias
from weighbridge.phantom.ops.parts import diagonal, select
from weighbridge.phantom.ops.scattering import index_select
from weighbridge.phantom.ops.views import clone, expand, flatten, reshape, unsqueeze
from weighbridge.phantom.tensor import Shape, Tensor, numel

Saved = Sequence[Tensor | None]
Needs = Sequence[bool]


def _again(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
    """A backward that is the operation itself, undone: one new tensor."""
    del saved, needs
    return [elementwise_output([grad], grad.dtype)]


def _copied(name: str, out: Tensor, input: Tensor, function: Callable[[Any], Any], backward: Any = _again) -> Tensor:
    if numel(out.shape) <= VALUE_LIMIT:  # a large constant does not stay one under every rearrangement
        propagate(out, function, input)
    if out.dtype.kind < 2:
        charge("copy", [out], [input])
        return out
    return record(name, out, [input], [], backward, kind="copy")  # type: ignore[no-any-return] # record returns its outputs


@operation("repeat", where=("method",))
def repeat(input: Tensor, *repeats: Any, **keywords: Any) -> Tensor:
    """The tensor laid side by side with itself."""
    times = sizes(repeats or (keywords["repeats"],))
    if len(times) < len(input.shape):
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor")
    source, padded = input.shape, (1,) * (len(times) - len(input.shape)) + input.shape
    out = Tensor(tuple(count * size for count, size in zip(times, padded, strict=True)), input.dtype)

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
        del saved, needs
        return [Tensor(source, grad.dtype) if numel(grad.shape) != numel(source) else reshape(grad, source)]

    return _copied("repeat", out, input, lambda value: np.tile(value, times), backward)


@operation("tile")
def tile(input: Tensor, *dims: Any, **keywords: Any) -> Tensor:
    """repeat, with missing leading counts taken as one."""
    times = sizes(dims or (keywords["dims"],))
    return repeat(input, (1,) * (len(input.shape) - len(times)) + times)


@operation("repeat_interleave")
def repeat_interleave(input: Tensor, repeats: Any = None, dim: Any = None, *, output_size: Any = None) -> Tensor:
    """Every slice of a dimension several times in a row."""
    counts = repeats.value if isinstance(repeats, Tensor) else repeats
    if repeats is None:
        return Tensor((_total(input, output_size),), INT64)
    source = input if dim is not None else flatten(input)
    place = dimension(source, 0 if dim is None else dim)
    if isinstance(repeats, Tensor) and numel(repeats.shape) != 1:
        index = Tensor((_total(repeats, output_size),), INT64)
        if counts is not None:
            index.value = np.repeat(np.arange(len(counts)), counts)
        return index_select(source, place, index)
    if counts is None:
        raise DataDependent("repeat_interleave", "how often to repeat is not known")
    times = integer(repeats)
    shape = (*source.shape[: place + 1], times, *source.shape[place + 1 :])
    copied = clone(expand(unsqueeze(source, place + 1), shape), memory_format="contiguous")
    return flatten(copied, place, place + 1)


def _total(repeats: Tensor, output_size: Any) -> int:
    if output_size is not None:
        return integer(output_size)
    if repeats.value is None:
        raise DataDependent("repeat_interleave", "the sum of the counts is not known")
    return int(repeats.value.sum())


@operation("flip")
def flip(input: Tensor, *dims: Any, **keywords: Any) -> Tensor:
    """Dimensions in reverse."""
    axes = tuple(dimension(input, axis) for axis in sizes(dims or (keywords["dims"],)))
    out = Tensor(input.shape, input.dtype, None, preserved_strides(input))
    return _copied("flip", out, input, lambda value: np.flip(value, axes))


@operation("fliplr")
def fliplr(input: Tensor) -> Tensor:
    """Columns in reverse."""
    return flip(input, 1)


@operation("flipud")
def flipud(input: Tensor) -> Tensor:
    """Rows in reverse."""
    return flip(input, 0)


@operation("rot90")
def rot90(input: Tensor, k: int = 1, dims: Any = (0, 1)) -> Tensor:
    """A quarter turn, k times."""
    first, second = (dimension(input, axis) for axis in dims)
    turned = flip(input, second) if k % 2 else input
    return OPERATIONS["transpose"](turned, first, second) if k % 2 else flip(input, first, second) if k % 4 else clone(input)


@operation("roll")
def roll(input: Tensor, shifts: Any, dims: Any = None) -> Tensor:
    """Elements moved round."""
    steps = tuple(integer(step) for step in (shifts if isinstance(shifts, list | tuple) else (shifts,)))
    axes = None if dims is None or dims == () else tuple(dims) if isinstance(dims, list | tuple) else (dims,)
    held = input
    for _ in range(len(steps) - 1):
        held = Tensor(input.shape, input.dtype)
    out = Tensor(input.shape, input.dtype)
    del held
    return _copied("roll", out, input, lambda value: np.roll(value, steps if axes else steps[0], axes))


def _triangle(name: str, function: Callable[..., Any]) -> None:
    def triangle(input: Tensor, diagonal: Any = 0) -> Tensor:
        offset = integer(diagonal)
        return _copied(name, new_or_target(input.shape, input.dtype), input, lambda value: function(value, offset))

    operation(name)(triangle)


_triangle("tril", np.tril)
_triangle("triu", np.triu)


@operation("diag_embed")
def diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The last dimension as the diagonal of two new ones."""
    length = input.shape[-1] + abs(offset)
    rank = len(input.shape) + 1
    first, second = sorted((dim1 % rank, dim2 % rank))
    shape = list(input.shape[:-1])
    shape.insert(first, length)
    shape.insert(second, length)

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
        del saved, needs
        return [diagonal(grad, offset, dim1, dim2)]

    out = Tensor(tuple(shape), input.dtype)
    return record("diag_embed", out, [input], [], backward, kind="copy")  # type: ignore[no-any-return] # record returns its outputs


@operation("diag")
def diag(input: Tensor, diagonal_: int = 0, **keywords: Any) -> Tensor:
    """A line as a diagonal matrix, or a matrix's diagonal, copied."""
    offset = keywords.get("diagonal", diagonal_)
    return diag_embed(input, offset) if len(input.shape) == 1 else clone(diagonal(input, offset), memory_format="contiguous")


@operation("trace")
def trace(input: Tensor) -> Tensor:
    """The sum of a matrix's diagonal."""
    return OPERATIONS["sum"](diagonal(input))  # type: ignore[no-any-return] # the registry is untyped


@operation("real", where=("torch",))
def real(input: Tensor) -> Tensor:
    """Real parts as a view."""
    return select(OPERATIONS["view_as_real"](input), -1, 0) if input.dtype.is_complex else input


@operation("imag", where=("torch",))
def imag(input: Tensor) -> Tensor:
    """Imaginary parts as a view."""
    return select(OPERATIONS["view_as_real"](input), -1, 1)


@operation("conj", "conj_physical", "resolve_conj", "resolve_neg")
def conj(input: Tensor) -> Tensor:
    """The conjugate, a mark on a view."""
    return OPERATIONS["view"](input, input.shape) if input.dtype.is_complex else input


# ---- a whole tensor written


@operation("copy_", where=("method",))
def copy_(input: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Another tensor's contents in this one; the gradient flows to the source."""
    del non_blocking
    input.value = src.value if src.value is None else np.broadcast_to(cast_value(src.value, numpy_dtype(input.dtype)), input.shape)
    before = tracked_alias(input)
    if input.dtype.kind < 2:
        charge("copy", [input], [src])
        return input
    return record("copy_", input, [before, src], [], _overwritten, kind="copy")  # type: ignore[no-any-return] # record returns its outputs


def _overwritten(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
    """No gradient, as zeros, to what was there before; all of it to what was written."""
    del saved
    return [Tensor(grad.shape, grad.dtype) if needs[0] else None, *([grad] if needs[1:] == [True] else [None] * (len(needs) - 1))]


@operation("fill_", where=("method",))
def fill_(input: Tensor, value: Any) -> Tensor:
    """One number everywhere."""
    number = value.value if isinstance(value, Tensor) else value
    known = None if number is None else np.broadcast_to(np.asarray(number, dtype=numpy_dtype(input.dtype)).reshape(()), input.shape)
    input.value = known
    if input.dtype.kind < 2 or not input.requires_grad:
        charge("copy", [input], [])
        return input
    return record("fill_", input, [tracked_alias(input)], [], _overwritten, kind="copy")  # type: ignore[no-any-return] # record returns its outputs


@operation("zero_", where=("method",))
def zero_(input: Tensor) -> Tensor:
    """Zero everywhere."""
    return fill_(input, 0)


@operation("fill", where=("torch",))
def fill(input: Tensor, value: Any) -> Tensor:
    """A tensor like this one with one number everywhere."""
    return fill_(Tensor(input.shape, input.dtype, None, preserved_strides(input)), value)


@operation("set_", "resize_as_", where=("method",))
def set_(input: Tensor, source: Tensor | None = None, *_: Any) -> Tensor:
    """Take over another tensor's storage, or an empty one."""
    other = Tensor((0,), input.dtype) if source is None else source
    input.shape, input.stride, input.storage, input.value = other.shape, other.stride, other.storage, other.value
    return input


@operation("resize_", where=("method",))
def resize_(input: Tensor, *shape: Any) -> Tensor:
    """Another size; a larger one takes a new storage."""
    target: Shape = sizes(shape)
    if numel(target) * input.dtype.itemsize > input.storage.nbytes:
        grown = Tensor(target, input.dtype)
        input.storage = grown.storage
    resized = Tensor(target, input.dtype, input.storage)
    input.shape, input.stride, input.value = resized.shape, resized.stride, None
    return input


@operation("trapezoid", "trapz", where=("torch",))
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: float = 1.0, dim: int = -1) -> Tensor:
    """The area under a curve."""
    place = dimension(y, dim)
    length = y.shape[place]
    left, right = OPERATIONS["narrow"](y, place, 0, length - 1), OPERATIONS["narrow"](y, place, 1, length - 1)
    width: Any = OPERATIONS["diff"](x, 1, place if len(x.shape) > 1 else -1) if x is not None else dx
    area = OPERATIONS["mul"](OPERATIONS["add"](left, right), width)
    return OPERATIONS["div"](OPERATIONS["sum"](area, place), 2.0)  # type: ignore[no-any-return] # the registry is untyped
