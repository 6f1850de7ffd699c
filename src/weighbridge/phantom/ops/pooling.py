"""Pooling: averages keep their input, maxima also int64 indices."""

from collections.abc import Callable
from typing import Any

from weighbridge.base.dtypes import INT64
from weighbridge.phantom.operations import operation
from weighbridge.phantom.ops.kernels import Gradients, Needs, Saved, apply, in_format_of, new, record, spread
from weighbridge.phantom.tensor import Shape, Tensor, numel

WHERE = ("torch", "functional")


def _pooled(size: int, kernel: int, stride: int, padding: int, dilation: int, ceil_mode: bool) -> int:
    span = size + 2 * padding - dilation * (kernel - 1) - 1
    count = (span + (stride - 1 if ceil_mode else 0)) // stride + 1
    return count - 1 if ceil_mode and (count - 1) * stride >= size + padding else count


def _sizes(x: Tensor, count: int, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool) -> Shape:
    kernels = spread(kernel, count)
    steps = spread(stride if stride not in (None, [], ()) else kernel, count)
    lines = zip(x.shape[-count:], kernels, steps, spread(padding, count), spread(dilation, count), strict=True)
    found = tuple(_pooled(*line, ceil_mode) for line in lines)
    if any(size < 1 for size in found):
        raise RuntimeError(f"Given input size {x.shape}. Calculated output size: {found}. Output size is too small")
    return found


def _input_gradient(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
    source = saved[0]
    assert source is not None
    return [in_format_of(source, source.shape, grad.dtype) if needs[0] else None]


def _window(count: int, name: str, x: Tensor, sizes: Shape, work: int, *, maximum: bool) -> tuple[Tensor, Tensor | None]:
    shape = x.shape[: len(x.shape) - count] + sizes
    out = in_format_of(x, shape, x.dtype)
    indices = in_format_of(x, shape, INT64) if maximum else None
    saved = [x, indices] if maximum else [x]
    return record(name, out, [x], saved, _input_gradient, flops=numel(shape) * work, kind="pool"), indices


def _average(count: int) -> Callable[..., Tensor]:
    def pool(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False, *_: Any, **__: Any) -> Tensor:
        sizes = _sizes(input, count, kernel_size, stride, padding, 1, ceil_mode)
        return _window(count, f"avg_pool{count}d", input, sizes, numel(spread(kernel_size, count)), maximum=False)[0]

    return pool


def _maximum(count: int, indices_too: bool) -> Callable[..., Any]:
    def pool(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        sizes = _sizes(input, count, kernel_size, stride, padding, dilation, ceil_mode)
        out, indices = _window(count, f"max_pool{count}d", input, sizes, numel(spread(kernel_size, count)), maximum=True)
        return (out, indices) if return_indices or indices_too else out

    return pool


def _adaptive_sizes(x: Tensor, count: int, output_size: Any) -> Shape:
    asked = spread(output_size, count)
    return tuple(x.shape[len(x.shape) - count + i] if size is None else size for i, size in enumerate(asked))


def _adaptive_average(count: int) -> Callable[..., Tensor]:
    def pool(input: Tensor, output_size: Any) -> Tensor:
        sizes = _adaptive_sizes(input, count, output_size)
        if all(size == 1 for size in sizes):
            return apply("mean", input, tuple(range(-count, 0)), True)
        return _window(count, f"adaptive_avg_pool{count}d", input, sizes, 1, maximum=False)[0]

    return pool


def _adaptive_maximum(count: int, indices_too: bool) -> Callable[..., Any]:
    def pool(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        sizes = _adaptive_sizes(input, count, output_size)
        out, indices = _window(count, f"adaptive_max_pool{count}d", input, sizes, 1, maximum=True)
        return (out, indices) if return_indices or indices_too else out

    return pool


def _power(count: int) -> Callable[..., Tensor]:
    def pool(input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False) -> Tensor:
        mean = apply(f"avg_pool{count}d", apply("pow", input, norm_type), kernel_size, stride, 0, ceil_mode)
        signed = apply("mul", apply("sign", mean), apply("relu", apply("abs", mean)))
        return apply("pow", apply("mul", signed, numel(spread(kernel_size, count))), 1.0 / norm_type)

    return pool


def _unpooled(count: int) -> Callable[..., Tensor]:
    def unpool(input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None) -> Tensor:
        kernels, pads = spread(kernel_size, count), spread(padding, count)
        steps = spread(stride if stride not in (None, [], ()) else kernel_size, count)
        lines = zip(input.shape[-count:], kernels, steps, pads, strict=True)
        sizes = tuple((size - 1) * step + kernel - 2 * pad for size, kernel, step, pad in lines)
        if output_size is not None:
            sizes = tuple(output_size)[-count:]
        source = input.shape

        def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
            del saved, needs
            return [new(source, grad.dtype)]

        return record("max_unpool", new(input.shape[:-count] + sizes, input.dtype), [input], [indices], backward, kind="copy")

    return unpool


for _count in (1, 2, 3):
    operation(f"avg_pool{_count}d", where=WHERE)(_average(_count))
    operation(f"max_pool{_count}d", where=WHERE)(_maximum(_count, indices_too=False))
    operation(f"max_pool{_count}d_with_indices", where=WHERE)(_maximum(_count, indices_too=True))
    operation(f"adaptive_avg_pool{_count}d", where=WHERE)(_adaptive_average(_count))
    operation(f"adaptive_max_pool{_count}d", where=WHERE)(_adaptive_maximum(_count, indices_too=False))
    operation(f"adaptive_max_pool{_count}d_with_indices", where=WHERE)(_adaptive_maximum(_count, indices_too=True))
    operation(f"lp_pool{_count}d", where=("functional",))(_power(_count))
    operation(f"max_unpool{_count}d", where=("functional",))(_unpooled(_count))
