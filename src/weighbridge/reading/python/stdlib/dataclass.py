"""dataclasses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weighbridge.reading.python import comparisons
from weighbridge.reading.python.calls import call
from weighbridge.reading.python.objects import Class, FieldSpec, Instance
from weighbridge.reading.python.stdlib.copying import deep
from weighbridge.reading.python.stdlib.helpers import native, strict
from weighbridge.reading.python.values import MISSING, Namespace, Native, Property, Unknown

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine

ABSENT = Instance(Class("_MISSING_TYPE", [], {}, "dataclasses"))
FIELD_CLASS = Class("Field", [], {}, "dataclasses")
FIELD_CLASS.frozen = True


def _field(
    _machine: Machine, *, default: Any = MISSING, default_factory: Any = MISSING, init: Any = True, kw_only: Any = False, **other: Any
) -> FieldSpec:
    spec = FieldSpec(default, default_factory, init=init is not False, kw_only=kw_only is True)
    spec.metadata = other.get("metadata") or {}
    return spec


def own_fields(cls: Class) -> tuple[dict[str, Any], list[str]]:
    """The fields a class body declares, and which of them are only for __post_init__."""
    fields: dict[str, Any] = {}
    passed_on: list[str] = []
    keyword_only = False
    for name, annotation in cls.annotations.items():
        text = annotation.text.strip("'\"")
        kind = text.split("[")[0].split(".")[-1]
        if kind == "ClassVar":
            continue
        if kind == "KW_ONLY":
            keyword_only = True
            continue
        if kind == "InitVar":
            passed_on.append(name)
        value = cls.namespace.get(name, MISSING)
        if keyword_only:
            spec = value if type(value) is FieldSpec else FieldSpec(value)
            spec.kw_only = True
            value = spec
        fields[name] = value
    return fields, passed_on


def all_fields(cls: Class) -> dict[str, Any]:
    """Fields of a class and its bases, in the order of the bases."""
    found: dict[str, Any] = {}
    for base in reversed(cls.mro):
        found.update(base.fields or {})
    return found


def default_of(machine: Machine, spec: Any) -> Any:
    """A field's default value, or MISSING."""
    if type(spec) is FieldSpec:
        return call(machine, spec.factory, []) if spec.factory is not MISSING else spec.default
    return spec


def initialize(machine: Machine, cls: Class, instance: Instance, args: list[Any], kwargs: dict[str, Any]) -> None:
    """The generated __init__."""
    fields = {name: spec for name, spec in all_fields(cls).items() if not (type(spec) is FieldSpec and not spec.init)}
    positional = [name for name, spec in fields.items() if not (type(spec) is FieldSpec and spec.kw_only)]
    if len(args) > len(positional):
        raise TypeError(f"{cls.name}.__init__() takes {len(positional) + 1} positional arguments but {len(args) + 1} were given")
    given = dict(zip(positional, args, strict=False))
    for name, value in kwargs.items():
        if name in given:
            raise TypeError(f"{cls.name}.__init__() got multiple values for argument '{name}'")
        if name not in fields:
            raise TypeError(f"{cls.name}.__init__() got an unexpected keyword argument '{name}'")
        given[name] = value
    passed_on = {name for base in cls.mro for name in base.namespace.get("?init_only", ())}
    later: list[Any] = []
    for name, spec in all_fields(cls).items():
        value = given[name] if name in given else default_of(machine, spec)
        if value is MISSING:
            if name not in fields:
                continue
            raise TypeError(f"{cls.name}.__init__() missing required argument: '{name}'")
        if name in passed_on:
            later.append(value)
        else:
            store(machine, instance, name, value)
    hook = cls.find("__post_init__")
    if hook is not MISSING:
        call(machine, hook, [instance, *later])


def store(machine: Machine, instance: Instance, name: str, value: Any) -> None:
    """Set a field; frozen classes are written past their own __setattr__."""
    holder = instance.cls.find("__setattr__")
    if isinstance(holder, Native) and holder.name == "frozen":
        instance.fields[name] = value
    elif type(instance.cls.find(name)) is Property and instance.cls.find(name).setter is None:
        return
    else:
        machine.setattr(instance, name, value)


def set_defaults(namespace: dict[str, Any], fields: dict[str, Any]) -> None:
    """A field's default stands in the class, its description does not."""
    for name, value in fields.items():
        if type(value) is FieldSpec:
            if value.default is not MISSING:
                namespace[name] = value.default
            else:
                namespace.pop(name, None)


def add_init(cls: Class) -> None:
    """Give a class the __init__ that its fields ask for."""

    def init(machine: Machine, args: list[Any], kwargs: dict[str, Any]) -> None:
        instance = args.pop(0)
        initialize(machine, cls, instance, args, kwargs)

    cls.namespace["__init__"] = Native(init, "__init__", lazy=True, raw=True)
    cls.namespace["__init__"].attributes = {"?dataclass": cls}


def process(machine: Machine, cls: Class, options: dict[str, Any]) -> Class:
    """Make a class a dataclass."""
    fields, passed_on = own_fields(cls)
    if options.get("kw_only") is True:
        for name, value in list(fields.items()):
            spec = value if type(value) is FieldSpec else FieldSpec(value)
            spec.kw_only = True
            fields[name] = spec
    cls.fields = fields
    namespace = cls.namespace
    set_defaults(namespace, fields)
    if passed_on:
        namespace["?init_only"] = passed_on
    if options.get("init", True) is not False and "__init__" not in namespace:
        add_init(cls)
    names = [name for name in all_fields(cls) if name not in passed_on]
    namespace.setdefault("__match_args__", tuple(names))
    if options.get("repr", True) is not False:
        namespace.setdefault("__repr__", native(show, "__repr__"))
    if options.get("eq", True) is not False and "__eq__" not in namespace:
        namespace["__eq__"] = native(same, "__eq__")
        if options.get("frozen") is not True and options.get("unsafe_hash") is not True:
            namespace.setdefault("__hash__", None)
        elif "__hash__" not in namespace:
            cls.key_names = tuple(names)
    if options.get("frozen") is True:
        namespace["__setattr__"] = native(refuse, "frozen")
    if options.get("order") is True:
        order_methods(namespace)
    cls.cache.clear()
    for below in list(cls.subclasses):
        below.cache.clear()
    del machine
    return cls


