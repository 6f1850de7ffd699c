"""Truth, iteration, length, items and keys of interpreter values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from weighbridge.base.errors import CannotTell, LimitExceeded
from weighbridge.reading.python.objects import Class, Instance
from weighbridge.reading.python.values import MISSING, Bound, DefaultDict, Namespace, Native, Super, TypeObject, Unknown

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine

DICT_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
SCALARS = frozenset([int, float, bool, str, bytes, complex, type(None)])
CONTAINERS = frozenset([list, tuple, dict, set, frozenset, str, range, bytes, DefaultDict, *DICT_VIEWS])
PLAIN = SCALARS | frozenset([list, tuple, dict, set, frozenset, range])
QUICK_TRUTH = SCALARS | CONTAINERS


def type_name(value: Any) -> str:
    """The name of a value's type, for error texts."""
    if isinstance(value, Instance):
        return value.cls.name
    return "type" if isinstance(value, (Class, TypeObject)) else type(value).__name__


def cannot(machine: Machine, what: str, unknown: Unknown) -> CannotTell:
    """The refusal to decide on an unknown value, with the place of the decision."""
    origin = f", unknown since {unknown.place[0]}:{unknown.place[1]}" if unknown.place else ""
    file, line = machine.place
    return CannotTell(f"{what} {unknown.why}", f"its value is unknown{origin}", file=file, line=line)


def truth(machine: Machine, value: Any) -> bool:
    """bool(value); CannotTell for an Unknown."""
    kind = type(value)
    if kind in QUICK_TRUTH:
        return bool(value)
    if kind is Unknown:
        raise cannot(machine, "a branch on", value)
    adapter = machine.foreign_of(kind)
    if adapter is not None:
        answer = adapter.truth(machine, value)
        return answer if type(answer) is bool else truth(machine, answer)
    if isinstance(value, Instance):
        for name in ("__bool__", "__len__"):
            method = value.cls.find(name)
            if method is not MISSING:
                return truth(machine, machine.call(method, [value]))
        if value.payload is not None and not isinstance(value.payload, BaseException):
            return truth(machine, value.payload)
    return True


