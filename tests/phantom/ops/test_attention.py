"""Attention: the kernel chosen and what it keeps, on paper from the CUDA sources; the composite path against torch's own."""

import pytest
from against_torch import T, check

from weighbridge.base.dtypes import BFLOAT16, FLOAT32
from weighbridge.phantom import OPERATIONS, Session, run_backward
from weighbridge.phantom.ops.attention import choose_kernel

torch = pytest.importorskip("torch")
B, H, S, D = 2, 4, 16, 64


def qkv(dtype: str = "bfloat16", *, width: int = D, kv_heads: int = H, keys: int = S):
    """As transformers makes them: projections seen as (batch, head, token, width) through a transpose."""
    return [T(B, n, h, width, dtype=dtype, order=(0, 2, 1, 3)).phantom() for n, h in ((S, H), (keys, kv_heads), (keys, kv_heads))]


def kept(out) -> int:
    return sum(size for size in {t.storage.id: t.storage.nbytes for t in out.node.saved if t is not None}.values())


def attend(*args, session: Session | None = None, **kwargs):
    with (session or Session()).activate():
        return OPERATIONS["scaled_dot_product_attention"](*args, **kwargs)


@pytest.mark.parametrize(
    ("kernel", "dtype", "width", "capability", "options"),
    [
        ("flash", "bfloat16", 64, (8, 0), {}),
        ("flash", "float16", 256, (9, 0), {}),
        ("flash", "bfloat16", 60, (8, 0), {}),
        ("efficient", "float32", 64, (8, 0), {}),
        ("efficient", "float16", 64, (7, 5), {}),
        ("math", "bfloat16", 64, (7, 5), {}),
        ("efficient", "bfloat16", 264, (8, 0), {}),
        ("math", "float32", 62, (8, 0), {}),
        ("efficient", "bfloat16", 200, (8, 6), {}),
        ("flash", "bfloat16", 192, (8, 6), {}),
        ("flash", "bfloat16", 200, (8, 0), {}),
        ("efficient", "bfloat16", 256, (8, 9), {"dropout": 0.1}),
    ],
)
def test_the_kernel_follows_dtype_width_and_card(kernel, dtype, width, capability, options) -> None:
    with Session(capability).activate():
        assert choose_kernel(*qkv(dtype, width=width), None, **options) == kernel


def test_a_mask_takes_flash_away_and_a_causal_rectangle_too() -> None:
    with Session().activate():
        mask = T(B, 1, S, S, dtype="bfloat16", grad=False).phantom()
        assert choose_kernel(*qkv(), mask) == "efficient"
        assert choose_kernel(*qkv(keys=S + 8), None, is_causal=True) == "efficient"
        assert choose_kernel(*qkv(kv_heads=2), None, enable_gqa=True) == "flash"
        assert choose_kernel(*qkv(kv_heads=2), None) == "math"


def test_flash_keeps_q_k_v_out_and_logsumexp() -> None:
    session = Session()
    with session.activate():
        out = OPERATIONS["scaled_dot_product_attention"](*qkv(kv_heads=2), is_causal=True, enable_gqa=True)
    tokens = B * S
    assert kept(out) == 2 * tokens * D * (H + 2 + 2 + H) + 4 * tokens * H + 16
    assert out.stride == (S * H * D, D, H * D, 1), "the output lies as (batch, token, head, width), so the transpose back is free"


def test_efficient_keeps_repeated_heads_and_the_mask() -> None:
    with Session().activate():
        mask = T(B, 1, S, S, dtype="bool", grad=False).phantom()
        q, k, v = qkv()
        out = OPERATIONS["scaled_dot_product_attention"](q, k, v, mask)
    tokens = B * S
    assert kept(out) == 2 * tokens * D * H * 4 + 2 * B * S * S + 4 * B * H * 32


def test_flash_backward_takes_float32_scratch_and_expanded_keys_for_grouped_heads() -> None:
    session = Session()
    with session.activate():
        out = OPERATIONS["scaled_dot_product_attention"](*qkv(kv_heads=2), is_causal=True, enable_gqa=True)
        start = len(session.recorder.events)
        run_backward(OPERATIONS["sum"](out))
    sizes = [size for _, size, _ in session.recorder.events[start:] if size > 0]
    rows = B * H * 128 * 4
    assert {rows, rows * D} <= set(sizes)
    assert sizes.count(2 * B * S * H * D) >= 2


def test_attention_flops_are_two_products_forward_and_two_and_a_half_times_that_backward() -> None:
    session = Session()
    with session.activate():
        run_backward(OPERATIONS["sum"](OPERATIONS["scaled_dot_product_attention"](*qkv())))
    flops = [key[2] for key in session.costs if key[0] == "attention"]
    assert sorted(flops) == [4 * B * H * S * S * D, 10 * B * H * S * S * D]


def test_autocast_casts_query_key_and_value() -> None:
    with Session(autocast=BFLOAT16).activate():
        out = OPERATIONS["scaled_dot_product_attention"](*qkv("float32"))
    assert out.dtype is BFLOAT16
    assert attend(*qkv("float32")).dtype is FLOAT32


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("mask", [None, T(S, S, grad=False)])
def test_the_composite_path_keeps_torchs_bytes(mask, dtype: str) -> None:
    query = [T(B, 3, S, 6, dtype=dtype) for _ in range(3)]
    name = "_scaled_dot_product_attention_math"
    check(name, torch._scaled_dot_product_attention_math, [*query, mask], {})
    if mask is None:
        check(name, torch._scaled_dot_product_attention_math, query, {"is_causal": True})


def test_attention_without_a_kernel_has_torchs_layout() -> None:
    query = [T(B, 3, S, 6) for _ in range(3)]
    check("scaled_dot_product_attention", torch.nn.functional.scaled_dot_product_attention, query, {}, kept=False)


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("shared", [False, True])
def test_multi_head_attention_forward_has_torchs_layout(need_weights: bool, shared: bool) -> None:
    sides = [T(3, 2, 8), T(5, 2, 8), T(5, 2, 8)]
    weights = [8, 2, T(24, 8), T(24), None, None, False, 0.0, T(8, 8), T(8)]
    function = torch.nn.functional.multi_head_attention_forward
    if shared:
        sides = [T(3, 2, 8)] * 3
    check("multi_head_attention_forward", function, [*sides, *weights], {"need_weights": need_weights}, kept=need_weights and not shared)
