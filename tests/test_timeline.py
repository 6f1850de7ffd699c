"""The timeline's arithmetic on events written by hand, and growth on steps whose sizes are known polynomials."""

from hypothesis import given
from hypothesis import strategies as st

from weighbridge.phantom.session import Where
from weighbridge.timeline import Growth, Run, Timeline, rounded

WEIGHTS, FORWARD, BACKWARD = Where("weights", "", ""), Where("forward", "layer", "linear"), Where("backward", "layer", "linear")
LOSS = Where("backward", "", "loss")


def step(batch: int, seq_tokens: int, squares: int = 0) -> Timeline:
    """Weights; an activation by batch and length, one by the length's square; a gradient; all but the gradient freed."""
    linear, square = 1024 * batch * seq_tokens, 512 * squares * batch * seq_tokens**2
    events = [
        (0, 4096, WEIGHTS),
        (1, linear, FORWARD),
        (2, square, FORWARD),
        (3, 4096, BACKWARD),
        (2, -square, BACKWARD),
        (1, -linear, BACKWARD),
    ]
    return Timeline(events, 1)


def as_run(batch: int, seq_tokens: int, timeline: Timeline) -> Run:
    return Run(batch, seq_tokens, timeline, lambda own: (own.peak.allocated_bytes, own.peak.allocated_bytes))


def test_a_request_is_rounded_up_to_512_bytes():
    assert [rounded(size) for size in (0, 1, 512, 513, 1024)] == [0, 512, 512, 1024, 1024]


def test_the_peak_is_the_first_moment_of_most_bytes():
    timeline = step(2, 8)
    assert timeline.peak.allocated_bytes == 4096 + 1024 * 16 + 4096
    assert timeline.peak.where == BACKWARD
    assert timeline.end_bytes == 4096 + 4096


def test_what_happened_before_the_step_is_no_peak_of_it():
    events = [(0, 1 << 20, WEIGHTS), (0, -(1 << 20), WEIGHTS), (1, 512, FORWARD)]
    assert Timeline(events, 2).peak.allocated_bytes == 512


def test_every_live_byte_has_a_category():
    found = step(2, 8).breakdown()
    assert found["weights"] == 4096
    assert found["gradients"] == 4096
    assert found["activations"] == 1024 * 16
    assert sum(found.values()) == step(2, 8).peak.allocated_bytes


def test_what_the_loss_makes_in_backward_is_the_losss():
    events = [(0, 512, WEIGHTS), (1, 2048, LOSS), (1, -2048, LOSS)]
    assert Timeline(events, 1).breakdown()["loss"] == 2048


@given(st.integers(1, 500), st.integers(1, 4096), st.integers(0, 3))
def test_growth_is_exact_where_sizes_are_affine_in_the_batch_and_quadratic_in_the_length(batch: int, seq_tokens: int, squares: int):
    growth = Growth(lambda b, s: as_run(b, s, step(b, s, squares)))
    growth.run(1, 64)
    assert growth.allocated_bytes(batch, seq_tokens) == step(batch, seq_tokens, squares).peak.allocated_bytes


def test_many_batches_are_told_from_two_steps():
    played = []

    def simulate(batch: int, seq_tokens: int) -> Run:
        played.append((batch, seq_tokens))
        return as_run(batch, seq_tokens, step(batch, seq_tokens))

    growth = Growth(simulate)
    for batch in range(2, 200):
        growth.allocated_bytes(batch, 128)
    assert len(set(played)) <= 4


def test_steps_that_do_other_things_are_played_themselves():
    def simulate(batch: int, seq_tokens: int) -> Run:
        place = Where("forward", f"only in batch {batch}", "")
        return as_run(batch, seq_tokens, Timeline([(0, 512, WEIGHTS), (1, 1024 * batch, place)], 1))

    assert Growth(simulate).allocated_bytes(7, 128) == 512 + 1024 * 7
