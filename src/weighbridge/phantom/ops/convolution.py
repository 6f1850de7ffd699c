"""Convolutions as cuDNN runs them: they keep input and weight. cuDNN's workspaces aren't modelled."""

from collections.abc import Callable
from typing import Any

from weighbridge.base.dtypes import promote
from weighbridge.phantom.operations import operation
from weighbridge.phantom.ops.kernels import (
    CHANNELS_LAST,
    Gradients,
    Needs,
    Saved,
    apply,
    channels_last,
    lowered,
    new,
    ordered,
    record,
    spend,
    spread,
)
from weighbridge.phantom.tensor import Shape, Tensor, numel


def _checked(x: Tensor, weight: Tensor, groups: int, *, transposed: bool) -> None:
    rank = len(weight.shape)
    if len(x.shape) not in {rank - 1, rank}:
        raise RuntimeError(f"Expected {rank - 1}D (unbatched) or {rank}D (batched) input to conv, but got input of size: {list(x.shape)}")
    channels = x.shape[1 - rank]
    expected = weight.shape[0] if transposed else weight.shape[1] * groups
    if channels != expected:
        raise RuntimeError(
            f"Given groups={groups}, weight of size {list(weight.shape)}, expected input to have {expected} channels, but got {channels}"
        )


def _forward_sizes(sizes: Shape, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape) -> Shape:
    return tuple(
        (size + 2 * pad - dil * (k - 1) - 1) // step + 1
        for size, k, step, pad, dil in zip(sizes, kernel, stride, padding, dilation, strict=True)
    )


def _transposed_sizes(sizes: Shape, kernel: Shape, stride: Shape, padding: Shape, dilation: Shape, extra: Shape) -> Shape:
    return tuple(
        (size - 1) * step - 2 * pad + dil * (k - 1) + more + 1
        for size, k, step, pad, dil, more in zip(sizes, kernel, stride, padding, dilation, extra, strict=True)
    )


def _laid(shape: Shape, dtype: Any, last: bool) -> Tensor:
    order = CHANNELS_LAST.get(len(shape))
    return ordered(shape, dtype, order) if last and order is not None else new(shape, dtype)


def _run(x: Tensor, weight: Tensor, bias: Tensor | None, sizes: Shape, *, groups: int, transposed: bool) -> Tensor:
    if any(size <= 0 for size in sizes):
        raise RuntimeError(f"Calculated padded input size per channel is too small for kernel size {weight.shape[2:]}")
    channels = weight.shape[1] * groups if transposed else weight.shape[0]
    last = channels_last(x) or channels_last(weight)
    out = _laid((x.shape[0], channels, *sizes), promote(x.dtype, weight.dtype), last)
    flops = 2 * numel(x.shape if transposed else out.shape) * numel(weight.shape[1:])

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        found: Gradients = []
        for source, need in zip(saved, needs[:2], strict=True):
            wanted = need and source is not None
            if wanted:
                spend("conv", grad, flops)
            found.append(_laid(source.shape, grad.dtype, last) if wanted and source is not None else None)
        return [*found, new((channels,), grad.dtype) if needs[2] else None]

    return record("convolution", out, [x, weight, bias], [x, weight], backward, flops=flops, kind="conv")


def _same_padding(x: Tensor, kernel: Shape, dilation: Shape) -> tuple[Tensor, Shape]:
    """padding="same": symmetric amounts in the convolution, what is odd beforehand on the right."""
    totals = [dil * (k - 1) for k, dil in zip(kernel, dilation, strict=True)]
    if any(total % 2 for total in totals):
        uneven = [side for total in reversed(totals) for side in (0, total % 2)]
        x = apply("pad", x, tuple(uneven))
    return x, tuple(total // 2 for total in totals)


def _convolution(spatial: int) -> Callable[..., Tensor]:
    def convolve(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
    ) -> Tensor:
        x, kernel, shift = lowered(input, weight, bias)
        _checked(x, kernel, groups, transposed=False)
        alone = len(x.shape) == spatial + 1
        if alone:
            x = apply("unsqueeze", x, 0)
        steps, dilations = spread(stride, spatial), spread(dilation, spatial)
        if padding == "same":
            x, pads = _same_padding(x, kernel.shape[2:], dilations)
        else:
            pads = spread(0 if padding == "valid" else padding, spatial)
        sizes = _forward_sizes(x.shape[2:], kernel.shape[2:], steps, pads, dilations)
        out = _run(x, kernel, shift, sizes, groups=groups, transposed=False)
        return apply("squeeze", out, 0) if alone else out

    return convolve


def _transposed(spatial: int) -> Callable[..., Tensor]:
    def convolve(
        input: Tensor,
        weight: Tensor,
        bias: Tensor | None = None,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        dilation: Any = 1,
    ) -> Tensor:
        x, kernel, shift = lowered(input, weight, bias)
        _checked(x, kernel, groups, transposed=True)
        alone = len(x.shape) == spatial + 1
        if alone:
            x = apply("unsqueeze", x, 0)
        spreads = [spread(value, spatial) for value in (stride, padding, dilation, output_padding)]
        sizes = _transposed_sizes(x.shape[2:], kernel.shape[2:], *spreads)
        out = _run(x, kernel, shift, sizes, groups=groups, transposed=True)
        return apply("squeeze", out, 0) if alone else out

    return convolve


for _spatial in (1, 2, 3):
    operation(f"conv{_spatial}d", where=("torch", "functional"))(_convolution(_spatial))
    operation(f"conv_transpose{_spatial}d", where=("torch", "functional"))(_transposed(_spatial))


def _windows(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


@operation("functional.unfold", "im2col", where=("functional",))
def unfold(input: Tensor, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Every window of an image as a column (F.unfold; Tensor.unfold is a view and another operation)."""
    kernel, dilations, pads, steps = (spread(value, 2) for value in (kernel_size, dilation, padding, stride))
    x = input if len(input.shape) == 4 else apply("unsqueeze", input, 0)
    windows = [_windows(x.shape[2 + i], kernel[i], steps[i], pads[i], dilations[i]) for i in (0, 1)]
    shape, source = (x.shape[0], x.shape[1] * kernel[0] * kernel[1], windows[0] * windows[1]), x.shape

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved, needs
        return [new(source, grad.dtype)]

    out = record("im2col", new(shape, x.dtype), [x], [], backward, kind="copy")
    return out if x is input else apply("squeeze", out, 0)


@operation("fold", "col2im", where=("functional",))
def fold(input: Tensor, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> Tensor:
    """Columns of windows summed back into an image."""
    del dilation, padding, stride
    kernel, sizes = spread(kernel_size, 2), spread(output_size, 2)
    x = input if len(input.shape) == 3 else apply("unsqueeze", input, 0)
    shape, source = (x.shape[0], x.shape[1] // (kernel[0] * kernel[1]), *sizes), x.shape

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved, needs
        return [new(source, grad.dtype)]

    out = record("col2im", new(shape, x.dtype), [x], [], backward, kind="copy")
    return out if x is input else apply("squeeze", out, 0)
