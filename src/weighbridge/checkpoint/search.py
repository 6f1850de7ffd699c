"""Find the few reasons whose sizes add up to a difference exactly."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

REASONS: Final = 5
TRIALS: Final = 400_000


@dataclass(frozen=True, slots=True)
class Choice:
    """One reason at one size: `parameters` is what the checkpoint then holds more than we count."""

    why: str
    parameters: int


Group = Sequence[Choice]
"""Sizes that exclude each other: at most one of a group holds."""


def combine(surplus: int, groups: Sequence[Group]) -> list[Choice] | None:
    """The fewest choices, one a group at most, that sum to the surplus; None where none do, or the search grows too long."""
    usable = [[choice for choice in group if choice.parameters] for group in groups]
    search = _Search([group for group in usable if group])
    for reasons in range(1, REASONS + 1):
        found = search.exactly(reasons, 0, surplus)
        if found is not None:
            return found
    return None


class _Search:
    """Depth-first over groups in order; the last reason is looked up rather than tried."""

    def __init__(self, groups: list[list[Choice]]) -> None:
        self.groups = groups
        self.trials = 0
        self.by_size: list[dict[int, Choice]] = []
        later: dict[int, Choice] = {}
        for group in reversed(groups):
            later = later | {choice.parameters: choice for choice in reversed(group)}
            self.by_size.append(later)
        self.by_size.reverse()

    def exactly(self, reasons: int, first: int, surplus: int) -> list[Choice] | None:
        """`reasons` choices from the groups at `first` and after."""
        if first >= len(self.groups):
            return None
        if reasons == 1:
            found = self.by_size[first].get(surplus)
            return None if found is None else [found]
        for place in range(first, len(self.groups)):
            for choice in self.groups[place]:
                self.trials += 1
                if self.trials > TRIALS:
                    return None
                rest = self.exactly(reasons - 1, place + 1, surplus - choice.parameters)
                if rest is not None:
                    return [choice, *rest]
        return None
