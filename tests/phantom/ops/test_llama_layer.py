"""One decoder layer of Llama 3.1 8B, written in operations: bytes a token that autograd keeps.

The expected numbers come from running transformers' own class under torch's fake tensors: 241800 with float32 weights under bfloat16
autocast, 200840 all in bfloat16. Casts of weights are not counted: they do not grow with the batch.
"""

import pytest
from against_torch import T, saved_storages

from weighbridge.base.dtypes import BFLOAT16, FLOAT32
from weighbridge.phantom import OPERATIONS, Session, Tensor

GENERATOR_STATE = 16
"""Seed and offset that flash attention keeps, once a layer."""
BATCH, SEQ, HIDDEN, HEADS, KV_HEADS, WIDTH, INNER = 2, 256, 4096, 32, 8, 128, 14336


def apply(name, *args, **kwargs):
    return OPERATIONS[name](*args, **kwargs)


def norm(x, weight):
    wide = apply("to", x, FLOAT32)
    variance = apply("mean", apply("pow", wide, 2), -1, True)
    scaled = apply("mul", wide, apply("rsqrt", apply("add", variance, 1e-6)))
    return apply("mul", weight, apply("to", scaled, x.dtype))


def rotate(x, cos, sin):
    half = x.shape[-1] // 2
    first, second = apply("narrow", x, -1, 0, half), apply("narrow", x, -1, half, half)
    turned = apply("cat", [apply("neg", second), first], -1)
    return apply("add", apply("mul", x, cos), apply("mul", turned, sin))


def heads_of(x, weight):
    return apply("transpose", apply("view", apply("linear", x, weight), (BATCH, SEQ, -1, WIDTH)), 1, 2)


def layer(x, w, cos, sin):
    normed = norm(x, w["input_norm"])
    q, k, v = (heads_of(normed, w[name]) for name in ("q", "k", "v"))
    q, k = rotate(q, cos, sin), rotate(k, cos, sin)
    out = apply("scaled_dot_product_attention", q, k, v, None, 0.0, is_causal=True, enable_gqa=True)
    del q, k, v, normed
    flat = apply("reshape", apply("contiguous", apply("transpose", out, 1, 2)), (BATCH, SEQ, HIDDEN))
    x = apply("add", x, apply("linear", flat, w["o"]))
    normed = norm(x, w["post_norm"])
    product = apply("mul", apply("silu", apply("linear", normed, w["gate"])), apply("linear", normed, w["up"]))
    return apply("add", x, apply("linear", product, w["down"]))


def weights(dtype: str) -> dict[str, Tensor]:
    kv = KV_HEADS * WIDTH
    shapes = {"input_norm": (HIDDEN,), "post_norm": (HIDDEN,), "q": (HIDDEN, HIDDEN), "k": (kv, HIDDEN), "v": (kv, HIDDEN),
              "o": (HIDDEN, HIDDEN), "gate": (INNER, HIDDEN), "up": (INNER, HIDDEN), "down": (HIDDEN, INNER)}  # fmt: skip
    return {name: T(*shape, dtype=dtype).phantom() for name, shape in shapes.items()}


@pytest.mark.parametrize(("dtype", "autocast", "expected"), [("float32", BFLOAT16, 241800), ("bfloat16", None, 200840)])
def test_a_llama_layer_keeps_what_torch_keeps(dtype: str, autocast, expected: int) -> None:
    with Session(autocast=autocast).activate() as session:
        w = weights(dtype)
        x = T(BATCH, SEQ, HIDDEN, dtype=dtype).phantom()
        cos, sin = (T(1, 1, SEQ, WIDTH, dtype=dtype, grad=False).phantom() for _ in range(2))
        outside = {t.storage.id for t in [*w.values(), cos, sin, x]} | {cast.storage.id for _, cast in session.cast_cache.values()}
        first = layer(x, w, cos, sin)
        inner = saved_storages([first])
        second = layer(first, w, cos, sin)
        weight_casts = {cast.storage.id for _, cast in session.cast_cache.values()}
        kept = {key: size for key, size in saved_storages([second]).items() if key not in outside | weight_casts | set(inner)}
    assert sum(kept.values()) == expected * BATCH * SEQ + GENERATOR_STATE
