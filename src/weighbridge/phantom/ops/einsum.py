"""einsum, lowered as torch does it: permute every operand to a common order, then contract from the left by sums and bmm."""

from typing import Any

from weighbridge.phantom.operations import operation
from weighbridge.phantom.ops.kernels import apply, low
from weighbridge.phantom.ops.linear import batched_product
from weighbridge.phantom.tensor import Tensor, numel

ELLIPSIS = "..."


def _parsed(equation: str, ranks: list[int]) -> tuple[list[list[str]], list[str]]:
    """Labels of every operand and of the output; an ellipsis becomes numbered labels."""
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    wide = max((rank - len(term.replace(ELLIPSIS, "")) for term, rank in zip(terms, ranks, strict=True) if ELLIPSIS in term), default=0)
    labels = [
        _labels(term, rank - len(term.replace(ELLIPSIS, "")) if ELLIPSIS in term else 0, wide)
        for term, rank in zip(terms, ranks, strict=True)
    ]
    for term, rank in zip(labels, ranks, strict=True):
        if len(term) != rank:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(term)}) does not match the number of dimensions ({rank})"
            )
    if arrow:
        return labels, _labels(right, wide, wide)
    every = [label for term in labels for label in term]
    named = sorted(label for label in set(every) if label.isalpha() and every.count(label) == 1)
    return labels, [f"{index}" for index in range(wide)] + named


def _labels(term: str, count: int, wide: int) -> list[str]:
    before, dots, after = term.partition(ELLIPSIS)
    return [*before, *([f"{index}" for index in range(wide - count, wide)] if dots else []), *after]


def _without_repeats(operand: Tensor, labels: list[str]) -> tuple[Tensor, list[str]]:
    """A label that stands twice takes the diagonal."""
    kept = list(labels)
    while len(set(kept)) < len(kept):
        label = next(label for label in kept if kept.count(label) > 1)
        first = kept.index(label)
        second = kept.index(label, first + 1)
        operand = apply("diagonal", operand, 0, first, second)
        kept = [name for index, name in enumerate(kept) if index not in {first, second}] + [label]
    return operand, kept


def _aligned(operand: Tensor, labels: list[str], order: list[str]) -> Tensor:
    """Permuted to the common order, with a dimension of one for every label it lacks."""
    present = [label for label in order if label in labels]
    permuted = apply("permute", operand, tuple(labels.index(label) for label in present))
    for index, label in enumerate(order):
        if label not in labels:
            permuted = apply("unsqueeze", permuted, index)
    return permuted


def _contracted(left: Tensor, right: Tensor, over: list[int]) -> Tensor:
    """sumproduct_pair: batch, left-only, right-only and summed dimensions, as one bmm."""
    rank = len(left.shape)
    for index in over:
        if left.shape[index] == 1 != right.shape[index]:
            right = apply("sum", right, [index], True)
        elif right.shape[index] == 1 != left.shape[index]:
            left = apply("sum", left, [index], True)
    summed = [index for index in over if left.shape[index] != 1 and right.shape[index] != 1]
    rest = [index for index in range(rank) if index not in over]
    batch = [index for index in rest if left.shape[index] != 1 and right.shape[index] != 1]
    left_only = [index for index in rest if left.shape[index] != 1 and right.shape[index] == 1]
    right_only = [index for index in rest if right.shape[index] != 1 and left.shape[index] == 1]
    both_one = [index for index in range(rank) if left.shape[index] == right.shape[index] == 1]

    def size(tensor: Tensor, dims: list[int]) -> int:
        return numel(tuple(tensor.shape[index] for index in dims))

    ones = [index for index in range(rank) if index not in {*batch, *left_only, *right_only, *summed}]
    flat_left = apply("permute", left, (*batch, *left_only, *summed, *right_only, *ones))
    flat_right = apply("permute", right, (*batch, *summed, *right_only, *left_only, *ones))
    del both_one
    a = apply("reshape", flat_left, (size(left, batch), size(left, left_only), size(left, summed)))
    b = apply("reshape", flat_right, (size(right, batch), size(right, summed), size(right, right_only)))
    out = batched_product(a, b)
    order = [*batch, *left_only, *right_only]
    shape = tuple(left.shape[index] if index in {*batch, *left_only} else right.shape[index] for index in order)
    ones = [index for index in range(rank) if index not in order]
    out = apply("view", out, (*shape, *(1 for _ in ones)))
    placed = [*order, *ones]
    return apply("permute", out, tuple(placed.index(index) for index in range(rank)))


@operation("einsum", where=("torch",))
def einsum(equation: str, *operands: Any) -> Tensor:
    """Sums of products by label; a cast to autocast's type first."""
    given = operands[0] if len(operands) == 1 and isinstance(operands[0], list | tuple) else operands
    tensors = [low(tensor) for tensor in given]
    terms, output = _parsed(equation, [len(tensor.shape) for tensor in tensors])
    every = [label for term in terms for label in term]
    summed = sorted((label for label in dict.fromkeys(every) if label not in output), key=every.index)
    order = [*output, *summed]
    last = {label: index for index, term in enumerate(terms) for label in term}
    aligned = []
    for tensor, labels in zip(tensors, terms, strict=True):
        single, kept = _without_repeats(tensor, labels)
        aligned.append(_aligned(single, kept, order))
    result = aligned[0]
    early = [order.index(label) for label in summed if last[label] == 0]
    if early:
        result = apply("sum", result, early, True)
    for index, operand in enumerate(aligned[1:], start=1):
        over = [order.index(label) for label in summed if last[label] == index]
        result = _contracted(result, operand, over) if over else apply("mul", result, operand)
    for place in reversed(range(len(output), len(order))):
        result = apply("squeeze", result, place)
    return result
