"""The registry of operations and what every one of them needs: promotion, broadcasting, outputs, the tape, costs, values.

An operation is a function under torch's name:

    @operation("softmax", "_softmax")
    def softmax(input: Tensor, dim: int, dtype: DType | None = None) -> Tensor:
        x = full_precision(input)                              # on autocast's fp32 list
        out = elementwise_output([x], dtype or x.dtype)        # allocates, as the kernel does
        return record("softmax", out, [x], [out], _backward)   # costs, and the tape if a gradient is wanted

`backward(saved, grads, needs)` receives the saved tensors, the gradient (a list for several outputs) and which inputs need one;
it allocates what the backward kernel allocates, in its order, and must capture plain values only, never a tensor.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from weighbridge.base.dtypes import BOOL, COMPLEX64, FLOAT32, FLOAT64, INT64, DType, promote
from weighbridge.base.errors import DataDependent
from weighbridge.phantom import autograd
from weighbridge.phantom.session import current
from weighbridge.phantom.tensor import (
    Shape,
    Storage,
    Tensor,
    contiguous_strides,
    dtype_named,
    is_contiguous,
    is_dense,
    numel,
)

OPERATIONS: dict[str, Callable[..., Any]] = {}
VISIBLE: dict[str, frozenset[str]] = {}
VALUE_LIMIT = 1 << 17
"""Tensors of up to so many elements carry values where these are known; constants of any size do."""

Function = TypeVar("Function", bound=Callable[..., Any])
_EVERYWHERE = frozenset({"torch", "functional", "method"})


def operation(*names: str, where: Iterable[str] = _EVERYWHERE) -> Callable[[Function], Function]:
    """Register a function under torch's names; `where` says in which of torch, functional and method it is visible."""

    def register(function: Function) -> Function:
        for name in names:
            OPERATIONS[name] = function
            VISIBLE[name] = frozenset(where)
        return function

    return register


def record(
    name: str,
    outputs: Any,
    inputs: Sequence[Any],
    saved: Sequence[Tensor | None],
    backward: Any,
    flops: int = 0,
    kind: str = "elementwise",
) -> Any:
    """Charge an operation and put it on the tape if one of its inputs wants a gradient. Returns `outputs`."""
    session = current()
    session.operate(name)
    single = isinstance(outputs, Tensor)
    results = [outputs] if single else list(outputs)
    charge(kind, results, inputs, flops)
    if session.grad_enabled and any(isinstance(item, Tensor) and item.requires_grad for item in inputs):
        autograd.attach(name, results, inputs, saved, backward)
    return outputs


def charge(kind: str, outputs: Sequence[Any], inputs: Sequence[Any], flops: int = 0) -> None:
    """Add an operation's FLOPs and the bytes that its kernel reads and writes to the session's costs."""
    moved = 0
    dtype = None
    for tensor in (*outputs, *inputs):
        if isinstance(tensor, Tensor):
            moved += min(tensor.nbytes, tensor.storage.nbytes)
            dtype = dtype or tensor.dtype
    current().spend(kind, dtype.name if dtype else "float32", flops or sum(numel(t.shape) for t in outputs if isinstance(t, Tensor)), moved)


def record_view(name: str, tensor: Tensor, view: Tensor, backward: Any) -> Tensor:
    """Put a view on the tape; a view costs nothing."""
    view.default_dtype, view.density = tensor.default_dtype, tensor.density
    view.base = tensor if tensor.base is None else tensor.base
    if tensor.requires_grad and current().grad_enabled:
        autograd.attach(name, [view], [tensor], [], backward)
    return view


# ---- shapes


def dimension(tensor: Tensor | int, index: Any) -> int:
    """A dimension index made non-negative; IndexError where there is no such dimension."""
    rank = max(tensor if isinstance(tensor, int) else len(tensor.shape), 1)
    number = integer(index)
    if not -rank <= number < rank:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-rank}, {rank - 1}], but got {number})")
    return number % rank


