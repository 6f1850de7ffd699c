"""Element-wise operations: arithmetic, comparisons, elementary functions, and choosing between tensors.

Each entry of a table says what autograd keeps and how many temporaries the backward makes (torchgen's derivatives.yaml).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weighbridge.base.dtypes import BOOL, FLOAT32, DType, promote
from weighbridge.phantom.operations import (
    charge,
    elementwise_output,
    full_precision,
    operation,
    propagate,
    record,
    result_type,
)
from weighbridge.phantom.session import current
from weighbridge.phantom.tensor import Tensor

Saved = Sequence[Tensor | None]
Needs = Sequence[bool]
NumpyFunction = Callable[..., Any]


def _like(gradient: Tensor, *others: Any) -> Tensor:
    """A temporary of a gradient's dtype and the operands' broadcast shape."""
    return elementwise_output([gradient, *others], gradient.dtype)


def scaled(gradient: Tensor, other: Any) -> Tensor:
    """Gradient * other, in the dtype that product has."""
    if not isinstance(other, Tensor):
        return _like(gradient)
    dtype = promote(gradient.dtype, other.dtype) if other.shape else gradient.dtype
    return elementwise_output([gradient, other], dtype)


def _operand(value: Any, name: str) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, Tensor | bool | int | float | complex):
        raise TypeError(f"unsupported operand type for {name}: '{type(value).__name__}'")
    return value


@dataclass(frozen=True, slots=True)
class Binary:
    """A differentiable operation on two operands: numpy's function, what it saves and its gradients."""

    function: NumpyFunction
    saves: Callable[[Tensor | None, Tensor | None, Tensor, bool, bool], list[Tensor | None]]
    gradients: Callable[[Saved, Tensor, Needs, Any, Any], list[Tensor | None]]
    float_result: bool = False


def _add_gradients(saved: Saved, grad: Tensor, needs: Needs, a: Any, b: Any) -> list[Tensor | None]:
    del saved, a, b
    return [grad if needs[0] else None, grad if needs[1] else None]


def _sub_gradients(saved: Saved, grad: Tensor, needs: Needs, a: Any, b: Any) -> list[Tensor | None]:
    del saved, a, b
    return [grad if needs[0] else None, _like(grad) if needs[1] else None]


def _mul_gradients(saved: Saved, grad: Tensor, needs: Needs, a: Any, b: Any) -> list[Tensor | None]:
    return [
        scaled(grad, saved[1] if saved[1] is not None else b) if needs[0] else None,
        scaled(grad, saved[0] if saved[0] is not None else a) if needs[1] else None,
    ]


def _div_gradients(saved: Saved, grad: Tensor, needs: Needs, a: Any, b: Any) -> list[Tensor | None]:
    del a, b
    other = None
    if needs[1]:
        other = _like(_like(grad, saved[1]), saved[0]) if saved[0] is not None else _like(grad)
    return [_like(grad, saved[1]) if needs[0] else None, other]


def _pow_gradients(saved: Saved, grad: Tensor, needs: Needs, a: Any, b: Any) -> list[Tensor | None]:
    del a
    if not needs[0]:
        return [None, _like(grad)]
    if b is not None:
        power = _like(saved[0]) if saved[0] is not None else _like(grad)
        factor = _like(power)
        del power
        return [_like(grad, factor), None]
    return [_like(grad, saved[0]), _like(grad) if needs[1] else None]


def _both_gradients(saved: Saved, grad: Tensor, needs: Needs, a: Any, b: Any) -> list[Tensor | None]:
    del saved, a, b
    return [_like(grad) if needs[0] else None, _like(grad) if needs[1] else None]


def _nothing(a: Any, b: Any, out: Tensor, first: bool, second: bool) -> list[Tensor | None]:
    del a, b, out, first, second
    return []


def _both(a: Any, b: Any, out: Tensor, first: bool, second: bool) -> list[Tensor | None]:
    del out, first, second
    return [a, b]


BINARY: dict[str, Binary] = {
    "add": Binary(np.add, _nothing, _add_gradients),
    "sub": Binary(np.subtract, _nothing, _sub_gradients),
    "mul": Binary(np.multiply, lambda a, b, out, first, second: [a if second else None, b if first else None], _mul_gradients),  # noqa: ARG005
    "div": Binary(np.true_divide, lambda a, b, out, first, second: [a if second else None, b], _div_gradients, float_result=True),  # noqa: ARG005
    "pow": Binary(np.power, lambda a, b, out, first, second: [a if first else None, b, out if second else None], _pow_gradients),
    **{
        name: Binary(function, _both, _both_gradients)
        for name, function in {
            "maximum": np.maximum, "minimum": np.minimum, "fmod": np.fmod, "remainder": np.mod, "atan2": np.arctan2,
            "fmax": np.fmax, "fmin": np.fmin, "logaddexp": np.logaddexp, "hypot": np.hypot, "xlogy": np.multiply,
        }.items()
    },
}  # fmt: skip
_ALIASES = {"div": ("true_divide", "divide"), "mul": ("multiply",), "sub": ("subtract",)}

