"""Single changes that may make a job fit, simulated only when a card asks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Protocol

from weighbridge.base.errors import WeighError
from weighbridge.cards import Card
from weighbridge.jobs.job import Job
from weighbridge.jobs.prepare import choose_attention
from weighbridge.jobs.split import NEVER, SPLIT, Halves
from weighbridge.model import Model

SHORTEST: Final = 128
CHANGES: Final[tuple[tuple[str, dict[str, Any], Callable[[Job], bool]], ...]] = (
    ("--checkpointing", {"checkpointing": True}, lambda job: not job.checkpointing),
    ("--method lora", {"method": "lora"}, lambda job: job.method == "full"),
    ("--precision bf16", {"precision": "bf16"}, lambda job: job.method == "full" and job.precision == "bf16-amp"),
    ("--attention sdpa", {"attention": "sdpa"}, lambda job: job.attention == "eager"),
)
"""The option, what it changes, and where it changes anything."""


class Grows(Protocol):
    """What knows a job's reserved bytes at any batch and length."""

    def reserved_bytes(self, batch: int, seq_tokens: int) -> int:
        """The allocator's segments at the peak."""


@dataclass(frozen=True, slots=True)
class JobFootprint:
    """Device bytes of a job at any batch and length: tensors, what the allocator holds beside them, and the card's context."""

    method: str
    batch: int
    seq_tokens: int
    growth: Grows

    def device_bytes(self, batch: int, seq_tokens: int, card: Card) -> int:
        """Peak bytes of the process on a card."""
        return int(self.growth.reserved_bytes(batch, seq_tokens)) + card.context_bytes


@dataclass(slots=True)
class Changed:
    """The footprint of a changed job, which is not played before a card asks. Leaves the model set up for the job at hand."""

    model: Model
    job: Job
    seq_tokens: int
    begin: Callable[[Model, Job, str], Grows]
    at_hand: Job
    _growth: Grows | None = field(default=None, repr=False)

    @property
    def method(self) -> str:
        """Of the changed job."""
        return self.job.method

    @property
    def batch(self) -> int:
        """Of the changed job."""
        return self.job.batch

    def device_bytes(self, batch: int, seq_tokens: int, card: Card) -> int:
        """Peak bytes of the process on a card."""
        try:
            attention = choose_attention(self.model, self.job.attention)
            self._growth = self._growth or self.begin(self.model, self.job, attention)
            return int(self._growth.reserved_bytes(batch, seq_tokens)) + card.context_bytes
        except WeighError:
            return NEVER
        finally:
            choose_attention(self.model, self.at_hand.attention)


def changes(
    model: Model, job: Job, footprint: JobFootprint, parts: Mapping[str, int], begin: Callable[[Model, Job, str], Grows]
) -> Iterator[tuple[str, Any]]:
    """Every single change to this job: first those that need no further simulation."""
    seq_tokens = footprint.seq_tokens
    if footprint.batch > 1:
        yield ("--batch 1" if job.trains else "--sequences 1"), replace(footprint, batch=1)
    if seq_tokens // 2 >= SHORTEST:
        option = "--seq" if job.trains else "--context"
        yield f"{option} {seq_tokens // 2}", replace(footprint, seq_tokens=seq_tokens // 2)
    yield SPLIT, Halves(model, footprint, parts)
    if job.trains:
        for option, change, applies in CHANGES:
            if applies(job):
                yield option, Changed(model, job.but(**change), seq_tokens, begin, job)


def ready(alternatives: Sequence[tuple[str, Any]]) -> tuple[tuple[str, Any], ...]:
    """Those that need no further simulation."""
    return tuple((option, footprint) for option, footprint in alternatives if not isinstance(footprint, Changed))
