"""Element-wise operations, reductions, views, indexing and copies against torch: every byte allocated, forward and backward."""

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch_events import Given, in_phantoms, in_torch  # noqa: E402 - needs torch

from weighbridge.base.dtypes import BFLOAT16, FLOAT32  # noqa: E402 - likewise
from weighbridge.phantom import OPERATIONS  # noqa: E402 - likewise

X = Given((8, 40))
LOW = Given((8, 40), "bfloat16")
FIXED = Given((8, 40), grad=False)
ROW = Given((40,))
CUBE = Given((4, 6, 40))
TURNED = Given((40, 8), order=(1, 0))
TURNED_CUBE = Given((4, 6, 40), order=(2, 0, 1))
MASK = Given((8, 40), "bool")
INDEX = Given((3,), "int64")

UNARY = (
    "neg", "abs", "cos", "sin", "tan", "acos", "asin", "atan", "sinh", "cosh", "sqrt", "rsqrt", "tanh", "sigmoid", "exp", "exp2", "expm1",
    "log", "log2", "log10", "log1p", "reciprocal", "erf", "erfc", "erfinv", "lgamma", "square", "floor", "ceil", "round", "trunc", "frac",
    "sign", "deg2rad",
)  # fmt: skip
BINARY = ("add", "sub", "mul", "div", "maximum", "minimum", "fmod", "remainder", "logaddexp", "hypot", "fmax", "fmin")
PAIRS = ((X, X), (X, ROW), (X, FIXED), (FIXED, X), (X, LOW), (LOW, LOW), (TURNED, Given((8, 40))))
REDUCTIONS = ("sum", "mean", "logsumexp", "amax", "amin", "var", "std", "norm")


def same(function: Callable[..., Any], ours: Callable[..., Any], *given: Given, autocast: str | None = None) -> None:
    assert in_phantoms(ours, given, autocast).steps == in_torch(function, given, autocast).steps


@pytest.mark.parametrize("autocast", [None, "bfloat16"])
@pytest.mark.parametrize("name", UNARY)
def test_a_function_of_one_tensor_allocates_as_in_torch(name: str, autocast: str | None) -> None:
    for given in (LOW,) if autocast else (X, TURNED):
        same(getattr(torch, name), OPERATIONS[name], given, autocast=autocast)


@pytest.mark.parametrize("name", BINARY)
def test_a_function_of_two_tensors_allocates_as_in_torch(name: str) -> None:
    wide_masks = name in {"fmax", "fmin"}  # a mask of the smaller operand's shape counts as a whole one here
    for first, second in PAIRS:
        if not (wide_masks and second is ROW):
            same(getattr(torch, name), OPERATIONS[name], first, second)


@pytest.mark.parametrize("exponent", [2, 3, 0.5, -0.5, -1, 1, 0])
@pytest.mark.parametrize("autocast", [None, "bfloat16"])
def test_a_power_allocates_as_in_torch(exponent: float, autocast: str | None) -> None:
    same(lambda x: x**exponent, lambda x: OPERATIONS["pow"](x, exponent), LOW if autocast else X, autocast=autocast)


NUMBERS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "1 - x": (lambda x: 1 - x, lambda x: OPERATIONS["sub"](1, x)),
    "1 / x": (lambda x: 1 / x, lambda x: OPERATIONS["div"](1, x)),
    "2 ** x": (lambda x: 2**x, lambda x: OPERATIONS["pow"](2, x)),
    "x / 2": (lambda x: x / 2, lambda x: OPERATIONS["div"](x, 2)),
    "x * 2": (lambda x: x * 2, lambda x: OPERATIONS["mul"](x, 2)),
    "x + x": (lambda x: x + x, lambda x: OPERATIONS["add"](x, x)),
    "x * x": (lambda x: x * x, lambda x: OPERATIONS["mul"](x, x)),
    "clamp(-1, 1)": (lambda x: x.clamp(-1, 1), lambda x: OPERATIONS["clamp"](x, -1, 1)),
    "clamp(min=0)": (lambda x: x.clamp(min=0), lambda x: OPERATIONS["clamp"](x, min=0)),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_arithmetic_with_numbers_allocates_as_in_torch(name: str) -> None:
    same(*NUMBERS[name], X)


