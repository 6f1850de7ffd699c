"""Calls of every kind of value, and the making of objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weighbridge.reading.python.functions import call_function
from weighbridge.reading.python.object_protocol import fill_payload, make_payload
from weighbridge.reading.python.objects import Class, Instance
from weighbridge.reading.python.protocols import type_name
from weighbridge.reading.python.values import (
    MISSING,
    Bound,
    ClassMethod,
    Function,
    Namespace,
    Native,
    Partial,
    StaticMethod,
    TypeObject,
    Unknown,
)

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine

Caller = Callable[["Machine", Any, list[Any], dict[str, Any] | None], Any]


def call(machine: Machine, function: Any, args: list[Any], kwargs: dict[str, Any] | None = None) -> Any:
    """function(*args, **kwargs). The call takes the containers over and may empty them."""
    caller = CALLERS.get(type(function))
    if caller is not None:
        return caller(machine, function, args, kwargs)
    return call_other(machine, function, args, kwargs)


def _call_bound(machine: Machine, function: Bound, args: list[Any], kwargs: dict[str, Any] | None) -> Any:
    args.insert(0, function.self)
    target = function.fn
    del function
    return call(machine, target, args, kwargs)


def _call_native(machine: Machine, function: Native, args: list[Any], kwargs: dict[str, Any] | None) -> Any:
    if not function.lazy:
        for arg in args:
            if type(arg) is Unknown:
                return machine.unknown(f"{function.name}({arg.why})")
    if function.raw:
        return function.fn(machine, args, kwargs if kwargs is not None else {})
    if function.wants_machine:
        return function.fn(machine, *args, **kwargs) if kwargs else function.fn(machine, *args)
    return function.fn(*args, **kwargs) if kwargs else function.fn(*args)


def _call_type(machine: Machine, function: TypeObject, args: list[Any], kwargs: dict[str, Any] | None) -> Any:
    return function.construct(machine, *args, **(kwargs or {}))


def call_unknown(machine: Machine, function: Unknown, args: list[Any], _kwargs: dict[str, Any] | None) -> Any:
    """The result of unknown code may be, or hide, anything: only stubs are known to be inert, unless they are handed something to wrap."""
    hides = any(machine.may_hide(arg) for arg in args)
    kind = "stub" if function.kind == "stub" and not hides else "libcall"
    return Unknown(f"{function.why}(...)" if len(function.why) < 120 else function.why, kind, machine.place)


def _call_partial(machine: Machine, function: Partial, args: list[Any], kwargs: dict[str, Any] | None) -> Any:
    args[0:0] = function.args
    return call(machine, function.fn, args, {**function.kwargs, **(kwargs or {})})


def _call_wrapped(machine: Machine, function: StaticMethod | ClassMethod, args: list[Any], kwargs: dict[str, Any] | None) -> Any:
    return call(machine, function.fn, args, kwargs)


def call_other(machine: Machine, function: Any, args: list[Any], kwargs: dict[str, Any] | None) -> Any:
    """Objects with __call__, exception classes, foreign values."""
    if isinstance(function, Instance):
        method = function.cls.find("__call__")
        if method is not MISSING:
            args.insert(0, function)
            del function
            return call(machine, method, args, kwargs)
        if function.cls.unknown_base:
            return machine.unknown(f"a call of {function.cls.name}, whose base is {function.cls.unknown_base}", "libcall")
    elif isinstance(function, type):
        if issubclass(function, BaseException):
            return function(*args)
        raise TypeError(f"type {function.__name__} is not callable here")
    elif isinstance(function, Namespace):
        method = function.entries.get("__call__", MISSING)
        if method is not MISSING:
            return call(machine, method, args, kwargs)
        return machine.unknown(f"{function.name}(...)", "stub")
    else:
        adapter = machine.foreign_of(type(function))
        if adapter is not None:
            return adapter.call(machine, function, args, kwargs)
    raise TypeError(f"'{type_name(function)}' object is not callable")


def instantiate(machine: Machine, cls: Class, args: list[Any], kwargs: dict[str, Any] | None) -> Any:
    """cls(*args, **kwargs)."""
    if cls.constructor is not None:
        return cls.constructor(machine, cls, args, kwargs or {})
    return construct(machine, cls, args, kwargs)


def construct(machine: Machine, cls: Class, args: list[Any], kwargs: dict[str, Any] | None) -> Any:
    """What type.__call__ does: __new__, then __init__ if that gave an object of the class."""
    machine.charge(1)
    new = cls.find("__new__")
    if new is not MISSING:
        instance = call(machine, new.fn if isinstance(new, StaticMethod) else new, [cls, *args], dict(kwargs) if kwargs else None)
        if not isinstance(instance, Instance) or not instance.cls.subclass_of(cls):
            return instance
    else:
        instance = cls.instance_type(cls)
        if cls.builtin is not None:
            instance.payload = make_payload(machine, cls.builtin, args)
    init = cls.find("__init__")
    if init is not MISSING:
        args.insert(0, instance)
        call(machine, init, args, kwargs)
    elif cls.builtin in {dict, list, set}:
        fill_payload(machine, instance, *args, **(kwargs or {}))
    elif (args or kwargs) and cls.builtin is None and new is MISSING and not cls.unknown_base:
        raise TypeError(f"{cls.name}() takes no arguments")
    return instance


CALLERS: dict[type, Caller] = {
    Function: call_function,
    Bound: _call_bound,
    Native: _call_native,
    TypeObject: _call_type,
    Class: instantiate,
    Unknown: call_unknown,
    Partial: _call_partial,
    StaticMethod: _call_wrapped,
    ClassMethod: _call_wrapped,
}
