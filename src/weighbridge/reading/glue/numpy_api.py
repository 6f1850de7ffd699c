"""The part of numpy that models use to work out sizes and rates, over real arrays of bounded size."""

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from weighbridge.base.errors import LimitExceeded
from weighbridge.phantom import Tensor
from weighbridge.reading.python import MISSING, Bound, Foreign, Machine, Namespace, Native, TypeObject, Unknown

if TYPE_CHECKING:
    from weighbridge.reading.glue.runtime import Runtime

ELEMENTS: Final = 1 << 25
ELEMENTS_A_CELL: Final = 4
"""An element of an array takes a fraction of what the interpreter's own values take."""
POINTWISE: Final = (
    "abs", "absolute", "add", "arccos", "arcsin", "arctan", "arctan2", "ceil", "clip", "cos", "cosh", "divide", "equal", "exp",
    "expm1", "floor",
    "floor_divide", "fmax", "fmin", "gcd", "lcm",
    "greater", "isfinite", "isinf", "isnan", "less", "log", "log10", "log1p", "log2", "logical_and",
    "logical_not",
    "logical_or", "maximum", "minimum", "mod", "multiply", "negative", "power", "rint", "round", "sign", "sin", "sinh", "sqrt",
    "square", "subtract",
    "tan", "tanh", "where",
)  # fmt: skip
REDUCING: Final = ("all", "any", "argmax", "argmin", "max", "mean", "median", "min", "prod", "std", "sum", "var", "amax", "amin")
SHAPING: Final = (
    "argsort", "array", "asarray", "atleast_1d", "concatenate", "cumprod", "cumsum", "diff", "expand_dims", "flip", "hstack",
    "ravel", "reshape", "sort",
    "squeeze", "stack", "transpose", "unique", "vstack", "split", "array_split", "roll", "ones_like", "zeros_like", "empty_like",
    "full_like", "triu", "tril",
)  # fmt: skip
"""Results no larger than what goes in."""
METHODS: Final = (
    "all", "any", "argmax", "argmin", "argsort", "astype", "copy", "cumprod", "cumsum", "flatten", "item", "max", "mean", "min",
    "prod", "ravel", "reshape",
    "round", "squeeze", "std", "sum", "swapaxes", "tolist", "transpose", "var",
)  # fmt: skip
DTYPES: Final = ("bool_", "float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
EXACT: Final = 1 << 53
SCALAR: Final[dict[str, Callable[..., Any]]] = {
    "power": lambda base, power: math.pow(base, power) if float in {type(base), type(power)} else int(np.power(base, power)),
    "sqrt": math.sqrt, "sin": math.sin, "cos": math.cos, "exp": math.exp, "log": math.log, "log2": math.log2, "log10": math.log10,
}  # fmt: skip
"""The same on plain numbers, without the detour; what raises there goes numpy's way."""
BINARY: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "Add": np.add, "Sub": np.subtract, "Mult": np.multiply, "Div": np.divide, "FloorDiv": np.floor_divide, "Mod": np.mod, "Pow": np.power,
    "MatMult": np.matmul, "BitAnd": np.bitwise_and, "BitOr": np.bitwise_or, "BitXor": np.bitwise_xor,
}  # fmt: skip
COMPARE: Final[dict[str, Callable[[Any, Any], Any]]] = {"Lt": np.less, "LtE": np.less_equal, "Gt": np.greater, "GtE": np.greater_equal}
Array = "np.ndarray[Any, Any]"