@pytest.mark.parametrize("autocast", [None, "bfloat16"])
@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_reduction_allocates_as_in_torch(name: str, autocast: str | None) -> None:
    kind = "bfloat16" if autocast else "float32"
    for options in ({"dim": -1}, {"dim": (0, 2)}, {"dim": 1, "keepdim": True}):
        for given in (Given((4, 6, 40), kind), Given((4, 6, 40), kind, order=(2, 0, 1))):
            same(
                lambda x, options=options: getattr(torch, name)(x, **options),
                lambda x, options=options: OPERATIONS[name](x, **options),
                given, autocast=autocast,
            )  # fmt: skip


@pytest.mark.parametrize("given", [X, TURNED])
def test_a_running_sum_allocates_as_in_torch(given: Given) -> None:
    same(lambda x: x.cumsum(-1), lambda x: OPERATIONS["cumsum"](x, -1), given)
    same(lambda x: x.cumsum(-1, dtype=torch.float32), lambda x: OPERATIONS["cumsum"](x, -1, dtype=FLOAT32), LOW)


METHODS: list[tuple[str, tuple[Any, ...]]] = [
    ("reshape", (24, 40)), ("view", (24, 40)), ("transpose", (0, 1)), ("permute", (2, 0, 1)), ("unsqueeze", (1,)), ("expand", (4, 6, 40)),
    ("contiguous", ()), ("clone", ()), ("flatten", ()), ("narrow", (1, 2, 3)), ("select", (1, 3)), ("unbind", (0,)), ("split", (4, 1)),
    ("chunk", (4, 1)), ("tensor_split", (4, 1)), ("movedim", (0, 2)), ("diagonal", ()), ("unfold", (2, 10, 5)), ("repeat", (2, 1, 1)),
    ("repeat_interleave", (2, 1)), ("flip", (0,)), ("roll", (2, 1)), ("roll", (3,)), ("tril", ()), ("triu", (1,)), ("rot90", ()),
    ("squeeze", ()), ("flatten", (1,)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "arguments"), METHODS)
def test_a_view_or_copy_allocates_as_in_torch(name: str, arguments: tuple[Any, ...]) -> None:
    turned = () if name in {"view", "narrow", "unfold"} else (TURNED_CUBE,)
    for given in (CUBE, *turned):
        arguments_here = (40, 4, 6) if name == "expand" and given is TURNED_CUBE else arguments
        same(
            lambda x, a=arguments_here: getattr(x, name)(*a),
            lambda x, a=arguments_here: OPERATIONS[name](x, *a),
            given,
        )  # fmt: skip


EVERYTHING = slice(None)
KEYS: list[Any] = [
    (EVERYTHING, slice(0, 4)), (EVERYTHING, 0), (None,), (..., 0), (EVERYTHING, EVERYTHING, slice(0, 40)), (..., slice(0, 20)),
    (EVERYTHING, None), ..., (slice(None, None, 2),), [1, 2], (EVERYTHING, [1, 2]), ([0, 1], EVERYTHING, [1, 2]), ([0, 1], [1, 2]), -1,
    (slice(1, -1), slice(-3, None)),
]  # fmt: skip


@pytest.mark.parametrize("key", KEYS, ids=str)
def test_indexing_allocates_as_in_torch(key: Any) -> None:
    for given in (CUBE, TURNED_CUBE):
        same(lambda x: x[key], lambda x: OPERATIONS["__getitem__"](x, key), given)


SELECTIONS: dict[str, tuple[Callable[..., Any], tuple[Any, ...], tuple[Given, ...]]] = {
    "index_add": (torch.index_add, (0,), (X, INDEX, Given((3, 40)))),
    "index_copy": (torch.index_copy, (0,), (X, INDEX, Given((3, 40)))),
    "scatter": (torch.scatter, (0,), (X, Given((3, 40), "int64"), Given((3, 40)))),
    "scatter_add": (torch.scatter_add, (0,), (X, Given((3, 40), "int64"), Given((3, 40)))),
}


