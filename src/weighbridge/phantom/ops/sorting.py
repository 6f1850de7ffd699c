"""Order: sort, topk, unique and counting. Indices are int64; values flow back through a scatter into zeros."""

from collections.abc import Callable
from typing import Any

import numpy as np

from weighbridge.base.dtypes import INT32, INT64
from weighbridge.base.errors import DataDependent
from weighbridge.phantom import operations
from weighbridge.phantom.operations import VALUE_LIMIT, charge, dimension, integer, operation
from weighbridge.phantom.ops.kernels import Gradients, Needs, Saved, like, new, scratch
from weighbridge.phantom.ops.reductions import Pair
from weighbridge.phantom.tensor import Shape, Tensor, numel


def _scattered(shape: Shape) -> Any:
    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved, needs
        return [new(shape, grad.dtype)]

    return backward


def _picked(name: str, values: Tensor, indices: Tensor, source: Tensor) -> Pair:
    if values.dtype.kind >= 2:
        operations.record(name, values, [source], [indices], _scattered(source.shape), kind="sort")
    else:
        charge("sort", [values, indices], [source])
    return Pair(values, indices)


@operation("topk")
def topk(input: Tensor, k: Any, dim: int = -1, largest: bool = True, sorted: bool = True) -> Pair:
    """The k largest of a dimension; keeps their indices."""
    place, count = dimension(input, dim), integer(k)
    if input.shape and not 0 <= count <= input.shape[place]:
        raise RuntimeError("selected index k out of range")
    shape = tuple(count if index == place else size for index, size in enumerate(input.shape))
    values, indices = new(shape, input.dtype), new(shape, INT64)
    if input.value is not None and input.shape and numel(input.shape) <= VALUE_LIMIT:
        order = np.argsort(-input.value if largest else input.value, axis=place, kind="stable")
        indices.value = np.take(order, range(count), axis=place)
        values.value = np.take_along_axis(input.value, indices.value, place)
    del sorted
    return _picked("topk", values, indices, input)


@operation("sort", "msort")
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Pair:
    """A dimension in order; keeps the indices."""
    del stable
    place = dimension(input, dim)
    values, indices = like(input), like(input, INT64)
    if input.value is not None and input.shape and numel(input.shape) <= VALUE_LIMIT and input.dtype.kind > 0:
        order = np.argsort(-input.value if descending else input.value, axis=place, kind="stable")
        indices.value, values.value = order, np.take_along_axis(input.value, order, place)
    held = scratch(input.nbytes, indices.nbytes)
    del held
    return _picked("sort", values, indices, input)


@operation("argsort")
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The indices of a sort."""
    return sort(input, dim, descending, stable)[1]


@operation("kthvalue", "mode")
def kthvalue(input: Tensor, *arguments: Any, dim: int = -1, keepdim: bool = False, **_: Any) -> Pair:
    """One value of a dimension and its index."""
    place = dimension(input, arguments[1] if len(arguments) > 1 else dim)
    keep = arguments[2] if len(arguments) > 2 else keepdim
    shape = tuple(1 if index == place else size for index, size in enumerate(input.shape) if keep or index != place)
    return _picked("kthvalue", new(shape, input.dtype), new(shape, INT64), input)


@operation("searchsorted", where=("torch",))
def searchsorted(
    sorted_sequence: Tensor, input: Any, *, out_int32: bool = False, right: bool = False, side: Any = None, **_: Any
) -> Tensor:
    """Where values would stand in a sorted sequence."""
    shape = input.shape if isinstance(input, Tensor) else ()
    out = new(shape, INT32 if out_int32 else INT64)
    values = input.value if isinstance(input, Tensor) else input
    if sorted_sequence.value is not None and values is not None and sorted_sequence.value.ndim == 1:
        out.value = np.asarray(np.searchsorted(sorted_sequence.value, values, side or ("right" if right else "left")))
    charge("sort", [out], [sorted_sequence, input])
    return out


@operation("bucketize", where=("torch",))
def bucketize(input: Any, boundaries: Tensor, *, out_int32: bool = False, right: bool = False) -> Tensor:
    """The bucket that each value falls into."""
    return searchsorted(boundaries, input, out_int32=out_int32, right=right)


@operation("bincount")
def bincount(input: Tensor, weights: Any = None, minlength: int = 0) -> Tensor:
    """How often each integer occurs; its length hangs on the largest, unless that is known or minlength bounds it."""
    if input.value is not None:
        counts = np.bincount(input.value.reshape(-1).astype(np.int64), minlength=minlength)
        out = new(counts.shape, INT64 if weights is None else weights.dtype)
        out.value = counts if weights is None else None
        return out
    if not minlength:
        raise DataDependent("bincount without minlength", "its length is the largest value")
    return new((minlength,), INT64 if weights is None else weights.dtype)


@operation("histc")
def histc(input: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> Tensor:
    """Counts in even bins."""
    del min, max
    out = new((bins,), input.dtype)
    charge("sort", [out], [input])
    return out


def _unique(consecutive: bool) -> Callable[..., Any]:
    def unique(input: Tensor, *_: Any, return_inverse: bool = False, return_counts: bool = False, dim: Any = None, **__: Any) -> Any:
        if input.value is None:
            raise DataDependent("torch.unique", "how many values differ is not known")
        values = input.value if dim is not None else input.value.reshape(-1)
        if consecutive:
            starts = np.ones(len(values), bool)
            starts[1:] = (
                values[1:] != values[:-1] if values.ndim == 1 else (values[1:] != values[:-1]).any(axis=tuple(range(1, values.ndim)))
            )
            places = np.flatnonzero(starts)
            found = [
                values[places],
                (np.cumsum(starts) - 1).reshape(input.shape if dim is None else (-1,)),
                np.diff([*places, len(values)]),
            ]
        else:
            found = list(np.unique(values, return_inverse=True, return_counts=True, axis=dim))
            found[1] = found[1].reshape(input.shape) if dim is None else found[1].reshape(-1)
        results = [_known(found[0], input.dtype)]
        results += [_known(found[1], INT64)] if return_inverse else []
        results += [_known(found[2], INT64)] if return_counts else []
        return results[0] if len(results) == 1 else tuple(results)

    return unique


def _known(value: Any, dtype: Any) -> Tensor:
    out = new(value.shape, dtype)
    out.value = value
    return out


operation("unique")(_unique(consecutive=False))
operation("unique_consecutive")(_unique(consecutive=True))
