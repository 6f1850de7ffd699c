"""Which kernel CUDA (sm80 and later) would choose for scaled dot product attention, called on fake tensors.

A CPU build would take the quadratic "math" path. The rules are those of torch's `sdp_utils.cpp`: flash without a mask in half
precision, the memory-efficient kernel with a mask or in float32, and math for the rest.
"""

import math
from collections import Counter
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

aten = torch.ops.aten
FLASH_HEAD_LIMIT = 256
HALF = (torch.float16, torch.bfloat16)


def choose_backend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, is_causal: bool, enable_gqa: bool) -> str:
    """`flash`, `efficient` or `math`."""
    width, value_width = q.shape[-1], v.shape[-1]
    last_dense = all(t.stride(-1) == 1 for t in (q, k, v))
    if q.dim() != 4 or not last_dense or width != k.shape[-1]:
        return "math"
    heads_agree = q.shape[1] == k.shape[1] == v.shape[1] or (enable_gqa and q.shape[1] % k.shape[1] == 0)
    if not heads_agree:
        return "math"
    ragged_causal = is_causal and q.shape[2] != k.shape[2]
    if q.dtype in HALF and mask is None and width == value_width and width <= FLASH_HEAD_LIMIT and not ragged_causal:
        return "flash"
    alignment = 8 if q.dtype in HALF else 4
    return "efficient" if width % alignment == 0 and value_width % alignment == 0 else "math"


class CudaAttention:
    """Stands in for `F.scaled_dot_product_attention`; `chosen` counts the kernels."""

    def __init__(self) -> None:
        self.chosen: Counter[str] = Counter()
        self._original = F.scaled_dot_product_attention

    def __call__(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """The attention output, with the strides the chosen CUDA kernel gives it."""
        if query.device.type != "cuda":
            return self._original(query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa)
        if torch.is_autocast_enabled("cuda"):
            query, key, value, attn_mask = (_autocast(t) for t in (query, key, value, attn_mask))
        backend = choose_backend(query, key, value, attn_mask, is_causal, enable_gqa)
        self.chosen[backend] += 1
        scale = 1.0 / math.sqrt(query.shape[-1]) if scale is None else scale
        with torch.autocast("cuda", enabled=False):
            mask = _additive(attn_mask, query)
            return BACKENDS[backend](query, key, value, mask, dropout_p, is_causal, scale, enable_gqa)


def _autocast(tensor: Any) -> Any:
    if tensor is None or not tensor.is_floating_point() or tensor.dtype == torch.float64:
        return tensor
    return tensor.to(torch.get_autocast_dtype("cuda"))


def _additive(mask: Tensor | None, query: Tensor) -> Tensor | None:
    if mask is None or mask.dtype != torch.bool:
        return mask
    zero = torch.scalar_tensor(0.0, dtype=query.dtype, device=query.device)
    return torch.where(mask, zero, torch.scalar_tensor(float("-inf"), dtype=query.dtype, device=query.device))


def _flash(q: Tensor, k: Tensor, v: Tensor, mask: Any, dropout_p: float, is_causal: bool, scale: float, enable_gqa: bool) -> Tensor:
    del mask, enable_gqa  # flash takes no mask, and groups of queries as they come
    width = q.shape[-1]
    padding = -width % 8
    if padding:
        q, k, v = (F.pad(t, (0, padding)) for t in (q, k, v))
    out: Tensor = aten._scaled_dot_product_flash_attention(q, k, v, dropout_p, is_causal, False, scale=scale)[0]  # noqa: SLF001  # torch's own name
    return out[..., :width] if padding else out


def _efficient(q: Tensor, k: Tensor, v: Tensor, mask: Any, dropout_p: float, is_causal: bool, scale: float, enable_gqa: bool) -> Tensor:
    if enable_gqa and q.shape[1] != k.shape[1]:
        k, v = (t.repeat_interleave(q.shape[1] // t.shape[1], dim=1) for t in (k, v))
    if mask is not None:
        keys = k.shape[2]
        if keys % 8:
            mask = F.pad(mask, (0, -keys % 8))[..., :keys]
        mask = mask.expand(q.shape[0], q.shape[1], q.shape[2], keys)
    logsumexp = q.requires_grad or k.requires_grad or v.requires_grad
    attention = aten._scaled_dot_product_efficient_attention  # noqa: SLF001  # torch's own name
    out: Tensor = attention(q, k, v, mask, logsumexp, dropout_p, is_causal, scale=scale)[0]
    return out


def _math(q: Tensor, k: Tensor, v: Tensor, mask: Any, dropout_p: float, is_causal: bool, scale: float, enable_gqa: bool) -> Tensor:
    attention = aten._scaled_dot_product_attention_math  # noqa: SLF001  # torch's own name
    out: Tensor = attention(q, k, v, mask, dropout_p, is_causal, None, scale=scale, enable_gqa=enable_gqa)[0]
    return out


BACKENDS = {"flash": _flash, "efficient": _efficient, "math": _math}
