"""Indexing: tensor[key], tensor[key] = value, gathers and scatters, and where a mask holds.

How many elements of a mask hold is known where its values are. Where they are not, a mask that came from one_hot holds evenly for
every class, and any other mask everywhere; either is noted among the session's assumptions.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from weighbridge.base.dtypes import BOOL, INT64, UINT8
from weighbridge.base.errors import DataDependent
from weighbridge.phantom.operations import (
    OPERATIONS,
    VALUE_LIMIT,
    broadcast_shapes,
    charge,
    integer,
    iterator_strides,
    operation,
    record,
    record_view,
)
from weighbridge.phantom.ops.creation import tensor as make_tensor
from weighbridge.phantom.ops.parts import select, slice_along
from weighbridge.phantom.ops.views import unsqueeze
from weighbridge.phantom.session import current
from weighbridge.phantom.tensor import Shape, Tensor, numel

Saved = Sequence[Tensor | None]
Needs = Sequence[bool]
Indices = dict[int, Tensor]

EVERY_ROW = "a mask whose values are unknown holds everywhere"
EVEN_ROUTING = "tokens are routed evenly to experts"


def held(mask: Tensor) -> int:
    """How many elements of a mask hold, or are taken to."""
    count = numel(mask.shape)
    if mask.value is not None and mask.value.size:
        repeats = 1
        for size, step in zip(mask.value.shape, mask.value.strides, strict=True):
            repeats *= size if step == 0 else 1
        once = mask.value[tuple(slice(0, 1) if step == 0 else slice(None) for step in mask.value.strides)]
        return repeats * int(np.count_nonzero(once))
    if mask.value is not None:
        return 0
    if mask.density is None:
        current().assume(EVERY_ROW)
        return count
    current().assume(EVEN_ROUTING)
    return math.ceil(count * mask.density)


# ---- reading


@operation("__getitem__", where=("method",))
def getitem(input: Tensor, key: Any) -> Tensor:
    """input[key]: views for numbers, slices, None and ...; a copy for tensors and lists."""
    view, indices = _applied(input, key)
    if indices:
        return index(view, indices)
    return record_view("alias", input, _alias(input), _passed) if view is input else view


def _alias(tensor: Tensor) -> Tensor:
    return Tensor(tensor.shape, tensor.dtype, tensor.storage, tensor.stride, tensor.value)


def _passed(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
    del saved, needs
    return [grad]


def _applied(input: Tensor, key: Any) -> tuple[Tensor, Indices]:
    """The view that a key's numbers and slices make, and the tensors that stay to index it (TensorIndexing.h)."""
    keys = _expanded(input, key)
    indices: Indices = {}
    view, place = input, 0
    for part in keys:
        if part is None or isinstance(part, bool | np.bool_):
            view = unsqueeze(view, place)
            if part is not None:
                indices[place] = make_tensor([0] if part else [], INT64)
            place += 1
            continue
        if place >= len(view.shape):
            raise IndexError(f"too many indices for tensor of dimension {len(input.shape)}")
        if isinstance(part, slice):
            view = _sliced(view, place, part)
            place += 1
        elif isinstance(part, Tensor) and not (not part.shape and part.dtype.kind == 1):
            indices[place] = part
            place += len(part.shape) if part.dtype in {BOOL, UINT8} else 1
        else:
            view = _selected(view, place, part)
    return view, indices


def _expanded(input: Tensor, key: Any) -> list[Any]:
    """A key as a list with lists made tensors and ... written out."""
    keys = [_index_tensor(part) for part in (key if isinstance(key, tuple) else (key,))]
    used = sum(len(part.shape) if isinstance(part, Tensor) and part.dtype in {BOOL, UINT8} else 1 for part in keys if _uses(part))
    for place, part in enumerate(keys):
        if part is Ellipsis:
            return [*keys[:place], *[slice(None)] * (len(input.shape) - used), *(part for part in keys[place + 1 :])]
    return keys


def _uses(part: Any) -> bool:
    return part is not None and part is not Ellipsis and not isinstance(part, bool | np.bool_)


def _index_tensor(part: Any) -> Any:
    if isinstance(part, (np.ndarray, list | tuple | range)):
        return make_tensor(part if isinstance(part, np.ndarray) else list(part))
    return part


