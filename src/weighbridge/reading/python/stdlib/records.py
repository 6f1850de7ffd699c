"""enum, inspect and uuid-like records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weighbridge.reading.python.classes import ENUMS, Auto
from weighbridge.reading.python.objects import Class, Instance
from weighbridge.reading.python.stdlib.dataclass import all_fields
from weighbridge.reading.python.stdlib.helpers import native, strict
from weighbridge.reading.python.types_of_values import is_callable
from weighbridge.reading.python.values import MISSING, Bound, ClassMethod, Function, Namespace, Native, Partial, StaticMethod, Unknown

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine

PARAMETER = Class("Parameter", [], {}, "inspect")
SIGNATURE = Class("Signature", [], {}, "inspect")
EMPTY = Class("_empty", [], {}, "inspect")
KINDS = {"POSITIONAL_ONLY": 0, "POSITIONAL_OR_KEYWORD": 1, "VAR_POSITIONAL": 2, "KEYWORD_ONLY": 3, "VAR_KEYWORD": 4}
PARAMETER.namespace.update(KINDS, empty=EMPTY)
SIGNATURE.namespace["empty"] = EMPTY
PARAMETER.frozen = SIGNATURE.frozen = EMPTY.frozen = True


def _enum_module(_machine: Machine) -> Namespace:
    return strict(
        "enum",
        {
            **ENUMS,
            "auto": native(lambda _machine: Auto(), "auto"),
            "unique": native(lambda _machine, cls: cls, "unique"),
            "EnumMeta": Unknown("enum.EnumMeta", "stub"),
            "EnumType": Unknown("enum.EnumType", "stub"),
            "member": native(lambda _machine, value: value, "member"),
            "nonmember": native(lambda _machine, value: value, "nonmember"),
        },
    )


def parameter(name: str, kind: str, default: Any) -> Instance:
    """One inspect.Parameter."""
    made = Instance(PARAMETER)
    made.fields.update(name=name, kind=KINDS[kind], default=EMPTY if default is MISSING else default, annotation=EMPTY)
    return made


def parameters_of(function: Function, skip: int) -> dict[str, Instance]:
    """The parameters of an interpreted function."""
    code = function.code
    first_default = len(code.positional) - len(function.defaults)
    found: dict[str, Instance] = {}
    for index, name in enumerate(code.positional):
        default = function.defaults[index - first_default] if index >= first_default else MISSING
        found[name] = parameter(name, "POSITIONAL_ONLY" if index < code.positional_only else "POSITIONAL_OR_KEYWORD", default)
    if code.variable:
        found[code.variable] = parameter(code.variable, "VAR_POSITIONAL", MISSING)
    for name in code.keyword_only:
        found[name] = parameter(name, "KEYWORD_ONLY", function.keyword_defaults.get(name, MISSING))
    if code.keywords:
        found[code.keywords] = parameter(code.keywords, "VAR_KEYWORD", MISSING)
    return dict(list(found.items())[skip:])


def signature(machine: Machine, value: Any, **_options: Any) -> Any:
    """inspect.signature() of interpreted functions, methods and classes; Unknown for others."""
    skip = 0
    if isinstance(value, Instance):
        value = Bound(value, value.cls.find("__call__"))
    if isinstance(value, Class):
        init = value.find("__init__")
        if isinstance(init, Native):
            return wrap({name: parameter(name, "POSITIONAL_OR_KEYWORD", spec) for name, spec in all_fields(value).items()})
        value, skip = init, 1
    while not isinstance(value, Function):
        if isinstance(value, Bound):
            value, skip = value.fn, skip + 1
        elif isinstance(value, (StaticMethod, ClassMethod, Partial)):
            value = value.fn
        elif isinstance(value, Native) and value.attributes and "__wrapped__" in value.attributes:
            value = value.attributes["__wrapped__"]
        else:
            return machine.unknown("inspect.signature() of something that is not read")
    wrapped = (value.attributes or {}).get("__wrapped__")
    return signature(machine, wrapped) if wrapped is not None and not skip else wrap(parameters_of(value, skip))


def wrap(parameters: dict[str, Instance]) -> Instance:
    """A Signature."""
    made = Instance(SIGNATURE)
    made.fields.update(parameters=parameters, return_annotation=EMPTY)
    return made


def full_spec(machine: Machine, value: Any) -> Any:
    """inspect.getfullargspec(): the names alone."""
    found = signature(machine, value)
    if not isinstance(found, Instance):
        return found
    made = Instance(SIGNATURE)
    kinds = {name: part.fields["kind"] for name, part in found.fields["parameters"].items()}
    made.fields.update(
        args=[name for name, kind in kinds.items() if kind < 2],
        kwonlyargs=[name for name, kind in kinds.items() if kind == 3],
        varargs=next((name for name, kind in kinds.items() if kind == 2), None),
        varkw=next((name for name, kind in kinds.items() if kind == 4), None),
    )
    return made


def _inspect_module(_machine: Machine) -> Namespace:
    return strict(
        "inspect",
        {
            "signature": native(signature, "signature"),
            "getfullargspec": native(full_spec, "getfullargspec"),
            "Parameter": PARAMETER,
            "Signature": SIGNATURE,
            "isclass": native(lambda _machine, value: isinstance(value, Class), "isclass"),
            "isfunction": native(lambda _machine, value: isinstance(value, Function), "isfunction"),
            "ismethod": native(lambda _machine, value: isinstance(value, Bound), "ismethod"),
            "isroutine": native(is_callable, "isroutine"),
            "iscoroutinefunction": native(
                lambda _machine, value: isinstance(value, Function) and value.code.is_async, "iscoroutinefunction"
            ),
            "isgeneratorfunction": native(
                lambda _machine, value: isinstance(value, Function) and value.code.is_generator, "isgeneratorfunction"
            ),
            "getdoc": native(lambda _machine, _value: None, "getdoc"),
            "unwrap": native(lambda _machine, value: value, "unwrap"),
            "_empty": EMPTY,
        },
    )


MODULES = {"enum": _enum_module, "inspect": _inspect_module}
