"""einops' rearrange and repeat, as the views and copies of torch that they come to."""

import re
from math import prod
from typing import Any, Final

from weighbridge.phantom.operations import OPERATIONS, operation
from weighbridge.phantom.ops.views import expand, permute, reshape, unsqueeze
from weighbridge.phantom.tensor import Tensor

WORD: Final = re.compile(r"\([^()]*\)|\.\.\.|\w+")
PATTERN_CHARS: Final = 500
Groups = list[list[str]]


def parsed(side: str, spared: int) -> Groups:
    """One side of a pattern: an axis a group, each of the names that it consists of; `...` stands for `spared` axes."""
    groups: Groups = []
    for word in WORD.findall(side):
        if word == "...":
            groups += [[f"...{index}"] for index in range(spared)]
        else:
            groups.append([name for name in word.strip("()").split() if name != "1"])
    return groups


def split(pattern: str, rank: int) -> tuple[Groups, Groups]:
    """Both sides of a pattern, for a tensor of so many axes."""
    left, arrow, right = pattern.partition("->")
    if not arrow or len(pattern) > PATTERN_CHARS:
        raise ValueError(f"einops: {pattern[:60]!r} is no pattern")
    spared = rank - len([word for word in WORD.findall(left) if word != "..."]) if "..." in left else 0
    sides = parsed(left, spared), parsed(right, spared)
    if len(sides[0]) != rank:
        raise ValueError(f"einops: {pattern!r} does not fit a tensor of {rank} axes")
    return sides


def lengths(groups: Groups, shape: tuple[int, ...], given: dict[str, int]) -> dict[str, int]:
    """The length of every named axis; at most one of a group may be left to be worked out."""
    found = dict(given)
    for names, size in zip(groups, shape, strict=True):
        open_names = [name for name in names if name not in found and not name.isdigit()]
        known = prod(_length(name, found) for name in names if name not in open_names)
        if len(open_names) > 1 or (known and size % known) or (not open_names and known != size):
            raise ValueError(f"einops: an axis of {size} is not made of {' '.join(names) or '1'}")
        if open_names:
            found[open_names[0]] = size // known
    return found


def _length(name: str, found: dict[str, int]) -> int:
    return int(name) if name.isdigit() else found[name]


def _stacked(tensor: Any) -> Tensor:
    return OPERATIONS["stack"](list(tensor)) if isinstance(tensor, list | tuple) else tensor  # type: ignore[no-any-return] # untyped registry


@operation("einops_rearrange", where=())
def rearrange(tensor: Any, pattern: str, **axes_lengths: int) -> Tensor:
    """Axes taken apart, put in another order and together again."""
    return _turned(_stacked(tensor), pattern, axes_lengths, repeats=False)


@operation("einops_repeat", where=())
def repeat(tensor: Any, pattern: str, **axes_lengths: int) -> Tensor:
    """Rearrange, with axes that the left side doesn't have."""
    return _turned(_stacked(tensor), pattern, axes_lengths, repeats=True)


def _turned(tensor: Tensor, pattern: str, given: dict[str, int], *, repeats: bool) -> Tensor:
    left, right = split(pattern, len(tensor.shape))
    sizes = lengths(left, tensor.shape, given)
    source = [name for group in left for name in group]
    target = [name for group in right for name in group]
    added = [name for name in target if name not in source]
    if set(source) - set(target) or (added and not repeats):
        raise ValueError(f"einops: the sides of {pattern!r} name different axes")
    out = _reshaped(tensor, tuple(_length(name, sizes) for name in source))
    order = [source.index(name) for name in target if name in source]
    if order != sorted(order):
        out = permute(out, *order)
    for index, name in enumerate(target):
        if name in added:
            out = unsqueeze(out, index)
    if added:
        out = expand(out, *[_length(name, sizes) for name in target])
    return _reshaped(out, tuple(prod(_length(name, sizes) for name in group) for group in right))


def _reshaped(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    return tensor if tensor.shape == shape else reshape(tensor, *shape)