def opened(value: Any) -> Any:
    """A numpy result as the interpreter holds it: scalars as plain numbers."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, (list, tuple)):
        return type(value)(opened(part) for part in value)
    return value


def given(value: Any) -> Any:
    """An argument for numpy; None where it is a tensor without values or nothing numpy may see."""
    if isinstance(value, Tensor):
        return value.value
    if isinstance(value, TypeObject):
        return value.python
    if isinstance(value, Native) and (value.name or "").startswith("numpy."):
        return np.dtype(str(value.name).removeprefix("numpy."))
    if isinstance(value, (list, tuple)):
        return type(value)(given(part) for part in value)
    if isinstance(value, range):
        return list(value)
    return value if isinstance(value, (int, float, complex, bool, str, np.ndarray, slice, type(None))) else None


def hidden(value: Any) -> bool:
    """Whether an argument, or part of one, is not known."""
    if isinstance(value, (list, tuple)):
        return any(hidden(part) for part in value)
    return type(value) is Unknown or (isinstance(value, Tensor) and value.value is None)


class NumpyApi:
    """numpy for one reading."""

    def __init__(self, runtime: "Runtime") -> None:
        self.runtime, self.machine = runtime, runtime.machine
        self.machine.add_foreign(np.ndarray, ArrayForeign(self))
        random = Namespace("numpy.random", {}, lambda name: Native(self._random, f"numpy.random.{name}", lazy=True))
        entries: dict[str, Any] = {name: self.function(name, getattr(np, name)) for name in (*POINTWISE, *REDUCING, *SHAPING)}
        entries.update({name: Native(self._converter(name), f"numpy.{name}", lazy=True) for name in DTYPES})
        entries.update(pi=math.pi, e=math.e, inf=math.inf, nan=math.nan, newaxis=None, random=random)
        entries.update({name: Native(function, f"numpy.{name}", lazy=True) for name, function in self._creations().items()})
        entries["ndarray"] = Unknown("numpy.ndarray", "stub")
        self.namespace = Namespace("numpy", entries)

    def function(self, name: str, function: Callable[..., Any]) -> Native:
        """A function whose result is no larger than its broadcast arguments."""
        quick = SCALAR.get(name)

        def run(*args: Any, **kwargs: Any) -> Any:
            if quick is not None and not kwargs and all(type(arg) is float or (type(arg) is int and abs(arg) < EXACT) for arg in args):
                try:
                    return quick(*args)
                except (ArithmeticError, ValueError):
                    return self.run(name, function, args, kwargs)
            return self.run(name, function, args, kwargs)

        return Native(run, f"numpy.{name}", lazy=True)

    def run(self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run one numpy function on known arguments of bounded size; Unknown on unknown ones."""
        if hidden(args) or hidden(list(kwargs.values())):
            return self.machine.unknown(f"numpy.{name} of something unknown")
        values = [given(value) for value in args]
        sizes = [np.size(value) for value in values if isinstance(value, (np.ndarray, list, tuple))]
        self.bound(math.prod(max(size, 1) for size in sizes) if name in POINTWISE else sum(sizes))
        if any(isinstance(value, int) and value.bit_length() > 63 for value in values):
            raise LimitExceeded("int_bits", "an integer too large for numpy")
        with np.errstate(all="ignore"):
            return opened(function(*values, **{key: given(value) for key, value in kwargs.items()}))

    def bound(self, elements: int) -> None:
        """Charge an array about to be made."""
        if elements > ELEMENTS:
            file, line = self.machine.place
            raise LimitExceeded("cells", f"a numpy array of {elements:,} elements", file=file, line=line)
        self.machine.charge(elements // ELEMENTS_A_CELL)

    def _random(self, *args: Any, size: Any = None, **_: Any) -> Any:
        shape = size if size is not None else args if args and all(type(arg) is int for arg in args) else None
        if shape is None:
            return self.machine.unknown("a random number")
        return self.runtime.operations.apply("empty", shape)

    def _converter(self, name: str) -> Callable[..., Any]:
        def convert(value: Any = 0) -> Any:
            return self.run(name, lambda inner: np.asarray(inner).astype(name)[()], (value,), {})

        return convert

    def _creations(self) -> dict[str, Callable[..., Any]]:
        def filled(maker: Callable[..., Any]) -> Callable[..., Any]:
            def make(shape: Any, *args: Any, dtype: Any = None, **_: Any) -> Any:
                if hidden([shape, *args]):
                    return self.machine.unknown("a numpy array of unknown size")
                self.bound(math.prod(shape) if isinstance(shape, (tuple, list)) else int(shape))
                return maker(given(shape), *[given(arg) for arg in args], **({} if dtype is None else {"dtype": given(dtype)}))

            return make

        def arange(*bounds: Any, dtype: Any = None) -> Any:
            if hidden(list(bounds)):
                return self.machine.unknown("numpy.arange of something unknown")
            start, stop, step = (0, bounds[0], 1) if len(bounds) == 1 else (*bounds, 1)[:3]
            self.bound(max(0, math.ceil((stop - start) / step)))
            return np.arange(start, stop, step, dtype=given(dtype))

        def linspace(start: Any, stop: Any, num: Any = 50, **kwargs: Any) -> Any:
            if hidden([start, stop, num]):
                return self.machine.unknown("numpy.linspace of something unknown")
            self.bound(int(num))
            return np.linspace(given(start), given(stop), int(num), **{key: given(value) for key, value in kwargs.items()})

        def meshgrid(*lines: Any, indexing: str = "xy") -> Any:
            self.bound(math.prod(np.size(given(line)) for line in lines) * len(lines))
            return self.run("meshgrid", lambda *inner: list(np.meshgrid(*inner, indexing="ij" if indexing == "ij" else "xy")), lines, {})

        return {
            "zeros": filled(np.zeros), "ones": filled(np.ones), "empty": filled(np.zeros), "full": filled(np.full),
            "arange": arange, "linspace": linspace, "meshgrid": meshgrid,
            "eye": lambda size, *_, **__: self._eye(size), "outer": self._outer, "einsum": self._einsum,
        }  # fmt: skip

    def _eye(self, size: Any) -> Any:
        self.bound(int(size) ** 2)
        return np.eye(int(size))

    def _outer(self, first: Any, second: Any) -> Any:
        self.bound(np.size(given(first)) * np.size(given(second)))
        return self.run("outer", np.outer, (first, second), {})

    def _einsum(self, equation: Any, *operands: Any) -> Any:
        if hidden([equation, *operands]) or not isinstance(equation, str) or "." in equation:
            return self.machine.unknown("numpy.einsum of something unknown")
        arrays = [np.asarray(given(operand)) for operand in operands]
        sizes: dict[str, int] = {}
        for letters, array in zip(equation.partition("->")[0].replace(" ", "").split(","), arrays, strict=False):
            sizes.update(zip(letters, array.shape, strict=False))
        self.bound(math.prod(sizes.values()))
        return self.run("einsum", lambda *inner: np.einsum(equation, *inner), tuple(arrays), {})


class ArrayForeign(Foreign):
    """A numpy array: reading, arithmetic and a white list of methods."""

    name = "ndarray"
    hashable = False

    def __init__(self, api: NumpyApi) -> None:
        self.api = api

    def getattr(self, machine: Machine, value: Any, name: str, default: Any = MISSING) -> Any:
        """shape, size, ndim, T, and the methods of METHODS."""
        if name in {"shape", "size", "ndim", "T"}:
            return getattr(value, name)
        if name in METHODS:
            method = Native(
                lambda array, *args, **kwargs: self.api.run(name, getattr(np.ndarray, name), (array, *args), kwargs), name, lazy=True
            )
            return Bound(value, method)
        return super().getattr(machine, value, name, default)

    def getitem(self, machine: Machine, value: Any, key: Any) -> Any:
        """Indexing and slicing."""
        return machine.unknown("an array at something unknown") if hidden(key) else opened(value[given(key)])

    def setitem(self, machine: Machine, value: Any, key: Any, new: Any) -> None:
        """Assignment of known values."""
        value[given(key)] = given(new)

    def iterate(self, machine: Machine, value: Any) -> Iterator[Any]:
        """The elements along the first dimension."""
        return (opened(part) for part in value)

    def length(self, machine: Machine, value: Any) -> int:
        """The first dimension."""
        return len(value)

    def truth(self, machine: Machine, value: Any) -> Any:
        """The truth of the one element."""
        return bool(value)

    def number(self, machine: Machine, value: Any) -> Any:
        """The one element."""
        return value.item()

    def binop(self, machine: Machine, op_name: str, value: Any, other: Any, reflected: bool) -> Any:
        """Arithmetic."""
        if op_name not in BINARY or not isinstance(other, (int, float, np.ndarray, list, tuple)):
            return NotImplemented
        pair = (other, value) if reflected else (value, other)
        return self.api.run("add", BINARY[op_name], pair, {})

    def unary(self, machine: Machine, op_name: str, value: Any) -> Any:
        """-value, ~value, abs(value)."""
        return {"USub": np.negative, "Invert": np.invert, "Abs": np.abs, "UAdd": np.positive}[op_name](value)

    def compare(self, machine: Machine, op_name: str, value: Any, other: Any) -> Any:
        """Element-wise order."""
        return self.api.run("less", COMPARE[op_name], (value, other), {})

    def equal(self, machine: Machine, value: Any, other: Any) -> Any:
        """Element-wise equality."""
        return self.api.run("equal", np.equal, (value, other), {})

    def format(self, machine: Machine, value: Any, spec: str) -> Any:
        """A short text."""
        return f"array(shape={value.shape})"
