"""One job over two cards: the contiguous cut of a model's blocks whose worse half is smallest."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, Protocol

from weighbridge.cards import Card
from weighbridge.model import Model, Parameter

SPLIT: Final = "split over two cards"
NEVER: Final = 1 << 62
"""Of a model that has no blocks to cut between."""


class Splits(Protocol):
    """The footprint of the job on one card."""

    @property
    def method(self) -> str:
        """Of the job."""

    @property
    def batch(self) -> int:
        """Of the job."""

    @property
    def seq_tokens(self) -> int:
        """Of the job."""

    def device_bytes(self, batch: int, seq_tokens: int, card: Card) -> int:
        """On one card."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A contiguous split over two cards: blocks before `index` on the first; bytes of each half."""

    index: int
    first_bytes: int
    second_bytes: int

    @property
    def worst_bytes(self) -> int:
        """The half that decides."""
        return max(self.first_bytes, self.second_bytes)


def two_card_cut(block_bytes: Sequence[int], head_bytes: int, tail_bytes: int, shared_bytes: int) -> Cut:
    """The contiguous cut whose worse half is smallest.

    `head_bytes` (embeddings) stay with the first half, `tail_bytes` (final norm, head, loss) with the second; `shared_bytes`
    (context, workspace) are paid by both.
    """
    before = list(accumulate(block_bytes, initial=0))
    cuts = (Cut(i, head_bytes + before[i] + shared_bytes, tail_bytes + before[-1] - before[i] + shared_bytes) for i in range(len(before)))
    return min(cuts, key=lambda cut: (cut.worst_bytes, cut.index))


@dataclass(frozen=True, slots=True)
class Halves:
    """The worse half of the best contiguous cut at the job's own point: states by parameters, activations alike for every block."""

    model: Model
    footprint: Splits
    parts: Mapping[str, int]

    @property
    def method(self) -> str:
        """Of the job that is split."""
        return self.footprint.method

    @property
    def batch(self) -> int:
        """Of the job that is split."""
        return self.footprint.batch

    @property
    def seq_tokens(self) -> int:
        """Of the job that is split."""
        return self.footprint.seq_tokens

    def device_bytes(self, batch: int, seq_tokens: int, card: Card) -> int:
        """Peak bytes on the fuller card."""
        whole = self.footprint.device_bytes(batch, seq_tokens, card)
        head, blocks, tail = shares(self.model)
        total = head + sum(blocks) + tail
        if not blocks or not total:
            return NEVER
        states = sum(self.parts[name] for name in ("weights", "gradients", "optimizer"))
        passing = self.parts["activations"] + self.parts["cache"]
        shared = whole - states - passing - self.parts["loss"]
        each = [states * size // total + passing // len(blocks) for size in blocks]
        return two_card_cut(each, states * head // total, states * tail // total + self.parts["loss"], shared).worst_bytes


def shares(model: Model) -> tuple[int, list[int], int]:
    """Parameters before the longest row of numbered blocks, in each block, and after it; a tied head is kept on both sides."""
    numbers = _longest_row(model.parameters)
    blocks = dict.fromkeys(sorted(set(numbers.values())), 0)
    head = tail = 0
    for parameter in model.parameters:
        number = numbers.get(parameter.name)
        if number is not None:
            blocks[number] += parameter.numel
        elif any(blocks.values()):
            tail += parameter.numel
        elif parameter.tied_to is None:
            head += parameter.numel
    return head, list(blocks.values()), tail


def _longest_row(parameters: tuple[Parameter, ...]) -> dict[str, int]:
    """Parameter name -> number of its block, for the path with the most parameters under numbers."""
    rows: dict[str, dict[str, int]] = {}
    sizes: dict[str, int] = {}
    for parameter in parameters:
        steps = parameter.name.split(".")
        place = next((index for index, step in enumerate(steps) if step.isdigit()), None)
        if place is not None:
            path = ".".join(steps[:place])
            rows.setdefault(path, {})[parameter.name] = int(steps[place])
            sizes[path] = sizes.get(path, 0) + parameter.numel
    return rows[max(sizes, key=lambda path: sizes[path])] if sizes else {}