COMPARISONS: dict[str, NumpyFunction] = {
    "lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal, "eq": np.equal, "ne": np.not_equal,
    "logical_and": np.logical_and, "logical_or": np.logical_or, "logical_xor": np.logical_xor, "isclose": np.isclose,
    "less": np.less, "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal, "not_equal": np.not_equal,
}  # fmt: skip
BITWISE: dict[str, NumpyFunction] = {
    "bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor,
    "bitwise_left_shift": np.left_shift, "bitwise_right_shift": np.right_shift, "floor_divide": np.floor_divide,
}  # fmt: skip


def _binary(name: str, rule: Binary) -> Callable[..., Tensor]:
    def function(input: Any, other: Any, *, alpha: Any = 1, rounding_mode: str | None = None, out: Any = None) -> Tensor:
        del alpha, out
        a, b = _operand(input, name), _operand(other, name)
        if name == "pow":
            a, b = full_precision(a), full_precision(b)
        dtype = result_type(a, b)
        if rule.float_result and rounding_mode is None and dtype.kind < 2:
            dtype = current().default_dtype
        result = propagate(elementwise_output([a, b], dtype), np.floor_divide if rounding_mode else rule.function, a, b)
        if dtype.kind < 2:
            charge("elementwise", [result], [a, b])
            return result
        first, second = (x if isinstance(x, Tensor) else None for x in (a, b))
        wanted = [x is not None and x.requires_grad and current().grad_enabled for x in (first, second)]
        saved = rule.saves(first, second, result, *wanted) if any(wanted) else []
        scalars = None if first is not None else a, None if second is not None else b
        return record(name, result, [first, second], saved, _with(rule.gradients, scalars))  # type: ignore[no-any-return] # record returns its outputs

    return function


