"""Element-wise operations: arithmetic, comparisons, elementary functions, and choosing between tensors.

Each entry of a table says what autograd keeps and how many temporaries the backward makes (torchgen's derivatives.yaml).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from weighbridge.base.dtypes import BOOL, FLOAT32, DType
from weighbridge.phantom.operations import (
    OPERATIONS,
    charge,
    elementwise_output,
    follow,
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


def _operand(value: Any, name: str) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if not isinstance(value, Tensor | bool | int | float | complex):
        raise TypeError(f"unsupported operand type for {name}: '{type(value).__name__}'")
    return value


def _xlogy(x: Any, y: Any) -> Any:
    return np.where(x == 0, 0.0, x * np.log(y))


@dataclass(frozen=True, slots=True)
class Binary:
    """A differentiable operation on two operands: numpy's function, recipes of both gradients, and what they need saved.

    `input_needs` and `other_needs` name the tensors that each gradient reads: a the input, b the other, r the result.
    """

    function: NumpyFunction
    input: str = ""
    other: str = ""
    input_needs: str = ""
    other_needs: str = ""
    float_result: bool = False

    def saved(self, tensors: Mapping[str, Tensor | None], wanted: tuple[bool, bool]) -> list[Tensor | None]:
        """What the tape keeps, in the order input, other, result."""
        needed = (self.input_needs if wanted[0] else "") + (self.other_needs if wanted[1] else "")
        return [tensors[name] if name in needed else None for name in "abr"]


BINARY: dict[str, Binary] = {
    "add": Binary(np.add),
    "sub": Binary(np.subtract, other="F"),
    "mul": Binary(np.multiply, "F", "F", "b", "a"),
    "div": Binary(np.true_divide, "F", "fffF", "b", "ab", float_result=True),
    "pow": Binary(np.power, "ffffsbF", "bbB ffsfF", "ab", "abr"),
    "maximum": Binary(np.maximum, "fbFb", "fbFb", "ab", "ab"), "minimum": Binary(np.minimum, "fbFb", "fbFb", "ab", "ab"),
    "fmod": Binary(np.fmod, "", "ffF", "", "ab"), "remainder": Binary(np.mod, "", "ffF", "", "ab"),
    "fmax": Binary(np.fmax, "bbF", "bbF", "ab", "ab"), "fmin": Binary(np.fmin, "bbF", "bbF", "ab", "ab"),
    "logaddexp": Binary(np.logaddexp, "fffF", "fffF", "ab", "ab"), "hypot": Binary(np.hypot, "fF", "fF", "abr", "abr"),
    "atan2": Binary(np.arctan2, "fffbF fF", "fffbF fF", "ab", "ab"), "xlogy": Binary(_xlogy, "fbbbF", "fF", "ab", "ab"),
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
        if name == "div" and not isinstance(a, Tensor) and rounding_mode is None:
            return OPERATIONS["mul"](OPERATIONS["reciprocal"](b), a)  # type: ignore[no-any-return] # the registry is untyped
        if name == "pow":
            a, b = full_precision(a), full_precision(b)
        dtype = result_type(a, b)
        if rule.float_result and rounding_mode is None and dtype.kind < 2:
            dtype = current().default_dtype
        result = propagate(elementwise_output([a, b], dtype), np.floor_divide if rounding_mode else rule.function, a, b)
        if dtype.kind < 2:
            charge("elementwise", [result], [a, b])
            return result
        tensors = {"a": a if isinstance(a, Tensor) else None, "b": b if isinstance(b, Tensor) else None, "r": result}
        asked = wanted(tensors["a"]), wanted(tensors["b"])
        saved = rule.saved(tensors, asked) if any(asked) else []
        recipes = _power_recipes(rule, a, b) if name == "pow" else (rule.input, rule.other)
        return record(name, result, [tensors["a"], tensors["b"]], saved, _following(*recipes))  # type: ignore[no-any-return] # record returns its outputs

    return function


def wanted(tensor: Tensor | None) -> bool:
    """Whether the tape wants a gradient for a tensor."""
    return tensor is not None and tensor.requires_grad and current().grad_enabled


def _power_recipes(rule: Binary, base: Any, exponent: Any) -> tuple[str, str]:
    """A number as exponent or base spares pow's gradients their special cases."""
    if not isinstance(exponent, Tensor):
        return ("F" if exponent == 0 else "ffF"), ""
    return rule.input, "fF" if not isinstance(base, Tensor) else rule.other


