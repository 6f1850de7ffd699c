"""copy, and pickle and the like as things that are never done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weighbridge.reading.python import protocols
from weighbridge.reading.python.calls import call
from weighbridge.reading.python.objects import Instance
from weighbridge.reading.python.stdlib.helpers import native, strict
from weighbridge.reading.python.values import MISSING, Bound, DefaultDict, Namespace, Partial

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine


def shallow(machine: Machine, value: Any) -> Any:
    """copy.copy()."""
    custom = copied_by_hook(machine, value, "copy")
    if custom is not MISSING:
        return custom
    if isinstance(value, Instance):
        method = value.cls.find("__copy__")
        if method is not MISSING:
            return call(machine, method, [value])
        made = type(value)(value.cls)
        made.fields = dict(value.fields)
        made.payload = shallow(machine, value.payload)
        return made
    if isinstance(value, (list, dict, set)):
        machine.charge(len(value))
        copy = value.copy()
        if isinstance(value, DefaultDict):
            copy = DefaultDict(value)
            copy.factory = value.factory
        return copy
    return value


def copied_by_hook(machine: Machine, value: Any, how: str) -> Any:
    """What the machine's owner makes of values only it can copy (modules, tensors)."""
    hook = machine.copiers.get(how)
    return hook(value) if hook is not None else MISSING


def deep(machine: Machine, value: Any, memo: Any = None) -> Any:
    """copy.deepcopy(), sharing what was shared."""
    known: dict[int, Any] = {}
    keep: list[Any] = []
    del memo
    return deep_value(machine, value, known, keep)


def deep_value(machine: Machine, value: Any, memo: dict[int, Any], keep: list[Any]) -> Any:
    """One value of a deep copy."""
    if type(value) in protocols.SCALARS:
        return value
    if id(value) in memo:
        return memo[id(value)]
    custom = machine.copiers["deepcopy"](value, memo) if "deepcopy" in machine.copiers else MISSING
    if custom is not MISSING:
        return custom
    machine.deepen(1)
    try:
        made = deep_container(machine, value, memo, keep)
    finally:
        machine.deepen(-1)
    keep.append(value)
    memo[id(value)] = made
    return made


def deep_container(machine: Machine, value: Any, memo: dict[int, Any], keep: list[Any]) -> Any:
    """Containers and objects of a deep copy; everything else is shared."""
    kind = type(value)
    if kind in {list, set, tuple, frozenset}:
        machine.charge(len(value))
        if kind is list:
            out: list[Any] = []
            memo[id(value)] = out
            out.extend(deep_value(machine, item, memo, keep) for item in value)
            return out
        items = [deep_value(machine, item, memo, keep) for item in value]
        return protocols.make_set(machine, items) if kind is set else kind(items)
    if isinstance(value, dict):
        machine.charge(len(value))
        table: dict[Any, Any] = DefaultDict() if isinstance(value, DefaultDict) else {}
        if isinstance(value, DefaultDict) and isinstance(table, DefaultDict):
            table.factory = value.factory
        memo[id(value)] = table
        for key, item in value.items():
            table[deep_value(machine, key, memo, keep)] = deep_value(machine, item, memo, keep)
        return table
    if isinstance(value, Instance) and not value.cls.is_enum:
        return deep_instance(machine, value, memo, keep)
    if kind is Partial:
        args = [deep_value(machine, arg, memo, keep) for arg in value.args]
        return Partial(value.fn, args, {key: deep_value(machine, arg, memo, keep) for key, arg in value.kwargs.items()})
    if kind is Bound and isinstance(value.self, Instance):
        return Bound(deep_value(machine, value.self, memo, keep), value.fn)
    return value


def deep_instance(machine: Machine, value: Instance, memo: dict[int, Any], keep: list[Any]) -> Any:
    """An object of an interpreted class, by its __deepcopy__ where it has one."""
    method = value.cls.find("__deepcopy__")
    if method is not MISSING:
        return call(machine, method, [value, {}])
    machine.charge(len(value.fields))
    made = type(value)(value.cls)
    memo[id(value)] = made
    made.fields = {key: deep_value(machine, item, memo, keep) for key, item in value.fields.items()}
    made.payload = deep_value(machine, value.payload, memo, keep) if not isinstance(value.payload, BaseException) else value.payload
    return made


def _copy_module(_machine: Machine) -> Namespace:
    return strict("copy", {"copy": native(shallow, "copy"), "deepcopy": native(deep, "deepcopy")})


MODULES = {"copy": _copy_module}
