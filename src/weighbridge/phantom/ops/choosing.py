"""Choosing between values: bounds, masks, tests and mixtures."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from weighbridge.base.dtypes import BOOL, FLOAT32, DType
from weighbridge.phantom.operations import (
    charge,
    elementwise_output,
    follow,
    operation,
    propagate,
    record,
    result_type,
)
from weighbridge.phantom.ops.pointwise import wanted
from weighbridge.phantom.session import current
from weighbridge.phantom.tensor import Tensor

Saved = Sequence[Tensor | None]
Needs = Sequence[bool]
NumpyFunction = Callable[..., Any]


@operation("clamp", "clip")
def clamp(input: Tensor, min: Any = None, max: Any = None, **_: Any) -> Tensor:
    """Values held between two bounds, which may be tensors."""
    given = [bound for bound in (min, max) if bound is not None]
    bounds = [bound for bound in given if isinstance(bound, Tensor)]
    dtype = result_type(input, *given)
    out = elementwise_output([input, *bounds], dtype)
    propagate(out, lambda x, *_: np.clip(x, _number(min), _number(max)), input, *bounds)
    if dtype.kind < 2:
        charge("elementwise", [out], [input, *bounds])
        return out
    recipe = "sbbF" if len(given) == 2 else "sbF"

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
        del saved
        return [follow(recipe, grad) if need else None for need in needs]

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


operation("logical_not")(_predicate(np.logical_not))

FINITE = "activations are finite"


def _finiteness(function: NumpyFunction, taken: bool) -> Callable[..., Tensor]:
    """A test for infinities or nans; of values that are not known it is assumed that they are finite."""
    test = _predicate(function)

    def run(input: Tensor, *_: Any, **__: Any) -> Tensor:
        out = test(input)
        if out.value is None:
            current().assume(FINITE)
            out.value = np.broadcast_to(np.asarray(taken), out.shape)
        return out

    return run


_FINITENESS: dict[str, tuple[NumpyFunction, bool]] = {
    "isnan": (np.isnan, False), "isinf": (np.isinf, False), "isfinite": (np.isfinite, True), "isposinf": (np.isposinf, False),
    "isneginf": (np.isneginf, False),
}  # fmt: skip
for _test_name, (_test, _taken) in _FINITENESS.items():
    operation(_test_name)(_finiteness(_test, _taken))
operation("signbit")(_predicate(np.signbit))


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
    numbers = [Tensor((), dtype) for x in (input, other) if not isinstance(x, Tensor)]
    out = propagate(elementwise_output([condition, input, other], dtype), np.where, condition, input, other)
    del numbers

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
        del saved
        second = follow("sF", grad) if needs[1] else None
        return [follow("sF", grad) if needs[0] else None, second]

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
        return [follow("F", grad) if needs[0] else None]

    if out.dtype.kind < 2:
        charge("elementwise", [out], [input, mask])
        return out
    return record("masked_fill", out, [input], [mask], backward)  # type: ignore[no-any-return] # record returns its outputs


def _ternary(
    name: str, recipes: tuple[str, str, str], order: tuple[int, int, int], needs_of: tuple[str, str, str]
) -> Callable[..., Tensor]:
    """An operation on three operands: recipes of their gradients, the order torch makes them in, and which operands each reads."""

    def backward(saved: Saved, grad: Tensor, needs: Needs) -> list[Tensor | None]:
        del saved
        found: list[Tensor | None] = [None] * 3
        for place in order:
            if needs[place]:
                found[place] = follow(recipes[place], grad)
        return found

    def function(input: Tensor, first: Tensor, second: Any, **_: Any) -> Tensor:
        out = elementwise_output([input, first, second], result_type(input, first, second))
        tensors = [x if isinstance(x, Tensor) else None for x in (input, first, second)]
        needed = "".join(needs for needs, tensor in zip(needs_of, tensors, strict=True) if wanted(tensor))
        saved = [tensor for letter, tensor in zip("012", tensors, strict=True) if letter in needed and tensor is not None]
        return record(name, out, tensors, saved, backward)  # type: ignore[no-any-return] # record returns its outputs

    return function


def _lerp(input: Tensor, end: Tensor, weight: Any) -> Tensor:
    recipes = ("fF", "F", "fF") if isinstance(weight, Tensor) else ("F", "F", "")
    return _ternary("lerp", recipes, (1, 0, 2), ("2", "2", "01"))(input, end, weight)


def _addcmul(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    del value
    return _ternary("addcmul", ("", "fF", "fF"), (0, 1, 2), ("", "2", "1"))(input, tensor1, tensor2)


def _addcdiv(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, value: Any = 1) -> Tensor:
    del value
    return _ternary("addcdiv", ("", "fF", "ffffF"), (0, 1, 2), ("", "2", "12"))(input, tensor1, tensor2)


operation("lerp")(_lerp)
operation("addcmul")(_addcmul)
operation("addcdiv")(_addcdiv)


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
