"""Norms: their statistics, what they keep and the gradients their kernels write.

cuDNN's reserve space for batch norm (only with channels_last) isn't modelled.
"""

from typing import Any

from weighbridge.base.dtypes import BFLOAT16, FLOAT16, FLOAT32, DType
from weighbridge.phantom.operations import operation
from weighbridge.phantom.ops.kernels import (
    Gradients,
    Needs,
    Saved,
    apply,
    formatted,
    in_format_of,
    like,
    new,
    product,
    record,
    scratch,
    single,
)
from weighbridge.phantom.tensor import Shape, Tensor, is_contiguous, numel


def _accumulating(dtype: DType) -> DType:
    return FLOAT32 if dtype in {FLOAT16, BFLOAT16} else dtype


def _normalized(shape: Any) -> Shape:
    return tuple(shape) if isinstance(shape, list | tuple) else (shape,)


def _check_tail(tensor: Tensor, normalized_shape: Shape) -> None:
    if tensor.shape[len(tensor.shape) - len(normalized_shape) :] != normalized_shape:
        raise RuntimeError(
            f"Given normalized_shape={list(normalized_shape)}, expected input with shape [*, ...], but got {list(tensor.shape)}"
        )


@operation("layer_norm", "native_layer_norm", where=("torch", "functional"))
def layer_norm(
    input: Tensor, normalized_shape: Any, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5, *_: Any
) -> Tensor:
    """(x - mean) / std over the last dimensions; keeps the input and float32 mean and reciprocal deviation. float32 under autocast."""
    del eps
    x, scale, shift = single(input), single(weight), single(bias)
    tail = _normalized(normalized_shape)
    _check_tail(x, tail)
    held = scratch(0 if is_contiguous(x) else x.nbytes)
    out = new(x.shape, x.dtype)
    rows = x.shape[: len(x.shape) - len(tail)] + (1,) * len(tail)
    mean, rstd = new(rows, _accumulating(x.dtype)), new(rows, _accumulating(x.dtype))
    del held

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        copied = scratch(0 if is_contiguous(grad) else grad.nbytes)
        found: Gradients = [
            new(tensor.shape, tensor.dtype) if need and tensor is not None else None for tensor, need in zip(saved[:3], needs, strict=True)
        ]
        del copied
        return found

    flops = 8 * numel(x.shape)
    return record("layer_norm", out, [x, scale, shift], [x, scale, shift, mean, rstd], backward, flops=flops, kind="normalization")


@operation("rms_norm", where=("torch", "functional"))
def rms_norm(input: Tensor, normalized_shape: Any, weight: Tensor | None = None, eps: Any = None) -> Tensor:
    """X / rms(x): one kernel where input and weight have one dtype, else the composite in float32."""
    del eps
    x, scale = single(input), single(weight)
    tail = _normalized(normalized_shape)
    _check_tail(x, tail)
    if scale is not None and scale.dtype is not x.dtype:
        return _composite_rms_norm(x, tail, scale)
    held = scratch(0 if is_contiguous(x) else x.nbytes)
    out = new(x.shape, x.dtype)
    rstd = new(x.shape[: len(x.shape) - len(tail)] + (1,) * len(tail), _accumulating(x.dtype))
    del held

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        copied = scratch(0 if is_contiguous(grad) else grad.nbytes)
        found: Gradients = [
            new(tensor.shape, tensor.dtype) if need and tensor is not None else None for tensor, need in zip(saved[:2], needs, strict=True)
        ]
        del copied
        return found

    return record("rms_norm", out, [x, scale], [x, scale, rstd], backward, flops=5 * numel(x.shape), kind="normalization")


def _composite_rms_norm(x: Tensor, tail: Shape, weight: Tensor) -> Tensor:
    wide = apply("to", x, _accumulating(x.dtype))
    dims = tuple(range(-len(tail), 0))
    mean = apply("add", apply("mean", apply("pow", wide, 2), dims, True), 1e-6)
    out = apply("to", apply("mul", wide, apply("rsqrt", mean)), x.dtype)
    return apply("mul", out, weight)


