"""Table look-ups."""

from typing import Any

from weighbridge.base.dtypes import INT64
from weighbridge.base.errors import DataDependent
from weighbridge.phantom.operations import charge, operation
from weighbridge.phantom.ops.kernels import Gradients, Needs, Saved, new, record, scratch
from weighbridge.phantom.session import current
from weighbridge.phantom.tensor import Tensor, numel

SORTED_ABOVE = 3072
"""Above so many indices the backward sorts them (Embedding.cu)."""


def _sort_scratch(indices: int, rows: int, columns: int) -> tuple[int, ...]:
    """Sorted and original indices, cub's own memory, and float32 partial sums: a bound on their number, n/10 + distinct rows."""
    if indices <= SORTED_ABOVE:
        return ()
    return indices * 8, indices * 8, indices * 24, (indices // 10 + min(indices, rows)) * columns * 4


@operation("embedding", where=("functional", "torch"))
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: Any = None,
    max_norm: Any = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of a table; keeps the indices. A sparse gradient is charged as the dense one."""
    del padding_idx, max_norm, norm_type
    if isinstance(weight, Tensor) and weight.dtype.kind < 2 and input.dtype.kind >= 2:
        input, weight = weight, input
    if len(weight.shape) != 2:
        raise RuntimeError("'weight' must be 2-D")
    _check_range(input, weight.shape[0])
    if sparse:
        current().assume("a sparse embedding gradient is taken as dense")
    out = new((*input.shape, weight.shape[1]), weight.dtype)
    table, count = weight.shape, numel(input.shape)
    sizes = _sort_scratch(count, *table)
    if scale_grad_by_freq:
        sizes = (*sizes, count * 8)

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved, needs
        held = scratch(*sizes)
        found = new(table, grad.dtype)
        charge("embedding", [found], [grad])
        del held
        return [found]

    return record("embedding", out, [weight], [input], backward, flops=1, kind="embedding")


class TableEndError(IndexError):
    """An index past the end of a table, `excess` rows too far."""

    def __init__(self, index: int, rows: int) -> None:
        super().__init__(f"index {index} is out of range of a table of {rows} rows")
        self.excess = index - rows + 1


def _check_range(indices: Tensor, rows: int) -> None:
    """TableEndError where a known index is past the table's end, as torch has it (learned positions end somewhere)."""
    known = indices.value
    if known is not None and known.size and (int(known.max()) >= rows or int(known.min()) < -rows):
        raise TableEndError(int(known.max()), rows)


@operation("embedding_bag", where=("functional",))
def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Any = None,
    max_norm: Any = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Any = None,
    include_last_offset: bool = False,
    padding_idx: Any = None,
) -> Tensor:
    """A sum, mean or maximum of rows for each bag; keeps indices, offsets, and the bag of every index."""
    del max_norm, norm_type, scale_grad_by_freq, sparse, padding_idx
    count = numel(input.shape)
    if len(input.shape) == 2:
        bags = input.shape[0]
        offsets = new((bags,), INT64)
    elif offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    else:
        bags = offsets.shape[0] - (1 if include_last_offset else 0)
    out = new((bags, weight.shape[1]), weight.dtype)
    table = weight.shape
    extra = [new((count,), INT64), new((bags,), INT64), new((bags, table[1]) if mode == "max" else (bags,), INT64)]
    sizes = (count * 8, count * 8, count * 24)

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved
        held = scratch(*sizes)
        found = new(table, grad.dtype) if needs[0] else None
        del held
        return [found, new((count,), grad.dtype) if len(needs) > 1 and needs[1] else None]

    inputs = [weight, per_sample_weights]
    saved = [weight if per_sample_weights is not None else None, input, offsets, *extra, per_sample_weights]
    return record("embedding_bag", out, inputs, saved, backward, flops=count * table[1], kind="embedding")


@operation("one_hot", where=("functional",))
def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """Class indices as rows of zeros and a one; the number of classes must be given or known."""
    if num_classes == -1:
        if tensor.value is None:
            raise DataDependent("one_hot without num_classes", "the number of classes is the largest value")
        num_classes = int(tensor.value.max()) + 1
    out = new((*tensor.shape, num_classes), INT64)
    out.density = 1 / num_classes
    if tensor.value is not None and numel(out.shape) <= 1 << 15:
        import numpy as np  # noqa: PLC0415 - only where values are known

        out.value = np.eye(num_classes, dtype=np.int64)[tensor.value.astype(np.int64)]
    charge("elementwise", [out], [tensor])
    return out
