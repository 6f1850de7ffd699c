"""Equality, order, identity and membership of interpreter values."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from weighbridge.reading.python.objects import Class, Instance
from weighbridge.reading.python.operators import has_value
from weighbridge.reading.python.protocols import CONTAINERS, DICT_VIEWS, PLAIN, SCALARS, dict_key, iterate, truth, type_name
from weighbridge.reading.python.values import MISSING, Namespace, TypeObject, Union, Unknown

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine

NUMBERS = frozenset([int, float, bool])


COMPARISONS: Final[dict[type[ast.cmpop], tuple[Callable[[Any, Any], Any], str, str, type[ast.cmpop]]]] = {
    ast.Lt: (operator.lt, "__lt__", "__gt__", ast.Gt),
    ast.LtE: (operator.le, "__le__", "__ge__", ast.GtE),
    ast.Gt: (operator.gt, "__gt__", "__lt__", ast.Lt),
    ast.GtE: (operator.ge, "__ge__", "__le__", ast.LtE),
}


def equal(machine: Machine, a: Any, b: Any) -> Any:
    """A == b: a bool, an Unknown, or what an adapter or __eq__ gives."""
    ta, tb = type(a), type(b)
    if ta in SCALARS and tb in SCALARS:
        return a == b
    if ta is Unknown or tb is Unknown:
        return machine.unknown(f"comparison with {(a if ta is Unknown else b).why}")
    adapter = machine.foreign_of(ta)
    if adapter is not None:
        return adapter.equal(machine, a, b) if b is not None else False
    adapter = machine.foreign_of(tb)
    if adapter is not None:
        return adapter.equal(machine, b, a) if a is not None else False
    if isinstance(a, Instance) or isinstance(b, Instance):
        return equal_instances(machine, a, b)
    if a is b:
        return True
    if ta in {list, tuple} and tb is ta:
        return len(a) == len(b) and all_equal(machine, zip(a, b, strict=True))
    if isinstance(a, dict) and isinstance(b, dict):
        return len(a) == len(b) and all(key in b for key in a) and all_equal(machine, ((value, b[key]) for key, value in a.items()))
    if ta in CONTAINERS and tb in CONTAINERS:
        machine.tick(min(len(a), len(b)) if ta is not range and tb is not range else 1)
        return a == b
    if ta in {slice, TypeObject, Class} or ta is tb is complex:
        return a == b
    return a.members == b.members if ta is Union and tb is Union else False


def all_equal(machine: Machine, pairs: Any) -> Any:
    """Whether every pair is equal; Unknown if that hangs on an unknown one."""
    unknown: Unknown | None = None
    machine.deepen(1)
    try:
        for a, b in pairs:
            machine.tick(1)
            result = True if a is b else equal(machine, a, b)
            if type(result) is Unknown:
                unknown = result
            elif not truth(machine, result):
                return False
    finally:
        machine.deepen(-1)
    return True if unknown is None else unknown


def equal_instances(machine: Machine, a: Any, b: Any) -> Any:
    """== where one side is an object of an interpreted class."""
    for owner, other in ((a, b), (b, a)):
        if isinstance(owner, Instance):
            method = owner.cls.find("__eq__")
            if method is not MISSING:
                result = machine.call(method, [owner, other])
                if result is not NotImplemented:
                    return result
    if a is b:
        return True
    left = a.payload if isinstance(a, Instance) else a
    right = b.payload if isinstance(b, Instance) else b
    if left is None or right is None or isinstance(left, BaseException) or isinstance(right, BaseException):
        return False
    if isinstance(a, Instance) and isinstance(b, Instance) and a.cls.is_enum and b.cls.is_enum and a.cls is not b.cls:
        return left == right if type(left) in SCALARS and type(right) in SCALARS else False
    return equal(machine, left, right)


def same_plain(machine: Machine, a: Any, b: Any) -> bool:
    """Whether two values are certainly the same."""
    if a is b:
        return True
    return type(a) is type(b) and type(a) in PLAIN and equal(machine, a, b) is True


def contains(machine: Machine, container: Any, item: Any) -> Any:
    """Item in container."""
    kind = type(container)
    if kind is Unknown or type(item) is Unknown:
        return machine.unknown(f"'in' test with {(container if kind is Unknown else item).why}")
    adapter = machine.foreign_of(kind)
    if adapter is not None:
        return adapter.contains(machine, container, item)
    if isinstance(container, Instance):
        method = container.cls.find("__contains__")
        if method is not MISSING:
            return machine.call(method, [container, item])
        if has_value(container):
            return contains(machine, container.payload, item)
    if kind is str:
        return contains_text(container, item)
    if kind is range:
        return contains_number(container, item)
    if kind is Namespace:
        return machine.unknown(f"'in' {container.name}")
    if isinstance(container, dict) or kind in {set, frozenset, DICT_VIEWS[0]}:
        if type(item) is set and kind in {set, frozenset}:
            item = frozenset(item)
        return dict_key(machine, item) in container
    return contains_by_search(machine, container, item)


def contains_text(container: str, item: Any) -> bool:
    """Text in text."""
    if isinstance(item, Instance):
        item = item.payload
    if type(item) is not str:
        raise TypeError(f"'in <string>' requires string as left operand, not {type_name(item)}")
    return item in container


def contains_number(container: range, item: Any) -> bool:
    """Number in range, without the C loop that a float would start."""
    if isinstance(item, Instance):
        item = item.payload
    if type(item) is float:
        return item.is_integer() and int(item) in container
    return type(item) in {int, bool} and item in container


def contains_by_search(machine: Machine, container: Any, item: Any) -> Any:
    """Item in a sequence or an iterator."""
    unknown: Unknown | None = None
    for element in iterate(machine, container):
        machine.tick(1)
        result = True if element is item else equal(machine, element, item)
        if type(result) is Unknown:
            unknown = result
        elif truth(machine, result):
            return True
    return False if unknown is None else unknown


def identical(machine: Machine, a: Any, b: Any) -> Any:
    """A is b; an Unknown library object is known not to be None, an Unknown value is not."""
    for one, other in ((a, b), (b, a)):
        if type(one) is Unknown:
            if one is other:
                return True
            if one.kind in {"value", "choice"} or other is not None:
                return machine.unknown(f"identity test of {one.why}")
            return False
    return a is b or (type(a) in {int, str, float} and type(a) is type(b) and a == b)


def compare(machine: Machine, operation: type[ast.cmpop], a: Any, b: Any) -> Any:
    """One comparison."""
    if operation in COMPARISONS:
        if type(a) in NUMBERS and type(b) in NUMBERS:
            return COMPARISONS[operation][0](a, b)
        return order(machine, operation, a, b)
    if operation is ast.Eq:
        return equal(machine, a, b)
    if operation is ast.Is:
        return identical(machine, a, b)
    if operation is ast.In:
        return contains(machine, b, a)
    if operation is ast.NotEq:
        return not_equal(machine, a, b)
    result = identical(machine, a, b) if operation is ast.IsNot else contains(machine, b, a)
    return result if type(result) is Unknown else not truth(machine, result)


def not_equal(machine: Machine, a: Any, b: Any) -> Any:
    """A != b."""
    for owner, other in ((a, b), (b, a)):
        adapter = machine.foreign_of(type(owner))
        if adapter is not None and type(other) is not Unknown:
            return adapter.not_equal(machine, owner, other) if other is not None else True
        if isinstance(owner, Instance) and owner.cls.find("__ne__") is not MISSING:
            return machine.call(owner.cls.find("__ne__"), [owner, other])
    result = equal(machine, a, b)
    return result if type(result) is Unknown else not truth(machine, result)


def order(machine: Machine, operation: type[ast.cmpop], a: Any, b: Any) -> Any:
    """A < b and the like."""
    if type(a) is Unknown or type(b) is Unknown:
        return machine.unknown(f"comparison with {(a if type(a) is Unknown else b).why}")
    function, name, reflected, swapped = COMPARISONS[operation]
    for owner, other, op in ((a, b, operation), (b, a, swapped)):
        adapter = machine.foreign_of(type(owner))
        if adapter is not None:
            result = adapter.compare(machine, op.__name__, owner, other)
            if result is not NotImplemented:
                return result
    for owner, other, method_name in ((a, b, name), (b, a, reflected)):
        if isinstance(owner, Instance):
            method = owner.cls.find(method_name)
            if method is not MISSING:
                result = machine.call(method, [owner, other])
                if result is not NotImplemented:
                    return result
    left, right = (x.payload if isinstance(x, Instance) else x for x in (a, b))
    if type(left) in {list, tuple} and type(left) is type(right):
        return order_sequences(machine, operation, left, right)
    if type(left) in PLAIN | set(DICT_VIEWS) and type(right) in PLAIN | set(DICT_VIEWS):
        return function(left, right)
    raise TypeError(f"'{operation.__name__}' not supported between instances of '{type_name(a)}' and '{type_name(b)}'")


def order_sequences(machine: Machine, operation: type[ast.cmpop], a: Any, b: Any) -> Any:
    """Lexicographic order: the first pair that differs decides."""
    machine.deepen(1)
    try:
        for x, y in zip(a, b, strict=False):
            machine.tick(1)
            same = True if x is y else equal(machine, x, y)
            if type(same) is Unknown:
                return same
            if not truth(machine, same):
                return compare(machine, operation, x, y)
    finally:
        machine.deepen(-1)
    return COMPARISONS[operation][0](len(a), len(b))


class SortKey:
    """Orders any two values as interpreted code would."""

    __slots__ = ("machine", "value")

    def __init__(self, machine: Machine, value: Any) -> None:
        self.machine, self.value = machine, value

    def __lt__(self, other: SortKey) -> bool:
        self.machine.tick(1)
        return truth(self.machine, compare(self.machine, ast.Lt, self.value, other.value))
