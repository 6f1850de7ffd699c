"""Reductions, scans and what picks extremes: sums, means, norms, cumulative sums, max and min."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weighbridge.base.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, INT64, DType
from weighbridge.phantom.operations import (
    OPERATIONS,
    VALUE_LIMIT,
    charge,
    dimension,
    follow,
    full_precision,
    iterator_strides,
    new_or_target,
    numpy_dtype,
    operation,
    propagate,
    record,
    to_dtype,
)
from weighbridge.phantom.ops.indexing import EVEN_ROUTING
from weighbridge.phantom.ops.views import expand, unsqueeze
from weighbridge.phantom.session import current
from weighbridge.phantom.tensor import Shape, Tensor, dtype_named, numel

Saved = Sequence[Tensor | None]
Needs = Sequence[bool]


class Pair:
    """(values, indices), as torch's named tuples: iterable, indexable and by name."""

    __slots__ = ("indices", "values")

    def __init__(self, values: Tensor, indices: Tensor) -> None:
        self.values = values
        self.indices = indices

    def __iter__(self) -> Any:
        return iter((self.values, self.indices))

    def __getitem__(self, index: int) -> Tensor:
        return (self.values, self.indices)[index]

    def __len__(self) -> int:
        return 2


def reduced_dimensions(tensor: Tensor, dim: Any) -> list[int]:
    """The dimensions to reduce, all of them where none are named."""
    if dim is None or (isinstance(dim, list | tuple) and not dim):
        return list(range(len(tensor.shape)))
    return sorted(dimension(tensor, index) for index in (dim if isinstance(dim, list | tuple) else (dim,)))


def reduced_shape(shape: Shape, dims: Sequence[int], keepdim: bool) -> Shape:
    """The shape after reducing `dims`."""
    return tuple(1 if index in dims else size for index, size in enumerate(shape) if keepdim or index not in dims)


@dataclass(frozen=True, slots=True)
class Reduction:
    """numpy's function, what is saved (`input`, `both` or nothing), autocast's rule, a fixed result type, the gradient's recipe.

    `autocast` is `dtype` where the kernel sums into float32, `cast` where the input is cast. The recipe is one as `follow` has
    it, with f and b of the input's shape, and r, m and n of the result's, in the gradient's dtype, as a mask and as integers.
    """

    function: Callable[..., Any] | None
    saves: str = ""
    autocast: str = ""
    dtype: DType | None = None
    keeps_integers: bool = False
    gradient: str = "F"


REDUCTIONS: dict[str, Reduction] = {
    "sum": Reduction(np.sum, autocast="dtype", gradient=""), "mean": Reduction(np.mean),
    "prod": Reduction(np.prod, "both", "dtype", gradient="fffffF"),
    "nansum": Reduction(np.nansum, "input", gradient="bbF"), "nanmean": Reduction(np.nanmean, "input", gradient="bbF"),
    "logsumexp": Reduction(None, "both", "cast", gradient="ffF"),
    "amax": Reduction(np.amax, "both", keeps_integers=True, gradient="bnrF"),
    "amin": Reduction(np.amin, "both", keeps_integers=True, gradient="bnrF"),
    "all": Reduction(np.all, dtype=BOOL), "any": Reduction(np.any, dtype=BOOL),
    "var": Reduction(None, "input", gradient="rfrF"), "std": Reduction(None, "both", gradient="rRm rfrF"),
    "count_nonzero": Reduction(np.count_nonzero, dtype=INT64), "quantile": Reduction(None, "input"),
}  # fmt: skip
_SUMS = frozenset({"sum", "prod", "nansum"})


def _result_dtype(name: str, rule: Reduction, tensor: Tensor, asked: DType | None) -> DType:
    if rule.dtype is not None:
        return rule.dtype
    if asked is not None:
        return asked
    if tensor.dtype.kind >= 2 or rule.keeps_integers:
        return tensor.dtype
    return INT64 if name in _SUMS else current().default_dtype


_IDEMPOTENT = frozenset({"all", "any", "amax", "amin", "mean"})
"""Reductions that repeated elements do not change, so that a broadcast constant of any size can be reduced."""


