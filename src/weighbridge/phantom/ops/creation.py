"""Tensors made from sizes and values: torch.empty, zeros, arange, tensor ... and joining tensors."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from weighbridge.base.dtypes import BOOL, COMPLEX64, FLOAT32, INT64, DType, promote
from weighbridge.phantom.operations import (
    VALUE_LIMIT,
    charge,
    dimension,
    integer,
    item,
    numpy_dtype,
    operation,
    preserved_strides,
    record,
    result_type,
    scalar_dtype,
    sizes,
)
from weighbridge.phantom.ops.casts import to
from weighbridge.phantom.ops.parts import slice_along, unbind
from weighbridge.phantom.ops.views import detach, expand, flatten, reshape, transpose, unsqueeze
from weighbridge.phantom.session import current
from weighbridge.phantom.tensor import Shape, Tensor, dtype_named, numel

Saved = Sequence[Tensor | None]
Needs = Sequence[bool]


def made(shape: Shape, dtype: Any, value: Any = None, requires_grad: bool = False) -> Tensor:
    """A new leaf; `value` is a number that fills it or a numpy array. Without a dtype it has the session's default."""
    chosen = dtype_named(dtype) if dtype is not None else current().default_dtype
    tensor = Tensor(shape, chosen)
    tensor.default_dtype = dtype is None
    if value is not None:
        array = np.asarray(value, dtype=numpy_dtype(chosen))
        tensor.value = array if array.shape == shape else np.broadcast_to(array, shape)
    tensor.requires_grad = requires_grad
    return tensor


_CONSTANTS: dict[str, Any] = {"empty": None, "zeros": 0, "ones": 1}


def _constant(name: str, value: Any) -> None:
    def create(*size: Any, dtype: Any = None, requires_grad: bool = False, **keywords: Any) -> Tensor:
        shape = sizes(size or (keywords.get("size", keywords.get("shape", ())),))
        return made(shape, dtype, value, requires_grad)

    operation(name, where=("torch",))(create)

    def create_like(input: Tensor, *, dtype: Any = None, requires_grad: bool = False, **_: Any) -> Tensor:
        tensor = Tensor(input.shape, dtype_named(dtype or input.dtype), None, preserved_strides(input))
        tensor.requires_grad = requires_grad
        if value is not None:
            tensor.value = np.broadcast_to(np.asarray(value, dtype=numpy_dtype(tensor.dtype)), input.shape)
        return tensor

    operation(f"{name}_like", where=("torch",))(create_like)

    def create_new(input: Tensor, *size: Any, dtype: Any = None, requires_grad: bool = False, **keywords: Any) -> Tensor:
        return made(sizes(size or (keywords.get("size", ()),)), dtype or input.dtype, value, requires_grad)

    operation(f"new_{name}", where=("method",))(create_new)


for _name, _value in _CONSTANTS.items():
    _constant(_name, _value)


def _filling(value: Any) -> tuple[Any, DType]:
    if isinstance(value, Tensor):
        return (None if value.value is None else item(value)), value.dtype
    return value, scalar_dtype(value)


@operation("full", where=("torch",))
def full(size: Any, fill_value: Any, *, dtype: Any = None, requires_grad: bool = False, **_: Any) -> Tensor:
    """A tensor filled with one number, whose type decides the dtype where none is asked."""
    value, own = _filling(fill_value)
    return made(sizes((size,)), dtype or own, value, requires_grad)


@operation("full_like", where=("torch",))
def full_like(input: Tensor, fill_value: Any, *, dtype: Any = None, **_: Any) -> Tensor:
    """Full with another tensor's shape and dtype."""
    return made(input.shape, dtype or input.dtype, _filling(fill_value)[0])


@operation("new_full", where=("method",))
def new_full(input: Tensor, size: Any, fill_value: Any, *, dtype: Any = None, **_: Any) -> Tensor:
    """Full with another tensor's dtype."""
    return made(sizes((size,)), dtype or input.dtype, _filling(fill_value)[0])


@operation("scalar_tensor", where=("torch",))
def scalar_tensor(s: Any, *, dtype: Any = None, **_: Any) -> Tensor:
    """A tensor without dimensions."""
    return made((), dtype, s)


@operation("empty_strided", where=("torch",))
def empty_strided(size: Any, stride: Any, *, dtype: Any = None, **_: Any) -> Tensor:
    """An empty tensor with given strides."""
    return Tensor(sizes((size,)), dtype_named(dtype or current().default_dtype), None, sizes((stride,)))


