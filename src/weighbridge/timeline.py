"""What a step did to memory: events -> curve, peak, what was live at the peak, and how it grows with batch and length."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from weighbridge.phantom.session import Where

BLOCK = 512
SORTED_EMBEDDING_TOKENS = 3072
"""Above so many tokens torch's embedding backward sorts, with other temporaries (aten/src/ATen/native/cuda/Embedding.cu)."""

CATEGORIES = ("weights", "gradients", "optimizer", "activations", "loss", "temporaries", "cache", "context")
_BY_PHASE = {"weights": "weights", "state": "optimizer", "workspace": "context", "inputs": "activations", "cache": "cache"}
_FORWARD = frozenset({"forward", "recompute"})

RawEvent = tuple[int, int, Where]
"""(storage id, bytes: positive where it was allocated and negative where it was freed, where)."""


def rounded(size_bytes: int) -> int:
    """Bytes that the caching allocator takes for a request: multiples of 512, at least one."""
    return max(BLOCK, -(-size_bytes // BLOCK) * BLOCK) if size_bytes else 0


@dataclass(frozen=True, slots=True)
class Peak:
    """The moment of most allocated bytes: its event and where the model was then."""

    allocated_bytes: int
    index: int
    where: Where


class Timeline:
    """The events of one step. Those before `start` happened before it: weights and optimizer state.

    The curve, the peak and the live set are computed, never stored; sizes are bytes rounded to the allocator's 512.
    """

    def __init__(self, events: Sequence[RawEvent], start: int = 0) -> None:
        self.events = events
        self.start = start

    @cached_property
    def sizes(self) -> "np.ndarray[Any, np.dtype[np.int64]]":
        """Rounded bytes of each event, negative where a storage was freed."""
        raw = np.fromiter((event[1] for event in self.events), dtype=np.int64, count=len(self.events))
        rounded: np.ndarray[Any, np.dtype[np.int64]] = np.sign(raw) * (-(-np.abs(raw) // BLOCK) * BLOCK)
        return rounded

    @cached_property
    def curve(self) -> "np.ndarray[Any, np.dtype[np.int64]]":
        """Allocated bytes after each event."""
        return np.cumsum(self.sizes)

    @cached_property
    def visits(self) -> dict[tuple[Where, int], tuple[int, int]]:
        """The events from `start` on by visit: (place, how often it was come to before) -> first event and the one after the last."""
        found: dict[tuple[Where, int], tuple[int, int]] = {}
        counts: dict[Where, int] = {}
        events, begin, total = self.events, self.start, len(self.events)
        while begin < total:
            where = events[begin][2]
            end = begin + 1
            while end < total and events[end][2] is where:
                end += 1
            count = counts.get(where, 0)
            counts[where] = count + 1
            found[where, count] = (begin, end)
            begin = end
        return found

    @cached_property
    def peak(self) -> Peak:
        """The first moment of most allocated bytes from `start` on."""
        if len(self.events) <= self.start:
            return Peak(int(self.curve[-1]) if len(self.events) else 0, max(0, len(self.events) - 1), Where("", "", ""))
        index = self.start + int(np.argmax(self.curve[self.start :]))
        return Peak(int(self.curve[index]), index, self.events[index][2])

    @property
    def end_bytes(self) -> int:
        """Bytes still allocated after the last event."""
        return int(self.curve[-1]) if len(self.events) else 0

    def after(self, phase: str) -> int:
        """Bytes allocated when `phase` ended for the last time; 0 where there was no such phase."""
        for index in range(len(self.events) - 1, -1, -1):
            if self.events[index][2].phase == phase:
                return int(self.curve[index])
        return 0

    def live(self, index: int) -> dict[int, tuple[int, Where]]:
        """Storages alive after event `index`: id -> (bytes, where it was allocated)."""
        alive: dict[int, tuple[int, Where]] = {}
        for storage, size, where in self.events[: index + 1]:
            if size > 0:
                alive[storage] = (rounded(size), where)
            else:
                alive.pop(storage, None)
        return alive

    def breakdown(self, index: int | None = None) -> dict[str, int]:
        """Bytes by category at event `index` (the peak by default); every category is named."""
        index = self.peak.index if index is None else index
        freed = self._phase_of_death(index)
        totals = dict.fromkeys(CATEGORIES, 0)
        for storage, (size, where) in self.live(index).items():
            totals[_category(where, freed.get(storage))] += size
        return totals

    def _phase_of_death(self, index: int) -> dict[int, str]:
        later: dict[int, str] = {}
        for storage, size, where in self.events[index + 1 :]:
            if size <= 0 and storage not in later:
                later[storage] = where.phase
        return later


def _category(where: Where, died_in: str | None) -> str:
    """What a storage is for, from where it was born and in which phase it dies."""
    known = _BY_PHASE.get(where.phase)
    if known is not None:
        return known
    if where.phase == "backward" and died_in not in {"backward", "recompute", "forward"}:
        return "gradients"
    if not where.module and where.phase in {"forward", "backward"}:
        return "loss"
    if where.phase in _FORWARD and died_in != where.phase:
        return "activations"
    return "temporaries"


@dataclass(frozen=True)
class Run:
    """One simulated step at a batch and a length; what the caching allocator makes of it is worked out when it is asked for."""

    batch: int
    seq_tokens: int
    timeline: Timeline
    play: Callable[[Timeline], tuple[int, int]]

    @cached_property
    def usage(self) -> tuple[int, int]:
        """Peak allocated and reserved bytes."""
        return self.play(self.timeline)

    @property
    def allocated_bytes(self) -> int:
        """Peak bytes of blocks that tensors hold."""
        return self.usage[0]

    @property
    def reserved_bytes(self) -> int:
        """Peak bytes of segments that the allocator holds."""
        return self.usage[1]


class Growth:
    """Peak bytes at any batch and length, from a few simulated steps.

    At each place of the step the most that is allocated is affine in the batch and quadratic in the length. A batch of one is its own
    case, since sums over a broadcast batch vanish there; torch's embedding backward sorts above 3,072 tokens, so the batches simulated
    lie on the side of the one asked for; without backward (`trains` false) neither matters. `longest` is the model's context, beyond
    which nothing is simulated. Where the steps have no common peak, the point asked for is simulated itself.
    """

    def __init__(self, simulate: Callable[[int, int], Run], longest: int = 1 << 20, *, trains: bool = True) -> None:
        self._simulate = simulate
        self._trains = trains
        self._longest = longest
        self._runs: dict[tuple[int, int], Run] = {}
        self._asked: dict[tuple[int, int], Run] = {}
        self._lines: dict[tuple[int, bool], _Polynomial | None] = {}
        self._curve: list[_Polynomial | None] = []

    def run(self, batch: int, seq_tokens: int) -> Run:
        """The simulated step itself, kept: this point is answered by it from now on."""
        found = self._asked[batch, seq_tokens] = self.point(batch, seq_tokens)
        return found

    def point(self, batch: int, seq_tokens: int) -> Run:
        """A simulated step that others are told from."""
        key = (batch, seq_tokens)
        if key not in self._runs:
            self._runs[key] = self._simulate(batch, seq_tokens)
        return self._runs[key]

    def allocated_bytes(self, batch: int, seq_tokens: int) -> int:
        """Peak allocated bytes."""
        known = self._asked.get((batch, seq_tokens))
        if known is not None:
            return known.allocated_bytes
        polynomial = self._along_batch(batch, seq_tokens) if batch > 1 else self._along_length()
        if polynomial is None:
            return self.run(batch, seq_tokens).allocated_bytes
        return polynomial.peak(batch if batch > 1 else seq_tokens)

    def reserved_bytes(self, batch: int, seq_tokens: int) -> int:
        """Peak reserved bytes: the allocated peak and the share that the allocator held beside it at the steps that were asked for."""
        allocated = self.allocated_bytes(batch, seq_tokens)
        known = self._asked.get((batch, seq_tokens))
        if known is not None:
            return known.reserved_bytes
        ratio = max((run.reserved_bytes / max(1, run.allocated_bytes) for run in self._asked.values()), default=1.0)
        spare = max((run.reserved_bytes - run.allocated_bytes for run in self._asked.values()), default=0)
        return allocated + max(spare, int(allocated * (ratio - 1.0)))

    def _along_batch(self, batch: int, seq_tokens: int) -> "_Polynomial | None":
        sorts = self._trains and batch * seq_tokens > SORTED_EMBEDDING_TOKENS
        key = (seq_tokens, sorts)
        if key not in self._lines:
            first = max(2, SORTED_EMBEDDING_TOKENS // seq_tokens + 1) if sorts else 2
            if not self._trains:
                first = 1
            points = [first, first + 1] if sorts or not self._trains or 3 * seq_tokens <= SORTED_EMBEDDING_TOKENS else []
            self._lines[key] = _fit({point: self.point(point, seq_tokens) for point in points})
        return self._lines[key]

    def _along_length(self) -> "_Polynomial | None":
        if not self._curve:
            middle = next(iter(self._runs))[1] if self._runs else SORTED_EMBEDDING_TOKENS
            widest = 2 * middle if 2 * middle <= self._longest else middle
            points = sorted({max(1, widest // 4), max(1, widest // 2), widest})
            self._curve.append(_fit({point: self.point(1, point) for point in points}))
        return self._curve[0]


@dataclass(frozen=True, slots=True)
class _Polynomial:
    """The bytes after each event as a polynomial of x: coefficients[k] is the factor of x**k."""

    coefficients: tuple["np.ndarray[Any, np.dtype[np.float64]]", ...]

    def peak(self, x: int) -> int:
        total = self.coefficients[-1]
        for coefficient in self.coefficients[-2::-1]:
            total = total * x + coefficient
        return round(float(total.max()) / BLOCK) * BLOCK


def _fit(runs: Mapping[int, Run]) -> _Polynomial | None:
    """Newton's interpolation of the bytes after every event, or None where the steps' peaks lie at places that the others lack."""
    if len(runs) < 2:
        return None
    points = sorted(runs)
    timelines = [runs[point].timeline for point in points]
    values = _aligned(timelines)
    if values is None:
        return None
    slope = (values[1] - values[0]) / (points[1] - points[0])
    if len(points) == 2:
        return _Polynomial((values[0] - slope * points[0], slope))
    later = (values[2] - values[1]) / (points[2] - points[1])
    bend = (later - slope) / (points[2] - points[0])
    straight = slope - bend * (points[0] + points[1])
    return _Polynomial((values[0] - straight * points[0] - bend * points[0] ** 2, straight, bend))


def _aligned(timelines: Sequence[Timeline]) -> "list[np.ndarray[Any, np.dtype[np.float64]]] | None":
    """The curves at the events of the visits that all timelines make, in one order; None where one of the peaks would be lost.

    Where a visit has more events in one than in another (a kernel that sorts), the first ones count, and the most of the visit.
    """
    curves = [timeline.curve.tolist() for timeline in timelines]
    others = [timeline.visits for timeline in timelines[1:]]
    values: list[list[int]] = [[] for _ in timelines]
    for place, (begin, end) in timelines[0].visits.items():
        spans = [(begin, end), *(other.get(place, (0, 0)) for other in others)]
        shortest = min(last - first for first, last in spans)
        alike = all(last - first == shortest for first, last in spans)
        for value, curve, (first, last) in zip(values, curves, spans, strict=True):
            value.extend(curve[first : first + shortest])
            if shortest and not alike:
                value.append(max(curve[first:last]))
    if any(not value or max(value) < timeline.peak.allocated_bytes for value, timeline in zip(values, timelines, strict=True)):
        return None
    return [np.array(value, dtype=np.float64) for value in values]
