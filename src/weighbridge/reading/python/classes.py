"""What a class statement makes: classes with their hooks, enumerations, named tuples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weighbridge.reading.python.calls import call, construct
from weighbridge.reading.python.comparisons import equal
from weighbridge.reading.python.objects import Class, Instance
from weighbridge.reading.python.protocols import enum_members
from weighbridge.reading.python.values import (
    MISSING,
    Bound,
    CachedProperty,
    ClassMethod,
    Frame,
    Function,
    Namespace,
    Native,
    Property,
    StaticMethod,
    TypeObject,
    Union,
    Unknown,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from weighbridge.reading.python.machine import Machine

CLASS_STEPS = 20
NOT_MEMBERS = (Function, Property, StaticMethod, ClassMethod, Native, CachedProperty, Class)


def usable_bases(bases: list[Any]) -> list[Any]:
    """Builtin types as Python's own; bases that are inert stand-ins left out."""
    opened = [base.python if isinstance(base, TypeObject) else base for base in bases]
    return [
        base
        for base in opened
        if base not in (object, type)
        and not isinstance(base, (Native, Namespace, Union, Bound))
        and not (isinstance(base, Unknown) and base.kind == "stub")
    ]


def name_members(machine: Machine, cls: Class) -> None:
    """Tell functions and descriptors under which name they stand."""
    for key, value in list(cls.namespace.items()):
        kind = type(value)
        if kind is CachedProperty:
            value.name = key
        elif kind is Function and value.qualname == value.name:
            value.qualname = f"{cls.name}.{value.name}"
        elif isinstance(value, Instance) and (method := value.cls.find("__set_name__")) is not MISSING:
            call(machine, method, [value, cls, key])


def fill_special(namespace: dict[str, Any]) -> None:
    """What Python does to a class's special methods without being told."""
    for special in ("__init_subclass__", "__class_getitem__"):
        if type(namespace.get(special)) is Function:
            namespace[special] = ClassMethod(namespace[special])
    if type(namespace.get("__new__")) is Function:
        namespace["__new__"] = StaticMethod(namespace["__new__"])
    if type(namespace.get("__eq__")) is Function and "__hash__" not in namespace:
        namespace["__hash__"] = None


def make_class(
    machine: Machine,
    name: str,
    bases: list[Any],
    namespace: dict[str, Any],
    module: str,
    keywords: dict[str, Any],
    frame: Frame | None = None,
) -> Class:
    """Make a class, name its descriptors, run the hooks of its bases."""
    ancestors = sum(len(base.mro) for base in bases if isinstance(base, Class))
    if ancestors > machine.limits.depth:
        raise machine.exceeded("depth", f"a class with more than {machine.limits.depth} ancestors")
    machine.charge(1 + len(namespace))
    machine.tick(CLASS_STEPS + ancestors)
    cls = Class(name, usable_bases(bases), namespace, module)
    if frame is not None:
        cls.annotations = frame.annotations or {}
        frame.cells["__class__"].value = cls
    name_members(machine, cls)
    fill_special(namespace)
    if cls.is_enum:
        make_members(machine, cls)
    options = {key: value for key, value in keywords.items() if key != "metaclass"}
    hook = next((base.hook for base in cls.mro[1:] if base.hook is not None), None)
    if hook is not None:
        hook(machine, cls, options)
    inherited = cls.find_after(cls, "__init_subclass__")
    if isinstance(inherited, ClassMethod):
        call(machine, inherited.fn, [cls], options)
    return cls


def finish_class(machine: Machine, name: str, bases: list[Any], frame: Frame, options: dict[str, Any], place: tuple[str, int]) -> Class:
    """The class of a class statement whose body has run."""
    namespace = dict(frame.vars)
    namespace.pop("__qualname__", None)
    module = namespace.pop("__module__", frame.module.name)
    cls = make_class(machine, name, bases, namespace, module if type(module) is str else frame.module.name, options, frame)
    cls.place = place
    return cls


# ---------------------------------------------------------------- enumerations
class Auto:
    """enum.auto(), before the class is made."""

    __slots__ = ()


def _generated(machine: Machine, cls: Class, name: str, seen: list[Instance], last: Any) -> Any:
    """The value of auto()."""
    rule = cls.find("_generate_next_value_")
    if rule is not MISSING:
        function = rule.fn if isinstance(rule, StaticMethod) else rule
        return call(machine, function, [name, 1, len(seen), [member.fields["value"] for member in seen]])
    kinds = {base.name for base in cls.mro}
    if "StrEnum" in kinds:
        return name.lower()
    if kinds & {"Flag", "IntFlag"}:
        return 1 << len(seen)
    return last + 1 if type(last) is int else 1


def make_members(machine: Machine, cls: Class) -> None:
    """Turn the plain values of an enumeration's body into members."""
    last: Any = 0
    seen: list[Instance] = []
    for name, given in list(cls.namespace.items()):
        if name.startswith("_") or isinstance(given, NOT_MEMBERS):
            continue
        value = _generated(machine, cls, name, seen, last) if isinstance(given, Auto) else given
        last = value
        alias = next(
            (
                member
                for member in seen
                if type(member.fields["value"]) is type(value) and equal(machine, member.fields["value"], value) is True
            ),
            None,
        )
        if alias is not None:
            cls.namespace[name] = alias
            continue
        member = make_member(machine, cls, name, value)
        cls.namespace[name] = member
        seen.append(member)
    cls.constructor = find_member
    cls.cache.clear()


