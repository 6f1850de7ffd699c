"""White lists: the methods of builtin values that interpreted code may call, bounded where they can grow."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weighbridge.reading.python import comparisons, protocols
from weighbridge.reading.python.objects import Instance
from weighbridge.reading.python.values import MISSING, DefaultDict, Native, Unknown

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine

SAFE_TEXT = [
    "lower",
    "upper",
    "startswith",
    "endswith",
    "split",
    "rsplit",
    "strip",
    "lstrip",
    "rstrip",
    "removeprefix",
    "removesuffix",
    "partition",
    "rpartition",
    "splitlines",
    "isdigit",
    "isalpha",
    "isalnum",
    "isupper",
    "islower",
    "isidentifier",
    "isnumeric",
    "isdecimal",
    "isspace",
    "istitle",
    "title",
    "capitalize",
    "find",
    "rfind",
    "index",
    "rindex",
    "count",
    "casefold",
    "swapcase",
]


def open_text(value: Any) -> Any:
    """A str-like object's text; tuples of them likewise."""
    if isinstance(value, Instance):
        value = value.payload
    if type(value) is tuple:
        return tuple(open_text(part) for part in value)
    if value is not None and type(value) not in {str, int, bool, bytes}:
        raise TypeError(f"argument must be str, not {protocols.type_name(value)}")
    return value