def integer(value: Any) -> int:
    """A Python integer from an integer or a tensor whose value is known."""
    if isinstance(value, Tensor):
        value = item(value)
    if isinstance(value, bool | np.integer):
        return int(value)
    if not isinstance(value, int):
        raise TypeError(f"expected an int, got {type(value).__name__}")
    return value


def sizes(arguments: Sequence[Any]) -> Shape:
    """Sizes given one by one or as one sequence."""
    if len(arguments) == 1 and isinstance(arguments[0], list | tuple):
        arguments = arguments[0]
    return tuple(integer(size) for size in arguments)


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The common shape; RuntimeError where two sizes disagree."""
    rank = max(map(len, shapes), default=0)
    result = [1] * rank
    for shape in shapes:
        offset = rank - len(shape)
        for index, size in enumerate(shape):
            known = result[index + offset]
            if size != 1 and known == 1:
                result[index + offset] = size
            elif size not in {1, known}:
                raise RuntimeError(f"The size of tensor a ({known}) must match the size of tensor b ({size}) at dimension {index + offset}")
    return tuple(result)


# ---- types


def scalar_dtype(value: Any) -> DType:
    """The dtype that a Python number stands for in promotion."""
    if isinstance(value, bool | np.bool_):
        return BOOL
    if isinstance(value, int | np.integer):
        return INT64
    return COMPLEX64 if isinstance(value, complex) else current().default_dtype


def result_type(*operands: Any) -> DType:
    """torch.result_type: tensors with dimensions decide before 0-dim tensors, and those before Python numbers."""
    ranks: list[DType | None] = [None, None, None]
    for operand in operands:
        if operand is None:
            continue
        rank = (0 if operand.shape else 1) if isinstance(operand, Tensor) else 2
        dtype = operand.dtype if isinstance(operand, Tensor) else scalar_dtype(operand)
        known = ranks[rank]
        ranks[rank] = dtype if known is None else promote(known, dtype)
    result: DType | None = ranks[0]
    for rank, found in enumerate(ranks[1:], start=1):
        if found is not None and (result is None or found.kind > result.kind):
            default_float = rank == 2 and found.kind == 2 and result is not None
            result = current().default_dtype if default_float else found
    assert result is not None
    return result


def low_precision(tensor: Any) -> Any:
    """Autocast's cast to the low-precision type; the cast of a weight is kept until the context ends."""
    session = current()
    target = session.autocast
    if target is None or not isinstance(tensor, Tensor) or tensor.dtype.kind != 2 or tensor.dtype in {FLOAT64, target}:
        return tensor
    if tensor.is_leaf and tensor.requires_grad and tensor.dtype is FLOAT32:
        known = session.cast_cache.get(id(tensor))
        if known is None:
            known = session.cast_cache[id(tensor)] = (tensor, to_dtype(tensor, target))
        return known[1]
    return to_dtype(tensor, target)


def full_precision(tensor: Any) -> Any:
    """Autocast's cast to float32, for the operations on its fp32 list."""
    if current().autocast is None or not isinstance(tensor, Tensor) or tensor.dtype.kind != 2 or tensor.dtype in {FLOAT32, FLOAT64}:
        return tensor
    return to_dtype(tensor, FLOAT32)


def to_dtype(tensor: Tensor, dtype: "DType | str") -> Tensor:
    """A copy in another dtype (itself where it has that dtype), laid out like the original where that is dense."""
    target = dtype_named(dtype)
    if tensor.dtype is target:
        return tensor
    out = Tensor(tensor.shape, target, None, preserved_strides(tensor))
    out.density = tensor.density
    if tensor.value is not None:
        out.value = cast_value(tensor.value, numpy_dtype(target))
    if target.kind < 2:
        charge("copy", [out], [tensor])
        return out
    return record("to", out, [tensor], [], _same_gradient, kind="copy")  # type: ignore[no-any-return] # record returns its outputs


