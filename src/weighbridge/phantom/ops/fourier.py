"""Fourier transforms (torch.fft.x is registered as fft_x), their windows, and the short-time transform. cuFFT's plans aren't modelled."""

from collections.abc import Callable
from typing import Any

from weighbridge.base.dtypes import COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, DType
from weighbridge.phantom.operations import dimension, operation
from weighbridge.phantom.ops.kernels import Gradients, Needs, Saved, apply, new, record
from weighbridge.phantom.session import current
from weighbridge.phantom.tensor import Tensor, dtype_named, numel

FFT = ("torch",)


def _complex(dtype: DType) -> DType:
    return dtype if dtype.kind == 3 else COMPLEX128 if dtype is FLOAT64 else COMPLEX64


def _real(dtype: DType) -> DType:
    return FLOAT64 if dtype in {COMPLEX128, FLOAT64} else FLOAT32


def _transform(name: str, x: Tensor, shape: tuple[int, ...], dtype: DType) -> Tensor:
    source, source_dtype = x.shape, x.dtype

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved, grad, needs
        return [new(source, source_dtype)]

    length = max(shape[-1:] + source[-1:], default=1)
    return record(name, new(shape, dtype), [x], [], backward, flops=5 * numel(shape) * max(length.bit_length(), 1))


def _one(name: str) -> Callable[..., Tensor]:
    def transform(input: Tensor, n: Any = None, dim: int = -1, norm: Any = None) -> Tensor:
        del norm
        place = dimension(input, dim)
        size = input.shape[place] if n is None else n
        if name in {"irfft", "hfft"} and n is None:
            size = 2 * (input.shape[place] - 1)
        length = size // 2 + 1 if name in {"rfft", "ihfft"} else size
        shape = tuple(length if index == place else count for index, count in enumerate(input.shape))
        dtype = _real(input.dtype) if name in {"irfft", "hfft"} else _complex(input.dtype)
        return _transform(f"fft_{name}", input, shape, dtype)

    return transform


def _several(name: str, two: bool) -> Callable[..., Tensor]:
    def transform(input: Tensor, s: Any = None, dim: Any = None, norm: Any = None) -> Tensor:
        del norm
        if dim is None:
            dim = (-2, -1) if two else tuple(range(-len(s), 0)) if s is not None else tuple(range(len(input.shape)))
        places = [dimension(input, index) for index in dim]
        shape = list(input.shape)
        for place, size in zip(places, s or [None] * len(places), strict=False):
            shape[place] = shape[place] if size in {None, -1} else size
        last = places[-1]
        if name.startswith("rfft"):
            shape[last] = shape[last] // 2 + 1
        elif name.startswith("irfft") and not s:
            shape[last] = 2 * (shape[last] - 1)
        dtype = _real(input.dtype) if name.startswith("irfft") else _complex(input.dtype)
        return _transform(f"fft_{name}", input, tuple(shape), dtype)

    return transform


for _name in ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft"):
    operation(f"fft_{_name}", where=FFT)(_one(_name))
for _name in ("fft", "ifft", "rfft", "irfft"):
    operation(f"fft_{_name}2", where=FFT)(_several(f"{_name}2", two=True))
    operation(f"fft_{_name}n", where=FFT)(_several(f"{_name}n", two=False))


def _made(length: int, dtype: Any) -> Tensor:
    return new((length,), dtype_named(dtype) if dtype is not None else current().default_dtype)


@operation("fft_fftfreq", where=FFT)
def fftfreq(n: int, d: float = 1.0, *, dtype: Any = None, **_: Any) -> Tensor:
    """Sample frequencies."""
    del d
    return _made(n, dtype)


@operation("fft_rfftfreq", where=FFT)
def rfftfreq(n: int, d: float = 1.0, *, dtype: Any = None, **_: Any) -> Tensor:
    """Sample frequencies of a real transform."""
    del d
    return _made(n // 2 + 1, dtype)


@operation("fft_fftshift", "fft_ifftshift", where=FFT)
def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The halves exchanged, by a copy."""
    places = tuple(range(len(input.shape))) if dim is None else dim
    return apply("roll", input, 1, places) if not isinstance(places, tuple) else apply("roll", input, (1,) * len(places), places)


@operation("hann_window", "hamming_window", "blackman_window", "bartlett_window", "kaiser_window", where=("torch",))
def window(window_length: int, *_: Any, dtype: Any = None, **__: Any) -> Tensor:
    """A window function's values."""
    return _made(window_length, dtype)


@operation("stft")
def stft(
    input: Tensor,
    n_fft: int,
    hop_length: Any = None,
    win_length: Any = None,
    window: Tensor | None = None,
    center: bool = True,
    pad_mode: str = "reflect",
    normalized: bool = False,
    onesided: Any = None,
    return_complex: Any = None,
    **_: Any,
) -> Tensor:
    """Frames, a window and a transform of each: (..., frequency, frame)."""
    del normalized, win_length
    hop = n_fft // 4 if hop_length is None else hop_length
    x = input if len(input.shape) == 2 else apply("unsqueeze", input, 0)
    if center:
        padded = apply("pad", apply("unsqueeze", x, 1), (n_fft // 2, n_fft // 2), pad_mode)
        x = apply("squeeze", padded, 1)
    frames = apply("unfold", x, -1, n_fft, hop)
    if window is not None:
        frames = apply("mul", frames, window)
    real = x.dtype.kind != 3 and onesided is not False
    spectrum = apply("transpose", apply("fft_rfft" if real else "fft_fft", frames, None, -1), 1, 2)
    if len(input.shape) == 1:
        spectrum = apply("squeeze", spectrum, 0)
    return spectrum if return_complex else apply("view_as_real", spectrum)


@operation("istft")
def istft(input: Tensor, n_fft: int, hop_length: Any = None, *_: Any, center: bool = True, length: Any = None, **__: Any) -> Tensor:
    """A signal from its frames: an inverse transform of each, and their sum where they overlap."""
    hop = n_fft // 4 if hop_length is None else hop_length
    frames = apply("fft_irfft", apply("transpose", input, -1, -2), n_fft, -1)
    whole = n_fft + hop * (input.shape[-1] - 1)
    size = length if length is not None else whole - (2 * (n_fft // 2) if center else 0)
    source = frames.shape

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved, needs
        return [new(source, grad.dtype)]

    return record("istft", new((*input.shape[:-2], size), frames.dtype), [frames], [], backward, kind="copy")
