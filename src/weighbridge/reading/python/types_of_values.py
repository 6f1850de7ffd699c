"""The builtin types as callable values, and type(), isinstance() and issubclass()."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weighbridge.reading.python import protocols
from weighbridge.reading.python.formatting import to_str
from weighbridge.reading.python.methods import decode, dict_from_keys, dict_update
from weighbridge.reading.python.objects import OBJECT, Class, Instance
from weighbridge.reading.python.values import (
    MISSING,
    Bound,
    CachedProperty,
    ClassMethod,
    Function,
    Namespace,
    Native,
    Partial,
    Property,
    StaticMethod,
    Super,
    TypeObject,
    Union,
    Unknown,
)

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine

CALLABLE = (Function, Bound, Native, Class, TypeObject, Partial, type, StaticMethod, ClassMethod)


def to_number(machine: Machine, value: Any) -> Any:
    """The plain number, text or Unknown that int() and float() start from."""
    adapter = machine.foreign_of(type(value))
    if adapter is not None:
        value = adapter.number(machine, value)
    if isinstance(value, Instance):
        for name in ("__index__", "__int__", "__float__"):
            method = value.cls.find(name)
            if method is not MISSING:
                return machine.call(method, [value])
        value = value.payload if not isinstance(value.payload, BaseException) else None
    if type(value) not in {int, float, bool, str, bytes, complex, Unknown}:
        raise TypeError(f"argument must be a string or a real number, not '{protocols.type_name(value)}'")
    return value


def number_type(kind: type) -> Callable[..., Any]:
    """int() and float()."""

    def make(machine: Machine, value: Any = 0, *base: Any) -> Any:
        if isinstance(value, Instance) and kind is float and (method := value.cls.find("__float__")) is not MISSING:
            return machine.call(method, [value])
        value = to_number(machine, value)
        if type(value) is Unknown:
            return machine.unknown(f"{kind.__name__}({value.why})")
        if type(value) is str and len(value) > 4_000:
            raise machine.exceeded("int_bits", "a number of more than 4,000 digits")
        return kind(value, *base)

    return make


def _make_bool(machine: Machine, value: Any = False) -> Any:
    return value if type(value) is Unknown else protocols.truth(machine, value)


def _make_str(machine: Machine, value: Any = "", *encoding: Any) -> Any:
    return decode(machine, value, *encoding) if encoding and type(value) is bytes else to_str(machine, value)


def _make_list(machine: Machine, value: Any = ()) -> list[Any]:
    items = protocols.as_list(machine, value)
    if items is value:
        machine.charge(len(items))
    return list(items)


def _make_tuple(machine: Machine, value: Any = ()) -> tuple[Any, ...]:
    return value if type(value) is tuple else tuple(_make_list(machine, value))


def _make_dict(machine: Machine, *sources: Any, **named: Any) -> dict[Any, Any]:
    table: dict[Any, Any] = {}
    dict_update(machine, table, *sources, **named)
    return table


def _make_frozenset(machine: Machine, value: Any = ()) -> frozenset[Any]:
    return frozenset(protocols.make_set(machine, protocols.as_list(machine, value)))


def _make_range(machine: Machine, *bounds: Any) -> Any:
    plain = [to_number(machine, bound) for bound in bounds]
    for bound in plain:
        if type(bound) is Unknown:
            return machine.unknown(f"range({bound.why})")
    return range(*plain)


def _make_slice(machine: Machine, *parts: Any) -> Any:
    for part in parts:
        if type(part) is Unknown:
            return machine.unknown(f"slice({part.why})")
    return slice(*parts)


def _make_bytes(machine: Machine, value: Any = b"", *encoding: Any) -> Any:
    if type(value) is str and encoding:
        machine.charge_text(len(value))
        return value.encode("utf-8")
    if type(value) is int:
        machine.charge_text(value)
        return bytes(value)
    return bytes(protocols.as_list(machine, value))


def _make_complex(machine: Machine, real: Any = 0, imaginary: Any = 0) -> Any:
    return complex(to_number(machine, real), to_number(machine, imaginary))


def _make_object(machine: Machine, *_args: Any) -> Instance:
    machine.charge(1)
    return Instance(OBJECT)


def make_type(machine: Machine, value: Any, *rest: Any, **keywords: Any) -> Any:
    """type(value), or type(name, bases, namespace)."""
    if rest:
        return machine.make_class(value, list(rest[0]), dict(rest[1]), machine.frame.module.name if machine.frame else "", keywords)
    return type_of(machine, value)


def _refuse(name: str) -> Callable[..., Any]:
    def make(_machine: Machine, *_args: Any) -> Any:
        raise TypeError(f"cannot create '{name}' instances")

    return make


TYPES: dict[str, TypeObject] = {
    name: TypeObject(name, python, construct)
    for name, python, construct in (
        ("int", int, number_type(int)),
        ("float", float, number_type(float)),
        ("bool", bool, _make_bool),
        ("str", str, _make_str),
        ("list", list, _make_list),
        ("tuple", tuple, _make_tuple),
        ("dict", dict, _make_dict),
        ("set", set, lambda machine, value=(): protocols.make_set(machine, protocols.as_list(machine, value))),
        ("frozenset", frozenset, _make_frozenset),
        ("bytes", bytes, _make_bytes),
        ("complex", complex, _make_complex),
        ("range", range, _make_range),
        ("slice", slice, _make_slice),
        ("object", object, _make_object),
        ("type", type, make_type),
    )
}
NONE_TYPE = TypeObject("NoneType", type(None), _refuse("NoneType"))
FUNCTION_TYPE = TypeObject("function", Function, _refuse("function"))
METHOD_TYPE = TypeObject("method", Bound, lambda _machine, function, owner: Bound(owner, function))
MODULE_TYPE = TypeObject("module", Namespace, _refuse("module"))
NATIVE_TYPE = TypeObject("builtin_function_or_method", Native, _refuse("builtin"))
PROPERTY_TYPE = TypeObject("property", Property, lambda _machine, fget=None, fset=None, fdel=None, doc=None: Property(fget, fset, fdel))  # noqa: ARG005  doc is part of the call
STATIC_TYPE = TypeObject("staticmethod", StaticMethod, lambda _machine, function: StaticMethod(function))
CLASS_METHOD_TYPE = TypeObject("classmethod", ClassMethod, lambda _machine, function: ClassMethod(function))


def _make_super(_machine: Machine, cls: Any = None, owner: Any = None) -> Super:
    return Super(cls, owner)


SUPER_TYPE = TypeObject("super", Super, _make_super)
TYPES["dict"].methods["fromkeys"] = Native(dict_from_keys, "fromkeys", lazy=True, wants_machine=True)
TYPES["str"].methods["maketrans"] = Native(lambda *_args: {}, "maketrans")
TYPE_OBJECTS: dict[type, TypeObject] = {kind.python: kind for kind in TYPES.values()} | {
    kind.python: kind
    for kind in (NONE_TYPE, FUNCTION_TYPE, METHOD_TYPE, NATIVE_TYPE, MODULE_TYPE, PROPERTY_TYPE, STATIC_TYPE, CLASS_METHOD_TYPE, SUPER_TYPE)
}
TYPE_OBJECTS[CachedProperty] = PROPERTY_TYPE


def type_of(machine: Machine, value: Any) -> Any:
    """type(value)."""
    if isinstance(value, Instance):
        return value.cls
    kind = type(value)
    if kind is Unknown:
        return machine.unknown(f"type({value.why})", value.kind)
    if isinstance(value, (Class, TypeObject, type)):
        return TYPES["type"]
    if isinstance(value, BaseException):
        return kind
    adapter = machine.foreign_of(kind)
    if adapter is not None:
        return adapter.type(machine, value)
    return TYPE_OBJECTS.get(kind) or TypeObject(kind.__name__, kind, _refuse(kind.__name__))


def is_instance(machine: Machine, value: Any, cls: Any) -> Any:
    """isinstance(value, cls)."""
    if type(cls) is tuple or isinstance(cls, Union):
        unknown: Any = False
        for member in cls.members if isinstance(cls, Union) else cls:
            result = is_instance(machine, value, member)
            if result is True:
                return True
            if type(result) is Unknown:
                unknown = result
        return unknown
    if type(value) is Unknown:
        return True if cls is TYPES["object"] else machine.unknown(f"isinstance({value.why})")
    if cls is None:
        return value is None
    if cls is TYPES["object"]:
        return True
    if isinstance(cls, Class):
        check = cls.namespace.get("?check")
        if isinstance(value, Instance) and value.cls.subclass_of(cls):
            return True
        if check is not None:
            return check(machine, value)
    elif isinstance(cls, TypeObject):
        return is_builtin(value, cls)
    elif isinstance(cls, type):
        return isinstance(value, cls) or (isinstance(value, Instance) and isinstance(value.payload, cls))
    adapter = machine.foreign_of(type(value))
    if adapter is not None:
        return adapter.isinstance(machine, value, cls)
    if isinstance(value, Instance) and value.cls.unknown_base and type(cls) is Unknown:
        return machine.unknown(f"isinstance of a {value.cls.name}")
    return False  # a class of an unknown library: what we make is not one


def is_builtin(value: Any, kind: TypeObject) -> bool:
    """isinstance() of a builtin type."""
    if kind.python is type:
        return isinstance(value, (Class, TypeObject, type))
    if isinstance(value, Instance):
        return value.payload is not None and isinstance(value.payload, kind.python)
    return isinstance(value, kind.python)


def is_subclass(machine: Machine, cls: Any, other: Any) -> Any:
    """issubclass(cls, other)."""
    if type(other) is tuple or isinstance(other, Union):
        return any(is_subclass(machine, cls, member) is True for member in (other.members if isinstance(other, Union) else other))
    if type(cls) is Unknown:
        return machine.unknown(f"issubclass({cls.why})")
    if not isinstance(cls, (Class, TypeObject, type)):
        raise TypeError("issubclass() arg 1 must be a class")
    if other is TYPES["object"]:
        return True
    if isinstance(cls, Class):
        if isinstance(other, Class):
            return cls.subclass_of(other)
        python = other.python if isinstance(other, TypeObject) else other
        return isinstance(python, type) and cls.builtin is not None and issubclass(cls.builtin, python)
    own = cls.python if isinstance(cls, TypeObject) else cls
    python = other.python if isinstance(other, TypeObject) else other
    return isinstance(python, type) and issubclass(own, python)


def is_callable(machine: Machine, value: Any) -> Any:
    """callable(value)."""
    if type(value) is Unknown:
        return machine.unknown(f"callable({value.why})") if value.kind == "value" else True
    return isinstance(value, CALLABLE) or (isinstance(value, Instance) and value.cls.find("__call__") is not MISSING)