def order_methods(namespace: dict[str, Any]) -> None:
    """The comparisons of an ordered dataclass."""
    for operation, (_, name, _, _) in comparisons.COMPARISONS.items():
        namespace.setdefault(
            name,
            native(lambda machine, a, b, operation=operation: comparisons.compare(machine, operation, values_of(a), values_of(b)), name),
        )


def values_of(instance: Any) -> tuple[Any, ...]:
    """The field values of a dataclass instance."""
    return tuple(instance.fields.get(name) for name in all_fields(instance.cls))


def same(machine: Machine, a: Any, b: Any) -> Any:
    """The generated __eq__."""
    if not isinstance(b, Instance) or b.cls is not a.cls:
        return NotImplemented
    return comparisons.equal(machine, values_of(a), values_of(b))


def show(machine: Machine, instance: Any) -> Any:
    """The generated __repr__."""
    fields = ", ".join(f"{name}={machine.repr(instance.fields.get(name))}" for name in all_fields(instance.cls))
    return f"{instance.cls.name}({fields})"


def refuse(_machine: Machine, _instance: Any, name: str, _value: Any) -> None:
    """Assignment to a frozen dataclass."""
    raise AttributeError(f"cannot assign to field '{name}'")


def _dataclass(machine: Machine, cls: Any = None, **options: Any) -> Any:
    if cls is None:
        return native(lambda machine, made: _dataclass(machine, made, **options), "dataclass")
    return process(machine, cls, options) if isinstance(cls, Class) else cls


def fields_of(machine: Machine, value: Any) -> Any:
    """dataclasses.fields()."""
    cls = value.cls if isinstance(value, Instance) else value
    if type(cls) is Unknown:
        return machine.unknown("dataclasses.fields()")
    if not isinstance(cls, Class) or not _is_dataclass(machine, cls):
        raise TypeError("must be called with a dataclass type or instance")
    return tuple(describe(cls, name, spec) for name, spec in all_fields(cls).items())


def describe(cls: Class, name: str, spec: Any) -> Instance:
    """A Field object."""
    made = Instance(FIELD_CLASS)
    full = spec if type(spec) is FieldSpec else FieldSpec(spec)
    annotation = next((base.annotations[name].text for base in cls.mro if name in base.annotations), None)
    made.fields.update(
        name=name,
        type=annotation,
        default=ABSENT if full.default is MISSING else full.default,
        default_factory=ABSENT if full.factory is MISSING else full.factory,
        init=full.init,
        kw_only=full.kw_only,
        metadata=full.metadata,
        repr=True,
    )
    return made


def _is_dataclass(_machine: Machine, value: Any) -> Any:
    cls = value.cls if isinstance(value, Instance) else value
    return isinstance(cls, Class) and any(base.fields is not None for base in cls.mro)


def _replace(machine: Machine, instance: Any, **changes: Any) -> Any:
    values = {name: instance.fields[name] for name in all_fields(instance.cls) if name in instance.fields}
    return call(machine, instance.cls, [], values | changes)


def as_dict(machine: Machine, instance: Any, *, dict_factory: Any = None) -> Any:
    """dataclasses.asdict()."""
    del dict_factory
    if isinstance(instance, Instance) and _is_dataclass(machine, instance):
        return {name: as_dict(machine, instance.fields.get(name)) for name in all_fields(instance.cls)}
    if type(instance) in {list, tuple}:
        return type(instance)(as_dict(machine, item) for item in instance)
    if isinstance(instance, dict):
        return {key: as_dict(machine, item) for key, item in instance.items()}
    return deep(machine, instance)


def _make_dataclass(machine: Machine, name: str, fields: Any, *, bases: Any = (), namespace: Any = None, **options: Any) -> Class:
    cls = machine.make_class(name, list(bases), dict(namespace or {}))
    declared = [(item, MISSING) if type(item) is str else (item[0], item[2] if len(item) > 2 else MISSING) for item in fields]
    process(machine, cls, options)
    cls.fields = dict(declared)
    return cls


def _dataclasses_module(_machine: Machine) -> Namespace:
    return strict(
        "dataclasses",
        {
            "dataclass": native(_dataclass, "dataclass"),
            "field": native(_field, "field"),
            "fields": native(fields_of, "fields"),
            "is_dataclass": native(_is_dataclass, "is_dataclass"),
            "replace": native(_replace, "replace"),
            "asdict": native(as_dict, "asdict"),
            "astuple": native(lambda _machine, instance: values_of(instance), "astuple"),
            "make_dataclass": native(_make_dataclass, "make_dataclass"),
            "MISSING": ABSENT,
            "InitVar": Unknown("dataclasses.InitVar", "stub"),
            "KW_ONLY": Unknown("dataclasses.KW_ONLY", "stub"),
            "FrozenInstanceError": AttributeError,
            "Field": FIELD_CLASS,
        },
    )


MODULES = {"dataclasses": _dataclasses_module}
