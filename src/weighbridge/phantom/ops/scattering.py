"""Gathers and scatters along a dimension, and by masks."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weighbridge.phantom.operations import (
    OPERATIONS,
    VALUE_LIMIT,
    broadcast_shapes,
    charge,
    dimension,
    elementwise_output,
    new_or_target,
    operation,
    propagate,
    record,
)
from weighbridge.phantom.ops.indexing import held, setitem
from weighbridge.phantom.tensor import Shape, Tensor, numel

Saved = Sequence[Tensor | None]
Needs = Sequence[bool]


@operation("index_put")
def index_put(input: Tensor, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
    """A copy with values written where indices say."""
    del accumulate
    out = OPERATIONS["empty_like"](input)
    keys = [key for key in indices if isinstance(key, Tensor)]
    return _scattered("index_put", out, input, values, keys)


@operation("index_put_", where=("method",))
def index_put_(input: Tensor, indices: Any, values: Any, accumulate: bool = False) -> Tensor:
    """index_put into the tensor itself."""
    del accumulate
    setitem(input, tuple(slice(None) if key is None else key for key in indices), values)
    return input


# ---- gathers and scatters


def _zeros_of(shape: Shape) -> Any:
    def backward(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
        del needs
        zeros = Tensor(shape, grad.dtype)
        charge("index", [zeros], [grad, *saved])
        return [zeros]

    return backward


@operation("gather")
def gather(input: Tensor, dim: Any, index: Tensor, *, sparse_grad: bool = False) -> Tensor:
    """Elements of a dimension by index; keeps the index and, though it needs only its shape, the input."""
    del sparse_grad
    place = dimension(input, dim)
    out = Tensor(index.shape, input.dtype)
    if numel(index.shape) <= VALUE_LIMIT and input.shape:
        propagate(out, lambda values, indices: np.take_along_axis(values, indices.astype(np.int64), place), input, index)
    if out.dtype.kind < 2:
        charge("index", [out], [out, index])
        return out
    return record("gather", out, [input], [index, input], _zeros_of(input.shape), kind="index")  # type: ignore[no-any-return] # record returns its outputs


@operation("take_along_dim")
def take_along_dim(input: Tensor, indices: Tensor, dim: Any = None) -> Tensor:
    """Gather with the other dimensions broadcast."""
    if dim is None:
        return gather(OPERATIONS["flatten"](input), 0, OPERATIONS["flatten"](indices))
    place = dimension(input, dim)
    around = broadcast_shapes(*[tuple(1 if axis == place else size for axis, size in enumerate(x.shape)) for x in (input, indices)])
    expanded = [
        OPERATIONS["expand"](x, tuple(x.shape[axis] if axis == place else size for axis, size in enumerate(around)))
        for x in (input, indices)
    ]
    return gather(expanded[0], place, expanded[1])


@operation("take")
def take(input: Tensor, index: Tensor) -> Tensor:
    """Elements of the flattened input."""
    return record("take", Tensor(index.shape, input.dtype), [input], [index, input], _zeros_of(input.shape), kind="index")  # type: ignore[no-any-return] # record returns its outputs


@operation("index_select")
def index_select(input: Tensor, dim: Any, index: Tensor) -> Tensor:
    """Slices of a dimension by index."""
    place = dimension(input, dim)
    shape = list(input.shape) or [1]
    shape[place] = numel(index.shape)
    out = Tensor(tuple(shape) if input.shape else (), input.dtype)
    if numel(out.shape) <= VALUE_LIMIT and input.shape:
        propagate(out, lambda values, indices: values[(slice(None),) * place + (indices.astype(np.int64).reshape(-1),)], input, index)
    if out.dtype.kind < 2:
        charge("index", [out], [out, index])
        return out
    return record("index_select", out, [input], [index], _zeros_of(input.shape), kind="index")  # type: ignore[no-any-return] # record returns its outputs


_KEEPS_SOURCE = frozenset({"index_add", "index_copy"})
_GRADIENT_ITSELF = frozenset({"scatter_add", "index_add"})


def _scattered(name: str, out: Tensor, input: Tensor, source: Any, keys: list[Tensor]) -> Tensor:
    value = source if isinstance(source, Tensor) else None
    shape = None if value is None else keys[0].shape if name.startswith("scatter") else value.shape

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
        del saved
        passed = grad if name in _GRADIENT_ITSELF else None
        own = (passed if passed is not None else elementwise_output([grad], grad.dtype)) if needs[0] else None
        return [own, Tensor(shape, grad.dtype) if needs[1] and shape is not None else None]

    if out.dtype.kind < 2:
        charge("index", [out], [input, source, *keys])
        return out
    saved: list[Tensor | None] = list(keys)
    if name in _KEEPS_SOURCE and value is not None and value.requires_grad:
        saved.append(value)
    if name == "scatter_reduce":
        saved += [input, value, out]
    return record(name, out, [input, value], saved, backward, kind="index")  # type: ignore[no-any-return] # record returns its outputs


def _is_zero(tensor: Tensor) -> bool:
    """Whether a tensor is known to be a constant of zeros."""
    value = tensor.value
    return (
        value is not None
        and value.size > 0
        and all(step == 0 or size == 1 for step, size in zip(value.strides, value.shape, strict=True))
        and not value[(0,) * value.ndim]
    )


def _scatter(name: str) -> Callable[..., Tensor]:
    def scatter(input: Tensor, dim: Any, index: Tensor, src: Any = None, reduce: Any = None, **keywords: Any) -> Tensor:
        del reduce
        source = next((keywords[key] for key in ("value", "source", "tensor") if key in keywords), src)
        place = dimension(input, dim)
        out = elementwise_output([input], input.dtype)
        known = all(item is not None for item in (input.value, index.value))
        if name == "scatter" and known and not isinstance(source, Tensor) and numel(input.shape) <= VALUE_LIMIT and input.shape:
            assert index.value is not None
            value = np.array(input.value)
            np.put_along_axis(value, index.value.astype(np.int64), source, place)
            out.value = value
        elif name == "scatter" and index.value is None and isinstance(source, int | float) and source == 1 and _is_zero(input):
            out.density = min(1.0, index.shape[place] / input.shape[place])  # a one_hot of several classes
        return _scattered(name, out, input, source, [index])

    return scatter


for _name in ("scatter", "scatter_add", "scatter_reduce", "index_add", "index_copy", "index_fill"):
    operation(_name, *(("index_reduce",) if _name == "scatter_reduce" else ()))(_scatter(_name))


@operation("masked_scatter")
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """The source's elements in turn where the mask holds."""
    out = new_or_target(broadcast_shapes(input.shape, mask.shape), input.dtype)
    shape = source.shape

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
        own = elementwise_output([grad, saved[0]], grad.dtype) if needs[0] else None
        return [own, Tensor(shape, grad.dtype) if needs[1] else None]

    if out.dtype.kind < 2:
        charge("index", [out], [input, mask, source])
        return out
    return record("masked_scatter", out, [input, source], [mask], backward, kind="index")  # type: ignore[no-any-return] # record returns its outputs


@operation("masked_select")
def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """The elements where the mask holds, in a line."""
    shape = broadcast_shapes(input.shape, mask.shape)
    count = held(mask) * (numel(shape) // max(1, numel(mask.shape)))
    out = Tensor((count,), input.dtype)
    if input.value is not None and mask.value is not None and numel(shape) <= VALUE_LIMIT:
        out.value = np.broadcast_to(input.value, shape)[np.broadcast_to(mask.value, shape).astype(bool)]
    if out.dtype.kind < 2:
        charge("index", [out], [input, mask])
        return out
    return record("masked_select", out, [input], [mask, input], _zeros_of(input.shape), kind="index")  # type: ignore[no-any-return] # record returns its outputs
