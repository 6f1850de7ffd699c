"""Speed: the roofline by paper arithmetic, its laws, and the fitted table's honesty."""

from dataclasses import replace
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weighbridge.base.errors import UsageError
from weighbridge.cards import custom_card, find_card, load_cards, load_generations
from weighbridge.speed import COMPILED_HOST_SHARE, KERNEL_SECONDS, Efficiency, device_time, load_efficiencies, step_time

IDEAL = Efficiency("ampere", 1.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0, 0, 0.0, 0.0, "", "", date(2026, 12, 1))
A100 = find_card("a100")

costs = st.dictionaries(
    st.tuples(
        st.sampled_from(["matmul", "attention", "elementwise", "copy"]),
        st.sampled_from(["bfloat16", "float32", "float16"]),
        st.integers(0, 10**13),
        st.integers(0, 10**11),
    ),
    st.integers(1, 500),
    min_size=1,
    max_size=12,
)
speedy = st.sampled_from(load_cards())


def test_at_full_efficiency_a_matmul_takes_flops_over_the_peak():
    time = device_time({("matmul", "bfloat16", 312 * 10**12, 0): 1}, A100, IDEAL)
    assert (time.compute_seconds, time.memory_seconds) == (pytest.approx(1.0), 0.0)


def test_at_full_efficiency_a_copy_takes_bytes_over_the_bandwidth():
    time = device_time({("copy", "bfloat16", 0, 2039 * 10**9): 2}, A100, IDEAL)
    assert (time.compute_seconds, time.memory_seconds) == (0.0, pytest.approx(2.0))


def test_half_the_peak_is_reached_at_the_half_point():
    flops = 312 * 10**9
    time = device_time({("matmul", "bfloat16", flops, 0): 1}, A100, replace(IDEAL, matrix_half_flops=float(flops)))
    assert time.compute_seconds == pytest.approx(2e-3)


def test_a_tiny_kernel_costs_an_empty_kernels_time_and_the_host_may_decide():
    tiny = {("elementwise", "bfloat16", 4, 8): 1000}
    assert device_time(tiny, A100, IDEAL).seconds == pytest.approx(1000 * KERNEL_SECONDS)
    slow_host = replace(IDEAL, host_seconds=1e-3)
    assert device_time(tiny, A100, slow_host).seconds == pytest.approx(1.0)
    assert device_time(tiny, A100, slow_host, compiled=True).seconds == pytest.approx(COMPILED_HOST_SHARE)


def test_a_step_of_an_8b_model_takes_what_published_a100_runs_take():
    # 8 billion parameters, 16,384 tokens, forward and backward: 6 N T FLOPs; published bf16 training reaches 45 to 65 % of 312 TFLOP/s
    n, tokens = 8_000_000_000, 16_384
    layer = {("matmul", "bfloat16", 2 * n * tokens // 224, 10**9): 224 * 3}
    answer = step_time(layer, A100, model_flops=6 * n * tokens)
    assert 0.45 < answer.mfu < 0.9
    assert answer.bound == "compute"
    assert answer.low_seconds <= answer.likely_seconds <= answer.high_seconds


def test_recomputation_lowers_the_model_flops_share_but_not_the_default():
    step = {("matmul", "bfloat16", 10**12, 10**6): 400}
    assert step_time(step, A100, model_flops=300 * 10**12).mfu == pytest.approx(0.75 * step_time(step, A100).mfu)


@settings(deadline=None)
@given(costs, speedy, st.integers(1, 5))
def test_more_work_never_takes_less_time(step, card, times):
    more = {key: count * times for key, count in step.items()}
    assert step_time(more, card).likely_seconds >= step_time(step, card).likely_seconds * (1 - 1e-9)
    assert step_time(step, card, compiled=True).likely_seconds <= step_time(step, card).likely_seconds


@settings(deadline=None)
@given(costs, speedy)
def test_times_are_positive_ordered_and_below_the_peak(step, card):
    answer = step_time(step, card)
    assert 0 < answer.low_seconds <= answer.likely_seconds <= answer.high_seconds
    assert answer.bound in {"compute", "memory"}
    slowest_type = max(card.peak_flops(dtype) for _, dtype, _, _ in step)
    # attention's FLOPs are those of the whole square, of which a causal kernel skips half
    assert answer.mfu * card.peak_flops("bfloat16") <= 2 * slowest_type
    matrix_only = {key: count for key, count in step.items() if key[0] == "matmul"}
    assert step_time(matrix_only, card).mfu * card.peak_flops("bfloat16") <= slowest_type


@settings(deadline=None)
@given(costs, speedy, st.integers(2, 4))
def test_a_faster_card_of_the_same_kind_is_never_slower(step, card, factor):
    faster = replace(
        card,
        bandwidth_bytes_per_second=card.bandwidth_bytes_per_second * factor,
        dense_flops=tuple((column, rate * factor) for column, rate in card.dense_flops),
    )
    assert step_time(step, faster).likely_seconds <= step_time(step, card).likely_seconds


def test_a_card_known_by_memory_alone_has_no_time():
    with pytest.raises(UsageError, match="only its memory"):
        step_time({("matmul", "bfloat16", 1, 1): 1}, custom_card(2**34))


def test_every_generation_has_efficiencies_that_say_what_they_rest_on():
    table = load_efficiencies()
    assert set(table) == set(load_generations())
    for row in table.values():
        assert row.source
        assert 0 < row.low <= 1 <= row.high
        assert row.rows or table[row.borrowed_from].rows
        assert row.p95_error >= row.median_error > 0


def test_the_errors_of_the_best_known_generation_are_within_what_the_readme_says():
    ampere = load_efficiencies()["ampere"]
    assert ampere.rows >= 50
    assert ampere.median_error < 0.10
    assert ampere.p95_error < 0.35