@operation("group_norm", where=("torch", "functional"))
def group_norm(input: Tensor, num_groups: int, weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5) -> Tensor:
    """A norm of each group of channels; keeps the contiguous input and statistics of a group. float32 under autocast."""
    del eps
    x, scale, shift = apply("contiguous", single(input)), single(weight), single(bias)
    batch, channels = x.shape[:2]
    if channels % num_groups:
        raise RuntimeError(f"Expected number of channels in input to be divisible by num_groups, but got {list(x.shape)} and {num_groups}")
    out = new(x.shape, x.dtype)
    mean, rstd = new((batch, num_groups), x.dtype), new((batch, num_groups), x.dtype)
    held = scratch(batch * channels * 4, batch * channels * 4)
    del held

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        sums = scratch(batch * channels * 4, batch * channels * 4, 0 if is_contiguous(grad) else grad.nbytes)
        found: Gradients = [
            new(tensor.shape, tensor.dtype) if need and tensor is not None else None for tensor, need in zip(saved[:3], needs, strict=True)
        ]
        del sums
        return found

    flops = 8 * numel(x.shape)
    return record("group_norm", out, [x, scale, shift], [x, scale, shift, mean, rstd], backward, flops=flops, kind="normalization")


@operation("batch_norm", where=("torch", "functional"))
def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    *_: Any,
    **__: Any,
) -> Tensor:
    """A norm of each channel over the batch; keeps the input, and its statistics while training."""
    x = formatted(input) if len(input.shape) > 2 else input
    channels = x.shape[1]
    out = in_format_of(x, x.shape, x.dtype)
    held = channels if training else 0
    statistics = [new((held,), _accumulating(x.dtype)), new((held,), _accumulating(x.dtype))]

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del grad
        source = saved[0]
        assert source is not None
        affine = (_accumulating(source.dtype),) * 2
        found: Gradients = [in_format_of(source, source.shape, source.dtype) if needs[0] else None]
        return found + [new((channels,), dtype) if need else None for dtype, need in zip(affine, needs[1:], strict=True)]

    saved = [x, weight, running_mean, running_var, *statistics]
    return record("batch_norm", out, [x, weight, bias], saved, backward, flops=8 * numel(x.shape), kind="normalization")


@operation("instance_norm", where=("torch", "functional"))
def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    *_: Any,
    **__: Any,
) -> Tensor:
    """batch_norm over a batch of one with every sample's channels beside each other, as torch lowers it."""
    batch, channels = input.shape[:2]
    tensors = [
        None if tensor is None else apply("reshape", apply("expand", tensor, (batch, channels)), (batch * channels,))
        for tensor in (running_mean, running_var, weight, bias)
    ]
    flat = apply("view", apply("contiguous", input), (1, batch * channels, *input.shape[2:]))
    out = batch_norm(flat, tensors[0], tensors[1], tensors[2], tensors[3], use_input_stats)
    return apply("view", out, input.shape)


@operation("normalize", where=("functional",))
def normalize(input: Tensor, p: float = 2.0, dim: Any = 1, eps: float = 1e-12, out: Any = None) -> Tensor:
    """A tensor over its norm."""
    del out
    length = apply("clamp_min", apply("norm", input, p, dim, True), eps)
    return apply("div", input, apply("expand_as", length, input))


@operation("local_response_norm", where=("functional",))
def local_response_norm(input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> Tensor:
    """A norm over neighbouring channels."""
    squares = apply("unsqueeze", apply("mul", input, input), 1)
    rank = len(input.shape)
    if rank == 3:
        padded = apply("pad", squares, (0, 0, size // 2, (size - 1) // 2))
        mean = apply("squeeze", apply("avg_pool2d", padded, (size, 1), 1), 1)
    else:
        flat = apply("view", squares, (input.shape[0], 1, input.shape[1], input.shape[2], product(input.shape[3:])))
        padded = apply("pad", flat, (0, 0, 0, 0, size // 2, (size - 1) // 2))
        mean = apply("view", apply("squeeze", apply("avg_pool3d", padded, (size, 1, 1), 1), 1), input.shape)
    scale = apply("pow", apply("add", apply("mul", mean, alpha), k), beta)
    return apply("div", input, scale)


@operation("_weight_norm", where=("torch",))
def weight_norm(v: Tensor, g: Tensor, dim: int = 0) -> Tensor:
    """G v / |v| in one kernel for the first or last dimension; keeps v, g and the norms."""
    del dim
    out = like(v)
    norms = new(g.shape, _accumulating(g.dtype))

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del grad
        return [like(s) if s is not None and need else None for s, need in zip(saved[:2], needs, strict=True)]

    return record("_weight_norm", out, [v, g], [v, g, norms], backward, flops=4 * numel(v.shape), kind="normalization")


@operation("norm_except_dim", where=("torch",))
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norm over all dimensions but one, which keeps its place."""
    if dim == -1:
        return apply("norm", v, pow)
    dims = [index for index in range(len(v.shape)) if index != dim % len(v.shape)]
    return apply("norm", v, pow, dims, True)