def _known(name: str, rule: Reduction, tensor: Tensor, dims: list[int], keepdim: bool, out: Tensor) -> None:
    if rule.function is None or tensor.value is None:
        return
    value = tensor.value
    if name in _IDEMPOTENT and value.size:
        value = value[tuple(slice(0, 1) if step == 0 else slice(None) for step in value.strides)]
    if value.size > 64 * VALUE_LIMIT:
        return
    result = np.asarray(rule.function(value, axis=tuple(dims) if dims else None, keepdims=True))
    whole = np.broadcast_to(result, reduced_shape(tensor.shape, dims, True))
    known = whole if keepdim else whole.reshape(out.shape)
    out.value = known.astype(numpy_dtype(out.dtype), copy=False)


def _reduction(name: str, rule: Reduction) -> Callable[..., Any]:
    def reduce(
        input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None, axis: Any = None, **options: Any
    ) -> Any:
        keepdim = bool(options.get("keepdims", keepdim))
        if isinstance(dim, bool):
            dim = None
        dims = reduced_dimensions(input, axis if dim is None else dim)
        tensor = full_precision(input) if rule.autocast == "cast" else input
        if rule.autocast == "dtype" and dtype is None and current().autocast is not None and input.dtype in {BFLOAT16, FLOAT16}:
            dtype = FLOAT32
        out = Tensor(reduced_shape(tensor.shape, dims, keepdim), _result_dtype(name, rule, tensor, dtype))
        _known(name, rule, tensor, dims, keepdim, out)
        if name == "sum" and tensor.density is not None and tensor.value is None and out.dtype is INT64 and len(out.shape) == 1:
            out.value = _even(tensor, out)
        if out.dtype.kind < 2:
            charge("reduction", [out], [tensor], numel(tensor.shape))
            return out
        saved = {"input": [tensor], "both": [tensor, out]}.get(rule.saves, [])
        backward = _spread(tensor, dims, keepdim) if name == "sum" else _gradient(tensor, rule.gradient, dims)
        return record(name, out, [tensor], saved, backward, flops=numel(tensor.shape), kind="reduction")

    return reduce


def _even(tensor: Tensor, out: Tensor) -> "np.ndarray[Any, np.dtype[Any]]":
    """How many ones each class has, where they are known only to be so many: evenly, as `held` takes them to be."""
    current().assume(EVEN_ROUTING)
    classes = max(1, out.shape[0])
    each, over = divmod(round(numel(tensor.shape) * (tensor.density or 0)), classes)
    return np.where(np.arange(out.shape[0]) < over, each + 1, each).astype(np.int64)


def _spread(tensor: Tensor, dims: list[int], keepdim: bool) -> Any:
    """The gradient of a sum: the sum's gradient seen at every element, without a copy."""
    shape, source = tensor.shape, tensor.dtype

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
        del saved, needs
        result = grad
        if not keepdim:
            for index in dims:
                result = unsqueeze(result, index)
        result = expand(result, *shape)
        return [result if result.dtype is source else to_dtype(result, source)]

    return backward


def _gradient(tensor: Tensor, recipe: str, dims: Sequence[int]) -> Any:
    """A gradient of the input's shape, made as a recipe says; the result's gradient has the first say in how it lies."""
    shape = tensor.shape

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
        del needs
        if len(grad.shape) == len(shape):
            spread = tuple(0 if place in dims else step for place, step in enumerate(grad.stride))
        else:
            steps = iter(grad.stride)
            spread = tuple(0 if place in dims else next(steps) for place in range(len(shape)))
        strides = iterator_strides(shape, [spread, *[source.stride for source in saved[:1] if source is not None]])
        results = []
        for statement in recipe.split():
            made = [_made(letter, shape, strides, grad) for letter in statement]
            results += [tensor for letter, tensor in zip(statement, made, strict=True) if letter.isupper()]
            del made
        return [results[-1]]

    return backward


def _made(letter: str, shape: Shape, strides: Shape | None, grad: Tensor) -> Tensor:
    dtype = {"b": BOOL, "m": BOOL, "n": INT64}.get(letter, grad.dtype)
    return Tensor(grad.shape, dtype) if letter in "rRmn" else Tensor(shape, dtype, None, strides)


def _filled(shape: Shape) -> Any:
    """A gradient of the input's shape in one new tensor."""

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
        del saved, needs
        return [Tensor(shape, grad.dtype)]

    return backward


