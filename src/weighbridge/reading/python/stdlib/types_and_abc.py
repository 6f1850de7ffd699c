"""typing, typing_extensions, types and abc: annotations are never evaluated, so nearly all of it is inert."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weighbridge.reading.python import protocols
from weighbridge.reading.python.classes import NAMED_TUPLE, TYPED_DICT
from weighbridge.reading.python.objects import Class, Instance
from weighbridge.reading.python.stdlib.containers import abc_module
from weighbridge.reading.python.stdlib.helpers import native, stub
from weighbridge.reading.python.types_of_values import FUNCTION_TYPE, METHOD_TYPE, MODULE_TYPE, NATIVE_TYPE, NONE_TYPE, TYPES
from weighbridge.reading.python.values import Namespace, Property, Union, Unknown

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine

CONTAINER_ALIASES = {
    "List": "list",
    "Dict": "dict",
    "Tuple": "tuple",
    "Set": "set",
    "FrozenSet": "frozenset",
    "Type": "type",
    "Text": "str",
}
SAME_AS_ABC = [
    "Iterable",
    "Iterator",
    "Generator",
    "Sequence",
    "MutableSequence",
    "Mapping",
    "MutableMapping",
    "Collection",
    "Container",
    "Sized",
    "Callable",
    "Hashable",
    "Reversible",
    "AbstractSet",
    "KeysView",
    "ValuesView",
    "ItemsView",
    "Awaitable",
    "Coroutine",
    "AsyncIterator",
    "AsyncIterable",
    "AsyncGenerator",
]
SIMPLE_NAMESPACE = Class("SimpleNamespace", [], {}, "types")
SIMPLE_NAMESPACE.frozen = True


def _members(value: Any) -> tuple[Any, ...]:
    return value if type(value) is tuple else (value,)


def _flatten(values: tuple[Any, ...]) -> Union:
    return Union(tuple(part for value in values for part in (value.members if isinstance(value, Union) else (value,))))


def _union(machine: Machine, key: Any) -> Any:
    del machine
    return _flatten(_members(key))


def _optional(machine: Machine, key: Any) -> Any:
    del machine
    return _flatten((key, None))


def _annotated(machine: Machine, key: Any) -> Any:
    del machine
    return _members(key)[0]


def _origin(machine: Machine, value: Any) -> Any:
    return machine.unknown("typing.Union", "stub") if isinstance(value, Union) else None


def _arguments(machine: Machine, value: Any) -> Any:
    del machine
    return value.members if isinstance(value, Union) else ()


def _hints(_machine: Machine, value: Any, *_args: Any, **_kwargs: Any) -> Any:
    cls = value.cls if isinstance(value, Instance) else value
    if not isinstance(cls, Class):
        return {}
    return {name: annotation.text for base in reversed(cls.mro) for name, annotation in base.annotations.items()}


def decorator(name: str) -> Any:
    """A decorator that leaves what it decorates, with or without arguments."""

    def run(_machine: Machine, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and not kwargs and type(args[0]) is not str:
            return args[0]
        return native(lambda _machine, value: value, name)

    return native(run, name)


def _typing_module(machine: Machine) -> Namespace:
    entries: dict[str, Any] = {name: TYPES[builtin] for name, builtin in CONTAINER_ALIASES.items()}
    abcs = abc_module(machine).entries
    entries |= {name: abcs["Set" if name == "AbstractSet" else name] for name in SAME_AS_ABC}
    entries |= {
        "Any": Unknown("typing.Any", "stub"),
        "OrderedDict": TYPES["dict"],
        "DefaultDict": TYPES["dict"],
        "Union": Namespace("typing.Union", {"__getitem__": native(_union, "Union")}),
        "Optional": Namespace("typing.Optional", {"__getitem__": native(_optional, "Optional")}),
        "Annotated": Namespace("typing.Annotated", {"__getitem__": native(_annotated, "Annotated")}),
        "NamedTuple": NAMED_TUPLE,
        "TypedDict": TYPED_DICT,
        "TYPE_CHECKING": False,
        "cast": native(lambda _machine, _kind, value: value, "cast"),
        "overload": decorator("overload"),
        "final": decorator("final"),
        "override": decorator("override"),
        "no_type_check": decorator("no_type_check"),
        "runtime_checkable": decorator("runtime_checkable"),
        "deprecated": decorator("deprecated"),
        "dataclass_transform": decorator("dataclass_transform"),
        "get_origin": native(_origin, "get_origin"),
        "get_args": native(_arguments, "get_args"),
        "get_type_hints": native(_hints, "get_type_hints"),
        "assert_never": native(lambda _machine, value: value, "assert_never"),
    }
    return stub("typing", entries)


def _abc_base(_machine: Machine) -> Namespace:
    def abstract_property(_machine: Machine, getter: Any) -> Property:
        return Property(getter)

    return stub(
        "abc",
        {
            "ABC": Unknown("abc.ABC", "stub"),
            "ABCMeta": Unknown("abc.ABCMeta", "stub"),
            "abstractmethod": decorator("abstractmethod"),
            "abstractproperty": native(abstract_property, "abstractproperty"),
        },
    )


def _simple_namespace(_machine: Machine, **values: Any) -> Instance:
    made = Instance(SIMPLE_NAMESPACE)
    made.fields.update(values)
    return made


def _types_module(machine: Machine) -> Namespace:
    return stub(
        "types",
        {
            "FunctionType": FUNCTION_TYPE,
            "LambdaType": FUNCTION_TYPE,
            "MethodType": METHOD_TYPE,
            "BuiltinFunctionType": NATIVE_TYPE,
            "ModuleType": MODULE_TYPE,
            "NoneType": NONE_TYPE,
            "GeneratorType": abc_module(machine).entries["Generator"],
            "SimpleNamespace": native(_simple_namespace, "SimpleNamespace"),
            "MappingProxyType": native(lambda machine, table: protocols.as_mapping(machine, table, "MappingProxyType"), "MappingProxyType"),
        },
    )


MODULES = {"typing": _typing_module, "typing_extensions": _typing_module, "abc": _abc_base, "types": _types_module}
