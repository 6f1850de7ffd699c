"""torch's CUDACachingAllocator on one device and one stream: what it reserves for the storages that a session made and freed.

Facts of c10/cuda/CUDACachingAllocator.cpp (torch 2.13). Requests are rounded to 512 bytes. Up to 1 MiB they come from segments of
2 MiB; below 10 MiB from segments of 20 MiB; larger ones have a segment of their own in steps of 2 MiB. The best-fitting free block
is taken and split, and a freed block merges with its free neighbours. With expandable segments each pool is one segment that
grows by pages of 2 or 20 MiB, every block is split, and its free end is taken last.
"""

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

GRAIN: Final = 512
SMALL_LIMIT: Final = 1 << 20
SMALL_SEGMENT: Final = 2 << 20
LARGE_SEGMENT: Final = 20 << 20
LARGE_LIMIT: Final = 10 << 20
LARGE_STEP: Final = 2 << 20
_APART: Final = 1 << 32
"""Distance between the made-up addresses of segments."""


def rounded_size(nbytes: int) -> int:
    """Bytes of a request once it is rounded: multiples of 512, at least one."""
    return max(GRAIN, -(-nbytes // GRAIN) * GRAIN)


def segment_size(size: int) -> int:
    """Bytes that are asked of the driver for a rounded request without a free block."""
    if size <= SMALL_LIMIT:
        return SMALL_SEGMENT
    return LARGE_SEGMENT if size < LARGE_LIMIT else -(-size // LARGE_STEP) * LARGE_STEP


class Block:
    """A piece of a segment, linked to its neighbours."""

    __slots__ = ("address", "following", "free", "pool", "previous", "size")

    def __init__(self, size: int, address: int, pool: "Pool") -> None:
        self.size, self.address, self.pool = size, address, pool
        self.free = True
        self.previous: Block | None = None
        self.following: Block | None = None


class Pool:
    """The free blocks of small or of large requests, by size and then address; `tail` ends an expandable segment."""

    __slots__ = ("free", "page", "small", "tail")

    def __init__(self, *, small: bool) -> None:
        self.small = small
        self.page = SMALL_SEGMENT if small else LARGE_SEGMENT
        self.free: list[tuple[int, int, Block]] = []
        self.tail: Block | None = None

    def offer(self, block: Block) -> None:
        """Make a block available."""
        bisect.insort(self.free, (block.size, block.address, block))

    def withdraw(self, block: Block) -> None:
        """Take a certain block out."""
        self.free.pop(bisect.bisect_left(self.free, (block.size, block.address)))


@dataclass(frozen=True, slots=True)
class Usage:
    """What a list of events took: bytes at the end and at most; `curve` holds the allocated bytes after each event, if asked for."""

    allocated: int
    reserved: int
    peak_allocated: int
    peak_reserved: int
    curve: tuple[int, ...] = ()


class CachingAllocator:
    """Counts bytes allocated (whole blocks) and reserved (whole segments), with their peaks."""

    def __init__(self, *, expandable_segments: bool = False) -> None:
        self.expandable_segments = expandable_segments
        self.allocated = self.reserved = 0
        self.peak_allocated = self.peak_reserved = 0
        self._small, self._large = Pool(small=True), Pool(small=False)
        self._next_address = _APART

    def play(self, events: Sequence[Sequence[Any]], start: int = 0, *, curve: bool = False, empty_cache: bool = False) -> Usage:
        """Take a recorder's events in order; the peaks are those from event `start` on, before which the cache may be emptied."""
        held: dict[int, Block] = {}
        before, after = events[:start], events[start:]
        self._take(before, held, None)
        if empty_cache:
            self.empty_cache()
        self.reset_peak()
        points: list[int] | None = [] if curve else None
        self._take(after, held, points)
        return Usage(self.allocated, self.reserved, self.peak_allocated, self.peak_reserved, tuple(points or ()))

    def _take(self, events: Iterable[Sequence[Any]], held: dict[int, Block], points: list[int] | None) -> None:
        for event in events:
            identity, size = event[0], event[1]
            if size > 0:
                held[identity] = self.malloc(size)
            elif size < 0:
                block = held.pop(identity, None)
                if block is not None:
                    self.free(block)
            if points is not None:
                points.append(self.allocated)

    def reset_peak(self) -> None:
        """Let the peaks start from what is held now."""
        self.peak_allocated, self.peak_reserved = self.allocated, self.reserved

    def malloc(self, nbytes: int) -> Block:
        """The best-fitting free block, split if enough is left over."""
        size = rounded_size(nbytes)
        pool = self._small if size <= SMALL_LIMIT else self._large
        block = self._best(pool, size) or (self._grown(pool, size) if self.expandable_segments else self._segment(pool, size))
        rest = block.size - size
        if rest >= GRAIN if pool.small or self.expandable_segments else rest > SMALL_LIMIT:
            self._split(block, size, rest)
        block.free = False
        self.allocated += block.size
        self.peak_allocated = max(self.peak_allocated, self.allocated)
        return block

    def free(self, block: Block) -> None:
        """Give a block back, merged with its free neighbours."""
        self.allocated -= block.size
        block.free = True
        pool, previous, following = block.pool, block.previous, block.following
        if previous is not None and previous.free:
            pool.withdraw(previous)
            block = _merge(previous, block)
        if following is not None and following.free:
            pool.withdraw(following)
            block = _merge(block, following)
        pool.offer(block)

    def empty_cache(self) -> None:
        """Give free segments, or the free whole pages of an expandable segment's end, back to the device."""
        for pool in (self._small, self._large):
            if self.expandable_segments:
                self._trim(pool)
                continue
            whole = [entry for entry in pool.free if entry[2].previous is None and entry[2].following is None]
            self.reserved -= sum(size for size, _, _ in whole)
            pool.free = [entry for entry in pool.free if entry[2].previous is not None or entry[2].following is not None]

    def _best(self, pool: Pool, size: int) -> Block | None:
        free = pool.free
        index = bisect.bisect_left(free, (size, 0))
        if index == len(free):
            return None
        if self.expandable_segments and free[index][2] is pool.tail and index + 1 < len(free):
            index += 1
        return free.pop(index)[2]

    def _reserve(self, nbytes: int) -> None:
        self.reserved += nbytes
        self.peak_reserved = max(self.peak_reserved, self.reserved)

    def _segment(self, pool: Pool, size: int) -> Block:
        nbytes = segment_size(size)
        self._reserve(nbytes)
        block = Block(nbytes, self._next_address, pool)
        self._next_address += nbytes + _APART
        return block

    def _grown(self, pool: Pool, size: int) -> Block:
        """The end of the pool's segment, with as many pages more as the request needs."""
        tail = pool.tail
        spare = tail.size if tail is not None and tail.free else 0
        grown = -(-(size - spare) // pool.page) * pool.page
        self._reserve(grown)
        if tail is not None and tail.free:
            pool.withdraw(tail)
            tail.size += grown
            return tail
        block = Block(grown, tail.address + tail.size if tail is not None else 0, pool)
        if tail is not None:
            tail.following, block.previous = block, tail
        pool.tail = block
        return block

    def _trim(self, pool: Pool) -> None:
        tail = pool.tail
        if tail is None or not tail.free:
            return
        pages = tail.size // pool.page * pool.page
        pool.withdraw(tail)
        self.reserved -= pages
        tail.size -= pages
        if tail.size:
            pool.offer(tail)
            return
        pool.tail = tail.previous
        if tail.previous is not None:
            tail.previous.following = None

    @staticmethod
    def _split(block: Block, size: int, rest: int) -> None:
        pool = block.pool
        remainder = Block(rest, block.address + size, pool)
        remainder.previous, remainder.following = block, block.following
        if block.following is not None:
            block.following.previous = remainder
        block.following, block.size = remainder, size
        if pool.tail is block:
            pool.tail = remainder
        pool.offer(remainder)


def _merge(left: Block, right: Block) -> Block:
    left.size += right.size
    left.following = right.following
    if right.following is not None:
        right.following.previous = left
    if right.pool.tail is right:
        right.pool.tail = left
    return left
