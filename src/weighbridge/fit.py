"""Does it fit: a verdict with its margin, the largest batch, the longest sequence, and what single change would help."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from weighbridge.cards import Card

Verdict = Literal["fits", "unsure", "does not fit"]

LARGEST_BATCH: Final = 65_536
SEQUENCE_STEP: Final = 128


class Footprint(Protocol):
    """A job that can say what it takes on one card at any batch and length: exact at the point asked, and monotone in both.

    It may look at a card's vendor, capability, context and workspace, never at its capacity: answers are shared between cards
    that agree in those.
    """

    @property
    def method(self) -> str:
        """`full`, `lora`, `qlora` or `serve`."""

    @property
    def batch(self) -> int:
        """The batch that was asked for."""

    @property
    def seq_tokens(self) -> int:
        """The length that was asked for."""

    def device_bytes(self, batch: int, seq_tokens: int, card: Card) -> int:
        """Bytes taken on the card at the peak: the allocator's segments and the context."""


@dataclass(frozen=True, slots=True)
class Margin:
    """What lies between the estimate and a real run: the need is between `low` and `high` times it."""

    low: float
    high: float
    reason: str


DEFAULT_MARGIN: Final = Margin(
    low=0.98,
    high=1.03,
    reason="estimates agree with torch's own traces within 2 % at worst; varying lengths and kernels' own workspaces add up to 3 %",
)


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change that alone makes the job fit, and the bytes it saves."""

    option: str
    saves_bytes: int


@dataclass(frozen=True, slots=True)
class Fit:
    """One job on one card. `spare_bytes` is capacity minus the estimate and may be negative; 0 as batch or length means not even one."""

    card: Card
    count: int
    verdict: Verdict
    need_bytes: int
    spare_bytes: int
    largest_batch: int
    longest_seq: int
    remedies: tuple[Remedy, ...] = ()


def room_bytes(capacity_bytes: int, margin: Margin = DEFAULT_MARGIN) -> int:
    """The largest estimate that is still said to fit."""
    return int(capacity_bytes / margin.high)


def verdict(need_bytes: int, capacity_bytes: int, margin: Margin = DEFAULT_MARGIN) -> Verdict:
    """`fits` where even the high end has room, `does not fit` where even the low end has none."""
    if need_bytes <= room_bytes(capacity_bytes, margin):
        return "fits"
    return "does not fit" if need_bytes * margin.low > capacity_bytes else "unsure"


def fit_card(
    footprint: Footprint,
    card: Card,
    *,
    context_tokens: int,
    count: int = 1,
    margin: Margin = DEFAULT_MARGIN,
    alternatives: Sequence[tuple[str, Footprint]] = (),
) -> Fit:
    """One card; `context_tokens` is the longest sequence the model takes, `alternatives` the single changes to try."""
    return fit_cards(footprint, (card,), context_tokens=context_tokens, count=count, margin=margin, alternatives=alternatives)[0]


def fit_cards(
    footprint: Footprint,
    cards: Iterable[Card],
    *,
    context_tokens: int,
    count: int = 1,
    margin: Margin = DEFAULT_MARGIN,
    alternatives: Sequence[tuple[str, Footprint]] = (),
) -> tuple[Fit, ...]:
    """Every card given, in that order; sizes asked once are shared between cards that only differ in capacity."""
    asked = _Asked(footprint)
    options = [(text, _Asked(other)) for text, other in alternatives]
    return tuple(_fit(asked, card, context_tokens, count, margin, options) for card in cards)


def largest(size: Callable[[int], int], room: int, limit: int) -> int:
    """The largest n of 1..limit with `size(n) <= room`, or 0; `size` is monotone.

    Sizes are close to straight lines, so the bracket is cut where a line would cross, and halved every other time.
    """
    if limit < 1 or size(1) > room:
        return 0
    low, high = _bracket(size, room, limit)
    straight = True
    while high - low > 1:
        middle = (low + high) // 2
        if straight and size(high) > size(low):
            middle = low + (room - size(low)) * (high - low) // (size(high) - size(low))
            middle = min(max(middle, low + 1), high - 1)
        straight = not straight
        if size(middle) > room:
            high = middle
        else:
            low = middle
            if high - low > 1 and size(low + 1) > room:
                return low
    return low


class _Asked:
    """A footprint that remembers its answers."""

    def __init__(self, footprint: Footprint) -> None:
        self.footprint = footprint
        self._answers: dict[tuple[object, ...], int] = {}

    def bytes(self, batch: int, seq_tokens: int, card: Card) -> int:
        key = (batch, seq_tokens, card.vendor, card.capability, card.context_bytes, card.cublas_workspace_bytes)
        if key not in self._answers:
            self._answers[key] = self.footprint.device_bytes(batch, seq_tokens, card)
        return self._answers[key]

    def need(self, card: Card) -> int:
        return self.bytes(self.footprint.batch, self.footprint.seq_tokens, card)


def _fit(asked: _Asked, card: Card, context_tokens: int, count: int, margin: Margin, options: Sequence[tuple[str, _Asked]]) -> Fit:
    job = asked.footprint
    need, room = asked.need(card), room_bytes(card.memory_bytes, margin)
    outcome = verdict(need, card.memory_bytes, margin)
    batch = largest(lambda n: asked.bytes(n, job.seq_tokens, card), room, LARGEST_BATCH)
    steps = context_tokens // SEQUENCE_STEP
    seq = largest(lambda n: asked.bytes(job.batch, n * SEQUENCE_STEP, card), room, steps) * SEQUENCE_STEP
    if seq == steps * SEQUENCE_STEP < context_tokens and asked.bytes(job.batch, context_tokens, card) <= room:
        seq = context_tokens
    remedies = () if outcome == "fits" else _remedies(need, card, margin, options)
    return Fit(card, count, outcome, need, card.memory_bytes - need, batch, seq, remedies)


def _remedies(need: int, card: Card, margin: Margin, options: Sequence[tuple[str, _Asked]]) -> tuple[Remedy, ...]:
    needs = ((text, other.need(card)) for text, other in options)
    found = [Remedy(text, need - less) for text, less in needs if verdict(less, card.memory_bytes, margin) == "fits"]
    return tuple(sorted(found, key=lambda remedy: (remedy.saves_bytes, remedy.option)))


def _bracket(size: Callable[[int], int], room: int, limit: int) -> tuple[int, int]:
    """`low` fits; `high` does not, or is one past the limit."""
    low, high = 1, 2
    while high <= limit and size(high) <= room:
        low, high = high, high * 2
    if high <= limit:
        return low, high
    return (limit, limit + 1) if size(limit) <= room else (low, limit)