def _sliced(view: Tensor, place: int, part: slice) -> Tensor:
    """A slice over everything is left out, as torch does."""
    start, stop, step = (None if bound is None else integer(bound) for bound in (part.start, part.stop, part.step))
    if step is not None and step <= 0:
        raise ValueError("step must be greater than zero")
    if start in {None, 0} and (stop is None or stop >= view.shape[place]) and step in {None, 1}:
        return view
    return slice_along(view, place, start, stop, step)


def _selected(view: Tensor, place: int, part: Any) -> Tensor:
    """One index. Which one it is does not matter to memory, so an unknown one is taken as the first."""
    if isinstance(part, Tensor) and part.value is None:
        chosen = select(view, place, 0)
        chosen.value = None
        return chosen
    return select(view, place, integer(part))


def index(input: Tensor, indices: Indices) -> Tensor:
    """Elements picked by tensors: one new tensor. Keeps the indices; backward adds into zeros."""
    source = input.shape
    shape, strides = _picked_layout(input, indices)
    out = Tensor(shape, input.dtype, None, strides)
    keys = list(indices.values())
    if input.value is not None and all(key.value is not None for key in keys) and numel(shape) <= VALUE_LIMIT:
        out.value = _picked_value(input, indices, shape)

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
        del needs
        zeros = Tensor(source, grad.dtype)
        charge("index", [zeros], [grad, *saved])
        return [zeros]

    if out.dtype.kind < 2:
        charge("index", [out], [out, *keys])
        return out
    return record("index", out, [input], keys, backward, kind="index")  # type: ignore[no-any-return] # record returns its outputs


def _picked_value(input: Tensor, indices: Indices, shape: Shape) -> Any:
    key = tuple(_as_index(indices[place]) if place in indices else slice(None) for place in _key_places(indices))
    assert input.value is not None
    value = input.value[key]
    return value if value.shape == shape else None


def _as_index(tensor: Tensor) -> Any:
    assert tensor.value is not None
    return tensor.value.astype(bool if tensor.dtype in {BOOL, UINT8} else np.int64)


def _key_places(indices: Indices) -> list[int]:
    """Places of a key: one for each index tensor and for each dimension in between that none covers."""
    covered = {place + offset for place, key in indices.items() for offset in range(1, _rank(key))}
    last = max(indices)
    return [place for place in range(last + 1) if place not in covered]


def _rank(key: Tensor) -> int:
    return len(key.shape) if key.dtype in {BOOL, UINT8} else 1


def _picked_layout(input: Tensor, indices: Indices) -> tuple[Shape, Shape | None]:
    """Shape and strides of index's result (ATen/native/TensorAdvancedIndexing.cpp: make_info)."""
    places: list[int] = []
    shapes: list[Shape] = []
    for place, key in sorted(indices.items()):
        if key.dtype in {BOOL, UINT8}:
            if key.shape != input.shape[place : place + len(key.shape)]:
                raise IndexError(f"The shape of the mask {list(key.shape)} does not match the indexed tensor {list(input.shape)}")
            shapes.append((held(key),))
            places += range(place, place + len(key.shape))
        elif key.dtype.kind == 1:
            shapes.append(key.shape)
            places.append(place)
        else:
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
    picked = broadcast_shapes(*shapes)
    rest = [place for place in range(len(input.shape)) if place not in places]
    front = places[0] if places == list(range(places[0], places[0] + len(places))) else 0
    shape = (*[input.shape[place] for place in rest[:front]], *picked, *[input.shape[place] for place in rest[front:]])
    layout = (*[input.stride[place] for place in rest[:front]], *[0] * len(picked), *[input.stride[place] for place in rest[front:]])
    whole = (*[0] * front, *_row_major(picked), *[0] * (len(rest) - front))
    return shape, iterator_strides(shape, [layout, whole])


def _row_major(shape: Shape) -> Shape:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(0 if size == 1 else step)
        step *= max(size, 1)
    return tuple(reversed(strides))


# ---- writing