for _name, _rule in REDUCTIONS.items():
    operation(_name)(_reduction(_name, _rule))


@operation("norm")
def norm(input: Tensor, p: Any = 2, dim: Any = None, keepdim: bool = False, dtype: DType | None = None, **options: Any) -> Tensor:
    """A vector norm, which autocast sums up in float32."""
    del p
    wanted = dtype
    if wanted is None and current().autocast is not None and input.dtype in {BFLOAT16, FLOAT16}:
        wanted = FLOAT32
    return _norm(input, options.get("axis", dim), keepdim, wanted)


@operation("vector_norm", "linalg_norm", "linalg_vector_norm", "linalg_matrix_norm", "matrix_norm")
def vector_norm(x: Tensor, ord: Any = 2, dim: Any = None, keepdim: bool = False, *, dtype: DType | None = None, **options: Any) -> Tensor:
    """A vector norm, whose input autocast casts to float32."""
    del ord
    return _norm(full_precision(x), options.get("axis", dim), keepdim, dtype)


def _norm(tensor: Tensor, dim: Any, keepdim: bool, dtype: DType | None) -> Tensor:
    dims = reduced_dimensions(tensor, dim)
    out = Tensor(reduced_shape(tensor.shape, dims, keepdim), dtype or tensor.dtype)
    flops = 2 * numel(tensor.shape)
    return record("norm", out, [tensor], [tensor, out], _gradient(tensor, "fmF", dims), flops=flops, kind="reduction")  # type: ignore[no-any-return] # record returns its outputs


@operation("dist")
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """The norm of a difference."""
    return norm(OPERATIONS["sub"](input, other), p)


@operation("var_mean", where=("torch",))
def var_mean(input: Tensor, dim: Any = None, keepdim: bool = False, **_: Any) -> tuple[Tensor, Tensor]:
    """Variance and mean, charged as two reductions."""
    return OPERATIONS["var"](input, dim, keepdim), OPERATIONS["mean"](input, dim, keepdim)


@operation("std_mean", where=("torch",))
def std_mean(input: Tensor, dim: Any = None, keepdim: bool = False, **_: Any) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean."""
    return OPERATIONS["std"](input, dim, keepdim), OPERATIONS["mean"](input, dim, keepdim)


def _argument(name: str, function: Callable[..., Any]) -> None:
    def pick(input: Tensor, dim: Any = None, keepdim: bool = False, **_: Any) -> Tensor:
        out = Tensor(reduced_shape(input.shape, reduced_dimensions(input, dim), keepdim), INT64)
        if input.value is not None and numel(input.shape) <= VALUE_LIMIT:
            out.value = np.asarray(function(input.value, axis=dim)).reshape(out.shape)
        charge("reduction", [out], [input])
        return out

    operation(name)(pick)


_argument("argmax", np.argmax)
_argument("argmin", np.argmin)


def _extreme(name: str, function: Callable[..., Any], elementwise: str) -> None:
    def extreme(input: Tensor, dim: Any = None, keepdim: bool = False, *, other: Any = None, **_: Any) -> Any:
        if isinstance(dim, Tensor) or other is not None:
            return OPERATIONS[elementwise](input, dim if isinstance(dim, Tensor) else other)
        if dim is None:
            out = Tensor((), input.dtype)
            if input.value is not None and input.value.size:
                out.value = np.asarray(function(input.value))
            if out.dtype.kind < 2:
                charge("reduction", [out], [input])
                return out
            return record(name, out, [input], [input, out], _gradient(input, "bmbbnrF", range(len(input.shape))), kind="reduction")
        dims = reduced_dimensions(input, dim)
        shape = reduced_shape(input.shape, dims, keepdim)
        values, indices = Tensor(shape, input.dtype), Tensor(shape, INT64)
        if input.value is not None and numel(input.shape) <= VALUE_LIMIT:
            values.value = np.asarray(function(input.value, axis=dims[0], keepdims=keepdim))
        if values.dtype.kind >= 2:
            record(name, values, [input], [indices], _filled(input.shape), kind="reduction")
        else:
            charge("reduction", [values, indices], [input])
        return Pair(values, indices)

    operation(name)(extreme)


_extreme("max", np.max, "maximum")
_extreme("min", np.min, "minimum")
_extreme("median", np.median, "")
_extreme("nanmedian", np.nanmedian, "")


@operation("aminmax", where=("torch", "method"))
def aminmax(input: Tensor, *, dim: Any = None, keepdim: bool = False) -> tuple[Tensor, Tensor]:
    """The least and the greatest."""
    return OPERATIONS["amin"](input, dim, keepdim), OPERATIONS["amax"](input, dim, keepdim)


@dataclass(frozen=True, slots=True)
class Scan:
    """A cumulative operation: numpy's function, what it saves, and the recipe of its gradient."""

    function: Callable[..., Any] | None
    saves: bool = False
    gradient: str = "ffF"