@operation("arange", "range", where=("torch",))
def arange(*bounds: Any, start: Any = 0, end: Any = None, step: Any = 1, dtype: Any = None, **_: Any) -> Tensor:
    """Numbers from start to end."""
    numbers = [item(bound) if isinstance(bound, Tensor) else bound for bound in bounds]
    first = numbers[0] if len(numbers) > 1 else start
    last = numbers[1] if len(numbers) > 1 else numbers[0] if numbers else end
    hop = numbers[2] if len(numbers) > 2 else step
    first, last, hop = (item(bound) if isinstance(bound, Tensor) else bound for bound in (first, last, hop))
    length = max(0, int(np.ceil((last - first) / hop)))
    floating = any(isinstance(bound, float) for bound in (first, last, hop))
    chosen = dtype_named(dtype) if dtype is not None else current().default_dtype if floating else INT64
    return made((length,), chosen, first + hop * np.arange(length) if length <= 64 * VALUE_LIMIT else None)


@operation("linspace", where=("torch",))
def linspace(start: Any, end: Any, steps: Any, *, dtype: Any = None, **_: Any) -> Tensor:
    """`steps` numbers from start to end, both included."""
    first, last = (item(bound) if isinstance(bound, Tensor) else bound for bound in (start, end))
    count = integer(steps)
    return made((count,), dtype, np.linspace(first, last, count) if count <= VALUE_LIMIT else None)


@operation("logspace", where=("torch",))
def logspace(start: Any, end: Any, steps: Any, base: float = 10.0, *, dtype: Any = None, **_: Any) -> Tensor:
    """`steps` powers of a base."""
    return made((integer(steps),), dtype, np.logspace(start, end, integer(steps), base=base))


@operation("eye", where=("torch",))
def eye(n: Any, m: Any = None, *, dtype: Any = None, **_: Any) -> Tensor:
    """The identity matrix."""
    rows, columns = integer(n), integer(n if m is None else m)
    return made((rows, columns), dtype, np.eye(rows, columns) if rows * columns <= VALUE_LIMIT else None)