@operation("__setitem__", where=("method",))
def setitem(input: Tensor, key: Any, value: Any) -> None:
    """input[key] = value, in place."""
    view, indices = _applied(input, key)
    _write_value(input, key, value)
    known = input.value
    tracked = current().grad_enabled and (input.requires_grad or (isinstance(value, Tensor) and value.requires_grad))
    if indices and isinstance(value, Tensor) and value.dtype is not input.dtype:
        value = OPERATIONS["to"](value, input.dtype)
    charge("copy", [view], [value])
    if tracked:
        _record_write(input, view, list(indices.values()), value if isinstance(value, Tensor) else None)
    input.value = known


def _write_value(input: Tensor, key: Any, value: Any) -> None:
    """Keep a small tensor's known values up to date, or forget them."""
    if input.value is None:
        return
    new = value.value if isinstance(value, Tensor) else value
    keys = [part.value if isinstance(part, Tensor) else part for part in _expanded(input, key)]
    unknown = new is None or any(part is None and isinstance(old, Tensor) for part, old in zip(keys, _expanded(input, key), strict=True))
    if unknown or numel(input.shape) > VALUE_LIMIT:
        input.value = None
        return
    copy = np.array(input.value)
    copy[tuple(_plain_slice(part) for part in keys)] = new
    input.value = copy


def _plain_slice(part: Any) -> Any:
    if not isinstance(part, slice):
        return part.astype(np.int64) if isinstance(part, np.ndarray) and part.dtype.kind == "f" else part
    return slice(*(None if bound is None else integer(bound) for bound in (part.start, part.stop, part.step)))


def _record_write(input: Tensor, view: Tensor, keys: list[Tensor], value: Tensor | None) -> None:
    """The gradient of a write: the tensor's own is copied with the written part zeroed, and the part goes to the value.

    A write through a view is CopySlices: the whole gradient is copied first, then its part.
    """
    before = tracked_alias(input)
    shape, part = None if value is None else value.shape, view.shape
    sliced = view is not input

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
        base = Tensor(grad.shape, grad.dtype) if sliced or needs[0] else None
        piece = Tensor(part, grad.dtype) if sliced else grad
        zeros = Tensor((shape or ()) if saved else part, grad.dtype) if needs[0] else None
        del zeros
        if needs[1] and saved:
            piece = Tensor(shape or (), grad.dtype)
        return [base if needs[0] else None, piece if needs[1] else None]

    record("copy_slices", input, [before, value], keys, backward, kind="copy")


def tracked_alias(tensor: Tensor) -> Tensor:
    """A tensor as it was on the tape before an operation changes it in place."""
    before = _alias(tensor)
    before.requires_grad, before.node, before.output_index, before.is_leaf = (
        tensor.requires_grad, tensor.node, tensor.output_index, tensor.is_leaf,
    )  # fmt: skip
    return before


@operation("nonzero", where=("torch", "method"))
def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Indices of the elements that are not zero."""
    rank = len(input.shape)
    found: np.ndarray[Any, np.dtype[Any]] | None = None
    count = held(input)
    if input.value is not None and numel(input.shape) <= 64 * VALUE_LIMIT:
        found = np.stack(np.nonzero(input.value)) if rank else np.empty((0, count))
    elif count == numel(input.shape) <= 4096:
        found = np.indices(input.shape).reshape(rank, -1)
    if not as_tuple:
        out = Tensor((count, rank), INT64, None, None, None if found is None else found.T.astype(np.int64))
        charge("index", [out], [input])
        return out
    lines = OPERATIONS["unbind"](nonzero(input), 1)
    return lines if rank else (Tensor((count,), INT64),)


@operation("argwhere")
def argwhere(input: Tensor) -> Tensor:
    """nonzero, one row an element."""
    return nonzero(input)  # type: ignore[no-any-return] # a tensor where as_tuple is off


@operation("equal", where=("torch", "method"))
def equal(input: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and the same known values."""
    if input.shape != other.shape:
        return False
    if input.value is None or other.value is None:
        raise DataDependent("torch.equal of tensors", "their values are unknown")
    return bool(np.array_equal(input.value, other.value))


@operation("allclose", where=("torch", "method"))
def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether two tensors' known values are close."""
    if input.value is None or other.value is None:
        raise DataDependent("torch.allclose of tensors", "their values are unknown")
    return bool(np.allclose(input.value, other.value, rtol, atol, equal_nan))