def _following(first: str, second: str) -> Any:
    """A backward that follows two recipes; torch works out the other operand's gradient first."""

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
        layout = [tensor for tensor in saved if tensor is not None and tensor.shape == grad.shape]
        other = follow(second, grad, *layout) if needs[1] else None
        return [follow(first, grad, *layout) if needs[0] else None, other]

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
    """A function of one tensor: numpy's function, whether it keeps its input or output, and the recipe of its gradient."""

    function: NumpyFunction | None
    saves: str = "input"
    gradient: str = "F"
    fp32: bool = False
    keeps_integers: bool = False


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


UNARY: dict[str, Unary] = {
    "neg": Unary(np.negative, "", keeps_integers=True), "negative": Unary(np.negative, "", keeps_integers=True),
    "positive": Unary(np.positive, "", "", keeps_integers=True),
    "abs": Unary(np.abs, "input", "fF", keeps_integers=True), "absolute": Unary(np.abs, "input", "fF", keeps_integers=True),
    "cos": Unary(np.cos, "input", "ffF"), "sin": Unary(np.sin, "input", "fF"), "tan": Unary(np.tan, "output", "ffF", fp32=True),
    "acos": Unary(np.arccos, "input", "fffffF", fp32=True), "asin": Unary(np.arcsin, "input", "ffffF", fp32=True),
    "atan": Unary(np.arctan, "input", "ffF"), "arctan": Unary(np.arctan, "input", "ffF"),
    "sinh": Unary(np.sinh, "input", "fF", fp32=True), "cosh": Unary(np.cosh, "input", "fF", fp32=True),
    "sqrt": Unary(np.sqrt, "output", "fF"), "rsqrt": Unary(lambda x: 1 / np.sqrt(x), "output", "ffF", fp32=True),
    "tanh": Unary(np.tanh, "output"), "sigmoid": Unary(_sigmoid, "output"), "expit": Unary(_sigmoid, "output"),
    "exp": Unary(np.exp, "output", fp32=True), "exp2": Unary(np.exp2, "output", "fF"), "expm1": Unary(np.expm1, "output", "fF", fp32=True),
    "log": Unary(np.log, "input", fp32=True), "log2": Unary(np.log2, "input", "fF", fp32=True),
    "log10": Unary(np.log10, "input", "fF", fp32=True), "log1p": Unary(np.log1p, "input", "fF", fp32=True),
    "reciprocal": Unary(np.reciprocal, "output", "ffF", fp32=True),
    "erf": Unary(None, "input", "ffffF"), "erfc": Unary(None, "input", "ffffF"), "erfinv": Unary(None, "input", "ffffF", fp32=True),
    "lgamma": Unary(None, "input", "fF"), "digamma": Unary(None, "input", "fF"),
    "floor": Unary(np.floor, "", keeps_integers=True), "ceil": Unary(np.ceil, "", keeps_integers=True),
    "round": Unary(np.round, "", keeps_integers=True), "trunc": Unary(np.trunc, "", keeps_integers=True),
    "fix": Unary(np.trunc, "", keeps_integers=True), "frac": Unary(lambda x: x - np.trunc(x), "", ""),
    "sign": Unary(np.sign, "", keeps_integers=True), "sgn": Unary(np.sign, "", keeps_integers=True),
    "nan_to_num": Unary(np.nan_to_num, "input", "fbbbF", keeps_integers=True), "deg2rad": Unary(np.deg2rad, ""),
    "rad2deg": Unary(np.rad2deg, ""), "angle": Unary(np.angle, "input", "fF"),
}  # fmt: skip


def _unary(name: str, rule: Unary) -> Callable[..., Tensor]:
    def backward(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
        del needs
        return [follow(rule.gradient, grad, *saved)]

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


@operation("square")
def square(input: Tensor) -> Tensor:
    """pow(input, 2), which it is in torch, too."""
    return OPERATIONS["pow"](input, 2)  # type: ignore[no-any-return] # the registry is untyped
