"""torch's CUDACachingAllocator on one device and one stream: which block an allocation takes, and so how much is allocated and reserved."""

import bisect

GRAIN = 512
SMALL_LIMIT = 1 << 20
SMALL_SEGMENT = 2 << 20
LARGE_SEGMENT = 20 << 20
LARGE_LIMIT = 10 << 20


class Block:
    """A piece of a segment, linked to its neighbours."""

    __slots__ = ("address", "following", "free", "pool", "previous", "requested", "size")

    def __init__(self, size: int, address: int, pool: "list[tuple[int, int, Block]]") -> None:
        self.size, self.address, self.pool = size, address, pool
        self.free = True
        self.requested = 0
        self.previous: Block | None = None
        self.following: Block | None = None


class CachingAllocator:
    """Counts bytes requested, allocated (whole blocks) and reserved (whole segments), with their peaks."""

    def __init__(self) -> None:
        self.requested = self.allocated = self.reserved = 0
        self.peak_requested = self.peak_allocated = self.peak_reserved = 0
        self._small: list[tuple[int, int, Block]] = []
        self._large: list[tuple[int, int, Block]] = []
        self._next_address = 1 << 40

    def reset_peak(self) -> None:
        """Let the peaks start from what is held now."""
        self.peak_requested, self.peak_allocated, self.peak_reserved = self.requested, self.allocated, self.reserved

    def malloc(self, nbytes: int) -> Block | None:
        """The best-fitting free block, split if enough is left over; None for zero bytes."""
        if nbytes == 0:
            return None
        size = -(-nbytes // GRAIN) * GRAIN
        pool = self._small if size <= SMALL_LIMIT else self._large
        index = bisect.bisect_left(pool, (size, 0))
        block = pool.pop(index)[2] if index < len(pool) else self._segment(size, pool)
        rest = block.size - size
        if rest >= GRAIN if pool is self._small else rest > SMALL_LIMIT:
            self._split(block, size, rest)
        block.free, block.requested = False, nbytes
        self.requested += nbytes
        self.allocated += block.size
        self.peak_requested = max(self.peak_requested, self.requested)
        self.peak_allocated = max(self.peak_allocated, self.allocated)
        return block

    def free(self, block: Block | None) -> None:
        """Give a block back, merged with its free neighbours."""
        if block is None:
            return
        self.requested -= block.requested
        self.allocated -= block.size
        block.free = True
        if block.previous is not None and block.previous.free:
            self._take(block.previous)
            block = self._merge(block.previous, block)
        if block.following is not None and block.following.free:
            self._take(block.following)
            block = self._merge(block, block.following)
        self._offer(block)

    def empty_cache(self) -> None:
        """Give wholly free segments back to the device."""
        for pool in (self._small, self._large):
            whole = [entry for entry in pool if entry[2].previous is None and entry[2].following is None]
            self.reserved -= sum(size for size, _, _ in whole)
            pool[:] = [entry for entry in pool if entry[2].previous is not None or entry[2].following is not None]

    def _segment(self, size: int, pool: list[tuple[int, int, Block]]) -> Block:
        if size <= SMALL_LIMIT:
            nbytes = SMALL_SEGMENT
        elif size < LARGE_LIMIT:
            nbytes = LARGE_SEGMENT
        else:
            nbytes = -(-size // SMALL_SEGMENT) * SMALL_SEGMENT
        self.reserved += nbytes
        self.peak_reserved = max(self.peak_reserved, self.reserved)
        block = Block(nbytes, self._next_address, pool)
        self._next_address += nbytes + LARGE_SEGMENT
        return block

    def _split(self, block: Block, size: int, rest: int) -> None:
        tail = Block(rest, block.address + size, block.pool)
        tail.previous, tail.following = block, block.following
        if block.following is not None:
            block.following.previous = tail
        block.following, block.size = tail, size
        self._offer(tail)

    @staticmethod
    def _merge(left: Block, right: Block) -> Block:
        left.size += right.size
        left.following = right.following
        if right.following is not None:
            right.following.previous = left
        return left

    @staticmethod
    def _offer(block: Block) -> None:
        bisect.insort(block.pool, (block.size, block.address, block))

    @staticmethod
    def _take(block: Block) -> None:
        block.pool.pop(bisect.bisect_left(block.pool, (block.size, block.address)))
