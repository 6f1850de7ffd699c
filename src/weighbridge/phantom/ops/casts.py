"""Casts to another dtype, and complex numbers seen as pairs."""

from collections.abc import Sequence
from typing import Any

from weighbridge.base.dtypes import COMPLEX64, COMPLEX128, FLOAT32, FLOAT64, DType
from weighbridge.phantom.operations import (
    operation,
    record_view,
    to_dtype,
)
from weighbridge.phantom.ops.views import clone
from weighbridge.phantom.tensor import Tensor, contiguous_strides, dtype_named

Saved = Sequence[Tensor | None]


_NAMED_CASTS = {"float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16", "long": "int64", "int": "int32",
                "short": "int16", "char": "int8", "byte": "uint8", "bool": "bool", "cfloat": "complex64"}  # fmt: skip


def _named_cast(name: str) -> Any:
    def cast(input: Tensor, *_: Any, **__: Any) -> Tensor:
        return to_dtype(input, name)

    return cast


for _method, _name in _NAMED_CASTS.items():
    operation(_method, where=("method",))(_named_cast(_name))


@operation("type_as", where=("method",))
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """A cast to another tensor's dtype."""
    return to_dtype(input, other.dtype)


@operation("to", "type", where=("method",))
def to(input: Tensor, *arguments: Any, dtype: Any = None, copy: bool = False, memory_format: Any = None, **_: Any) -> Tensor:
    """A cast; moving between devices is nothing here, since all phantoms live on one."""
    wanted = dtype
    for argument in arguments:
        if isinstance(argument, DType):
            wanted = argument
        elif isinstance(argument, Tensor):
            wanted = argument.dtype
    if isinstance(wanted, str):
        wanted = dtype_named(wanted.rsplit(".", maxsplit=1)[-1])
    if wanted is None or wanted is input.dtype:
        return clone(input) if copy else input
    cast = to_dtype(input, wanted)
    if memory_format == "contiguous_format":  # the cast's own copy is dense, only its order differs
        cast.stride = contiguous_strides(cast.shape)
    return cast


@operation("view_as_complex", where=("torch",))
def view_as_complex(input: Tensor) -> Tensor:
    """Pairs of reals seen as complex numbers."""
    stride = tuple(step // 2 for step in input.stride[:-1])
    dtype = COMPLEX128 if input.dtype is FLOAT64 else COMPLEX64
    out = Tensor(input.shape[:-1], dtype, input.storage, stride)
    return record_view("view_as_complex", input, out, lambda saved, grad, needs: [view_as_real(grad)])  # noqa: ARG005 - the engine's call


@operation("view_as_real", where=("torch",))
def view_as_real(input: Tensor) -> Tensor:
    """Complex numbers seen as pairs of reals."""
    stride = (*[step * 2 for step in input.stride], 1)
    dtype = FLOAT64 if input.dtype is COMPLEX128 else FLOAT32
    out = Tensor((*input.shape, 2), dtype, input.storage, stride)
    return record_view("view_as_real", input, out, lambda saved, grad, needs: [view_as_complex(grad)])  # noqa: ARG005 - the engine's call