def cast_value(value: Any, dtype: Any) -> Any:
    """A value in another numpy type; a broadcast constant stays one."""
    if value.dtype == dtype:
        return value
    one = _constant(value) if value.ndim else None
    with np.errstate(invalid="ignore"):
        return value.astype(dtype) if one is None else np.broadcast_to(np.asarray(one).astype(dtype), value.shape)


def _same_gradient(saved: Any, grad: Tensor, needs: Any) -> list[Tensor | None]:
    del saved, needs
    return [grad]


def numpy_dtype(dtype: DType) -> Any:
    """The numpy type that holds values of a dtype."""
    return np.bool_ if dtype is BOOL else np.int64 if dtype.kind == 1 else np.complex128 if dtype.kind == 3 else np.float64


# ---- outputs


def preserved_strides(tensor: Tensor) -> Shape:
    """Strides of a copy under torch.preserve_format."""
    if is_dense(tensor):
        return tensor.stride
    return iterator_strides(tensor.shape, [tensor.stride]) or contiguous_strides(tensor.shape)


def elementwise_strides(operands: Iterable[Any]) -> tuple[Shape, Shape | None]:
    """Shape and strides of an element-wise result, as TensorIterator lays it out (None: contiguous)."""
    tensors = [operand for operand in operands if isinstance(operand, Tensor)]
    first = tensors[0]
    if len(tensors) == 1:
        return (first.shape, None) if is_contiguous(first) else (first.shape, preserved_strides(first))
    shape = first.shape
    if any(tensor.shape != shape for tensor in tensors):
        shape = broadcast_shapes(*[tensor.shape for tensor in tensors])
    if first.shape == shape:
        if is_contiguous(first):
            return shape, None
        if is_dense(first) and all(tensor.shape == shape and tensor.stride == first.stride for tensor in tensors):
            return shape, first.stride
    return shape, iterator_strides(shape, [broadcast_strides(tensor, shape) for tensor in tensors])


def broadcast_strides(tensor: Tensor, shape: Shape) -> Shape:
    """A tensor's strides once it is expanded to `shape`."""
    extra = len(shape) - len(tensor.shape)
    own = zip(tensor.shape, tensor.stride, shape[extra:], strict=True)
    return (*[0] * extra, *[0 if size == 1 and wanted != 1 else step for size, step, wanted in own])


def iterator_strides(shape: Shape, operands: Sequence[Shape]) -> Shape | None:
    """Dense strides in the order of dimensions that the operands agree on (TensorIterator::reorder_dimensions); None: contiguous."""
    order = list(range(len(shape) - 1, -1, -1))
    for index in range(1, len(order)):
        place = index
        for other in range(index - 1, -1, -1):
            verdict = _out_of_order(shape, operands, order[other], order[place])
            if verdict > 0:
                order[other], order[place] = order[place], order[other]
                place = other
            elif verdict < 0:
                break
    strides = [0] * len(shape)
    step = 1
    for axis in order:
        strides[axis] = step
        step *= shape[axis]
    return tuple(strides)


def _out_of_order(shape: Shape, operands: Sequence[Shape], inner: int, outer: int) -> int:
    """1 where the dimension taken as inner has larger steps than the outer one, -1 where it has smaller, 0 where none tells."""
    for strides in operands:
        low, high = strides[inner], strides[outer]
        if low == 0 or high == 0:
            continue
        if low != high:
            return -1 if low < high else 1
        if shape[inner] > shape[outer]:
            return 1
    return 0


def elementwise_output(operands: Iterable[Any], dtype: DType) -> Tensor:
    """The result of an element-wise operation: a new tensor, or the session's target while an operation runs in place."""
    if current().target is not None:
        return new_or_target((), dtype)
    shape, stride = elementwise_strides(operands)
    return Tensor(shape, dtype, None, stride)


