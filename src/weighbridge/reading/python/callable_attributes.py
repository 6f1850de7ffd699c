"""Attributes of functions and what wraps them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weighbridge.reading.python.protocols import type_name
from weighbridge.reading.python.values import MISSING, Bound, Function, Native, Partial, Property

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine


def absent(owner: Any, name: str, default: Any) -> Any:
    """The default, or AttributeError."""
    if default is not MISSING:
        return default
    raise AttributeError(f"'{type_name(owner)}' object has no attribute '{name}'")


def read_function(machine: Machine, owner: Function, name: str, default: Any) -> Any:
    """Attributes of an interpreted function."""
    if owner.attributes is not None and name in owner.attributes:
        return owner.attributes[name]
    if name in {"__name__", "__qualname__"}:
        return owner.name if name == "__name__" else owner.qualname
    if name == "__module__":
        return owner.module.name
    if name == "__dict__":
        if owner.attributes is None:
            owner.attributes = {}
        return owner.attributes
    if name == "__defaults__":
        return tuple(owner.defaults) or None
    if name in {"__doc__", "__kwdefaults__"}:
        return None
    if name == "__annotations__":
        return {}
    if name == "__get__":
        return Native(lambda target, _cls=None: Bound(target, owner), name)
    if name == "__call__":
        return owner
    del machine
    return absent(owner, name, default)


def read_native(_machine: Machine, owner: Native, name: str, default: Any) -> Any:
    """Attributes of a native."""
    if owner.attributes is not None and name in owner.attributes:
        return owner.attributes[name]
    if name in {"__name__", "__qualname__"}:
        return owner.name
    if name in {"__doc__", "__module__"}:
        return None
    if name == "__get__":
        return Native(lambda target, _cls=None: Bound(target, owner), name)
    return owner if name == "__call__" else absent(owner, name, default)


def read_property(_machine: Machine, owner: Property, name: str, default: Any) -> Any:
    """Attributes of a property."""
    if name in {"fget", "fset", "fdel"}:
        return {"fget": owner.getter, "fset": owner.setter, "fdel": owner.deleter}[name]
    if name == "__get__":
        return Native(lambda machine, target, _cls=None: machine.call(owner.getter, [target]), name, lazy=True, wants_machine=True)
    if name == "__set__":
        return Native(lambda machine, target, value: machine.call(owner.setter, [target, value]), name, lazy=True, wants_machine=True)
    copies: dict[str, Callable[[Any], Property]] = {
        "getter": lambda fn: Property(fn, owner.setter, owner.deleter, owner.on_class),
        "setter": lambda fn: Property(owner.getter, fn, owner.deleter, owner.on_class),
        "deleter": lambda fn: Property(owner.getter, owner.setter, fn, owner.on_class),
    }
    return Native(copies[name], name, lazy=True) if name in copies else absent(owner, name, default)


def read_partial(_machine: Machine, owner: Partial, name: str, default: Any) -> Any:
    """Attributes of a partial."""
    if owner.attributes is not None and name in owner.attributes:
        return owner.attributes[name]
    if name == "func":
        return owner.fn
    if name == "args":
        return tuple(owner.args)
    return owner.kwargs if name == "keywords" else absent(owner, name, default)


def read_wrapper(_machine: Machine, owner: Any, name: str, default: Any) -> Any:
    """What a static or class method wraps."""
    if name in {"__func__", "__wrapped__"}:
        return getattr(owner, "fn", getattr(owner, "getter", None))
    return absent(owner, name, default)
