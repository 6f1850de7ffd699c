"""collections and collections.abc."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weighbridge.reading.python import operators, protocols
from weighbridge.reading.python.classes import make_named_tuple
from weighbridge.reading.python.methods import dict_update
from weighbridge.reading.python.object_protocol import fill_payload
from weighbridge.reading.python.objects import Class, Instance
from weighbridge.reading.python.stdlib.helpers import native, strict
from weighbridge.reading.python.types_of_values import CALLABLE, TYPES
from weighbridge.reading.python.values import MISSING, DefaultDict, Namespace, Unknown

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine

SEQUENCES = (list, tuple, str, range, bytes)


def has(*names: str) -> Callable[[Machine, Any], bool]:
    """A check that an interpreted object has some methods."""
    return lambda _machine, value: isinstance(value, Instance) and all(value.cls.find(name) is not MISSING for name in names)


def is_plain(*kinds: type) -> Callable[[Machine, Any], bool]:
    """A check that a value, or the payload of an object, is of some builtin type."""
    return lambda _machine, value: isinstance(value.payload if isinstance(value, Instance) else value, kinds)


def _is_iterator(_machine: Machine, value: Any) -> bool:
    return hasattr(type(value), "__next__") and not isinstance(value, Instance)


def _is_iterable(machine: Machine, value: Any) -> bool:
    return (
        type(value) in protocols.CONTAINERS
        or _is_iterator(machine, value)
        or is_plain(*SEQUENCES, dict, set)(machine, value)
        or has("__iter__")(machine, value)
    )


def _is_callable(machine: Machine, value: Any) -> bool:
    return isinstance(value, CALLABLE) or has("__call__")(machine, value)


CHECKS: dict[str, Callable[[Machine, Any], bool]] = {
    "Iterable": _is_iterable,
    "Iterator": _is_iterator,
    "Generator": _is_iterator,
    "Sequence": is_plain(*SEQUENCES),
    "MutableSequence": is_plain(list),
    "Mapping": is_plain(dict),
    "MutableMapping": is_plain(dict),
    "Set": is_plain(set, frozenset),
    "MutableSet": is_plain(set),
    "Collection": is_plain(*SEQUENCES, dict, set, frozenset),
    "Container": is_plain(*SEQUENCES, dict, set, frozenset),
    "Sized": lambda machine, value: is_plain(*SEQUENCES, dict, set, frozenset)(machine, value) or has("__len__")(machine, value),
    "Callable": _is_callable,
    "Hashable": lambda _machine, value: not isinstance(value, (list, dict, set)),
    "Reversible": is_plain(*SEQUENCES, dict),
    "KeysView": lambda _machine, value: isinstance(value, type({}.keys())),
    "ValuesView": lambda _machine, value: isinstance(value, type({}.values())),
    "ItemsView": lambda _machine, value: isinstance(value, type({}.items())),
    "Awaitable": lambda _machine, _value: False,
    "Coroutine": lambda _machine, _value: False,
    "AsyncIterator": lambda _machine, _value: False,
    "AsyncGenerator": lambda _machine, _value: False,
    "AsyncIterable": lambda _machine, _value: False,
    "Buffer": lambda _machine, _value: False,
}


def _mapping_get(machine: Machine, owner: Any, key: Any, default: Any = None) -> Any:
    try:
        return protocols.get_item(machine, owner, key)
    except KeyError:
        return default


def _mapping_pairs(machine: Machine, owner: Any) -> list[Any]:
    return [(key, protocols.get_item(machine, owner, key)) for key in protocols.counted(machine, owner)]


def _mapping_contains(machine: Machine, owner: Any, key: Any) -> bool:
    try:
        protocols.get_item(machine, owner, key)
    except KeyError:
        return False
    return True


def _mapping_update(machine: Machine, owner: Any, other: Any = (), **named: Any) -> None:
    table: dict[Any, Any] = {}
    dict_update(machine, table, other, **named)
    for key, value in table.items():
        protocols.set_item(machine, owner, key, value)


def _mapping_pop(machine: Machine, owner: Any, key: Any, *default: Any) -> Any:
    try:
        value = protocols.get_item(machine, owner, key)
    except KeyError:
        if default:
            return default[0]
        raise
    protocols.delete_item(machine, owner, key)
    return value


MAPPING_MIXIN = {
    "get": native(_mapping_get, "get"),
    "keys": native(lambda machine, owner: [key for key, _ in _mapping_pairs(machine, owner)], "keys"),
    "values": native(lambda machine, owner: [value for _, value in _mapping_pairs(machine, owner)], "values"),
    "items": native(_mapping_pairs, "items"),
    "__contains__": native(_mapping_contains, "__contains__"),
}
MIXINS: dict[str, dict[str, Any]] = {
    "Mapping": MAPPING_MIXIN,
    "MutableMapping": MAPPING_MIXIN | {"update": native(_mapping_update, "update"), "pop": native(_mapping_pop, "pop")},
}


def abc_module(machine: Machine) -> Namespace:
    """Classes whose isinstance() asks what a value can do."""
    found = machine.modules.get("collections.abc")
    if isinstance(found, Namespace):
        return found
    entries: dict[str, Any] = {}
    for name, check in CHECKS.items():
        entries[name] = Class(name, [], {"?check": check, **MIXINS.get(name, {})}, "collections.abc")
    module = strict("collections.abc", entries)
    machine.modules["collections.abc"] = module
    return module


def _default_dict(machine: Machine, factory: Any = None, *sources: Any, **named: Any) -> DefaultDict:
    table = DefaultDict()
    table.factory = factory
    dict_update(machine, table, *sources, **named)
    return table


def _counter(machine: Machine, items: Any = (), **named: Any) -> DefaultDict:
    table = _default_dict(machine, TYPES["int"])
    if isinstance(items, dict):
        table.update(items)
    else:
        for item in protocols.counted(machine, items):
            key = protocols.dict_key(machine, item)
            table[key] = operators.binary(machine, ast.Add, table.get(key, 0), 1)
    table.update(named)
    return table


def deque(machine: Machine, items: Any = (), maxlen: Any = None) -> list[Any]:
    """Read as a list; a bounded one keeps its end once, when made."""
    made = list(protocols.as_list(machine, items))
    machine.charge(len(made))
    if maxlen is not None:
        machine.note("a deque with a maximal length is read as a list")
        made = made[-maxlen:] if maxlen else []
    return made


def _named_tuple(machine: Machine, name: str, fields: Any, *, defaults: Any = (), rename: Any = False, module: Any = None) -> Class:
    del rename, module
    names = fields.replace(",", " ").split() if type(fields) is str else list(protocols.as_list(machine, fields))
    values = list(protocols.as_list(machine, defaults)) if defaults else []
    cls = Class(name, [tuple], {}, "namedtuple")
    make_named_tuple(cls, names, dict(zip(names[len(names) - len(values) :], values, strict=True)))
    return cls


def user_dict() -> Class:
    """UserDict: a dict that may also be made from None."""
    return Class("UserDict", [dict], {"__init__": native(_fill_user_dict, "UserDict.__init__")}, "collections")


def _fill_user_dict(machine: Machine, owner: Instance, given: Any = None, /, **values: Any) -> None:
    fill_payload(machine, owner, *(() if given is None else (given,)), **values)


def _collections_module(machine: Machine) -> Namespace:
    return strict(
        "collections",
        {
            "OrderedDict": TYPES["dict"],
            "UserDict": user_dict(),
            "defaultdict": native(_default_dict, "defaultdict"),
            "Counter": native(_counter, "Counter"),
            "deque": native(deque, "deque"),
            "namedtuple": native(_named_tuple, "namedtuple"),
            "ChainMap": Unknown("collections.ChainMap", "lib"),
            "abc": abc_module(machine),
        },
    )


MODULES = {"collections": _collections_module, "collections.abc": abc_module}
