"""The methods every object has, and the special methods of builtin values, for `object.` and `super()`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from weighbridge.reading.python import comparisons, operators, protocols
from weighbridge.reading.python.objects import OBJECT, Class, Instance
from weighbridge.reading.python.values import Native

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine


def native(name: str, function: Any) -> Native:
    """A lazy native that takes the machine."""
    return Native(function, name, lazy=True, wants_machine=True)


def object_init(machine: Machine, owner: Any, *args: Any, **kwargs: Any) -> None:
    """object.__init__ takes nothing, except below an unknown base."""
    if (args or kwargs) and isinstance(owner, Instance) and not owner.cls.unknown_base and owner.cls.builtin is None:
        machine.note(f"arguments of object.__init__ are ignored for {owner.cls.name}")


def _exception_init_(_machine: Machine, owner: Instance, *args: Any, **_kwargs: Any) -> None:
    assert owner.cls.builtin is not None
    owner.payload = owner.cls.builtin(*args)


def _object_new(_machine: Machine, cls: Any, *args: Any, **_kwargs: Any) -> Any:
    if not isinstance(cls, Class):
        raise TypeError("object.__new__(X): X is not a type object")
    instance = cls.instance_type(cls)
    if cls.builtin is not None:
        instance.payload = make_payload(_machine, cls.builtin, list(args))
    return instance


def make_payload(machine: Machine, builtin: type, args: list[Any]) -> Any:
    """The builtin value inside a new object of a class derived from a builtin type."""
    if issubclass(builtin, BaseException):
        return builtin(*args)
    if builtin in {dict, list, set}:
        return builtin()
    kind = machine.type_objects.get(builtin)
    if kind is None:
        return None
    value = machine.call(kind, args[:1])
    return value.payload if isinstance(value, Instance) else value


def fill_payload(machine: Machine, owner: Any, *args: Any, **kwargs: Any) -> None:
    """dict.__init__, list.__init__ and set.__init__ of a derived object."""
    payload = owner.payload if isinstance(owner, Instance) else owner
    if isinstance(payload, dict):
        machine.call(machine.getattr(payload, "update"), list(args), kwargs)
    elif isinstance(payload, list) and args:
        payload[:] = protocols.as_list(machine, args[0])
    elif isinstance(payload, set) and args:
        payload |= protocols.make_set(machine, protocols.as_list(machine, args[0]))


def _object_getattribute(machine: Machine, owner: Any, name: str) -> Any:
    from weighbridge.reading.python.attributes import read_own  # noqa: PLC0415 - attributes reads this table

    return read_own(machine, owner, name) if isinstance(owner, Instance) else machine.getattr(owner, name)


def _object_setattr(machine: Machine, owner: Any, name: str, value: Any) -> None:
    from weighbridge.reading.python.attribute_stores import write_own  # noqa: PLC0415 - attributes reads this table

    if isinstance(owner, Instance):
        write_own(machine, owner, name, value)
    else:
        machine.setattr(owner, name, value)


def _object_delattr(machine: Machine, owner: Any, name: str) -> None:
    del machine
    owner.remove(name)


def _object_eq(machine: Machine, owner: Any, other: Any) -> Any:
    del machine
    return True if owner is other else NotImplemented


OBJECT_METHODS: dict[str, Native] = {
    "__init__": native("__init__", object_init),
    "__new__": native("__new__", _object_new),
    "__getattribute__": native("__getattribute__", _object_getattribute),
    "__setattr__": native("__setattr__", _object_setattr),
    "__delattr__": native("__delattr__", _object_delattr),
    "__init_subclass__": native("__init_subclass__", lambda _machine, *_args, **_kwargs: None),
    "__repr__": native("__repr__", lambda machine, owner: machine.repr(owner, plain=True)),
    "__str__": native("__str__", lambda machine, owner: machine.repr(owner)),
    "__eq__": native("__eq__", _object_eq),
    "__hash__": native("__hash__", lambda _machine, owner: id(owner) & 0xFFFF),
    "__dir__": native("__dir__", lambda machine, owner: machine.dir(owner)),
    "__format__": native("__format__", lambda machine, owner, spec="": machine.format(owner, spec)),
    "__post_init__": native("__post_init__", lambda _machine, *_args, **_kwargs: None),
}
exception_init = native("__init__", _exception_init_)
OBJECT.namespace.update({name: OBJECT_METHODS[name] for name in ("__init_subclass__",)})
OBJECT.frozen = True

PAYLOAD_METHODS: dict[str, Native] = {
    "__init__": native("__init__", fill_payload),
    "__getitem__": native("__getitem__", protocols.get_item),
    "__setitem__": native("__setitem__", protocols.set_item),
    "__delitem__": native("__delitem__", protocols.delete_item),
    "__contains__": native("__contains__", comparisons.contains),
    "__len__": native("__len__", protocols.length),
    "__iter__": native("__iter__", protocols.counted),
    "__eq__": native("__eq__", comparisons.equal),
    "__ne__": native("__ne__", comparisons.not_equal),
    "__add__": native("__add__", lambda machine, a, b: operators.binary(machine, ast.Add, a, b)),
    "__mul__": native("__mul__", lambda machine, a, b: operators.binary(machine, ast.Mult, a, b)),
    "__or__": native("__or__", lambda machine, a, b: operators.binary(machine, ast.BitOr, a, b)),
    "__lt__": native("__lt__", lambda machine, a, b: comparisons.order(machine, ast.Lt, a, b)),
    "__repr__": native("__repr__", lambda machine, value: machine.repr(value)),
    "__str__": native("__str__", lambda machine, value: machine.text(value)),
    "__hash__": native("__hash__", lambda machine, value: hash(protocols.dict_key(machine, value))),
}
