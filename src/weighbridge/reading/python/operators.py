"""Arithmetic and comparison of interpreter values, bounded in size."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from weighbridge.base.errors import LimitExceeded
from weighbridge.reading.python.objects import Class, Instance
from weighbridge.reading.python.protocols import (
    DICT_VIEWS,
    PLAIN,
    as_list,
    type_name,
)
from weighbridge.reading.python.values import MISSING, DefaultDict, Namespace, Native, TypeObject, Union, Unknown

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine

SEQUENCES = frozenset([list, tuple, str, bytes])
NUMBERS = frozenset([int, float, bool])
Binary = Callable[["Machine", Any, Any], Any]


def add(machine: Machine, a: Any, b: Any) -> Any:
    """A + b of plain values."""
    if type(a) in SEQUENCES and type(b) is type(a):
        (machine.charge_text if type(a) in {str, bytes} else machine.charge)(len(a) + len(b))
    return a + b


def multiply(machine: Machine, a: Any, b: Any) -> Any:
    """A * b of plain values."""
    for sequence, count in ((a, b), (b, a)):
        if type(sequence) in SEQUENCES and type(count) in {int, bool}:
            size = max(0, len(sequence) * count)
            (machine.charge_text if type(sequence) in {str, bytes} else machine.charge)(size)
            return sequence * count
    if type(a) is int and type(b) is int:
        machine.check_bits(a.bit_length() + b.bit_length())
    return a * b


def power(machine: Machine, a: Any, b: Any) -> Any:
    """A ** b of plain values."""
    if type(a) in {int, bool} and type(b) in {int, bool} and b > 0:
        machine.check_bits(int(a).bit_length() * b)
    return a**b


def shift_left(machine: Machine, a: Any, b: Any) -> Any:
    """A << b of plain values."""
    if type(a) in {int, bool} and type(b) in {int, bool} and b > 0 and a:
        machine.check_bits(int(a).bit_length() + b)
    return a << b


def modulo(machine: Machine, a: Any, b: Any) -> Any:
    """A % b; of text, %-formatting."""
    return machine.percent_format(a, b) if type(a) in {str, bytes} else a % b


def plainly(function: Callable[[Any, Any], Any]) -> Binary:
    """An operation that cannot grow its operands."""
    return lambda _machine, a, b: function(a, b)


OPERATIONS: Final[dict[type[ast.operator], tuple[Binary, str, str, str]]] = {
    ast.Add: (add, "__add__", "__radd__", "__iadd__"),
    ast.Sub: (plainly(operator.sub), "__sub__", "__rsub__", "__isub__"),
    ast.Mult: (multiply, "__mul__", "__rmul__", "__imul__"),
    ast.Div: (plainly(operator.truediv), "__truediv__", "__rtruediv__", "__itruediv__"),
    ast.FloorDiv: (plainly(operator.floordiv), "__floordiv__", "__rfloordiv__", "__ifloordiv__"),
    ast.Mod: (modulo, "__mod__", "__rmod__", "__imod__"),
    ast.Pow: (power, "__pow__", "__rpow__", "__ipow__"),
    ast.LShift: (shift_left, "__lshift__", "__rlshift__", "__ilshift__"),
    ast.RShift: (plainly(operator.rshift), "__rshift__", "__rrshift__", "__irshift__"),
    ast.BitAnd: (plainly(operator.and_), "__and__", "__rand__", "__iand__"),
    ast.BitOr: (plainly(operator.or_), "__or__", "__ror__", "__ior__"),
    ast.BitXor: (plainly(operator.xor), "__xor__", "__rxor__", "__ixor__"),
    ast.MatMult: (plainly(operator.matmul), "__matmul__", "__rmatmul__", "__imatmul__"),
}
# int and float operands whose result is at most one bit longer than the operands
QUICK: Final[dict[type[ast.operator], Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
}


def binary(machine: Machine, operation: type[ast.operator], a: Any, b: Any) -> Any:
    """A op b."""
    ta, tb = type(a), type(b)
    function, name, reflected, _ = OPERATIONS[operation]
    if ta in PLAIN and tb in PLAIN:
        return function(machine, a, b)
    adapter = machine.foreign_of(ta)
    if adapter is not None:
        result = adapter.binop(machine, operation.__name__, a, b, reflected=False)
        if result is not NotImplemented:
            return result
    adapter = machine.foreign_of(tb)
    if adapter is not None:
        result = adapter.binop(machine, operation.__name__, b, a, reflected=True)
        if result is not NotImplemented:
            return result
    if ta is Unknown or tb is Unknown:
        unknown = a if ta is Unknown else b
        why = unknown.why if unknown.why.endswith("(in arithmetic)") else f"{unknown.why} (in arithmetic)"
        return machine.unknown(why)
    for owner, other, method_name in ((a, b, name), (b, a, reflected)):
        if isinstance(owner, Instance):
            method = owner.cls.find(method_name)
            if method is not MISSING:
                result = machine.call(machine.bind(method, owner), [other])
                if result is not NotImplemented:
                    return result
    if isinstance(a, Instance) and has_value(a):
        return binary(machine, operation, a.payload, b)
    if isinstance(b, Instance) and has_value(b):
        return binary(machine, operation, a, b.payload)
    return binary_of_others(machine, operation, a, b)


def has_value(instance: Instance) -> bool:
    """Whether an object is derived from a number, text or container."""
    return instance.payload is not None and not isinstance(instance.payload, BaseException)


def binary_of_others(machine: Machine, operation: type[ast.operator], a: Any, b: Any) -> Any:
    """Type unions, dict views and default dicts; TypeError for all else."""
    types = (Class, TypeObject, type, Union, type(None), Namespace, Native)
    if operation is ast.BitOr and isinstance(a, types) and isinstance(b, types):
        return Union((*(a.members if isinstance(a, Union) else (a,)), *(b.members if isinstance(b, Union) else (b,))))
    opened = [set(x) if type(x) in DICT_VIEWS else dict(x) if type(x) is DefaultDict else x for x in (a, b)]
    if type(opened[0]) in PLAIN and type(opened[1]) in PLAIN:
        machine.charge(sum(len(x) for x in opened if hasattr(x, "__len__")))
        return OPERATIONS[operation][0](machine, *opened)
    raise TypeError(f"unsupported operand type(s) for {operation.__name__}: '{type_name(a)}' and '{type_name(b)}'")


def inplace(machine: Machine, operation: type[ast.operator], a: Any, b: Any) -> Any:
    """A op= b: the value the target is bound to."""
    kind = type(a)
    if kind is list and operation is ast.Add:
        items = as_list(machine, b)
        machine.charge(len(items))
        a.extend(items)
        machine.mutations += 1
        return a
    if kind in {set, dict, DefaultDict} and operation is ast.BitOr and type(b) in PLAIN | {DefaultDict}:
        machine.charge(len(b))
        a.update(b)
        machine.mutations += 1
        return a
    adapter = machine.foreign_of(kind)
    if adapter is not None:
        result = adapter.inplace(machine, operation.__name__, a, b)
        if result is not NotImplemented:
            return result
    if isinstance(a, Instance):
        method = a.cls.find(OPERATIONS[operation][3])
        if method is not MISSING:
            return machine.call(machine.bind(method, a), [b])
    return binary(machine, operation, a, b)


UNARY: Final[dict[str, tuple[Callable[[Any], Any], str]]] = {
    "USub": (operator.neg, "__neg__"),
    "UAdd": (operator.pos, "__pos__"),
    "Invert": (operator.invert, "__invert__"),
    "Abs": (abs, "__abs__"),
}


def unary(machine: Machine, name: str, value: Any) -> Any:
    """-value, +value, ~value, abs(value)."""
    kind = type(value)
    function, method_name = UNARY[name]
    if kind in PLAIN:
        return function(value)
    if kind is Unknown:
        return value
    adapter = machine.foreign_of(kind)
    if adapter is not None:
        return adapter.unary(machine, name, value)
    if isinstance(value, Instance):
        method = value.cls.find(method_name)
        if method is not MISSING:
            return machine.call(method, [value])
        if has_value(value):
            return function(value.payload)
    raise TypeError(f"bad operand type for unary {name}: '{type_name(value)}'")


def too_deep(machine: Machine) -> LimitExceeded:
    """The refusal to nest further."""
    file, line = machine.place
    return LimitExceeded("depth", f"nesting deeper than {machine.limits.depth}", file=file, line=line)