@pytest.mark.parametrize("name", SELECTIONS)
def test_a_scatter_allocates_as_in_torch(name: str) -> None:
    function, arguments, given = SELECTIONS[name]
    same(lambda x, *rest: function(x, *arguments, *rest), lambda x, *rest: OPERATIONS[name](x, *arguments, *rest), *given)


CHOICES: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[Given, ...]]] = {
    "where": (torch.where, OPERATIONS["where"], (MASK, X, X)),
    "where a number": (lambda m, x: torch.where(m, x, 0.0), lambda m, x: OPERATIONS["where"](m, x, 0.0), (MASK, X)),
    "masked_fill": (lambda x, m: x.masked_fill(m, 0.0), lambda x, m: OPERATIONS["masked_fill"](x, m, 0.0), (X, MASK)),
    "masked_scatter": (torch.masked_scatter, OPERATIONS["masked_scatter"], (X, MASK, Given((320,)))),
    "lerp": (lambda a, b: torch.lerp(a, b, 0.5), lambda a, b: OPERATIONS["lerp"](a, b, 0.5), (X, X)),
    "lerp by a tensor": (torch.lerp, OPERATIONS["lerp"], (X, X, X)),
    "addcmul": (torch.addcmul, OPERATIONS["addcmul"], (X, X, X)),
    "addcdiv": (torch.addcdiv, OPERATIONS["addcdiv"], (X, X, X)),
    "cat": (lambda a, b: torch.cat([a, b], -1), lambda a, b: OPERATIONS["cat"]([a, b], -1), (X, X)),
    "cat of two types": (lambda a, b: torch.cat([a, b], -1), lambda a, b: OPERATIONS["cat"]([a, b], -1), (X, LOW)),
    "stack": (lambda a, b: torch.stack([a, b], -1), lambda a, b: OPERATIONS["stack"]([a, b], -1), (X, X)),
    "to": (lambda x: x.to(torch.bfloat16), lambda x: OPERATIONS["to"](x, BFLOAT16), (TURNED_CUBE,)),
}


@pytest.mark.parametrize("name", CHOICES)
def test_choosing_and_joining_allocates_as_in_torch(name: str) -> None:
    function, ours, given = CHOICES[name]
    same(function, ours, *given)


def written(key: Any, number: float | None = None) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """A write into a copy, in torch and in phantoms."""

    def real(x: Any, *value: Any) -> Any:
        copy = x.clone()
        copy[key] = value[0] if value else number
        return copy

    def ours(x: Any, *value: Any) -> Any:
        copy = OPERATIONS["clone"](x)
        OPERATIONS["__setitem__"](copy, key, value[0] if value else number)
        return copy

    return real, ours


def test_writing_a_slice_allocates_as_in_torch() -> None:
    same(*written((EVERYTHING, slice(0, 20))), X, Given((8, 20)))
    same(*written((EVERYTHING, slice(0, 20)), 0.0), X)


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_arithmetic_in_place_copies_what_its_gradient_needs(name: str) -> None:
    same(
        lambda x, y: getattr(x.clone(), f"{name}_")(y),
        lambda x, y: OPERATIONS[f"{name}_"](OPERATIONS["clone"](x), y),
        X, X,
    )  # fmt: skip
    same(lambda x: getattr(x.clone(), f"{name}_")(2.0), lambda x: OPERATIONS[f"{name}_"](OPERATIONS["clone"](x), 2.0), X)


@pytest.mark.parametrize("name", ["exp", "sigmoid", "tanh", "neg", "sqrt", "cos"])
def test_functions_in_place_allocate_as_in_torch(name: str) -> None:
    same(lambda x: getattr(x.clone(), f"{name}_")(), lambda x: OPERATIONS[f"{name}_"](OPERATIONS["clone"](x)), X)


def test_overwriting_allocates_as_in_torch() -> None:
    same(lambda x, y: x.clone().copy_(y), lambda x, y: OPERATIONS["copy_"](OPERATIONS["clone"](x), y), X, X)
    same(lambda x: x.clone().fill_(0.0), lambda x: OPERATIONS["fill_"](OPERATIONS["clone"](x), 0.0), X)
