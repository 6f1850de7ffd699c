"""Scaled dot product attention, with the kernel CUDA would take.

The choice and what each kernel keeps follow torch 2.13 (sdp_utils.cpp, attention.cpp, attention_backward.cu), checked through
real runs on fake tensors. Not modelled: cuDNN attention's backward workspace on Hopper and Blackwell (it keeps the same set as flash).
"""

import math

from weighbridge.base.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, INT64
from weighbridge.phantom.operations import operation
from weighbridge.phantom.ops.kernels import (
    Gradients,
    Needs,
    Saved,
    add_in_place,
    apply,
    like,
    lowered,
    new,
    ordered,
    record,
    scratch,
    spend,
)
from weighbridge.phantom.session import current
from weighbridge.phantom.tensor import Tensor

HALF = (FLOAT16, BFLOAT16)
FLASH_HEAD_DIM = 256
NARROW_FLASH = ((8, 6), (8, 9), (12, 0), (12, 1))
"""Cards whose shared memory cannot hold the flash backward of every head size."""


def _up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def _heads_match(q: Tensor, k: Tensor, v: Tensor) -> bool:
    return q.shape[1] == k.shape[1] == v.shape[1]


def _grouped(q: Tensor, k: Tensor, v: Tensor, enable_gqa: bool) -> bool:
    return enable_gqa and k.shape[1] == v.shape[1] and q.shape[1] % k.shape[1] == 0


def _flash_fits(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float, is_causal: bool, enable_gqa: bool) -> bool:
    capability = current().capability
    width = q.shape[-1]
    if mask is not None or capability < (8, 0) or q.dtype not in HALF or q.shape[0] != k.shape[0]:
        return False
    if not (width == k.shape[-1] == v.shape[-1] <= FLASH_HEAD_DIM) or (is_causal and q.shape[2] != k.shape[2]):
        return False
    trained = q.requires_grad or k.requires_grad or v.requires_grad
    if capability in NARROW_FLASH and trained and (192 < width <= 224 or (width > 224 and dropout > 0)):
        return False
    return _heads_match(q, k, v) or _grouped(q, k, v, enable_gqa)


def _efficient_fits(q: Tensor, k: Tensor, v: Tensor, enable_gqa: bool) -> bool:
    capability = current().capability
    if q.dtype is BFLOAT16 and capability < (8, 0):
        return False
    aligned = 16 // q.dtype.itemsize if capability >= (8, 0) else 4
    if q.shape[-1] != k.shape[-1] or q.shape[-1] % aligned or v.shape[-1] % aligned or q.shape[0] != k.shape[0]:
        return False
    return _heads_match(q, k, v) or _grouped(q, k, v, enable_gqa)


def choose_kernel(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, *, dropout: float = 0.0, is_causal: bool = False, enable_gqa: bool = False
) -> str:
    """`flash`, `efficient` or `math`: what scaled_dot_product_attention takes on this session's card."""
    if any(t.stride[-1] != 1 for t in (q, k, v)) or 0 in (q.shape[2], k.shape[2]):
        return "math"
    if _flash_fits(q, k, v, mask, dropout, is_causal, enable_gqa):
        return "flash"
    return "efficient" if _efficient_fits(q, k, v, enable_gqa) else "math"


def _flops(q: Tensor, k: Tensor, v: Tensor) -> int:
    """Both products of the forward pass, the whole square (a causal mask's half is not taken off, as is the custom for MFU)."""
    batch, heads, queries, width = q.shape
    return 2 * batch * heads * queries * k.shape[2] * (width + v.shape[-1])


