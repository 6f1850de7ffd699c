"""Randomness: dropout and drawing. A phantom's draws have no values."""

from typing import Any

from weighbridge.base.dtypes import BOOL, FLOAT32, INT64, DType
from weighbridge.phantom.operations import charge, elementwise_output, item, operation, sizes
from weighbridge.phantom.ops.kernels import Gradients, Needs, Saved, apply, like, new, record
from weighbridge.phantom.session import current
from weighbridge.phantom.tensor import Shape, Tensor, dtype_named, numel


def _probability(p: Any) -> float:
    return float(item(p)) if isinstance(p, Tensor) else float(p)


def _masked_gradient(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
    del needs
    return [elementwise_output([grad, saved[0]], grad.dtype)]


@operation("dropout", "native_dropout", where=("functional", "torch"))
def dropout(input: Tensor, p: Any = 0.5, training: bool = True, inplace: bool = False, **keywords: Any) -> Tensor:
    """One fused kernel on CUDA; keeps a mask of one byte an element. Nothing at p = 0 or in evaluation."""
    rate = _probability(p)
    training = bool(keywords.get("train", training))
    if not training or rate == 0 or numel(input.shape) == 0:
        return input
    if inplace or rate == 1:
        return _multiplied(input, like(input), in_place=inplace)
    out = elementwise_output([input], input.dtype)
    mask = Tensor(input.shape, BOOL, None, out.stride)
    return record("dropout", out, [input], [mask], _masked_gradient)


@operation("dropout_", where=("torch",))
def dropout_(input: Tensor, p: Any = 0.5, training: bool = True) -> Tensor:
    """Dropout in place: the noise has the input's dtype."""
    return dropout(input, p, training, inplace=True)


def _multiplied(input: Tensor, noise: Tensor, *, in_place: bool) -> Tensor:
    if not in_place:
        return apply("mul", input, noise)
    input.value = None
    return record("mul_", input, [input], [noise], _masked_gradient)


def _feature_dropout(input: Tensor, p: Any = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Whole channels at once: the noise is one number a channel."""
    if not training or _probability(p) == 0:
        return input
    noise = new((*input.shape[:2], *[1] * (len(input.shape) - 2)), input.dtype)
    return _multiplied(input, noise, in_place=inplace)


operation("dropout1d", "dropout2d", "dropout3d", where=("functional",))(_feature_dropout)
operation("feature_dropout", where=("torch",))(_feature_dropout)


@operation("alpha_dropout", "feature_alpha_dropout", where=("functional", "torch"))
def alpha_dropout(input: Tensor, p: Any = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """Dropout that keeps mean and variance: a noise to multiply with and a shift to add."""
    if not training or _probability(p) == 0:
        return input
    noise, shift = like(input), like(input)
    return apply("add", _multiplied(input, noise, in_place=inplace), shift)


def _shape(arguments: tuple[Any, ...], size: Any) -> Shape:
    return sizes((size,) if size is not None else arguments)


@operation("rand", "randn", where=("torch",))
def rand(*shape: Any, size: Any = None, dtype: Any = None, requires_grad: bool = False, **_: Any) -> Tensor:
    """A tensor drawn from a distribution."""
    out = new(_shape(shape, size), dtype_named(dtype) if dtype is not None else current().default_dtype)
    out.requires_grad = requires_grad
    return out


@operation("randint", where=("torch",))
def randint(*arguments: Any, size: Any = None, dtype: Any = None, **_: Any) -> Tensor:
    """Integers drawn evenly."""
    return new(sizes((size if size is not None else arguments[-1],)), dtype_named(dtype) if dtype is not None else INT64)


@operation("randperm", where=("torch",))
def randperm(n: int, dtype: Any = None, **_: Any) -> Tensor:
    """A random order."""
    return new((n,), dtype_named(dtype) if dtype is not None else INT64)


@operation("rand_like", "randn_like", "randint_like", where=("torch",))
def rand_like(input: Tensor, *_: Any, dtype: Any = None, **__: Any) -> Tensor:
    """A draw of another tensor's shape."""
    wanted: DType | None = dtype_named(dtype) if dtype is not None else None
    return like(input, wanted)


@operation("normal", where=("torch",))
def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, dtype: Any = None, **_: Any) -> Tensor:
    """A normal draw of a size, or around tensors of means and deviations."""
    tensors = [value for value in (mean, std) if isinstance(value, Tensor)]
    if tensors:
        return elementwise_output(tensors, tensors[0].dtype)
    return new(sizes((size,)), dtype_named(dtype) if dtype is not None else FLOAT32)


@operation("bernoulli", "poisson")
def bernoulli(input: Tensor, *_: Any, **__: Any) -> Tensor:
    """Draws with the probabilities in a tensor; no gradient flows."""
    out = like(input)

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved, needs
        return [like(grad)]

    return record("bernoulli", out, [input], [], backward)


@operation("multinomial")
def multinomial(input: Tensor, num_samples: int, replacement: bool = False, **_: Any) -> Tensor:
    """Indices drawn by weight."""
    del replacement
    out = new((*input.shape[:-1], num_samples), INT64)
    charge("random", [out], [input])
    return out


def _redraw(input: Tensor, *_: Any, **__: Any) -> Tensor:
    if input.is_leaf and input.requires_grad and current().grad_enabled:
        raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
    input.value = None
    charge("random", [input], [])
    return input


for _name in ("normal_", "uniform_", "bernoulli_", "exponential_", "random_", "geometric_", "cauchy_", "log_normal_"):
    operation(_name, where=("method",))(_redraw)
