"""Attribute access: one reader for each kind of value, and nothing else of a Python object can be reached."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weighbridge.reading.python.callable_attributes import absent, read_function, read_native, read_partial, read_property, read_wrapper
from weighbridge.reading.python.methods import METHODS, exception_attribute, python_type_attribute
from weighbridge.reading.python.object_protocol import OBJECT_METHODS, PAYLOAD_METHODS, exception_init
from weighbridge.reading.python.objects import Class, Instance
from weighbridge.reading.python.protocols import enum_members
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

Reader = Callable[["Machine", Any, str, Any], Any]


def read_attribute(machine: Machine, owner: Any, name: str, default: Any = MISSING) -> Any:
    """owner.name; without a default, AttributeError where there is none."""
    reader = machine.readers.get(type(owner))
    if reader is None:
        reader = find_reader(machine, type(owner))
    return reader(machine, owner, name, default)


def find_reader(machine: Machine, kind: type) -> Reader:
    """The reader for values of one Python type, remembered by the machine."""
    for base in kind.__mro__:
        reader = READERS.get(base) or machine.readers.get(base)
        if reader is not None:
            break
    else:
        reader = _read_foreign if machine.foreign_of(kind) is not None else _read_plain
    machine.readers[kind] = reader
    return reader


def bind(machine: Machine, value: Any, owner: Any, cls: Class) -> Any:
    """What a class attribute becomes when read through an object."""
    kind = type(value)
    if kind is Function or kind is Native:
        return Bound(owner, value)
    if kind is Property:
        if value.getter is None:
            raise AttributeError("unreadable attribute")
        return machine.call(value.getter, [cls if value.on_class else owner])
    if kind is StaticMethod:
        return value.fn
    if kind is ClassMethod:
        return Bound(cls, value.fn)
    if kind is CachedProperty:
        result = machine.call(value.getter, [owner])
        owner.fields[value.name] = result
        return result
    if isinstance(value, Instance):
        getter = value.cls.find("__get__")
        if getter is not MISSING:
            return machine.call(getter, [value, owner, cls])
    return value


def _read_instance(machine: Machine, owner: Instance, name: str, default: Any) -> Any:
    hook = owner.cls.find("__getattribute__")
    if hook is not MISSING and type(hook) is Function:
        try:
            return machine.call(hook, [owner, name])
        except AttributeError:
            if default is not MISSING:
                return default
            raise
    return read_own(machine, owner, name, default)


def read_own(machine: Machine, owner: Instance, name: str, default: Any = MISSING) -> Any:
    """Attribute of an object, without an interpreted __getattribute__."""
    cls = owner.cls
    if owner.translates:
        name = owner.translate(name)
    value = cls.cache.get(name)
    if value is None:
        value = cls.find(name)
    if type(value) is Property:
        return guarded(machine, lambda: bind(machine, value, owner, cls), owner, name, default)
    own = owner.lookup(name)
    if own is not MISSING:
        return own
    if value is not MISSING:
        return bind(machine, value, owner, cls)
    special = read_special(machine, owner, name)
    if special is not MISSING:
        return special
    return read_fallback(machine, owner, name, default)


def guarded(machine: Machine, read: Callable[[], Any], owner: Instance, name: str, default: Any) -> Any:
    """A property, whose AttributeError goes to __getattr__ or the default, as Python's does."""
    try:
        return read()
    except AttributeError:
        hook = owner.cls.find("__getattr__")
        if hook is MISSING:
            if default is not MISSING:
                return default
            raise
    return read_fallback(machine, owner, name, default)


def read_fallback(machine: Machine, owner: Instance, name: str, default: Any) -> Any:
    """__getattr__, then what an unknown base might have."""
    hook = owner.cls.find("__getattr__")
    if hook is not MISSING:
        try:
            return machine.call(hook, [owner, name])
        except AttributeError:
            if default is not MISSING:
                return default
            raise
    if owner.cls.unknown_base:
        return machine.unknown(f"attribute {name} of {owner.cls.name}, whose base is {owner.cls.unknown_base}", "lib")
    return absent(owner, name, default)


