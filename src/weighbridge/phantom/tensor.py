"""Tensor and Storage: a shape, strides, a dtype and the bytes behind them, and no data."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from weighbridge.base.dtypes import BY_NAME, DType
from weighbridge.phantom.session import Recorder, Where, current

if TYPE_CHECKING:
    from weighbridge.phantom.autograd import Node

Shape = tuple[int, ...]
Value = "np.ndarray[Any, np.dtype[Any]]"


class Storage:
    """Bytes on the device. It exists as long as something refers to it, as torch's own do; its birth and death are events."""

    __slots__ = ("__weakref__", "id", "nbytes", "recorder")

    def __init__(self, nbytes: int) -> None:
        recorder: Recorder = current().recorder
        self.nbytes = nbytes
        self.recorder = recorder
        self.id = recorder.next_id
        recorder.next_id += 1
        if recorder.open:
            recorder.events.append((self.id, nbytes, recorder.where))

    def __del__(self) -> None:
        recorder = self.recorder
        if recorder.open:
            recorder.events.append((self.id, -self.nbytes, recorder.where))


def numel(shape: Shape) -> int:
    """Number of elements of a shape."""
    return math.prod(shape)


def contiguous_strides(shape: Shape) -> Shape:
    """Row-major strides; a dimension of one counts as one, as torch has it."""
    strides = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


class Tensor:
    """A phantom tensor. `value` is a numpy array where the contents are known (small integers, masks, constants), else None.

    `node` and `output_index` name the operation that made it; a leaf has none. `default_dtype` says that its dtype was the
    session's default when it was made and not asked for, so a model can be rebuilt in another precision. `density` is the share
    of elements that are not zero, where that is all that is known of the contents: a one_hot's. A view holds on to its `base`,
    as torch's do, which is why autograd does not add into a gradient that is a view.
    """

    __slots__ = (
        "__weakref__", "accumulator", "base", "default_dtype", "density", "dtype", "grad", "is_buffer", "is_leaf", "is_parameter", "node",
        "output_index", "persistent", "requires_grad", "shape", "storage", "stride", "value",
    )  # fmt: skip

    def __init__(
        self,
        shape: Shape,
        dtype: DType,
        storage: Storage | None = None,
        stride: Shape | None = None,
        value: "np.ndarray[Any, np.dtype[Any]] | None" = None,
    ) -> None:
        self.shape = shape
        self.dtype = dtype
        self.stride = contiguous_strides(shape) if stride is None else stride
        self.storage = Storage(_extent(shape, self.stride) * dtype.itemsize) if storage is None else storage
        self.value = value
        self.requires_grad = False
        self.node: Node | None = None
        self.output_index = 0
        self.is_leaf = True
        self.is_parameter = False
        self.is_buffer = False
        self.persistent = True
        self.default_dtype = False
        self.density: float | None = None
        self.grad: Tensor | None = None
        self.accumulator: Any = None
        self.base: Tensor | None = None

    def __repr__(self) -> str:
        return f"Tensor(shape={self.shape}, dtype={self.dtype.name})"

    @property
    def nbytes(self) -> int:
        """Bytes of the elements this tensor shows."""
        return numel(self.shape) * self.dtype.itemsize


def _extent(shape: Shape, stride: Shape) -> int:
    """Elements that a storage needs to hold a view of this shape and these strides."""
    if 0 in shape:
        return 0
    return 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))


def dtype_named(dtype: "DType | str") -> DType:
    """A dtype given as itself, as `bfloat16` or as `torch.bfloat16`."""
    return BY_NAME[dtype.removeprefix("torch.")] if isinstance(dtype, str) else dtype


def is_contiguous(tensor: Tensor) -> bool:
    """Whether the elements lie in row-major order without gaps."""
    step = 1
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.stride), strict=True):
        if size == 1:
            continue
        if stride != step:
            return False
        step *= size
    return True


def is_dense(tensor: Tensor) -> bool:
    """Whether the elements lie without gaps or overlaps, in any order of dimensions."""
    step = 1
    for stride, size in sorted(zip(tensor.stride, tensor.shape, strict=True)):
        if size == 1:
            continue
        if stride != step:
            return False
        step *= size
    return True


__all__ = ["Recorder", "Shape", "Storage", "Tensor", "Where", "contiguous_strides", "dtype_named", "is_contiguous", "is_dense", "numel"]