def _with(gradients: Callable[..., list[Tensor | None]], scalars: tuple[Any, Any]) -> Any:
    def backward(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
        return gradients(saved, grad, needs, *scalars)

    return backward


for _name, _rule in BINARY.items():
    operation(_name, *_ALIASES.get(_name, ()))(_binary(_name, _rule))


def _comparison(name: str, function: NumpyFunction, dtype: DType | None) -> Callable[..., Tensor]:
    def compare(input: Any, other: Any, **_: Any) -> Tensor:
        a, b = _operand(input, name), _operand(other, name)
        result = propagate(elementwise_output([a, b], dtype or result_type(a, b)), function, a, b)
        charge("elementwise", [result], [a, b])
        return result

    return compare


for _name, _function in COMPARISONS.items():
    operation(_name)(_comparison(_name, _function, BOOL))
for _name, _function in BITWISE.items():
    operation(_name)(_comparison(_name, _function, None))


@operation("rsub", where=("torch",))
def rsub(input: Any, other: Any, **_: Any) -> Tensor:
    """Other - input."""
    return _binary("sub", BINARY["sub"])(other, input)


@dataclass(frozen=True, slots=True)
class Unary:
    """A function of one tensor: numpy's function, whether it keeps its input or output, and temporaries of its backward."""

    function: NumpyFunction | None
    saves: str = "input"
    temporaries: int = 1
    fp32: bool = False
    keeps_integers: bool = False


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


UNARY: dict[str, Unary] = {
    "neg": Unary(np.negative, "", keeps_integers=True), "negative": Unary(np.negative, "", keeps_integers=True),
    "positive": Unary(np.positive, "", keeps_integers=True),
    "abs": Unary(np.abs, "input", 2, keeps_integers=True), "absolute": Unary(np.abs, "input", 2, keeps_integers=True),
    "cos": Unary(np.cos, "input", 2), "sin": Unary(np.sin, "input", 2), "tan": Unary(np.tan, "output", 2, fp32=True),
    "acos": Unary(np.arccos, "input", 2, fp32=True), "asin": Unary(np.arcsin, "input", 2, fp32=True), "atan": Unary(np.arctan, "input", 2),
    "arctan": Unary(np.arctan, "input", 2), "sinh": Unary(np.sinh, "input", 2, fp32=True), "cosh": Unary(np.cosh, "input", 2, fp32=True),
    "sqrt": Unary(np.sqrt, "output", 2), "rsqrt": Unary(lambda x: 1 / np.sqrt(x), "output", 2, fp32=True),
    "tanh": Unary(np.tanh, "output"), "sigmoid": Unary(_sigmoid, "output"), "expit": Unary(_sigmoid, "output"),
    "exp": Unary(np.exp, "output", fp32=True), "exp2": Unary(np.exp2, "output", 2), "expm1": Unary(np.expm1, "output", 2, fp32=True),
    "log": Unary(np.log, "input", fp32=True), "log2": Unary(np.log2, "input", 2, fp32=True), "log10": Unary(np.log10, "input", 2, fp32=True),
    "log1p": Unary(np.log1p, "input", 2, fp32=True), "reciprocal": Unary(np.reciprocal, "output", 3, fp32=True),
    "erf": Unary(None, "input", 4), "erfc": Unary(None, "input", 4), "erfinv": Unary(None, "output", 4, fp32=True),
    "lgamma": Unary(None, "input", 2), "digamma": Unary(None, "input", 2),
    "square": Unary(np.square, "input", 2, keeps_integers=True), "floor": Unary(np.floor, "", keeps_integers=True),
    "ceil": Unary(np.ceil, "", keeps_integers=True), "round": Unary(np.round, "", keeps_integers=True),
    "trunc": Unary(np.trunc, "", keeps_integers=True), "fix": Unary(np.trunc, "", keeps_integers=True),
    "frac": Unary(lambda x: x - np.trunc(x), ""), "sign": Unary(np.sign, "", keeps_integers=True), "sgn": Unary(np.sign, "", keeps_integers=True),
    "nan_to_num": Unary(np.nan_to_num, "input", 2, keeps_integers=True), "deg2rad": Unary(np.deg2rad, ""),
    "angle": Unary(np.angle, "input", 2),
}  # fmt: skip


def _unary(name: str, rule: Unary) -> Callable[..., Tensor]:
    def backward(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
        del saved, needs
        result = None
        for _ in range(rule.temporaries):
            result = _like(grad)
        return [result]

    def function(input: Tensor, *_: Any, **__: Any) -> Tensor:
        tensor = full_precision(input) if rule.fp32 else input
        dtype = tensor.dtype if tensor.dtype.kind >= 2 or rule.keeps_integers else current().default_dtype
        out = elementwise_output([tensor], FLOAT32 if name in {"abs", "angle"} and dtype.kind == 3 else dtype)
        if rule.function is not None:
            propagate(out, rule.function, tensor)
        if out.dtype.kind < 2:
            charge("elementwise", [out], [tensor])
            return out
        saved = [tensor] if rule.saves == "input" else [out] if rule.saves == "output" else []
        return record(name, out, [tensor], saved, backward)  # type: ignore[no-any-return] # record returns its outputs

    return function


for _unary_name, _unary_rule in UNARY.items():
    operation(_unary_name)(_unary(_unary_name, _unary_rule))


@operation("clamp", "clip")
def clamp(input: Tensor, min: Any = None, max: Any = None, **_: Any) -> Tensor:
    """Values held between two bounds, which may be tensors."""
    bounds = [bound for bound in (min, max) if isinstance(bound, Tensor)]
    dtype = result_type(input, *[bound for bound in (min, max) if bound is not None])
    out = elementwise_output([input, *bounds], dtype)
    propagate(out, lambda x, *_: np.clip(x, _number(min), _number(max)), input, *bounds)
    if dtype.kind < 2:
        charge("elementwise", [out], [input, *bounds])
        return out

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
        del saved
        mask = elementwise_output([grad], BOOL)
        result = _like(grad)
        del mask
        return [result, *[_like(grad) if need else None for need in needs[1:]]]

    return record("clamp", out, [input, *bounds], [input, *bounds], backward)  # type: ignore[no-any-return] # record returns its outputs


def _number(bound: Any) -> Any:
    return bound.value if isinstance(bound, Tensor) else bound


@operation("clamp_min")
def clamp_min(input: Tensor, min: Any) -> Tensor:
    """Clamp from below."""
    return clamp(input, min)


@operation("clamp_max")
def clamp_max(input: Tensor, max: Any) -> Tensor:
    """Clamp from above."""
    return clamp(input, None, max)


def _predicate(function: NumpyFunction | None, dtype: DType | None = BOOL) -> Callable[..., Tensor]:
    def test(input: Tensor, *_: Any, **__: Any) -> Tensor:
        out = elementwise_output([input], dtype or input.dtype)
        if function is not None:
            propagate(out, function, input)
        charge("elementwise", [out], [input])
        return out

    return test


for _predicate_name, _predicate_function in {
    "logical_not": np.logical_not, "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite, "signbit": np.signbit,
    "isposinf": np.isposinf, "isneginf": np.isneginf,
}.items():  # fmt: skip
    operation(_predicate_name)(_predicate(_predicate_function))


@operation("bitwise_not")
def bitwise_not(input: Tensor) -> Tensor:
    """~input: logical for bool, by bits for integers."""
    return _predicate(np.logical_not if input.dtype is BOOL else np.invert, None)(input)


@operation("isin", where=("torch",))
def isin(elements: Any, test_elements: Any, **_: Any) -> Tensor:
    """Which elements are among the test elements."""
    out = elementwise_output([elements if isinstance(elements, Tensor) else test_elements], BOOL)
    others = test_elements.value if isinstance(test_elements, Tensor) else test_elements
    if others is not None and isinstance(elements, Tensor):
        propagate(out, lambda x: np.isin(x, others), elements)
    charge("elementwise", [out], [elements])
    return out


@operation("where")
def where(condition: Any, input: Any = None, other: Any = None, *, self: Any = None) -> Any:
    """Input where the condition holds, other elsewhere; with one argument the indices where it holds."""
    input = self if self is not None else input
    if input is None:
        from weighbridge.phantom.ops.indexing import nonzero  # noqa: PLC0415 - indexing builds on these operations

        return nonzero(condition, as_tuple=True)
    dtype = result_type(input, other)
    out = propagate(elementwise_output([condition, input, other], dtype), np.where, condition, input, other)

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
        del saved
        return [_like(grad) if needs[0] else None, _like(grad) if needs[1] else None]

    if dtype.kind < 2:
        charge("elementwise", [out], [condition, input, other])
        return out
    tensors = [x if isinstance(x, Tensor) else None for x in (input, other)]
    return record("where", out, tensors, [condition], backward)


@operation("masked_fill")
def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """`value` where the mask holds."""
    out = elementwise_output([input, mask], input.dtype)
    if not isinstance(value, Tensor):
        propagate(out, lambda x, m: np.where(m, value, x), input, mask)

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
        del saved
        return [_like(grad) if needs[0] else None]

    if out.dtype.kind < 2:
        charge("elementwise", [out], [input, mask])
        return out
    return record("masked_fill", out, [input], [mask], backward)  # type: ignore[no-any-return] # record returns its outputs


@operation("lerp")
def lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    """A linear mixture of two tensors."""
    out = elementwise_output([input, end, weight], input.dtype)

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
        del saved
        return [_like(grad) if need else None for need in needs]

    return record("lerp", out, [input, end], [weight] if isinstance(weight, Tensor) else [], backward)  # type: ignore[no-any-return] # record returns its outputs


@operation("addcmul")
def addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """Input + value * tensor1 * tensor2 in one kernel."""
    del value
    return _fused(input, tensor1, tensor2, "addcmul")


@operation("addcdiv")
def addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    """Input + value * tensor1 / tensor2 in one kernel."""
    del value
    return _fused(input, tensor1, tensor2, "addcdiv")


def _fused(input: Tensor, first: Tensor, second: Tensor, name: str) -> Tensor:
    out = elementwise_output([input, first, second], result_type(input, first, second))

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
        del saved
        return [grad if needs[0] else None, *[_like(grad) if need else None for need in needs[1:]]]

    return record(name, out, [input, first, second], [first, second], backward)  # type: ignore[no-any-return] # record returns its outputs


@operation("complex", where=("torch",))
def complex_(real: Tensor, imag: Tensor) -> Tensor:
    """Complex numbers from real and imaginary parts."""
    from weighbridge.base.dtypes import COMPLEX64, COMPLEX128  # noqa: PLC0415 - used here only

    out = elementwise_output([real, imag], COMPLEX128 if real.dtype.bits == 64 else COMPLEX64)

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
        del saved
        return [elementwise_output([grad], FLOAT32) if need else None for need in needs]

    return record("complex", out, [real, imag], [], backward)  # type: ignore[no-any-return] # record returns its outputs


@operation("polar", where=("torch",))
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Complex numbers from absolute values and angles."""
    return complex_(abs, angle)
