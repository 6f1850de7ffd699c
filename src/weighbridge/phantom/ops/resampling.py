"""Resampling of grids: interpolation (float32 under autocast), sampling at points, and shuffles of channels and pixels."""

import math
from typing import Any

from weighbridge.phantom.operations import integer, operation
from weighbridge.phantom.ops.kernels import Gradients, Needs, Saved, apply, in_format_of, new, record, single, spread
from weighbridge.phantom.tensor import Shape, Tensor, numel

FUNCTIONAL = ("functional",)
TAPS = {"nearest": 1, "nearest-exact": 1, "linear": 2, "bilinear": 4, "bicubic": 16, "trilinear": 8}
"""Input points that one output point reads, by mode."""


def _target(x: Tensor, size: Any, scale_factor: Any) -> Shape:
    places = x.shape[2:]
    if size is not None:
        given = size if isinstance(size, list | tuple) else [size]
        sizes = tuple(integer(n) for n in given)
        return sizes if len(sizes) == len(places) else sizes * len(places)
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    return tuple(math.floor(float(n) * factor) for n, factor in zip(places, spread(scale_factor, len(places)), strict=True))


@operation("interpolate", "upsample", where=FUNCTIONAL)
def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: Any = None,
    recompute_scale_factor: Any = None,
    antialias: bool = False,
) -> Tensor:
    """A grid at another resolution; keeps nothing."""
    del align_corners, recompute_scale_factor, antialias
    sizes = _target(input, size, scale_factor)
    if mode == "area":
        return apply(f"adaptive_avg_pool{len(sizes)}d", input, sizes)
    if mode not in TAPS:
        raise NotImplementedError(f"Got {len(input.shape)}D input, but {mode} mode")
    x = single(input)
    shape = x.shape[:2] + sizes
    source = x.shape

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved, needs
        return [in_format_of(grad, source, grad.dtype)]

    out = in_format_of(x, shape, x.dtype)
    return record(f"upsample_{mode}", out, [x], [], backward, flops=2 * TAPS[mode] * numel(shape))


@operation("grid_sample", "grid_sampler", where=("functional", "torch"))
def grid_sample(input: Tensor, grid: Tensor, *_: Any, **__: Any) -> Tensor:
    """Values at points of a grid; keeps both."""
    out = new((*input.shape[:2], *grid.shape[1:-1]), input.dtype)

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        return [new(s.shape, grad.dtype) if s is not None and need else None for s, need in zip(saved, needs, strict=True)]

    return record("grid_sampler", out, [input, grid], [input, grid], backward, flops=8 * numel(out.shape), kind="gather")


@operation("affine_grid", where=FUNCTIONAL)
def affine_grid(theta: Tensor, size: Any, align_corners: Any = None) -> Tensor:
    """The points that an affine map sends a grid to."""
    del align_corners
    places = tuple(size)[2:]
    base = new((size[0], numel(places), len(places) + 1), theta.dtype)
    return apply("view", apply("bmm", base, apply("transpose", theta, 1, 2)), (size[0], *places, len(places)))


@operation("pixel_shuffle")
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """Channels moved into space, by a copy."""
    factor = upscale_factor
    batch, (channels, rows, columns) = input.shape[:-3], input.shape[-3:]
    if channels % (factor * factor):
        raise RuntimeError(f"pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of {factor}")
    split = apply("reshape", input, (*batch, channels // factor**2, factor, factor, rows, columns))
    lead = len(batch)
    moved = apply("permute", split, (*range(lead), lead, lead + 3, lead + 1, lead + 4, lead + 2))
    return apply("reshape", apply("contiguous", moved), (*batch, channels // factor**2, rows * factor, columns * factor))


@operation("pixel_unshuffle")
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """Space moved into channels, by a copy."""
    factor = downscale_factor
    batch, (channels, rows, columns) = input.shape[:-3], input.shape[-3:]
    split = apply("reshape", input, (*batch, channels, rows // factor, factor, columns // factor, factor))
    lead = len(batch)
    moved = apply("permute", split, (*range(lead), lead, lead + 2, lead + 4, lead + 1, lead + 3))
    return apply("reshape", apply("contiguous", moved), (*batch, channels * factor**2, rows // factor, columns // factor))


@operation("channel_shuffle", "native_channel_shuffle")
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """Channels dealt out over groups, by a copy."""
    batch, channels = input.shape[:2]
    split = apply("reshape", input, (batch, groups, channels // groups, *input.shape[2:]))
    return apply("reshape", apply("contiguous", apply("transpose", split, 1, 2)), input.shape)


@operation("upsample_nearest", where=FUNCTIONAL)
def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """The retired spelling of interpolate."""
    return interpolate(input, size, scale_factor)


@operation("upsample_bilinear", where=FUNCTIONAL)
def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """The retired spelling of interpolate."""
    return interpolate(input, size, scale_factor, mode="bilinear")