def new_or_target(shape: Shape, dtype: DType) -> Tensor:
    """A new contiguous result, or the session's target while an operation runs in place."""
    session = current()
    target, session.target = session.target, None
    return Tensor(shape, dtype) if target is None else Tensor(target.shape, target.dtype, target.storage, target.stride)


def empty(shape: Shape, dtype: DType, stride: Shape | None = None) -> Tensor:
    """A new tensor."""
    return Tensor(tuple(shape), dtype, None, stride)


@contextmanager
def temporary(*nbytes: int) -> Iterator[None]:
    """Memory that a kernel takes for itself while it runs."""
    held = [Storage(size) for size in nbytes if size]
    yield
    del held


def sum_to_shape(tensor: Tensor, shape: Shape) -> Tensor:
    """Reduce a gradient over the dimensions that broadcasting had added."""
    if tensor.shape == shape:
        return tensor
    extra = len(tensor.shape) - len(shape)
    dims = [i for i, size in enumerate(tensor.shape) if i < extra or (shape[i - extra] == 1 and size != 1)]
    result = OPERATIONS["sum"](tensor, dims, True) if dims else tensor
    return result if result.shape == shape else OPERATIONS["reshape"](result, shape)


def follow(recipe: str, gradient: Tensor, *others: Any) -> Tensor:
    """Allocate what the statements of a backward formula do, and return the result of the last.

    A recipe has a word for every statement and a letter for every tensor that it makes: f of the gradient's shape and dtype, b a
    mask of that shape, s a number; the capital one is the statement's result. All others live until the statement ends, as in
    C++. The empty recipe is the gradient itself. `others` are the formula's other tensors, which have a say in the layout.
    """
    results = [gradient]
    for statement in recipe.split():
        made = []
        for letter in statement:
            dtype = BOOL if letter in "bB" else gradient.dtype
            made.append(Tensor((), dtype) if letter == "s" else elementwise_output([gradient, *others], dtype))
            if letter.isupper():
                results.append(made[-1])
    return results[-1]


# ---- values


def value_of(operand: Any) -> Any:
    """The numpy value of a tensor, a number as it is, or None where it is unknown."""
    return operand.value if isinstance(operand, Tensor) else operand


def propagate(out: Tensor, function: Callable[..., Any], *operands: Any) -> Tensor:
    """Give `out` the value that numpy's `function` has on the operands' values, where all are known and small enough."""
    values = [value_of(operand) for operand in operands]
    if any(value is None for value in values):
        return out
    constants = [_constant(value) for value in values]
    if numel(out.shape) > VALUE_LIMIT and any(constant is None for constant in constants):
        return out
    with np.errstate(all="ignore"):
        if numel(out.shape) > VALUE_LIMIT:
            result = np.broadcast_to(np.asarray(function(*constants)).astype(numpy_dtype(out.dtype)), out.shape)
        else:
            result = np.asarray(function(*values))
    if result.shape == out.shape:
        out.value = result if result.dtype == numpy_dtype(out.dtype) else result.astype(numpy_dtype(out.dtype))
    return out


def _constant(value: Any) -> Any:
    """The one number that an array consists of by its strides, or None."""
    if not isinstance(value, np.ndarray):
        return value
    if value.size and all(stride == 0 or size == 1 for stride, size in zip(value.strides, value.shape, strict=True)):
        return value.reshape(-1)[0] if value.size == 1 else value[(0,) * value.ndim]
    return None


def item(tensor: Tensor) -> Any:
    """The Python number in a tensor of one element; DataDependent where it is unknown."""
    if numel(tensor.shape) != 1:
        raise RuntimeError(f"a Tensor with {numel(tensor.shape)} elements cannot be converted to Scalar")
    if tensor.value is None:
        raise DataDependent("the value of a tensor", f"shape {tensor.shape}, {tensor.dtype.name}")
    return tensor.value.reshape(-1)[0].item()
