"""Operations in place: the same rules, writing into the tensor's own storage, and its place on the tape moved on."""

from collections.abc import Callable
from typing import Any

from weighbridge.phantom.operations import OPERATIONS, operation
from weighbridge.phantom.ops import choosing, copies, pointwise, reductions, scattering  # noqa: F401 - their operations are looked up here
from weighbridge.phantom.ops.indexing import tracked_alias
from weighbridge.phantom.session import current
from weighbridge.phantom.tensor import Tensor

ELEMENTWISE = (
    *pointwise.BINARY, *pointwise.UNARY, *pointwise.BITWISE, "true_divide", "divide", "multiply", "subtract", "square",
    "lt", "le", "gt", "ge", "eq", "ne", "logical_and", "logical_or", "logical_xor", "logical_not", "bitwise_not",
    "clamp", "clip", "clamp_min", "clamp_max", "masked_fill", "lerp", "addcmul", "addcdiv", "scatter", "scatter_add", "scatter_reduce",
    "index_add", "index_copy", "index_fill", "masked_scatter", "tril", "triu", "cumsum", "cumprod",
)  # fmt: skip
RESHAPING = ("squeeze", "unsqueeze", "transpose", "t", "swapaxes")


def in_place(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`function`, whose result takes the first argument's storage; what the tape keeps of the argument is copied first."""

    def run(input: Tensor, *arguments: Any, **keywords: Any) -> Tensor:
        session = current()
        if input.is_leaf and input.requires_grad and session.grad_enabled:
            raise RuntimeError("a leaf Variable that requires grad is being used in an in-place operation.")
        before = tracked_alias(input)
        session.target, session.original = input, before
        try:
            result = function(before, *arguments, **keywords)
        finally:
            session.target = session.original = None
        if result.shape != input.shape:
            raise RuntimeError(f"output with shape {list(input.shape)} doesn't match the broadcast shape {list(result.shape)}")
        return _moved(input, result)

    return run


def _moved(input: Tensor, result: Tensor) -> Tensor:
    """Give the tensor the result's value and place on the tape."""
    input.value, input.density = result.value, result.density
    if result.requires_grad:
        input.requires_grad, input.node, input.output_index, input.is_leaf = True, result.node, result.output_index, False
    return input


def _reshaped(name: str) -> Callable[..., Tensor]:
    def run(input: Tensor, *arguments: Any, **keywords: Any) -> Tensor:
        result: Tensor = OPERATIONS[name](tracked_alias(input), *arguments, **keywords)
        input.shape, input.stride = result.shape, result.stride
        return _moved(input, result)

    return run


for _name in ELEMENTWISE:
    operation(f"{_name}_", where=("method", "torch"))(in_place(OPERATIONS[_name]))
for _name in RESHAPING:
    operation(f"{_name}_", where=("method",))(_reshaped(_name))


@operation("detach_", where=("method",))
def detach_(input: Tensor) -> Tensor:
    """Take the tensor itself off the tape."""
    input.node, input.requires_grad, input.is_leaf = None, False, True
    return input
