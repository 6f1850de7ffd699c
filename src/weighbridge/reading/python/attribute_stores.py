"""Setting and deleting attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weighbridge.reading.python.objects import Class, Instance
from weighbridge.reading.python.protocols import type_name
from weighbridge.reading.python.values import MISSING, Bound, Function, Namespace, Native, Partial, Property, Unknown

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine


def write_attribute(machine: Machine, owner: Any, name: str, value: Any) -> None:
    """owner.name = value."""
    if isinstance(owner, Instance):
        write_instance(machine, owner, name, value)
        return
    kind = type(owner)
    if isinstance(owner, Class):
        machine.mutations += 1
        owner.set(name, value)
    elif kind in {Function, Native, Partial}:
        if kind is Function and name in {"__name__", "__qualname__"}:
            setattr(owner, name.strip("_"), value)
            return
        if owner.attributes is None and kind is Native:
            return  # natives may serve several machines
        if owner.attributes is None:
            owner.attributes = {}
        owner.attributes[name] = value
    elif kind is Namespace:
        machine.mutations += 1
        owner.entries[name] = value
    elif kind in {Unknown, Bound, Property} or isinstance(owner, BaseException):
        return
    elif hasattr(kind, "namespace") and hasattr(kind, "run_statement"):
        owner.assign(machine, name, value)
    else:
        adapter = machine.foreign_of(kind)
        if adapter is None:
            raise AttributeError(f"'{type_name(owner)}' object has no attribute '{name}'")
        adapter.setattr(machine, owner, name, value)


def write_instance(machine: Machine, owner: Instance, name: str, value: Any) -> None:
    """Attribute store on an object: an interpreted or stand-in __setattr__ first."""
    hook = owner.cls.find("__setattr__")
    if hook is not MISSING:
        machine.call(hook, [owner, name, value])
        return
    write_own(machine, owner, name, value)


def write_own(machine: Machine, owner: Instance, name: str, value: Any) -> None:
    """object.__setattr__: properties and descriptors of the class, then the object's own table."""
    if owner.translates:
        name = owner.translate(name)
    holder = owner.cls.find(name)
    if type(holder) is Property:
        if holder.setter is None:
            raise AttributeError(f"property '{name}' of '{owner.cls.name}' object has no setter")
        machine.call(holder.setter, [owner, value])
        return
    if isinstance(holder, Instance) and (setter := holder.cls.find("__set__")) is not MISSING:
        machine.call(setter, [holder, owner, value])
        return
    if name == "__class__" and isinstance(value, Class):
        owner.cls = value
        return
    if name == "__dict__" and isinstance(value, dict):
        owner.fields = value
        return
    owner.assign(machine, name, value)


def delete_attribute(machine: Machine, owner: Any, name: str) -> None:
    """Del owner.name."""
    if isinstance(owner, Instance):
        hook = owner.cls.find("__delattr__")
        if hook is not MISSING:
            machine.call(hook, [owner, name])
            return
        holder = owner.cls.find(name)
        if type(holder) is Property and holder.deleter is not None:
            machine.call(holder.deleter, [owner])
            return
        owner.remove(owner.translate(name) if owner.translates else name)
        machine.mutations += 1
    elif isinstance(owner, Class):
        owner.remove(name)
    elif isinstance(owner, (Function, Native, Partial)) and owner.attributes and name in owner.attributes:
        del owner.attributes[name]
    elif type(owner) is not Unknown:
        raise AttributeError(f"'{type_name(owner)}' object has no attribute '{name}'")