SCANS: dict[str, Scan] = {
    "cumsum": Scan(np.cumsum), "cumprod": Scan(np.cumprod, saves=True, gradient="fffffffF"),
    "logcumsumexp": Scan(None, saves=True, gradient="ffffffF"),
}  # fmt: skip


def _scan(name: str, rule: Scan) -> Callable[..., Tensor]:
    def scan(input: Tensor, dim: Any = None, *, dtype: Any = None, axis: Any = None, **_: Any) -> Tensor:
        low = current().autocast is not None and input.dtype in {BFLOAT16, FLOAT16}
        asked = dtype_named(dtype) if dtype is not None else FLOAT32 if low and name != "logcumsumexp" else None
        wanted = asked or (INT64 if input.dtype.kind < 2 else input.dtype)
        out = new_or_target(input.shape, wanted)
        place = dimension(input, axis if dim is None else dim)
        if rule.function is not None and input.shape:
            _accumulate(name, rule.function, out, input, place)
        if wanted.kind < 2:
            charge("scan", [out], [input])
            return out
        return record(name, out, [input], [input, out] if rule.saves else [], _scanned_back(rule, input.dtype), kind="scan")  # type: ignore[no-any-return] # record returns its outputs

    return scan


def _scanned_back(rule: Scan, source: DType) -> Any:
    def backward(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
        del saved, needs
        return [follow(rule.gradient, grad if grad.dtype is source else to_dtype(grad, source))]

    return backward


def _accumulate(name: str, function: Callable[..., Any], out: Tensor, tensor: Tensor, place: int) -> None:
    if numel(tensor.shape) <= VALUE_LIMIT:
        propagate(out, lambda value: function(value, axis=place), tensor)
    elif tensor.value is not None and name == "cumsum":
        out.value = _ramp(tensor, place)


def _ramp(tensor: Tensor, place: int) -> Any:
    """The running sum of a constant, broadcast, where the whole would be too large to keep."""
    value = tensor.value
    assert value is not None
    if any(step and size > 1 for step, size in zip(value.strides, value.shape, strict=True)):
        return None
    line = value[(0,) * value.ndim] * np.arange(1, tensor.shape[place] + 1)
    shape = [1] * value.ndim
    shape[place] = tensor.shape[place]
    return np.broadcast_to(line.reshape(shape), tensor.shape)


for _scan_name, _scan_rule in SCANS.items():
    operation(_scan_name)(_scan(_scan_name, _scan_rule))


@operation("cummax")
def cummax(input: Tensor, dim: int) -> Pair:
    """Running maxima and their indices."""
    return _running(input, dim, "cummax")


@operation("cummin")
def cummin(input: Tensor, dim: int) -> Pair:
    """Running minima and their indices."""
    return _running(input, dim, "cummin")


def _running(input: Tensor, dim: int, name: str) -> Pair:
    dimension(input, dim)
    values, indices = Tensor(input.shape, input.dtype), Tensor(input.shape, INT64)
    return Pair(record(name, values, [input], [indices], _filled(input.shape), kind="scan"), indices)


@operation("diff")
def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Any = None, append: Any = None) -> Tensor:
    """Differences of neighbours along a dimension."""
    place = dimension(input, dim)
    parts = [part for part in (prepend, input, append) if part is not None]
    tensor = OPERATIONS["cat"](parts, place) if len(parts) > 1 else input
    for _ in range(n):
        length = tensor.shape[place]
        tensor = OPERATIONS["sub"](OPERATIONS["narrow"](tensor, place, 1, length - 1), OPERATIONS["narrow"](tensor, place, 0, length - 1))
    return tensor