def _flash(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Keeps q, k, v, the output, float32 logsumexp and the generator's state."""
    batch, heads, queries, width = q.shape
    kv_heads, keys, itemsize = k.shape[1], k.shape[2], q.dtype.itemsize
    out = like(q)
    logsumexp, rng_state = new((batch, heads, queries), FLOAT32), new((2,), INT64)
    flops = _flops(q, k, v)
    rows = batch * heads * _up(queries, 128) * 4
    grad_accumulator = rows * _up(width, 32 if width <= 128 else 64)
    expanded = [batch * keys * heads * width * itemsize] * 2 if kv_heads != heads else []

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        held = scratch(rows, grad_accumulator, *expanded)
        spend("attention", grad, flops * 5 // 2)
        found = [like(s, grad.dtype) if s is not None and need else None for s, need in zip(saved[:3], needs, strict=True)]
        del held
        return found

    return record(
        "_scaled_dot_product_flash_attention", out, [q, k, v], [q, k, v, out, logsumexp, rng_state], backward,
        flops=flops, kind="attention",
    )  # fmt: skip


def _padded_flash(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Flash takes head sizes in steps of eight: others are padded with zeros and the output cut."""
    width = q.shape[-1]
    short = -width % 8
    if not short:
        return _flash(q, k, v)
    padded = [apply("pad", t, (0, short)) for t in (q, k, v)]
    return apply("narrow", _flash(padded[0], padded[1], padded[2]), 3, 0, width)


def _efficient(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    """Keeps q, k, v, the mask, the output and logsumexp; the output lies as (batch, query, head, width)."""
    batch, heads, queries, width = q.shape
    keys = k.shape[2]
    out_width = v.shape[-1]
    out = ordered((batch, heads, queries, out_width), q.dtype, (0, 2, 1, 3))
    trained = q.requires_grad or k.requires_grad or v.requires_grad
    logsumexp = new((batch, heads, _up(queries, 32) if trained else 0), FLOAT32)
    flops = _flops(q, k, v)
    per_head = batch * heads * 4
    half = q.dtype in HALF
    sizes = [per_head * queries]
    if half:
        sizes.append(per_head * _up(queries, 64) * _up(width, 32))
        if width > 128:
            sizes.append(2 * per_head * _up(keys, 64) * _up(width, 32))

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        held = scratch(*sizes)
        spend("attention", grad, flops * 5 // 2)
        found: Gradients = []
        for source, need in zip(saved[:4], needs, strict=True):
            wanted = source is not None and need
            found.append(ordered(source.shape, grad.dtype, (0, 2, 1, 3)) if wanted and source is not None else None)
        del held
        return found

    return record(
        "_scaled_dot_product_efficient_attention", out, [q, k, v, mask], [q, k, v, mask, out, logsumexp], backward,
        flops=flops, kind="attention",
    )  # fmt: skip


def _aligned_mask(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor | None:
    """The efficient kernel reads masks in rows that are a multiple of eight long, expanded to every head."""
    if mask is None:
        return None
    keys = k.shape[2]
    if keys % 8:
        mask = apply("narrow", apply("pad", mask, (0, 8 - keys % 8)), -1, 0, keys)
    return apply("expand", mask, (q.shape[0], q.shape[1], q.shape[2], keys))


def _causal_bias(queries: int, keys: int, dtype_of: Tensor) -> Tensor:
    """The lower triangle as zeros and minus infinities, by way of a boolean one."""
    held = scratch(queries * keys)
    bias = new((queries, keys), dtype_of.dtype)
    del held
    return bias


def _upcast(tensor: Tensor) -> Tensor:
    """The composite works in float32 (allow_fp16_bf16_reduction_math_sdp is off by default)."""
    return apply("to", tensor, FLOAT32) if tensor.dtype in HALF else tensor


def _math(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float, is_causal: bool, scale: float | None) -> list[Tensor]:
    """The composite path: two products around a softmax, the square matrix in memory. Gives output and weights."""
    source = q.dtype
    q, k, v = _upcast(q), _upcast(k), _upcast(v)
    factor = math.sqrt(scale if scale is not None else 1.0 / math.sqrt(q.shape[-1]))
    q = apply("mul", q, factor)
    if is_causal:
        mask = _causal_bias(q.shape[-2], k.shape[-2], q)
    if q.shape[-3:-2] != k.shape[-3:-2] and len(q.shape) > 2:
        k, v = (apply("repeat_interleave", t, q.shape[-3] // t.shape[-3], -3) for t in (k, v))
    scores = apply("matmul", q, apply("mul", apply("transpose", k, -2, -1), factor))
    if mask is not None:
        scores = add_in_place(scores, mask)
    weights = apply("_safe_softmax" if mask is not None else "softmax", scores, -1)
    if dropout > 0.0:
        weights = apply("dropout", weights, dropout, True)
    out = apply("matmul", weights, v)
    return [out, weights] if source is out.dtype else [apply("to", out, source), apply("to", weights, source)]


@operation("_scaled_dot_product_attention_math", where=("torch",))
def attention_math(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    dropout_mask: Tensor | None = None,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Tensor, Tensor]:
    """The composite path by its own name: output and weights."""
    del dropout_mask, enable_gqa
    out, weights = _math(query, key, value, _as_bias(attn_mask, query), dropout_p, is_causal, scale)
    return out, weights


def _as_bias(mask: Tensor | None, dtype_of: Tensor) -> Tensor | None:
    """A boolean mask becomes zeros and minus infinities of the query's type."""
    return mask if mask is None or mask.dtype is not BOOL else new(mask.shape, dtype_of.dtype)


@operation("scaled_dot_product_attention", where=("functional",))
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """softmax(q k') v by the kernel that torch would choose for this card, these types and this mask."""
    q, k, v, mask = lowered(query, key, value, attn_mask)
    if attn_mask is not None and is_causal:
        raise RuntimeError("scaled_dot_product_attention: attn_mask should not be set when is_causal=True")
    if q.shape[-1] != k.shape[-1] or k.shape[-2] != v.shape[-2]:
        raise RuntimeError(f"scaled_dot_product_attention: {q.shape}, {k.shape}, {v.shape}")
    with current().under_autocast(None):  # autocast casts the arguments and is off for what a composite operation then does
        return _by_kernel(q, k, v, _as_bias(mask, q), dropout_p, is_causal, scale, enable_gqa)


def _by_kernel(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout_p: float, is_causal: bool, scale: float | None, enable_gqa: bool
) -> Tensor:
    if len(q.shape) != 4 or len(k.shape) != 4 or len(v.shape) != 4:
        return _math(q, k, v, mask, dropout_p, is_causal, scale)[0]
    kernel = choose_kernel(q, k, v, mask, dropout=dropout_p, is_causal=is_causal, enable_gqa=enable_gqa)
    if kernel == "flash":
        return _padded_flash(q, k, v)
    if kernel == "efficient":
        if q.shape[1] != k.shape[1]:
            k, v = (apply("repeat_interleave", t, q.shape[1] // t.shape[1], 1) for t in (k, v))
        return _efficient(q, k, v, _aligned_mask(q, k, mask))
    return _math(q, k, v, mask, dropout_p, is_causal, scale)[0]