def read_special(machine: Machine, owner: Instance, name: str) -> Any:
    """__class__, __dict__, the methods of object, and those of a builtin base."""
    if name == "__class__":
        return owner.cls
    if name == "__dict__":
        return owner.fields
    payload = owner.payload
    if payload is not None:
        if isinstance(payload, BaseException):
            return exception_attribute(payload, name)
        value = PAYLOAD_METHODS.get(name)
        if value is not None:
            return Bound(payload, value)
        value = read_attribute(machine, payload, name, MISSING_DEFAULT)
        if value is not MISSING_DEFAULT:
            return value
    method = OBJECT_METHODS.get(name)
    return Bound(owner, method) if method is not None else MISSING


MISSING_DEFAULT = Namespace("no attribute")


def _read_class(machine: Machine, owner: Class, name: str, default: Any) -> Any:
    value = owner.find(name)
    if value is not MISSING:
        kind = type(value)
        if kind is StaticMethod:
            return value.fn
        if kind is ClassMethod:
            return Bound(owner, value.fn)
        if kind is Property and value.on_class:
            return machine.call(value.getter, [owner])
        if isinstance(value, Instance) and value.cls.find("__get__") is not MISSING:
            return machine.call(value.cls.find("__get__"), [value, None, owner])
        return value
    special = CLASS_SPECIALS.get(name)
    if special is not None:
        return special(owner)
    if owner.unknown_base:
        return machine.unknown(f"attribute {name} of class {owner.name}, whose base is {owner.unknown_base}", "lib")
    if owner.builtin is not None and not issubclass(owner.builtin, BaseException) and name in METHODS.get(owner.builtin, {}):
        return METHODS[owner.builtin][name]
    if name in OBJECT_METHODS:
        return OBJECT_METHODS[name]
    if default is not MISSING:
        return default
    raise AttributeError(f"type object '{owner.name}' has no attribute '{name}'")


CLASS_SPECIALS: dict[str, Callable[[Class], Any]] = {
    "__name__": lambda cls: cls.name,
    "__qualname__": lambda cls: cls.name,
    "__module__": lambda cls: cls.module,
    "__mro__": lambda cls: tuple(cls.mro),
    "mro": lambda cls: Native(lambda: list(cls.mro), "mro"),
    "__bases__": lambda cls: tuple(cls.bases),
    "__dict__": lambda cls: dict(cls.namespace),
    "__doc__": lambda _cls: None,
    "__annotations__": lambda cls: {name: annotation.text for name, annotation in cls.annotations.items()},
    "__members__": lambda cls: {member.fields["name"]: member for member in enum_members(cls)},
    "__subclasses__": lambda cls: Native(lambda: [] if cls.frozen else list(cls.subclasses), "__subclasses__"),
    "__class__": lambda _cls: Namespace("type", {"__name__": "type"}, lambda _name: MISSING),
}


def _read_super(machine: Machine, owner: Super, name: str, default: Any) -> Any:
    target = owner.owner
    cls = target if isinstance(target, Class) else getattr(target, "cls", None)
    if not isinstance(cls, Class):
        raise TypeError("super(type, obj): obj must be an instance or subtype of type")
    value = cls.find_after(owner.cls, name)
    if value is not MISSING:
        if isinstance(target, Class):
            kind = type(value)
            if kind is StaticMethod:
                return value.fn
            if kind is ClassMethod:
                return Bound(target, value.fn)
            return Bound(target, value) if name == "__init_subclass__" else value
        return bind(machine, value, target, cls)
    if name == "__getattribute__" or (name in {"__setattr__", "__delattr__"} and cls.builtin is None):
        return Bound(target, OBJECT_METHODS[name])
    if isinstance(target, Instance) and name == "__init__" and isinstance(cls.builtin, type) and issubclass(cls.builtin, BaseException):
        return Bound(target, exception_init)
    payload = getattr(target, "payload", None)
    if payload is not None and not isinstance(payload, BaseException):
        method = PAYLOAD_METHODS.get(name)
        if method is not None:
            return Bound(target, method) if name == "__init__" else Bound(payload, method)
        value = read_attribute(machine, payload, name, MISSING_DEFAULT)
        if value is not MISSING_DEFAULT:
            return value
    if isinstance(payload, BaseException) and (value := exception_attribute(payload, name)) is not MISSING:
        return value
    if name in OBJECT_METHODS:
        method = OBJECT_METHODS[name]
        return method if name == "__new__" else Bound(target, method)
    if cls.unknown_base:
        return machine.unknown(f"super().{name} of {cls.name}, whose base is {cls.unknown_base}", "lib")
    if default is not MISSING:
        return default
    raise AttributeError(f"'super' object has no attribute '{name}'")