def make_member(machine: Machine, cls: Class, name: str, value: Any) -> Instance:
    """One member, running the class's __new__ and __init__."""
    args = list(value) if type(value) is tuple else [value]
    new = cls.find("__new__")
    if isinstance(new, StaticMethod) and isinstance(new.fn, Function):
        member = call(machine, new.fn, [cls, *args])
        if not isinstance(member, Instance):
            raise TypeError(f"{cls.name}.__new__ must make a member")
        value = member.fields.get("_value_", value)
    else:
        member = cls.instance_type(cls)
    if cls.builtin is not None and not issubclass(cls.builtin, BaseException) and member.payload is None:
        member.payload = value.payload if isinstance(value, Instance) else value
    member.fields.update(name=name, value=value, _value_=value, _name_=name)
    init = cls.find("__init__")
    if type(init) is Function:
        call(machine, init, [member, *args])
    return member


def find_member(machine: Machine, cls: Class, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Cls(value)."""
    if not enum_members(cls):
        return construct(machine, cls, args, kwargs)
    if len(args) != 1:
        raise TypeError(f"{cls.name}() takes one value")
    value = args[0]
    if type(value) is Unknown:
        return machine.unknown(f"{cls.name}({value.why})")
    for member in enum_members(cls):
        machine.tick(1)
        if member is value or equal(machine, member.fields["value"], value) is True:
            return member
    missing = cls.find("_missing_")
    if isinstance(missing, ClassMethod):
        found = call(machine, missing.fn, [cls, value])
        if found is not None:
            return found
    raise ValueError(f"{machine.repr(value)} is not a valid {cls.name}")


def enum_base(name: str, builtin: type | None = None) -> Class:
    """Enum and its kin."""
    cls = Class(name, [builtin] if builtin else [], {}, "enum")
    cls.is_enum = True
    cls.frozen = True
    return cls


ENUM = enum_base("Enum")
ENUMS = {"Enum": ENUM}
for _name, _builtin in (("IntEnum", int), ("StrEnum", str), ("Flag", int), ("IntFlag", int)):
    _cls = Class(_name, [_builtin, ENUM], {}, "enum")
    _cls.is_enum = _cls.frozen = True
    ENUMS[_name] = _cls


# ---------------------------------------------------------------- named tuples
def item_getter(index: int) -> Native:
    """The property of one field."""
    return Native(lambda owner: owner.payload[index], "field", lazy=True)


def named_tuple_maker(names: list[str], defaults: dict[str, Any]) -> Callable[..., Instance]:
    """The constructor of a named tuple."""

    def make(_machine: Machine, made: Class, args: list[Any], kwargs: dict[str, Any]) -> Instance:
        values = dict(zip(names, args, strict=False))
        if len(args) > len(names):
            raise TypeError(f"{made.name}() takes {len(names)} positional arguments but {len(args)} were given")
        for key, value in kwargs.items():
            if key not in names or key in values:
                raise TypeError(f"{made.name}() got an unexpected keyword argument '{key}'")
            values[key] = value
        for key in names:
            if key not in values:
                if key not in defaults:
                    raise TypeError(f"{made.name}() missing required argument: '{key}'")
                values[key] = defaults[key]
        instance = made.instance_type(made)
        instance.payload = tuple(values[key] for key in names)
        return instance

    return make


def make_named_tuple(cls: Class, names: list[str], defaults: dict[str, Any]) -> None:
    """Give a class the shape of a named tuple."""
    make = named_tuple_maker(names, defaults)

    def replace(machine: Machine, owner: Instance, **changes: Any) -> Any:
        return make(machine, owner.cls, [], dict(zip(names, owner.payload, strict=True)) | changes)

    def show(machine: Machine, owner: Instance) -> str:
        fields = ", ".join(f"{key}={machine.repr(value)}" for key, value in zip(names, owner.payload, strict=True))
        return f"{owner.cls.name}({fields})"

    cls.builtin, cls.constructor = tuple, make
    cls.namespace.update({key: Property(item_getter(index)) for index, key in enumerate(names)})
    cls.namespace.update(
        _fields=tuple(names),
        __match_args__=tuple(names),
        _field_defaults=dict(defaults),
        _replace=Native(replace, "_replace", lazy=True, wants_machine=True),
        _asdict=Native(lambda owner: dict(zip(names, owner.payload, strict=True)), "_asdict", lazy=True),
        _make=ClassMethod(
            Native(
                lambda machine, made, items: make(machine, made, list(machine.as_list(items)), {}), "_make", lazy=True, wants_machine=True
            )
        ),
    )
    cls.namespace.setdefault("__repr__", Native(show, "__repr__", lazy=True, wants_machine=True))
    cls.cache.clear()


def named_tuple_hook(_machine: Machine, cls: Class, _keywords: dict[str, Any]) -> None:
    """Class P(NamedTuple): the annotated names are the fields."""
    if cls.mro[1].hook is named_tuple_hook:
        defaults = {name: cls.namespace[name] for name in cls.annotations if name in cls.namespace}
        make_named_tuple(cls, list(cls.annotations), defaults)


NAMED_TUPLE = Class("NamedTuple", [], {}, "typing")
NAMED_TUPLE.hook = named_tuple_hook
TYPED_DICT = Class("TypedDict", [], {}, "typing")
NAMED_TUPLE.frozen = TYPED_DICT.frozen = True
TYPED_DICT.constructor = lambda machine, _cls, args, kwargs: machine.call(machine.builtins["dict"], args, kwargs)