@operation("tensor", "as_tensor", "asarray", "from_numpy", where=("torch",))
def tensor(data: Any, dtype: Any = None, *, requires_grad: bool = False, **_: Any) -> Tensor:
    """A tensor of given contents: numbers, nested lists, tensors or a numpy array."""
    if isinstance(data, Tensor):
        return detach(data) if dtype is None else to(data, dtype)
    if isinstance(data, np.ndarray):
        chosen = dtype_named(dtype) if dtype is not None else dtype_named(data.dtype.name)
        return made(data.shape, chosen, data, requires_grad)
    shape, leaves = _nested(data)
    natural = BOOL if not leaves else _common(leaves)
    chosen = dtype_named(dtype) if dtype is not None else current().default_dtype if natural.kind == 2 or not leaves else natural
    values = [
        None if isinstance(leaf, Tensor) and leaf.value is None else item(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves
    ]
    known = None if any(value is None for value in values) else np.array(values, dtype=numpy_dtype(chosen)).reshape(shape)
    result = made(shape, chosen, known, requires_grad)
    result.default_dtype = dtype is None and natural.kind == 2
    return result


def _common(leaves: Sequence[Any]) -> DType:
    result = BOOL
    for leaf in leaves:
        dtype = leaf.dtype if isinstance(leaf, Tensor) else COMPLEX64 if isinstance(leaf, complex) else scalar_dtype(leaf)
        result = promote(result, dtype)
    return result


def _nested(data: Any) -> tuple[Shape, list[Any]]:
    """Shape and leaves of nested sequences; ValueError where they are ragged."""
    if isinstance(data, Tensor) and data.shape:
        data = list(unbind(data))
    if not isinstance(data, list | tuple | range):
        return (), [data]
    parts = [_nested(part) for part in data]
    if not parts:
        return (0,), []
    if any(shape != parts[0][0] for shape, _ in parts):
        raise ValueError("expected sequences of equal length")
    return (len(parts), *parts[0][0]), [leaf for _, leaves in parts for leaf in leaves]


@operation("new_tensor", where=("method",))
def new_tensor(input: Tensor, data: Any, *, dtype: Any = None, **_: Any) -> Tensor:
    """Tensor with another tensor's dtype."""
    return tensor(data, dtype or input.dtype)


@operation("cat", "concat", "concatenate", where=("torch",))
def cat(tensors: Any = None, dim: Any = 0, *, axis: Any = None, out: Any = None) -> Tensor:
    """Tensors joined along a dimension."""
    del out
    parts = [part for part in tensors if part.shape != (0,)] or list(tensors)[:1]
    if not parts:
        raise RuntimeError("torch.cat(): expected a non-empty list of Tensors")
    place = dimension(parts[0], dim if axis is None else axis)
    for part in parts[1:]:
        same = len(part.shape) == len(parts[0].shape)
        if not same or any(a != b for i, (a, b) in enumerate(zip(part.shape, parts[0].shape, strict=True)) if i != place):
            raise RuntimeError(f"Sizes of tensors must match except in dimension {place}. Got {parts[0].shape} and {part.shape}")
    lengths = [part.shape[place] for part in parts]
    shape = list(parts[0].shape)
    shape[place] = sum(lengths)
    joined = Tensor(tuple(shape), result_type(*parts))
    if all(part.value is not None for part in parts) and numel(joined.shape) <= VALUE_LIMIT:
        joined.value = np.concatenate([part.value for part in parts if part.value is not None], place)

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
        del saved
        results: list[Tensor | None] = []
        start = 0
        for length, need in zip(lengths, needs, strict=True):
            results.append(slice_along(grad, place, start, start + length) if need else None)
            start += length
        return results

    if joined.dtype.kind < 2:
        charge("copy", [joined], parts)
        return joined
    return record("cat", joined, parts, [], backward, kind="copy")  # type: ignore[no-any-return] # record returns its outputs


@operation("stack", where=("torch",))
def stack(tensors: Any, dim: Any = 0, **_: Any) -> Tensor:
    """Tensors joined along a new dimension."""
    parts = list(tensors)
    place = dimension(len(parts[0].shape) + 1, dim)
    return cat([unsqueeze(part, place) for part in parts], place)


def _joined(name: str, rank: int, place: int) -> None:
    def join(tensors: Any) -> Tensor:
        parts = []
        for part in tensors:
            shaped = part
            while len(shaped.shape) < rank:
                shaped = unsqueeze(shaped, 0)
            parts.append(shaped)
        return cat(parts, 0 if name == "hstack" and len(parts[0].shape) == 1 else place)

    operation(name, where=("torch",))(join)


_joined("hstack", 1, 1)
_joined("vstack", 2, 0)
_joined("dstack", 3, 2)


@operation("meshgrid", where=("torch",))
def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple[Tensor, ...]:
    """Coordinate grids as views of their lines."""
    parts = list(tensors[0]) if len(tensors) == 1 and isinstance(tensors[0], list | tuple) else list(tensors)
    swapped = indexing == "xy" and len(parts) > 1
    if swapped:
        parts[0], parts[1] = parts[1], parts[0]
    shape = tuple(numel(part.shape) for part in parts)
    grids = []
    for index, part in enumerate(parts):
        line = [1] * len(parts)
        line[index] = shape[index]
        grids.append(expand(reshape(part, tuple(line)), *shape))
    if swapped:
        grids = [transpose(grid, 0, 1) for grid in grids]
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


@operation("cartesian_prod", where=("torch",))
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of the elements of lines."""
    grids = meshgrid(*tensors)
    return stack([flatten(grid) for grid in grids], 1)


@operation("block_diag", where=("torch",))
def block_diag(*tensors: Tensor) -> Tensor:
    """Matrices along a diagonal."""
    rows, columns = sum(part.shape[0] for part in tensors), sum(part.shape[1] for part in tensors)
    return Tensor((rows, columns), result_type(*tensors))


@operation("tril_indices", "triu_indices", where=("torch",))
def tril_indices(row: int, col: int, offset: int = 0, **_: Any) -> Tensor:
    """Row and column indices of a triangle."""
    indices = np.stack(np.tril_indices(row, offset, col))
    return made(indices.shape, INT64, indices)


_WINDOWS = ("hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window")


def _window(length: Any, *_: Any, dtype: Any = None, **__: Any) -> Tensor:
    return made((integer(length),), dtype or FLOAT32)


for _window_name in _WINDOWS:
    operation(_window_name, where=("torch",))(_window)
