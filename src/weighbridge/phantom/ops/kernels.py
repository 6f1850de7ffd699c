"""What the heavier operation families share: outputs, kernel scratch memory, spreading of sizes, and the cost of a backward pass."""

import math
from collections.abc import Iterable, Sequence
from typing import Any, cast

from weighbridge.base.dtypes import BFLOAT16, FLOAT16, FLOAT32, DType
from weighbridge.phantom import operations
from weighbridge.phantom.operations import OPERATIONS, full_precision, preserved_strides
from weighbridge.phantom.operations import low_precision as cast_low
from weighbridge.phantom.session import current
from weighbridge.phantom.tensor import Shape, Storage, Tensor, contiguous_strides, dtype_named

Saved = Sequence[Tensor | None]
Needs = Sequence[bool]
Gradients = list[Tensor | None]

CHANNELS_LAST = {4: (0, 2, 3, 1), 5: (0, 2, 3, 4, 1)}
"""Order of dimensions in memory of torch.channels_last and channels_last_3d, by rank."""


def apply(name: str, *arguments: Any, **keywords: Any) -> Tensor:
    """Run an operation of another family, of one result, by its name."""
    return cast("Tensor", OPERATIONS[name](*arguments, **keywords))


def record(
    name: str, output: Tensor, inputs: Sequence[Any], saved: Saved, backward: Any, *, flops: int = 0, kind: str = "elementwise"
) -> Tensor:
    """operations.record for one result."""
    return cast("Tensor", operations.record(name, output, inputs, saved, backward, flops, kind))


def new(shape: Iterable[int], dtype: DType, stride: Shape | None = None) -> Tensor:
    """A new tensor."""
    return Tensor(tuple(shape), dtype, None, stride)


def ordered(shape: Shape, dtype: DType, order: Sequence[int]) -> Tensor:
    """A new tensor whose dimensions lie in memory in this order, the last one densest."""
    strides = [0] * len(shape)
    for place, step in zip(order, contiguous_strides(tuple(shape[i] for i in order)), strict=True):
        strides[place] = step
    return Tensor(tuple(shape), dtype, None, tuple(strides))


def like(tensor: Tensor, dtype: DType | None = None) -> Tensor:
    """torch.empty_like: the shape and, where dense, the strides of another tensor."""
    return Tensor(tensor.shape, dtype or tensor.dtype, None, preserved_strides(tensor))


def scratch(*nbytes: int) -> list[Storage]:
    """Memory that a kernel takes for itself; it is freed when the list is dropped."""
    return [Storage(size) for size in nbytes if size]


def spend(kind: str, grad: Tensor, flops: int) -> None:
    """Charge a backward kernel's FLOPs; the bytes are those of the gradient it reads."""
    current().spend(kind, grad.dtype.name, flops, grad.nbytes)


def low(tensor: Any) -> Any:
    """Autocast's low-precision cast, None left as it is."""
    return cast_low(tensor)


def lowered(*tensors: Any) -> list[Any]:
    """Autocast's casts of one operation's arguments: the last one first, as GCC evaluates arguments."""
    return [low(tensor) for tensor in reversed(tensors)][::-1]


def single(tensor: Any) -> Any:
    """Autocast's float32 cast, None left as it is."""
    return full_precision(tensor)


def opt_dtype(tensor: Tensor, dtype: Any) -> DType | None:
    """The dtype argument as autocast sets it for softmax, sum and their kin: float32 for low-precision inputs."""
    if dtype is not None:
        return dtype_named(dtype)
    return FLOAT32 if current().autocast is not None and tensor.dtype in {FLOAT16, BFLOAT16} else None


def spread(value: Any, count: int) -> Shape:
    """One number, or a sequence of them, as `count` numbers."""
    numbers = tuple(value) if isinstance(value, list | tuple) else (value,)
    return numbers if len(numbers) == count else numbers * count


def channels_last(tensor: Tensor) -> bool:
    """Whether torch would keep channels_last (suggest_memory_format): channels densest, and more than one of them or of places."""
    order = CHANNELS_LAST.get(len(tensor.shape))
    if order is None or tensor.stride[1] != 1 or 0 in tensor.shape:
        return False
    least = 0
    for place in (1, *reversed(range(2, len(tensor.shape))), 0):
        size, step = tensor.shape[place], tensor.stride[place]
        if step < least or (place == 0 and least == tensor.stride[1]):
            return False
        least = step * max(size, 1)
    return True


def in_format_of(source: Tensor, shape: Shape, dtype: DType) -> Tensor:
    """A new tensor in the source's suggested memory format."""
    order = CHANNELS_LAST.get(len(shape))
    return ordered(shape, dtype, order) if order is not None and channels_last(source) else new(shape, dtype)


def formatted(tensor: Tensor) -> Tensor:
    """contiguous(suggest_memory_format()): itself if it lies that way, else a recorded copy."""
    return tensor if channels_last(tensor) else apply("contiguous", tensor)


def product(numbers: Iterable[int]) -> int:
    """math.prod, under the word the shapes use."""
    return math.prod(numbers)


def add_in_place(out: Tensor, other: Tensor) -> Tensor:
    """out.add_(other) for a result that this code has just made; nothing is allocated."""

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> Gradients:
        del saved
        return [grad if needs[0] else None, grad if needs[1] else None]

    return record("add_", out, [out, other], [], backward)