def range_length(value: range) -> int:
    """len() of a range of any size."""
    span = value.stop - value.start if value.step > 0 else value.start - value.stop
    return max(0, -(-span // abs(value.step)))


def as_list(machine: Machine, value: Any) -> Any:
    """The elements as a list (or the tuple or list itself), bounded by the cells limit."""
    kind = type(value)
    if kind is list or kind is tuple:
        return value
    if kind is range:
        machine.charge(range_length(value))
        return list(value)
    if kind in CONTAINERS:
        machine.charge(len(value))
        return list(value)
    out = []
    for item in iterate(machine, value):
        machine.charge(1)
        out.append(item)
    return out


def iterate(machine: Machine, value: Any) -> Iterator[Any]:
    """iter(value). A native that loops over it must tick; `counted` does."""
    kind = type(value)
    if kind in CONTAINERS:
        return iter(value)
    if kind is Unknown:
        raise cannot(machine, "a loop over", value)
    if hasattr(kind, "__next__") and not isinstance(value, Instance):
        return value  # type: ignore[no-any-return]  # the machine's own iterators
    adapter = machine.foreign_of(kind)
    if adapter is not None:
        return adapter.iterate(machine, value)
    if isinstance(value, Instance):
        return iterate_instance(machine, value)
    if isinstance(value, Class):
        if value.is_enum:
            return iter(enum_members(value))
        method = value.find("__class_iter__")
        if method is not MISSING:
            return iterate(machine, machine.call(method, [value]))
    raise TypeError(f"'{type_name(value)}' object is not iterable")


def iterate_instance(machine: Machine, value: Instance) -> Iterator[Any]:
    """iter() of an object of an interpreted class."""
    method = value.cls.find("__iter__")
    if method is not MISSING:
        iterator = machine.call(method, [value])
        if isinstance(iterator, Instance):
            return step_instance(machine, iterator)
        return iterate(machine, iterator)
    if value.payload is not None and not isinstance(value.payload, BaseException):
        return iterate(machine, value.payload)
    method = value.cls.find("__getitem__")
    if method is not MISSING:
        return step_items(machine, value, method)
    if value.cls.unknown_base:
        raise cannot(machine, "a loop over", machine.unknown(f"a {value.cls.name}, whose base is {value.cls.unknown_base}"))
    raise TypeError(f"'{value.cls.name}' object is not iterable")


def step_instance(machine: Machine, iterator: Instance) -> Iterator[Any]:
    """Drive an interpreted __next__."""
    method = iterator.cls.find("__next__")
    if method is MISSING:
        raise TypeError(f"iter() returned non-iterator of type '{iterator.cls.name}'")
    while True:
        machine.tick(1)
        try:
            item = machine.call(method, [iterator])
        except StopIteration:
            return
        yield item
        item = None


def step_items(machine: Machine, value: Instance, method: Any) -> Iterator[Any]:
    """The old protocol: __getitem__ from 0 until IndexError."""
    index = 0
    while True:
        machine.tick(1)
        try:
            item = machine.call(method, [value, index])
        except (IndexError, StopIteration):
            return
        yield item
        item = None
        index += 1


def counted(machine: Machine, value: Any) -> Iterator[Any]:
    """iter(value), charging a step for each element."""
    for item in iterate(machine, value):
        machine.tick(1)
        yield item


def enum_members(cls: Class) -> list[Instance]:
    """The members of an Enum class in order, aliases left out."""
    out: list[Instance] = []
    for name, value in cls.namespace.items():
        if isinstance(value, Instance) and value.cls is cls and value.fields.get("name") == name:
            out.append(value)
    return out


def length(machine: Machine, value: Any) -> Any:
    """len(value); an Unknown's is Unknown."""
    kind = type(value)
    if kind is range:
        return range_length(value)
    if kind in CONTAINERS:
        return len(value)
    if kind is Unknown:
        return machine.unknown(f"len({value.why})")
    adapter = machine.foreign_of(kind)
    if adapter is not None:
        return adapter.length(machine, value)
    if isinstance(value, Instance):
        method = value.cls.find("__len__")
        if method is not MISSING:
            return machine.call(method, [value])
        if value.payload is not None and not isinstance(value.payload, BaseException):
            return length(machine, value.payload)
        if value.cls.unknown_base:
            return machine.unknown(f"len({value.cls.name})")
    if isinstance(value, Class) and value.is_enum:
        return len(enum_members(value))
    raise TypeError(f"object of type '{type_name(value)}' has no len()")


def plain_index(key: Any) -> Any:
    """An index, with objects derived from int or str opened."""
    return key.payload if isinstance(key, Instance) and key.payload is not None else key


def dict_key(machine: Machine, key: Any) -> Any:
    """A key that is safe to hash: its cost is charged, its depth bounded, str-like objects become text."""
    kind = type(key)
    if kind in SCALARS:
        return key
    if kind is tuple:
        check_tuple(machine, key, 0)
        return key
    if kind is Unknown:
        raise cannot(machine, "a key that is", key)
    if isinstance(key, Instance):
        if type(key.payload) is tuple:
            check_tuple(machine, key.payload, 0)
        elif key.payload is None:
            check_instance_key(machine, key)
        return key
    if kind in {list, dict, set, DefaultDict}:
        raise TypeError(f"unhashable type: '{kind.__name__}'")
    adapter = machine.foreign_of(kind)
    if adapter is not None and not adapter.hashable:
        raise TypeError(f"unhashable type: '{adapter.name}'")
    return key


def check_instance_key(machine: Machine, key: Instance) -> None:
    """Refuse objects that are not hashable; one with a __hash__ of its own is told apart by identity, and that is noted."""
    if key.cls.key_names is not None:
        check_tuple(machine, key.key(), 0)
        return
    method = key.cls.find("__hash__")
    if method is None:
        raise TypeError(f"unhashable type: '{key.cls.name}'")
    if method is not MISSING and not isinstance(method, Native):
        machine.note(f"{key.cls.name}.__hash__ is not called: as keys, its objects are told apart by identity")


def check_tuple(machine: Machine, key: tuple[Any, ...], depth: int) -> None:
    """Bound what hashing or comparing a tuple costs."""
    if depth > 50:
        raise LimitExceeded("depth", "a tuple nested more than 50 deep as a key")
    machine.tick(len(key))
    for part in key:
        if type(part) is tuple:
            check_tuple(machine, part, depth + 1)
        elif isinstance(part, Instance):
            if part.cls.key_names is not None or type(part.payload) is tuple:
                check_tuple(machine, part.payload if type(part.payload) is tuple else part.key(), depth + 1)
            else:
                dict_key(machine, part)
        elif type(part) is Unknown:
            raise cannot(machine, "a key that is", part)
        elif type(part) in {list, dict, set, DefaultDict}:
            raise TypeError(f"unhashable type: '{type(part).__name__}'")


def make_set(machine: Machine, items: Any) -> set[Any]:
    """A set of the items."""
    return {dict_key(machine, item) for item in items}


def as_mapping(machine: Machine, value: Any, what: str) -> dict[Any, Any]:
    """The dict behind a mapping."""
    if isinstance(value, dict):
        return value
    if type(value) is Unknown:
        raise cannot(machine, what, value)
    if isinstance(value, Instance):
        if isinstance(value.payload, dict):
            return value.payload
        if value.cls.find("keys") is not MISSING:
            keys = as_list(machine, machine.call(machine.getattr(value, "keys"), []))
            return {key: get_item(machine, value, key) for key in keys}
    raise TypeError(f"argument after {what} must be a mapping, not {type_name(value)}")


def get_item(machine: Machine, owner: Any, key: Any) -> Any:
    """owner[key]."""
    kind = type(owner)
    if kind is dict or isinstance(owner, dict):
        if type(key) is str:
            if key in owner:
                return owner[key]
        elif type(key) is Unknown:
            return machine.unknown(f"an item at {key.why}")
        else:
            key = dict_key(machine, key)
            if key in owner:
                return owner[key]
        if kind is DefaultDict and owner.factory is not None:
            machine.charge(1)
            owner[key] = machine.call(owner.factory, [])
            return owner[key]
        raise KeyError(key)
    if kind in {list, tuple, str, range, bytes}:
        if type(key) is Unknown:
            return machine.unknown(f"an item at {key.why}")
        if type(key) is slice and kind is not range:
            machine.charge(len(owner[key]) if kind is not str else 0)
        try:
            return owner[plain_index(key)]
        except TypeError:
            raise TypeError(f"{kind.__name__} indices must be integers or slices, not {type_name(key)}") from None
    if kind is Unknown:
        return machine.unknown(f"{owner.why}[...]", owner.kind)
    adapter = machine.foreign_of(kind)
    if adapter is not None:
        return adapter.getitem(machine, owner, key)
    return get_item_of_object(machine, owner, key)


def get_item_of_object(machine: Machine, owner: Any, key: Any) -> Any:
    """owner[key] of instances, classes and stand-ins."""
    if isinstance(owner, Instance):
        method = owner.cls.find("__getitem__")
        if method is not MISSING:
            return machine.call(method, [owner, key])
        if owner.payload is not None and not isinstance(owner.payload, BaseException):
            if (
                isinstance(owner.payload, dict)
                and owner.cls.find("__missing__") is not MISSING
                and dict_key(machine, key) not in owner.payload
            ):
                return machine.call(owner.cls.find("__missing__"), [owner, key])
            return get_item(machine, owner.payload, key)
        if owner.cls.unknown_base:
            return machine.unknown(f"an item of {owner.cls.name}", "lib")
    if isinstance(owner, Class):
        if owner.is_enum:
            member = owner.namespace.get(key)
            if isinstance(member, Instance) and member.cls is owner:
                return member
            raise KeyError(key)
        method = owner.find("__class_getitem__")
        return owner if method is MISSING else machine.call(machine.getattr(owner, "__class_getitem__"), [key])
    if isinstance(owner, TypeObject):
        return owner
    if isinstance(owner, Super):
        return machine.call(machine.getattr(owner, "__getitem__"), [key])
    if isinstance(owner, (Namespace, Native, Bound)):
        subscript = owner.entries.get("__getitem__") if isinstance(owner, Namespace) else None
        return machine.call(subscript, [key]) if subscript is not None else machine.unknown("a subscript", "stub")
    raise TypeError(f"'{type_name(owner)}' object is not subscriptable")


def set_item(machine: Machine, owner: Any, key: Any, value: Any) -> None:
    """owner[key] = value."""
    kind = type(owner)
    if kind is list or isinstance(owner, dict):
        if type(key) is Unknown:
            raise cannot(machine, "a store at", key)
        if kind is not list:
            key = dict_key(machine, key)
        elif type(key) is slice:
            value = as_list(machine, value)
            machine.charge(len(value))
        machine.charge(1)
        owner[plain_index(key) if kind is list else key] = value
        machine.mutations += 1
        return
    if kind is Unknown or kind is Namespace:
        return
    adapter = machine.foreign_of(kind)
    if adapter is not None:
        adapter.setitem(machine, owner, key, value)
        return
    if isinstance(owner, Instance):
        method = owner.cls.find("__setitem__")
        if method is not MISSING:
            machine.call(method, [owner, key, value])
            return
        if owner.payload is not None:
            set_item(machine, owner.payload, key, value)
            return
    if isinstance(owner, Super):
        machine.call(machine.getattr(owner, "__setitem__"), [key, value])
        return
    raise TypeError(f"'{type_name(owner)}' object does not support item assignment")


def delete_item(machine: Machine, owner: Any, key: Any) -> None:
    """Del owner[key]."""
    if isinstance(owner, Instance):
        method = owner.cls.find("__delitem__")
        if method is not MISSING:
            machine.call(method, [owner, key])
            return
        owner = owner.payload
    if type(key) is Unknown:
        raise cannot(machine, "a deletion at", key)
    if type(owner) is list:
        del owner[plain_index(key)]
    elif isinstance(owner, dict):
        del owner[dict_key(machine, key)]
    elif type(owner) is not Unknown:
        raise TypeError(f"'{type_name(owner)}' object doesn't support item deletion")
    machine.mutations += 1
