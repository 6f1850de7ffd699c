"""math, cmath left out; numbers, operator, random, fractions and statistics as far as models use them."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weighbridge.reading.python import comparisons, operators, protocols
from weighbridge.reading.python.attributes import read_attribute
from weighbridge.reading.python.objects import Class
from weighbridge.reading.python.stdlib.helpers import native, strict, stub
from weighbridge.reading.python.types_of_values import to_number
from weighbridge.reading.python.values import Namespace, Native, Unknown

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine

FUNCTIONS = [
    "sqrt",
    "log",
    "log2",
    "log10",
    "log1p",
    "exp",
    "expm1",
    "ceil",
    "floor",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "atan2",
    "sinh",
    "cosh",
    "tanh",
    "pow",
    "fabs",
    "gcd",
    "lcm",
    "isqrt",
    "isnan",
    "isinf",
    "isfinite",
    "trunc",
    "copysign",
    "fmod",
    "hypot",
    "isclose",
    "radians",
    "degrees",
    "erf",
    "erfc",
    "gamma",
    "lgamma",
    "ldexp",
    "frexp",
    "modf",
    "cbrt",
    "exp2",
    "remainder",
]
CONSTANTS = {"pi": math.pi, "e": math.e, "tau": math.tau, "inf": math.inf, "nan": math.nan}
LARGEST_BITS = 4096


def numeric(function: Callable[..., Any], name: str) -> Native:
    """A function of plain numbers."""

    def run(machine: Machine, *args: Any, **kwargs: Any) -> Any:
        values = [to_number(machine, arg) for arg in args]
        for value in values:
            if type(value) is Unknown:
                return machine.unknown(f"{name}({value.why})")
            if type(value) is int and value.bit_length() > LARGEST_BITS:
                raise machine.exceeded("int_bits", f"{name}() of a huge integer")
            if type(value) is str:
                raise TypeError("must be real number, not str")
        return function(*values, **kwargs)

    return native(run, name)


def _product(machine: Machine, items: Any, *, start: Any = 1) -> Any:
    for item in protocols.counted(machine, items):
        start = operators.binary(machine, ast.Mult, start, item)
    return start


def combinations_count(name: str) -> Native:
    """math.comb, perm and factorial, bounded."""
    function = getattr(math, name)

    def run(machine: Machine, *args: Any) -> Any:
        values = [to_number(machine, arg) for arg in args]
        if any(type(value) is Unknown for value in values):
            return machine.unknown(f"math.{name}()")
        machine.check_bits(max(values) * 8 if max(values) > 1000 else 0)
        return function(*values)

    return native(run, f"math.{name}")


def _ladder(machine: Machine, items: Any) -> Any:
    return math.fsum(to_number(machine, item) for item in protocols.counted(machine, items))


def _math_module(_machine: Machine) -> Namespace:
    entries: dict[str, Any] = {name: numeric(getattr(math, name), f"math.{name}") for name in FUNCTIONS} | CONSTANTS
    entries |= {name: combinations_count(name) for name in ("comb", "perm", "factorial")}
    entries |= {"prod": native(_product, "prod"), "fsum": native(_ladder, "fsum")}
    return strict("math", entries)


BINARY = {
    "add": ast.Add,
    "sub": ast.Sub,
    "mul": ast.Mult,
    "truediv": ast.Div,
    "floordiv": ast.FloorDiv,
    "mod": ast.Mod,
    "pow": ast.Pow,
    "and_": ast.BitAnd,
    "or_": ast.BitOr,
    "xor": ast.BitXor,
    "matmul": ast.MatMult,
    "lshift": ast.LShift,
    "rshift": ast.RShift,
}
COMPARE = {"eq": ast.Eq, "ne": ast.NotEq, "lt": ast.Lt, "le": ast.LtE, "gt": ast.Gt, "ge": ast.GtE, "is_": ast.Is, "is_not": ast.IsNot}


def _itemgetter(_machine: Machine, *keys: Any) -> Native:
    def get(machine: Machine, owner: Any) -> Any:
        found = tuple(protocols.get_item(machine, owner, key) for key in keys)
        return found[0] if len(keys) == 1 else found

    return native(get, "itemgetter")


def _attrgetter(_machine: Machine, *names: str) -> Native:
    def one(machine: Machine, owner: Any, path: str) -> Any:
        for name in path.split("."):
            owner = read_attribute(machine, owner, name)
        return owner

    def get(machine: Machine, owner: Any) -> Any:
        found = tuple(one(machine, owner, name) for name in names)
        return found[0] if len(names) == 1 else found

    return native(get, "attrgetter")


def _operator_module(_machine: Machine) -> Namespace:
    def binary(operation: type[ast.operator], name: str) -> Native:
        return native(lambda machine, a, b: operators.binary(machine, operation, a, b), name)

    def compare(operation: type[ast.cmpop], name: str) -> Native:
        return native(lambda machine, a, b: comparisons.compare(machine, operation, a, b), name)

    entries: dict[str, Any] = {name: binary(operation, name) for name, operation in BINARY.items()}
    entries |= {name: compare(operation, name) for name, operation in COMPARE.items()}
    entries |= {
        "neg": native(lambda machine, a: operators.unary(machine, "USub", a), "neg"),
        "not_": native(lambda machine, a: not protocols.truth(machine, a), "not_"),
        "contains": native(comparisons.contains, "contains"),
        "getitem": native(protocols.get_item, "getitem"),
        "setitem": native(protocols.set_item, "setitem"),
        "itemgetter": native(_itemgetter, "itemgetter"),
        "attrgetter": native(_attrgetter, "attrgetter"),
    }
    return strict("operator", entries)


def _numbers_module(_machine: Machine) -> Namespace:
    kinds = {
        "Number": (int, float, bool, complex),
        "Complex": (int, float, bool, complex),
        "Real": (int, float, bool),
        "Integral": (int, bool),
    }
    entries: dict[str, Any] = {}
    for name, types in kinds.items():
        cls = Class(name, [], {}, "numbers")
        cls.namespace["?check"] = lambda _machine, value, types=types: type(value) in types
        entries[name] = cls
    return strict("numbers", entries)


def random_module(_machine: Machine) -> Namespace:
    """Nothing random is drawn: every draw is unknown."""
    return stub(
        "random",
        {"seed": Native(lambda *_args, **_kwargs: None, "seed", lazy=True)}
        | {
            name: native(lambda machine, *_args, name=name, **_kwargs: machine.unknown(f"random.{name}()"), name)
            for name in ("random", "randint", "uniform", "choice", "choices", "sample", "randrange", "gauss", "shuffle")
        },
    )


MODULES = {"math": _math_module, "operator": _operator_module, "numbers": _numbers_module, "random": random_module}
