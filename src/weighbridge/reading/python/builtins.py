"""The builtin functions; their loops are charged like interpreted ones."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from weighbridge.base.errors import CannotTell
from weighbridge.reading.python import comparisons, operators, protocols, types_of_values
from weighbridge.reading.python.attributes import read_attribute
from weighbridge.reading.python.calls import call
from weighbridge.reading.python.formatting import format_value, to_repr
from weighbridge.reading.python.object_protocol import OBJECT_METHODS
from weighbridge.reading.python.objects import Class, Instance
from weighbridge.reading.python.types_of_values import TYPE_OBJECTS, TYPES, is_callable, is_instance, is_subclass, to_number, type_of
from weighbridge.reading.python.values import MISSING, Namespace, Native, Unknown

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine

__all__ = ["BUILTINS", "TYPE_OBJECTS", "is_instance", "names_of", "sort", "to_number", "type_of"]
ABSENT = Unknown("no such attribute")
NUMBERS = frozenset([int, float, bool])
EXCEPTIONS = [
    "BaseException",
    "Exception",
    "ValueError",
    "TypeError",
    "KeyError",
    "IndexError",
    "AttributeError",
    "ImportError",
    "ModuleNotFoundError",
    "NotImplementedError",
    "RuntimeError",
    "AssertionError",
    "ZeroDivisionError",
    "StopIteration",
    "StopAsyncIteration",
    "OSError",
    "NameError",
    "UnboundLocalError",
    "LookupError",
    "ArithmeticError",
    "OverflowError",
    "FloatingPointError",
    "FileNotFoundError",
    "FileExistsError",
    "EnvironmentError",
    "IOError",
    "Warning",
    "UserWarning",
    "DeprecationWarning",
    "PendingDeprecationWarning",
    "FutureWarning",
    "RuntimeWarning",
    "ImportWarning",
    "KeyboardInterrupt",
    "SystemExit",
    "GeneratorExit",
    "UnicodeError",
    "MemoryError",
    "RecursionError",
    "PermissionError",
    "TimeoutError",
    "ConnectionError",
    "EOFError",
    "BufferError",
    "SyntaxError",
]
REFUSED = [
    "open",
    "exec",
    "eval",
    "compile",
    "__import__",
    "globals",
    "locals",
    "input",
    "memoryview",
    "bytearray",
    "breakpoint",
    "aiter",
    "anext",
    "exit",
    "quit",
    "help",
    "license",
    "copyright",
    "credits",
]


def get_attribute(machine: Machine, owner: Any, name: Any, *default: Any) -> Any:
    if type(name) is Unknown:
        return name
    name = protocols.plain_index(name)
    if type(name) is not str:
        raise TypeError("attribute name must be string")
    return read_attribute(machine, owner, name, *default[:1])


def has_attribute(machine: Machine, owner: Any, name: Any) -> Any:
    if type(owner) is Unknown or type(name) is Unknown:
        return machine.unknown(f"hasattr({(owner if type(owner) is Unknown else name).why})")
    try:
        return read_attribute(machine, owner, protocols.plain_index(name), ABSENT) is not ABSENT
    except AttributeError as error:
        error.__traceback__ = None
        return False


def set_attribute(machine: Machine, owner: Any, name: Any, value: Any) -> None:
    name = protocols.plain_index(name)
    if type(name) is Unknown:
        raise protocols.cannot(machine, "an attribute store at", name)
    if type(name) is not str:
        raise TypeError("attribute name must be string")
    machine.setattr(owner, name, value)


def absolute(machine: Machine, value: Any) -> Any:
    return operators.unary(machine, "Abs", value)


def add_up(machine: Machine, items: Any, start: Any = 0) -> Any:
    for item in protocols.counted(machine, items):
        start = operators.binary(machine, ast.Add, start, item)
    return start


def some(machine: Machine, items: Any) -> Any:
    unknown: Any = False
    for item in protocols.counted(machine, items):
        if type(item) is Unknown:
            unknown = item
        elif protocols.truth(machine, item):
            return True
    return unknown


def every(machine: Machine, items: Any) -> Any:
    unknown: Any = True
    for item in protocols.counted(machine, items):
        if type(item) is Unknown:
            unknown = item
        elif not protocols.truth(machine, item):
            return False
    return unknown


def extreme(name: str, operation: type[ast.cmpop]) -> Native:
    """min() and max(): the first of the best."""

    def choose(machine: Machine, *items: Any, key: Any = None, default: Any = MISSING) -> Any:
        best: Any = MISSING
        best_key: Any = None
        for item in protocols.counted(machine, items[0] if len(items) == 1 else items):
            rank = item if key is None else call(machine, key, [item])
            if best is not MISSING:
                better = comparisons.compare(machine, operation, rank, best_key)
                if type(better) is Unknown:
                    return machine.unknown(f"{name} with {better.why}")
                if not protocols.truth(machine, better):
                    continue
            best, best_key = item, rank
        if best is MISSING:
            if default is MISSING:
                raise ValueError(f"{name}() iterable argument is empty")
            return default
        return best

    return Native(choose, name, lazy=True, wants_machine=True)


def sort(machine: Machine, items: Any, key: Any = None, reverse: Any = False) -> list[Any]:
    """sorted(): stable, by interpreted order."""
    values = list(protocols.as_list(machine, items))
    machine.tick(len(values))
    ranks = values if key is None else [call(machine, key, [value]) for value in values]
    for rank in ranks:
        if type(rank) is Unknown:
            raise protocols.cannot(machine, "a sort with", rank)
    turned = protocols.truth(machine, reverse)
    if all(type(rank) in NUMBERS for rank in ranks) or all(type(rank) is str for rank in ranks):
        order = sorted(range(len(values)), key=ranks.__getitem__, reverse=turned)
    else:
        order = sorted(range(len(values)), key=lambda index: comparisons.SortKey(machine, ranks[index]), reverse=turned)
    return [values[index] for index in order]


def reverse(machine: Machine, items: Any) -> Iterator[Any]:
    if type(items) is range:
        return iter(items[::-1])
    if isinstance(items, Instance) and (method := items.cls.find("__reversed__")) is not MISSING:
        return protocols.iterate(machine, call(machine, method, [items]))
    return iter(list(protocols.as_list(machine, items))[::-1])


def enumerate_items(machine: Machine, items: Any, start: Any = 0) -> Iterator[Any]:
    iterator = protocols.iterate(machine, items)
    start = to_number(machine, start)
    return ((start + index, item) for index, item in enumerate(iterator))


def zip_items(machine: Machine, *iterables: Any, strict: Any = False) -> Iterator[Any]:
    iterators = [protocols.iterate(machine, iterable) for iterable in iterables]
    return zip(*iterators, strict=protocols.truth(machine, strict))


def map_items(machine: Machine, function: Any, *iterables: Any) -> Iterator[Any]:
    iterators = [protocols.iterate(machine, iterable) for iterable in iterables]

    def each() -> Iterator[Any]:
        for args in zip(*iterators, strict=False):
            machine.tick(1)
            yield call(machine, function, list(args))

    return each()


def filter_items(machine: Machine, function: Any, items: Any) -> Iterator[Any]:
    iterator = protocols.counted(machine, items)
    return (item for item in iterator if protocols.truth(machine, item if function is None else call(machine, function, [item])))


def iterator_of(machine: Machine, value: Any, *sentinel: Any) -> Any:
    if sentinel:
        raise CannotTell("iter() with a sentinel", "the interpreter has no such iterator")
    if isinstance(value, Instance) and (method := value.cls.find("__iter__")) is not MISSING:
        return call(machine, method, [value])
    return protocols.iterate(machine, value)


def next_item(machine: Machine, iterator: Any, *default: Any) -> Any:
    machine.tick(1)
    if type(iterator) is Unknown:
        return machine.unknown(f"next({iterator.why})")
    try:
        if isinstance(iterator, Instance):
            method = iterator.cls.find("__next__")
            if method is MISSING:
                raise TypeError(f"'{iterator.cls.name}' object is not an iterator")
            return call(machine, method, [iterator])
        if not hasattr(type(iterator), "__next__"):
            raise TypeError(f"'{protocols.type_name(iterator)}' object is not an iterator")
        return next(iterator)
    except StopIteration:
        if default:
            return default[0]
        raise


def round_number(machine: Machine, value: Any, digits: Any = None) -> Any:
    if isinstance(value, Instance) and (method := value.cls.find("__round__")) is not MISSING:
        return call(machine, method, [value])
    value = to_number(machine, value)
    if type(value) is Unknown or type(digits) is Unknown:
        return machine.unknown("round() of something unknown")
    return round(value, digits) if digits is None or abs(digits) < 1000 else value


def raise_power(machine: Machine, base: Any, exponent: Any, modulus: Any = None) -> Any:
    if modulus is None:
        return operators.binary(machine, ast.Pow, base, exponent)
    return pow(base, exponent, modulus)


def divide(machine: Machine, a: Any, b: Any) -> Any:
    return (operators.binary(machine, ast.FloorDiv, a, b), operators.binary(machine, ast.Mod, a, b))


def variables(machine: Machine, owner: Any = MISSING) -> Any:
    if isinstance(owner, Instance):
        return owner.fields
    if isinstance(owner, Class):
        return dict(owner.namespace)
    return machine.unknown("vars()")


def names_of(machine: Machine, owner: Any) -> list[str]:
    """dir(owner)."""
    del machine
    if isinstance(owner, Instance):
        names = set(owner.fields) | {name for cls in owner.cls.mro for name in cls.namespace}
    elif isinstance(owner, Class):
        names = {name for cls in owner.mro for name in cls.namespace}
    else:
        names = set(owner.entries) if isinstance(owner, Namespace) else set(getattr(owner, "namespace", ()))
    return sorted(name for name in names if "?" not in name)


def hash_value(machine: Machine, value: Any) -> Any:
    if isinstance(value, Instance) and (method := value.cls.find("__hash__")) not in (MISSING, None):
        return call(machine, method, [value])
    if type(value) is Unknown:
        return machine.unknown(f"hash({value.why})")
    return hash(protocols.dict_key(machine, value))


def character(machine: Machine, code: Any) -> str:
    return chr(to_number(machine, code))


def refused(name: str) -> Native:
    def refuse(machine: Machine, _args: list[Any], _kwargs: dict[str, Any]) -> Any:
        file, line = machine.place
        raise CannotTell(f"a call of {name}()", "read source may not do that", file=file, line=line)

    return Native(refuse, name, lazy=True, raw=True)


FUNCTIONS: dict[str, Any] = {
    "isinstance": is_instance,
    "issubclass": is_subclass,
    "getattr": get_attribute,
    "hasattr": has_attribute,
    "setattr": set_attribute,
    "delattr": lambda machine, owner, name: machine.delattr(owner, name),
    "len": protocols.length,
    "callable": is_callable,
    "vars": variables,
    "dir": names_of,
    "abs": absolute,
    "sum": add_up,
    "any": some,
    "all": every,
    "sorted": sort,
    "reversed": reverse,
    "enumerate": enumerate_items,
    "zip": zip_items,
    "map": map_items,
    "filter": filter_items,
    "iter": iterator_of,
    "next": next_item,
    "round": round_number,
    "pow": raise_power,
    "divmod": divide,
    "repr": to_repr,
    "ascii": to_repr,
    "format": format_value,
    "hash": hash_value,
    "chr": character,
}


def functions() -> dict[str, Any]:
    """The builtin functions as natives."""
    found: dict[str, Any] = {name: Native(function, name, lazy=True, wants_machine=True) for name, function in FUNCTIONS.items()}
    found["sorted"] = Native(
        lambda machine, items, *, key=None, reverse=False: sort(machine, items, key, reverse), "sorted", lazy=True, wants_machine=True
    )
    found["print"] = Native(lambda *_args, **_kwargs: None, "print", lazy=True)
    found["id"] = Native(id, "id", lazy=True)
    found["ord"] = Native(ord, "ord")
    found |= {"min": extreme("min", ast.Lt), "max": extreme("max", ast.Gt)}
    return found | {name: refused(name) for name in REFUSED}


def integers_only(function: Any, name: str) -> Native:
    """bin(), oct() and hex() of plain integers."""
    return Native(lambda machine, value: function(int(to_number(machine, value))), name, wants_machine=True)


BUILTINS: dict[str, Any] = {
    **{name: getattr(builtins, name) for name in EXCEPTIONS},
    **TYPES,
    **functions(),
    **{name: integers_only(getattr(builtins, name), name) for name in ("bin", "oct", "hex")},
    "property": types_of_values.PROPERTY_TYPE,
    "staticmethod": types_of_values.STATIC_TYPE,
    "classmethod": types_of_values.CLASS_METHOD_TYPE,
    "super": types_of_values.SUPER_TYPE,
    "NotImplemented": NotImplemented,
    "Ellipsis": Ellipsis,
    "__debug__": True,
    "__name__": "builtins",
}
TYPES["object"].methods.update(OBJECT_METHODS)
