"""The caching allocator: its constants and rules on paper, and laws that hold for any events."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weighbridge.phantom.allocator import CachingAllocator, rounded_size, segment_size

KIB, MIB = 1 << 10, 1 << 20
SIZES = st.one_of(st.integers(1, 4 * KIB), st.integers(1, 4 * MIB), st.integers(1, 200 * MIB))


@pytest.mark.parametrize(("asked", "got"), [(1, 512), (512, 512), (513, 1024), (1000, 1024), (MIB, MIB)])
def test_requests_are_rounded_to_512_bytes(asked: int, got: int) -> None:
    assert rounded_size(asked) == got
    allocator = CachingAllocator()
    allocator.malloc(asked)
    assert allocator.allocated == got


@pytest.mark.parametrize(
    ("asked", "reserved"),
    [
        (512, 2 * MIB), (MIB, 2 * MIB), (MIB + 512, 20 * MIB), (10 * MIB - 512, 20 * MIB), (10 * MIB, 10 * MIB), (11 * MIB, 12 * MIB),
        (11 * MIB + 512, 12 * MIB), (25 * MIB, 26 * MIB),
    ],
)  # fmt: skip
def test_segments_have_the_sizes_of_torch(asked: int, reserved: int) -> None:
    assert segment_size(asked) == reserved
    allocator = CachingAllocator()
    allocator.malloc(asked)
    assert allocator.reserved == reserved


def test_small_requests_share_a_segment_of_two_mebibytes() -> None:
    allocator = CachingAllocator()
    for _ in range(4096):
        allocator.malloc(512)
    assert allocator.reserved == 2 * MIB
    allocator.malloc(512)
    assert allocator.reserved == 4 * MIB


def test_a_small_rest_of_a_large_block_is_not_split_off() -> None:
    allocator = CachingAllocator()
    allocator.malloc(19 * MIB + 512)  # a segment of 20 MiB would leave less than 1 MiB
    assert (allocator.allocated, allocator.reserved) == (20 * MIB, 20 * MIB)
    whole = CachingAllocator()
    whole.malloc(11 * MIB)  # of 12 MiB, exactly 1 MiB is left: not more than 1 MiB, so not split
    assert whole.allocated == 12 * MIB


def test_more_than_a_mebibyte_left_over_serves_the_next_request() -> None:
    allocator = CachingAllocator()
    allocator.malloc(8 * MIB)
    allocator.malloc(8 * MIB)
    assert (allocator.allocated, allocator.reserved) == (16 * MIB, 20 * MIB)


def test_the_smallest_block_that_fits_is_taken() -> None:
    allocator = CachingAllocator()
    small, large = allocator.malloc(30 * MIB), allocator.malloc(50 * MIB)
    allocator.free(large)
    allocator.free(small)
    assert allocator.malloc(29 * MIB) is small


def test_freed_neighbours_become_one_block() -> None:
    allocator = CachingAllocator()
    blocks = [allocator.malloc(5 * MIB) for _ in range(4)]
    for block in (blocks[0], blocks[2], blocks[1], blocks[3]):
        allocator.free(block)
    allocator.malloc(20 * MIB)
    assert allocator.reserved == 20 * MIB


def test_pages_of_an_expandable_segment_are_added_to_its_free_end() -> None:
    allocator = CachingAllocator(expandable_segments=True)
    first = allocator.malloc(15 * MIB)
    assert allocator.reserved == 20 * MIB
    allocator.malloc(15 * MIB)  # 5 MiB are there; one page of 20 MiB more
    assert (allocator.allocated, allocator.reserved) == (30 * MIB, 40 * MIB)
    allocator.free(first)
    allocator.malloc(40 * MIB)  # 10 MiB at the end, two pages more
    assert allocator.reserved == 80 * MIB


def test_an_expandable_segment_wastes_no_rest_of_a_block() -> None:
    allocator = CachingAllocator(expandable_segments=True)
    allocator.malloc(19 * MIB + 512)
    assert allocator.allocated == 19 * MIB + 512


def test_an_emptied_cache_gives_whole_segments_back() -> None:
    allocator = CachingAllocator()
    kept, freed = allocator.malloc(5 * MIB), allocator.malloc(30 * MIB)
    allocator.free(freed)
    allocator.empty_cache()
    assert allocator.reserved == 20 * MIB
    allocator.free(kept)
    allocator.empty_cache()
    assert allocator.reserved == 0


def test_peaks_count_from_the_start_that_is_asked_for() -> None:
    events = [(0, 64 * MIB, None), (0, -64 * MIB, None), (1, MIB, None), (2, MIB, None), (2, -MIB, None)]
    usage = CachingAllocator().play(events, start=2, curve=True)
    assert usage.peak_allocated == 2 * MIB
    assert usage.peak_reserved == 66 * MIB
    assert usage.curve == (MIB, 2 * MIB, MIB)


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[int, int, None]]:
    events: list[tuple[int, int, None]] = []
    live: dict[int, int] = {}
    for number in range(draw(st.integers(1, 60))):
        if live and draw(st.booleans()):
            name = draw(st.sampled_from(sorted(live)))
            events.append((name, -live.pop(name), None))
        else:
            live[number] = draw(SIZES)
            events.append((number, live[number], None))
    return events


@given(histories(), st.booleans())
@settings(max_examples=100, deadline=None)
def test_what_is_allocated_is_what_lives_and_fits_in_what_is_reserved(events: list[tuple[int, int, None]], expandable: bool) -> None:
    allocator = CachingAllocator(expandable_segments=expandable)
    usage = allocator.play(events, curve=True)
    live: dict[int, int] = {}
    for (name, size, _), allocated in zip(events, usage.curve, strict=True):
        if size > 0:
            live[name] = rounded_size(size)
        else:
            del live[name]
        spare = 0 if expandable else MIB * len(live)
        assert sum(live.values()) <= allocated <= sum(live.values()) + spare
    assert usage.allocated <= usage.reserved <= usage.peak_reserved
    assert usage.peak_allocated == max(usage.curve)


@given(histories(), st.booleans())
@settings(max_examples=50, deadline=None)
def test_everything_freed_leaves_whole_segments_and_nothing_allocated(events: list[tuple[int, int, None]], expandable: bool) -> None:
    live: dict[int, int] = {}
    for name, size, _ in events:
        live[name] = live.get(name, 0) + size
    allocator = CachingAllocator(expandable_segments=expandable)
    allocator.play([*events, *((name, -size, None) for name, size in live.items() if size)])
    assert allocator.allocated == 0
    allocator.empty_cache()
    assert allocator.reserved == 0


@given(histories(), SIZES)
@settings(max_examples=50, deadline=None)
def test_one_more_request_never_lowers_a_peak(events: list[tuple[int, int, None]], more: int) -> None:
    before, after = CachingAllocator().play(events), CachingAllocator().play([*events, (-1, more, None)])
    assert after.peak_allocated >= before.peak_allocated
    assert after.peak_reserved >= before.peak_reserved


def test_thirty_thousand_events_take_a_moment() -> None:
    events = [event for number in range(7500) for event in ((2 * number, 3 * MIB, None), (2 * number + 1, 7 * KIB, None))]
    events += [(2 * number + odd, -(3 * MIB if not odd else 7 * KIB), None) for number in range(7500) for odd in (0, 1)]
    started = time.process_time()
    CachingAllocator().play(events)
    assert time.process_time() - started < 0.6  # a tenth of that on an idle core