def text_method(name: str) -> Native:
    """A method of str that cannot grow its text."""
    method = getattr(str, name)

    def run(machine: Machine, text: Any, *args: Any, **kwargs: Any) -> Any:
        machine.tick(1 + len(text) // 256)
        result = method(open_text(text), *(open_text(arg) for arg in args), **{key: open_text(value) for key, value in kwargs.items()})
        if type(result) is list:
            machine.charge(len(result))
        return result

    return Native(run, name, wants_machine=True)


def _join(machine: Machine, text: str, items: Any) -> Any:
    parts: list[str] = []
    for item in protocols.as_list(machine, items):
        if type(item) is Unknown:
            return machine.unknown(f"str.join with {item.why}")
        part = item.payload if isinstance(item, Instance) else item
        if type(part) is not str:
            raise TypeError(f"sequence item {len(parts)}: expected str instance, {protocols.type_name(item)} found")
        parts.append(part)
    machine.charge_text(sum(map(len, parts)) + len(text) * len(parts))
    return text.join(parts)


def _replace(machine: Machine, text: str, old: Any, new: Any, count: int = -1) -> str:
    old, new = open_text(old), open_text(new)
    hits = text.count(old) if count < 0 else min(text.count(old), count)
    machine.charge_text(len(text) + hits * len(new))
    return text.replace(old, new, count)


def pad(name: str) -> Native:
    """str.ljust and its kind: the width is the result's length."""
    method = getattr(str, name)

    def run(machine: Machine, text: str, width: int = 8, *fill: str) -> Any:
        machine.charge_text(len(text) * (max(1, width) if name == "expandtabs" else 1) + max(0, width))
        return method(text, width, *fill)

    return Native(run, name, wants_machine=True)


def _encode(machine: Machine, text: str, encoding: str = "utf-8", errors: str = "strict") -> bytes:
    machine.charge_text(len(text) * 4)
    if encoding.lower() not in {"utf-8", "utf8", "ascii", "latin-1", "latin1"} or errors not in {"strict", "ignore", "replace"}:
        raise LookupError(f"unknown encoding: {encoding}")
    return text.encode(encoding, errors)


def decode(machine: Machine, data: bytes, encoding: str = "utf-8", errors: str = "strict") -> str:
    """bytes.decode(), of the common encodings."""
    machine.charge_text(len(data))
    if encoding.lower() not in {"utf-8", "utf8", "ascii", "latin-1", "latin1"} or errors not in {"strict", "ignore", "replace"}:
        raise LookupError(f"unknown encoding: {encoding}")
    return data.decode(encoding, errors)


def changing(run: Callable[..., Any], name: str) -> Native:
    """A method that changes its object."""

    def change(machine: Machine, *args: Any, **kwargs: Any) -> Any:
        machine.mutations += 1
        return run(machine, *args, **kwargs)

    return Native(change, name, lazy=True, wants_machine=True)


def reading(run: Callable[..., Any], name: str, lazy: bool = True) -> Native:
    """A method that leaves its object as it is."""
    return Native(run, name, lazy=lazy, wants_machine=True)


def _list_append(machine: Machine, items: list[Any], value: Any) -> None:
    machine.charge(1)
    items.append(value)


def _list_extend(machine: Machine, items: list[Any], values: Any) -> None:
    more = protocols.as_list(machine, values)
    machine.charge(len(more))
    items.extend(more)


def _list_insert(machine: Machine, items: list[Any], index: int, value: Any) -> None:
    machine.charge(1)
    machine.tick(1 + len(items) // 256)
    items.insert(protocols.plain_index(index), value)


def _list_pop(machine: Machine, items: list[Any], index: Any = -1) -> Any:
    machine.tick(1 + len(items) // 256)
    if type(index) is Unknown:
        raise protocols.cannot(machine, "a pop at", index)
    return items.pop(protocols.plain_index(index))


def _list_index(machine: Machine, items: Any, value: Any, start: int = 0, stop: int | None = None) -> int:
    for index in range(*slice(start, stop).indices(len(items))):
        machine.tick(1)
        if items[index] is value or protocols.truth(machine, comparisons.equal(machine, items[index], value)):
            return index
    raise ValueError(f"{machine.repr(value)} is not in {type(items).__name__}")


def _list_count(machine: Machine, items: Any, value: Any) -> int:
    total = 0
    for item in items:
        machine.tick(1)
        total += bool(item is value or protocols.truth(machine, comparisons.equal(machine, item, value)))
    return total


def _list_remove(machine: Machine, items: list[Any], value: Any) -> None:
    del items[_list_index(machine, items, value)]


def _list_sort(machine: Machine, items: list[Any], *, key: Any = None, reverse: Any = False) -> None:
    items[:] = machine.sorted(items, key, reverse)


def _list_copy(machine: Machine, items: list[Any]) -> list[Any]:
    machine.charge(len(items))
    return list(items)


def _dict_get(machine: Machine, table: dict[Any, Any], key: Any, default: Any = None) -> Any:
    if type(key) is Unknown:
        return machine.unknown(f"an item at {key.why}")
    return table.get(protocols.dict_key(machine, key), default)


def _dict_pop(machine: Machine, table: dict[Any, Any], key: Any, default: Any = MISSING) -> Any:
    key = protocols.dict_key(machine, key)
    return table.pop(key) if default is MISSING else table.pop(key, default)


def _dict_setdefault(machine: Machine, table: dict[Any, Any], key: Any, default: Any = None) -> Any:
    machine.charge(1)
    return table.setdefault(protocols.dict_key(machine, key), default)


def dict_update(machine: Machine, table: dict[Any, Any], *sources: Any, **named: Any) -> None:
    """dict.update()."""
    for source in sources:
        if isinstance(source, dict) or (
            isinstance(source, Instance) and (isinstance(source.payload, dict) or source.cls.find("keys") is not MISSING)
        ):
            more = protocols.as_mapping(machine, source, "dict.update")
            machine.charge(len(more))
            table.update(more)
        elif type(source) is Unknown:
            raise protocols.cannot(machine, "dict.update with", source)
        else:
            for pair in protocols.as_list(machine, source):
                key, value = protocols.as_list(machine, pair)
                table[protocols.dict_key(machine, key)] = value
    table.update(named)


def dict_from_keys(machine: Machine, keys: Any, value: Any = None) -> dict[Any, Any]:
    """dict.fromkeys()."""
    return {protocols.dict_key(machine, key): value for key in protocols.as_list(machine, keys)}


def _dict_copy(machine: Machine, table: dict[Any, Any]) -> dict[Any, Any]:
    machine.charge(len(table))
    copy = table.copy()
    if isinstance(table, DefaultDict):
        copy = DefaultDict(table)
        copy.factory = table.factory
    return copy


def _dict_move(_machine: Machine, table: dict[Any, Any], key: Any, last: bool = True) -> None:
    value = table.pop(key)
    rest = {} if last else dict(table)
    if not last:
        table.clear()
    table[key] = value
    table.update(rest)


def set_method(name: str, changes: bool) -> Native:
    """A method of set or frozenset over any iterables."""

    def run(machine: Machine, own: Any, *others: Any) -> Any:
        sets = [
            other if type(other) in {set, frozenset} else protocols.make_set(machine, protocols.as_list(machine, other)) for other in others
        ]
        machine.charge(len(own) + sum(len(other) for other in sets))
        return getattr(own, name)(*sets)

    return changing(run, name) if changes else reading(run, name)


def _set_element(name: str) -> Native:
    def run(machine: Machine, own: set[Any], value: Any) -> None:
        machine.charge(1)
        getattr(own, name)(protocols.dict_key(machine, value))

    return changing(run, name)


def _range_index(machine: Machine, numbers: range, value: Any) -> int:
    if not comparisons.contains_number(numbers, value):
        raise ValueError(f"{machine.repr(value)} is not in range")
    return numbers.index(int(value))


def simple(method: Callable[..., Any], name: str) -> Native:
    """A method without arguments, or with plain ones."""
    return Native(lambda _machine, value, *args: method(value, *args), name, wants_machine=True)


def _format_text(machine: Machine, text: str, *args: Any, **kwargs: Any) -> Any:
    return machine.format_text(text, args, kwargs)


TEXT = {name: text_method(name) for name in SAFE_TEXT} | {
    "join": reading(_join, "join"),
    "replace": reading(_replace, "replace", lazy=False),
    "format": reading(_format_text, "format"),
    "encode": reading(_encode, "encode"),
    **{name: pad(name) for name in ("ljust", "rjust", "center", "zfill", "expandtabs")},
}
SEQUENCE = {"index": reading(_list_index, "index"), "count": reading(_list_count, "count")}
LIST = SEQUENCE | {
    "append": changing(_list_append, "append"),
    "extend": changing(_list_extend, "extend"),
    "insert": changing(_list_insert, "insert"),
    "pop": changing(_list_pop, "pop"),
    "remove": changing(_list_remove, "remove"),
    "reverse": changing(lambda _machine, items: items.reverse(), "reverse"),
    "clear": changing(lambda _machine, items: items.clear(), "clear"),
    "sort": changing(_list_sort, "sort"),
    "copy": reading(_list_copy, "copy"),
    # a deque is read as a list
    "popleft": changing(lambda machine, items: _list_pop(machine, items, 0), "popleft"),
    "appendleft": changing(lambda machine, items, value: _list_insert(machine, items, 0, value), "appendleft"),
}
DICT = {
    "get": reading(_dict_get, "get"),
    "items": reading(lambda _machine, table: table.items(), "items"),
    "keys": reading(lambda _machine, table: table.keys(), "keys"),
    "values": reading(lambda _machine, table: table.values(), "values"),
    "pop": changing(_dict_pop, "pop"),
    "popitem": changing(
        lambda _machine, table, last=True: table.popitem() if last else (key := next(iter(table)), table.pop(key)), "popitem"
    ),
    "setdefault": changing(_dict_setdefault, "setdefault"),
    "update": changing(dict_update, "update"),
    "clear": changing(lambda _machine, table: table.clear(), "clear"),
    "copy": reading(_dict_copy, "copy"),
    "move_to_end": changing(_dict_move, "move_to_end"),
    "fromkeys": reading(lambda machine, _table, keys, value=None: dict_from_keys(machine, keys, value), "fromkeys"),
}
FROZEN_SET = {
    name: set_method(name, changes=False)
    for name in ("union", "intersection", "difference", "symmetric_difference", "issubset", "issuperset", "isdisjoint", "copy")
}
SET = (
    FROZEN_SET
    | {name: set_method(name, changes=True) for name in ("update", "difference_update", "intersection_update", "clear", "pop")}
    | {name: _set_element(name) for name in ("add", "remove", "discard")}
)
METHODS: dict[type, dict[str, Native]] = {
    str: TEXT,
    list: LIST,
    tuple: SEQUENCE,
    dict: DICT,
    set: SET,
    frozenset: FROZEN_SET,
    range: {"index": reading(_range_index, "index"), "count": reading(lambda _m, r, v: int(comparisons.contains_number(r, v)), "count")},
    int: {
        "bit_length": simple(int.bit_length, "bit_length"),
        "bit_count": simple(int.bit_count, "bit_count"),
        "conjugate": simple(int, "conjugate"),
    },
    float: {"is_integer": simple(float.is_integer, "is_integer")},
    bytes: {"decode": reading(decode, "decode")},
    bool: {},
    complex: {"conjugate": simple(complex.conjugate, "conjugate")},
    slice: {"indices": simple(slice.indices, "indices")},
    type(None): {},
    type({}.keys()): {},
    type({}.values()): {},
    type({}.items()): {},
}
METHODS[int]["is_integer"] = simple(lambda _value: True, "is_integer")
METHODS[bool] = METHODS[int]


def exception_attribute(error: BaseException, name: str) -> Any:
    """The few attributes of an exception that are plain values."""
    if name == "args":
        return error.args
    if name in {"__cause__", "__context__", "__traceback__"}:
        return None
    if name in {"msg", "message", "name", "value"} and (name != "message"):
        return error.value if name == "value" and isinstance(error, StopIteration) else str(error)
    if name == "__class__":
        return type(error)
    if name == "with_traceback":
        return Native(lambda _traceback: error, name, lazy=True)
    return Native(lambda _note: None, name, lazy=True) if name == "add_note" else MISSING


def python_type_attribute(owner: type, name: str) -> Any:
    """Attributes of exception classes."""
    if name in {"__name__", "__qualname__"}:
        return owner.__name__
    if name == "__module__":
        return "builtins"
    return None if name == "__doc__" else MISSING
