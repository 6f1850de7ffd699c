"""Fit: verdicts, the largest batch and length, remedies and the two-card cut."""

from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weighbridge.base.units import GIB, MIB
from weighbridge.cards import Card, custom_card, find_card, load_cards
from weighbridge.fit import DEFAULT_MARGIN, LARGEST_BATCH, Margin, fit_card, fit_cards, largest, room_bytes, verdict
from weighbridge.jobs.split import two_card_cut

ORDER = {"does not fit": 0, "unsure": 1, "fits": 2}


@dataclass
class Straight:
    """Fixed bytes, bytes a token, bytes a token squared."""

    fixed: int
    token: int
    square: int = 0
    batch: int = 1
    seq_tokens: int = 2048
    method: str = "full"
    asked: int = 0

    def device_bytes(self, batch: int, seq_tokens: int, card: Card) -> int:
        self.asked += 1
        return card.context_bytes + self.fixed + batch * (seq_tokens * self.token + seq_tokens**2 * self.square)


footprints = st.builds(
    Straight,
    st.integers(0, 90 * GIB),
    st.integers(0, 10**6),
    st.integers(0, 2000),
    st.integers(1, 64),
    st.sampled_from([1, 128, 2048, 8192]),
)
cards = st.sampled_from(load_cards())


def test_a_verdict_is_unsure_only_within_the_margin():
    # margin 0.98 to 1.03 around a need of 100: room of 103 is enough for its high end, 98 for its low end, 97 for neither
    assert [verdict(100_000, capacity, Margin(0.98, 1.03, "")) for capacity in (103_000, 102_999, 98_000, 97_999)] == [
        "fits",
        "unsure",
        "unsure",
        "does not fit",
    ]


def test_the_largest_batch_of_a_straight_footprint_is_a_division():
    card = replace(custom_card(10 * GIB), context_bytes=0)
    fit = fit_card(Straight(GIB, MIB // 4, seq_tokens=1024), card, context_tokens=4096, margin=Margin(1, 1, ""))
    assert (fit.verdict, fit.largest_batch) == ("fits", 9 * 4)  # 256 MiB a sample, 9 GiB left
    assert fit.longest_seq == 4096
    assert fit.spare_bytes == 10 * GIB - GIB - 256 * MIB


def test_the_longest_sequence_is_a_multiple_of_128_or_the_models_context():
    card = replace(custom_card(10 * GIB), context_bytes=0)
    assert fit_card(Straight(0, 10 * MIB), card, context_tokens=8192, margin=Margin(1, 1, "")).longest_seq == 1024
    assert fit_card(Straight(0, 1), card, context_tokens=1000).longest_seq == 1000
    assert fit_card(Straight(11 * GIB, 1), card, context_tokens=1000).longest_seq == 0


@settings(deadline=None)
@given(footprints, cards)
def test_the_largest_batch_fits_and_one_more_does_not(footprint, card):
    fit = fit_card(footprint, card, context_tokens=16_384)
    room = room_bytes(card.memory_bytes)
    if fit.largest_batch:
        assert footprint.device_bytes(fit.largest_batch, footprint.seq_tokens, card) <= room
    if fit.largest_batch < LARGEST_BATCH:
        assert footprint.device_bytes(fit.largest_batch + 1, footprint.seq_tokens, card) > room
    assert (fit.verdict == "fits") == (fit.largest_batch >= footprint.batch)


@settings(deadline=None)
@given(footprints, cards)
def test_the_longest_sequence_fits_and_128_more_do_not(footprint, card):
    fit = fit_card(footprint, card, context_tokens=16_384)
    room = room_bytes(card.memory_bytes)
    if fit.longest_seq:
        assert footprint.device_bytes(footprint.batch, fit.longest_seq, card) <= room
    if fit.longest_seq < 16_384:
        assert footprint.device_bytes(footprint.batch, fit.longest_seq + 128, card) > room


@settings(deadline=None)
@given(footprints, st.integers(1, 300 * GIB), st.integers(0, 300 * GIB))
def test_more_capacity_never_makes_a_verdict_worse(footprint, small, more):
    narrow, wide = fit_cards(footprint, (custom_card(small), custom_card(small + more)), context_tokens=4096)
    assert ORDER[narrow.verdict] <= ORDER[wide.verdict]
    assert narrow.largest_batch <= wide.largest_batch
    assert narrow.longest_seq <= wide.longest_seq


@settings(deadline=None)
@given(st.lists(st.integers(0, 50), min_size=1, max_size=60), st.integers(0, 900), st.integers(0, 60))
def test_largest_finds_what_a_scan_finds(steps, room, limit):
    sizes = [sum(steps[: n + 1]) for n in range(len(steps))]

    def size(n: int) -> int:
        return sizes[min(n - 1, len(sizes) - 1)]

    assert largest(size, room, limit) == max((n for n in range(1, limit + 1) if size(n) <= room), default=0)


def test_a_search_asks_few_questions_and_shares_them_between_cards():
    footprint = Straight(6 * GIB, 300_000, 16)
    alone = fit_card(footprint, find_card("a100"), context_tokens=131_072)
    assert alone.verdict == "fits"
    assert footprint.asked < 40
    footprint.asked = 0
    ampere = [card for card in load_cards() if card.generation == "ampere"]
    fit_cards(footprint, ampere, context_tokens=131_072)
    assert footprint.asked < 12 * len(ampere)


def test_remedies_are_the_single_changes_that_make_it_fit_the_smallest_first():
    card = replace(custom_card(10 * GIB), context_bytes=0)
    options = [
        ("--checkpointing", Straight(9 * GIB, 0)),
        ("--method lora", Straight(2 * GIB, 0)),
        ("--optimizer sgd", Straight(11 * GIB, 0)),
    ]
    fit = fit_card(Straight(12 * GIB, 0), card, context_tokens=2048, alternatives=options)
    assert fit.verdict == "does not fit"
    assert [(remedy.option, remedy.saves_bytes) for remedy in fit.remedies] == [("--checkpointing", 3 * GIB), ("--method lora", 10 * GIB)]
    assert fit_card(Straight(GIB, 0), card, context_tokens=2048, alternatives=options).remedies == ()


def test_the_cut_over_two_cards_is_decided_by_the_worse_half():
    # head 5, blocks 3 3 3 3, tail 2, shared 1: after one block 9 | 12, after two 12 | 9, so the first of the two equal cuts
    cut = two_card_cut([3, 3, 3, 3], head_bytes=5, tail_bytes=2, shared_bytes=1)
    assert (cut.index, cut.first_bytes, cut.second_bytes, cut.worst_bytes) == (1, 9, 12, 12)


@settings(deadline=None)
@given(st.lists(st.integers(0, 100), max_size=20), st.integers(0, 100), st.integers(0, 100), st.integers(0, 9))
def test_no_other_cut_is_better_and_nothing_is_lost(blocks, head, tail, shared):
    cut = two_card_cut(blocks, head, tail, shared)
    assert cut.first_bytes + cut.second_bytes == head + tail + sum(blocks) + 2 * shared
    assert all(max(head + sum(blocks[:i]), tail + sum(blocks[i:])) + shared >= cut.worst_bytes for i in range(len(blocks) + 1))


def test_the_margin_says_what_it_rests_on():
    assert DEFAULT_MARGIN.low < 1 < DEFAULT_MARGIN.high
    assert len(DEFAULT_MARGIN.reason) > 40
    with pytest.raises(AttributeError):
        DEFAULT_MARGIN.low = 0.5  # type: ignore[misc]