def _read_unknown(machine: Machine, owner: Unknown, name: str, _default: Any) -> Any:
    return Unknown(f"{owner.why}.{name}" if len(owner.why) < 200 else owner.why, owner.kind, owner.place or machine.place)


def _read_namespace(_machine: Machine, owner: Namespace, name: str, default: Any) -> Any:
    value = owner.get(name)
    if value is not MISSING:
        return value
    if name == "__name__":
        return owner.name
    if default is not MISSING:
        return default
    raise AttributeError(f"module '{owner.name}' has no attribute '{name}'")


def _read_bound(machine: Machine, owner: Bound, name: str, default: Any) -> Any:
    if name == "__func__":
        return owner.fn
    if name == "__self__":
        return owner.self
    return owner if name == "__call__" else read_attribute(machine, owner.fn, name, default)


def _read_type(machine: Machine, owner: TypeObject, name: str, default: Any) -> Any:
    if name in owner.methods:
        return owner.methods[name]
    if name in {"__name__", "__qualname__"}:
        return owner.name
    if name == "__module__":
        return "builtins"
    if name == "__mro__":
        return (owner,)
    method = METHODS.get(owner.python, {}).get(name) or PAYLOAD_METHODS.get(name)
    del machine
    return method if method is not None else absent(owner, name, default)


def _read_union(_machine: Machine, owner: Union, name: str, default: Any) -> Any:
    return owner.members if name == "__args__" else absent(owner, name, default)


def _read_python_type(_machine: Machine, owner: type, name: str, default: Any) -> Any:
    value = python_type_attribute(owner, name)
    return absent(owner, name, default) if value is MISSING else value


def _read_exception(_machine: Machine, owner: BaseException, name: str, default: Any) -> Any:
    value = exception_attribute(owner, name)
    return absent(owner, name, default) if value is MISSING else value


def _read_foreign(machine: Machine, owner: Any, name: str, default: Any) -> Any:
    adapter = machine.foreign_of(type(owner))
    assert adapter is not None
    return adapter.getattr(machine, owner, name, default)


def _read_plain(machine: Machine, owner: Any, name: str, default: Any) -> Any:
    for base in type(owner).__mro__:
        table = METHODS.get(base)
        if table is not None:
            method = table.get(name)
            if method is not None:
                return Bound(owner, method)
            break
    if name == "__class__":
        return machine.type_of(owner)
    if type(owner) in {int, float, bool} and name in {"real", "imag", "numerator", "denominator"}:
        return {"real": owner, "numerator": owner, "imag": 0, "denominator": 1}[name]
    if type(owner) in {slice, range} and name in {"start", "stop", "step"}:
        return getattr(owner, name)
    method = PAYLOAD_METHODS.get(name)
    if method is not None and name != "__init__" and any(base in METHODS for base in type(owner).__mro__):
        return Bound(owner, method)
    return absent(owner, name, default)


def read_module(machine: Machine, owner: Any, name: str, default: Any) -> Any:
    """Attributes of a module of interpreted source."""
    value = owner.get(machine, name)
    if value is MISSING:
        value = owner.submodule(machine, name)
    if value is not MISSING:
        return value
    if default is not MISSING:
        return default
    raise AttributeError(f"module '{owner.name}' has no attribute '{name}'")


READERS: dict[type, Reader] = {
    Instance: _read_instance,
    Class: _read_class,
    Super: _read_super,
    Unknown: _read_unknown,
    Namespace: _read_namespace,
    Function: read_function,
    Bound: _read_bound,
    Native: read_native,
    Property: read_property,
    Partial: read_partial,
    StaticMethod: read_wrapper,
    ClassMethod: read_wrapper,
    CachedProperty: read_wrapper,
    TypeObject: _read_type,
    Union: _read_union,
    type: _read_python_type,
    BaseException: _read_exception,
}
