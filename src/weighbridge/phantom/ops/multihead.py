"""F.multi_head_attention_forward, for code that calls it with its own weights (nn.MultiheadAttention stands in the prelude)."""

import math
from typing import Any

from weighbridge.phantom.operations import OPERATIONS, operation
from weighbridge.phantom.ops.kernels import apply, new
from weighbridge.phantom.tensor import Tensor


def _projected(query: Tensor, key: Tensor, value: Tensor, weights: list[Tensor | None], bias: Tensor | None) -> list[Tensor]:
    packed, *separate = weights
    size = query.shape[-1]
    biases = [None] * 3 if bias is None else list(OPERATIONS["chunk"](bias, 3))
    if packed is not None:
        if query is key and key is value:
            joint = apply("unflatten", apply("linear", query, packed, bias), -1, (3, size))
            joint = apply("contiguous", apply("squeeze", apply("transpose", apply("unsqueeze", joint, 0), 0, -2), -2))
            return [apply("select", joint, 0, index) for index in range(3)]
        separate = list(OPERATIONS["chunk"](packed, 3))
    return [apply("linear", x, w, b) for x, w, b in zip((query, key, value), separate, biases, strict=True)]


def _by_head(side: Tensor, heads: int) -> Tensor:
    time, batch, size = side.shape
    return apply("transpose", apply("view", side, (time, batch * heads, size // heads)), 0, 1)


def _flat_linear(out: Tensor, weight: Tensor, bias: Tensor | None, shape: tuple[int, ...]) -> Tensor:
    target, batch, size = shape
    flat = apply("view", apply("contiguous", out), (target * batch, size))
    return apply("view", apply("linear", flat, weight, bias), shape)


def _float_mask(mask: Tensor | None, dtype_of: Tensor) -> Tensor | None:
    return mask if mask is None or mask.dtype.kind == 2 else new(mask.shape, dtype_of.dtype)


def _merged(attn_mask: Tensor | None, padding: Tensor | None, query: Tensor, heads: int, source: int) -> Tensor | None:
    batch = query.shape[1]
    mask = _float_mask(attn_mask, query)
    if mask is not None and len(mask.shape) == 2:
        mask = apply("unsqueeze", mask, 0)
    hidden = _float_mask(padding, query)
    if hidden is None:
        return mask
    wide = apply("expand", apply("view", hidden, (batch, 1, 1, source)), (-1, heads, -1, -1))
    hidden = apply("reshape", wide, (batch * heads, 1, source))
    return hidden if mask is None else apply("add", mask, hidden)


def _with_weights(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float, heads: int) -> tuple[Tensor, Tensor]:
    """The attention's output by time, and its weights by batch and head."""
    scaled = apply("mul", q, math.sqrt(1.0 / q.shape[-1]))
    turned = apply("transpose", k, -2, -1)
    scores = apply("bmm", scaled, turned) if mask is None else apply("baddbmm", mask, scaled, turned)
    weights = apply("softmax", scores, -1)
    if dropout > 0:
        weights = apply("dropout", weights, dropout, True)
    out = apply("transpose", apply("bmm", weights, v), 0, 1)
    return out, apply("view", weights, (-1, heads, *weights.shape[1:]))


def _fused(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, dropout: float, causal: bool, heads: int) -> Tensor:
    """Scaled dot product attention by batch and head, without the weights."""
    q, k, v = (apply("view", t, (-1, heads, *t.shape[1:])) for t in (q, k, v))
    if mask is not None:
        mask = apply("unsqueeze", mask, 0) if mask.shape[0] == 1 else apply("view", mask, (*q.shape[:2], -1, k.shape[2]))
    return apply("permute", apply("scaled_dot_product_attention", q, k, v, mask, dropout, causal), (2, 0, 1, 3))


@operation("multi_head_attention_forward", where=("functional",))
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
    **_: Any,
) -> tuple[Tensor, Tensor | None]:
    """(time, batch, width) in and out, with the weights averaged over heads where they are wanted."""
    del embed_dim_to_check
    if bias_k is not None or bias_v is not None or add_zero_attn:
        raise NotImplementedError("multi_head_attention_forward with bias_k or add_zero_attn")
    weights = [None if use_separate_proj_weight else in_proj_weight, q_proj_weight, k_proj_weight, v_proj_weight]
    q, k, v = (_by_head(side, num_heads) for side in _projected(query, key, value, weights, in_proj_bias))
    dropout = dropout_p if training else 0.0
    causal = is_causal and key_padding_mask is None and (attn_mask is None or not need_weights)
    mask = _merged(None if causal else attn_mask, key_padding_mask, query, num_heads, k.shape[1])
    if not need_weights:
        out = _fused(q, k, v, mask, dropout, causal, num_heads)
        return _flat_linear(out, out_proj_weight, out_proj_bias, query.shape), None
    out, scores = _with_weights(q, k, v, mask, dropout, num_heads)
    return _flat_linear(out, out_proj_weight, out_proj_bias, query.shape), apply("mean", scores, 1) if average_attn_weights else scores
