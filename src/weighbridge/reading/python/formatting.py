"""str(), repr(), format() and %-formatting, bounded in length and depth."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from weighbridge.base.errors import LimitExceeded
from weighbridge.reading.python.objects import Class, Instance
from weighbridge.reading.python.protocols import DICT_VIEWS, as_mapping, get_item
from weighbridge.reading.python.values import MISSING, Bound, DefaultDict, Function, Native, Raised, TypeObject, Union, Unknown

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine

SPEC = re.compile(r"(?:(?:.)?[<>=^])?[-+ ]?z?#?0?(\d*)[,_]?(?:\.(\d+))?[bcdeEfFgGnosxX%]?", re.DOTALL)
PERCENT = re.compile(r"%(?:\(([^)]*)\))?([-+ #0]*)(\*|\d*)(?:\.(\*|\d*))?[hlL]?(.)", re.DOTALL)
FIELD = re.compile(r"([^.\[]*)((?:\.\w+|\[[^\]]*\])*)\Z")
WIDEST = 10_000
NUMBERS = frozenset([int, float, bool, str, complex])


def to_str(machine: Machine, value: Any) -> Any:
    """str(value); an Unknown's is Unknown."""
    kind = type(value)
    if kind is str:
        return value
    if kind is Unknown:
        return machine.unknown(f"str({value.why})")
    if isinstance(value, Instance):
        method = value.cls.find("__str__")
        if method is not MISSING:
            return machine.call(method, [value])
        payload = value.payload
        if isinstance(payload, BaseException):
            return exception_text(machine, payload)
        if (
            payload is not None
            and value.cls.find("__repr__") is MISSING
            and not (value.cls.is_enum and type(payload) is str and "StrEnum" not in {c.name for c in value.cls.mro})
        ):
            return to_str(machine, payload)
        if value.cls.is_enum:
            return f"{value.cls.name}.{value.fields.get('name')}"
    if isinstance(value, BaseException):
        return exception_text(machine, value)
    return to_repr(machine, value)


def exception_text(machine: Machine, error: BaseException) -> Any:
    """str() of an exception."""
    if isinstance(error, Raised):
        return to_str(machine, error.value)
    if isinstance(error, KeyError) and len(error.args) == 1:
        return to_repr(machine, error.args[0])
    if len(error.args) == 1:
        return to_str(machine, error.args[0])
    return to_repr(machine, error.args) if error.args else ""


def to_repr(machine: Machine, value: Any, plain: bool = False) -> Any:
    """repr(value); `plain` ignores an interpreted __repr__."""
    kind = type(value)
    if kind in NUMBERS or value is None or value is Ellipsis or kind in {bytes, slice, range}:
        text = repr(value)
        machine.charge_text(len(text))
        return text
    if kind is Unknown:
        return machine.unknown(f"repr({value.why})")
    if isinstance(value, (list, tuple, dict, set, frozenset)) or kind in DICT_VIEWS:
        return repr_container(machine, value)
    if isinstance(value, Instance):
        return _repr_instance(machine, value, plain)
    return _repr_other(machine, value)


def _repr_instance(machine: Machine, value: Instance, plain: bool) -> Any:
    method = MISSING if plain else value.cls.find("__repr__")
    if method is not MISSING:
        return machine.call(method, [value])
    if value.cls.is_enum:
        return f"<{value.cls.name}.{value.fields.get('name')}: {to_repr(machine, value.fields.get('value'))}>"
    if isinstance(value.payload, BaseException):
        return f"{value.cls.name}({', '.join(str(to_repr(machine, arg)) for arg in value.payload.args)})"
    return to_repr(machine, value.payload) if value.payload is not None else f"<{value.cls.module}.{value.cls.name} object>"


def _repr_other(machine: Machine, value: Any) -> Any:
    if isinstance(value, Class):
        return f"<class '{value.module}.{value.name}'>"
    if isinstance(value, type):
        return f"<class '{value.__name__}'>"
    if isinstance(value, (Function, Native, TypeObject)):
        return f"<class '{value.name}'>" if isinstance(value, TypeObject) else f"<function {value.name}>"
    if isinstance(value, Bound):
        return f"<bound method {getattr(value.fn, 'name', '')}>"
    if isinstance(value, BaseException):
        return f"{type(value).__name__}({', '.join(str(to_repr(machine, arg)) for arg in value.args)})"
    if isinstance(value, Union):
        return " | ".join(str(getattr(member, "name", "None")) for member in value.members)
    adapter = machine.foreign_of(type(value))
    return adapter.format(machine, value, "") if adapter is not None else f"<{type(value).__name__}>"


def repr_container(machine: Machine, value: Any) -> Any:
    """Lists, tuples, sets, dicts and their views."""
    opening, closing = BRACKETS.get(type(value), ("[", "]"))
    machine.deepen(1)
    parts: list[str] = []
    try:
        pairs = value.items() if isinstance(value, dict) else ((item, MISSING) for item in value)
        size = 0
        for key, item in pairs:
            machine.tick(1)
            text = to_repr(machine, key)
            if item is not MISSING and type(text) is str:
                second = to_repr(machine, item)
                text = f"{text}: {second}" if type(second) is str else second
            if type(text) is Unknown:
                return machine.unknown(f"text of a {type(value).__name__} with {text.why}")
            size += len(text) + 2
            machine.charge_text(size)
            parts.append(text)
    finally:
        machine.deepen(-1)
    body = ", ".join(parts)
    if type(value) is tuple and len(parts) == 1:
        body += ","
    if type(value) is set and not parts:
        return "set()"
    return f"{opening}{body}{closing}"


BRACKETS: dict[type, tuple[str, str]] = {
    tuple: ("(", ")"),
    dict: ("{", "}"),
    DefaultDict: ("{", "}"),
    set: ("{", "}"),
    frozenset: ("frozenset({", "})"),
    type({}.keys()): ("dict_keys([", "])"),
    type({}.values()): ("dict_values([", "])"),
    type({}.items()): ("dict_items([", "])"),
}


def convert(machine: Machine, value: Any, conversion: str) -> Any:
    """The !s, !r and !a of format fields."""
    if conversion == "s":
        return to_str(machine, value)
    text = to_repr(machine, value)
    return ascii(text)[1:-1] if conversion == "a" and type(text) is str else text


def check_width(*digits: str | None) -> None:
    """Refuse wide fields before text is made."""
    for number in digits:
        if number and (len(number) > 5 or int(number) > WIDEST):
            raise LimitExceeded("text_chars", f"a format field wider than {WIDEST}")


def format_value(machine: Machine, value: Any, spec: Any = "") -> Any:
    """format(value, spec)."""
    if type(value) is Unknown or type(spec) is Unknown:
        return machine.unknown("a formatted text")
    if isinstance(value, Instance):
        method = value.cls.find("__format__")
        if method is not MISSING:
            return machine.call(method, [value, spec])
        if value.payload is not None and spec and type(value.payload) in NUMBERS:
            value = value.payload
    adapter = machine.foreign_of(type(value))
    if adapter is not None:
        return adapter.format(machine, value, spec)
    if not spec:
        return to_str(machine, value)
    match = SPEC.fullmatch(spec)
    if match is None:
        raise ValueError(f"Invalid format specifier '{spec}'")
    check_width(match.group(1), match.group(2))
    if type(value) not in NUMBERS:
        raise TypeError(f"unsupported format string passed to {type(value).__name__}.__format__")
    return format(value, spec)


def format_text(machine: Machine, text: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """text.format(*args, **kwargs), fields read as interpreted code would."""
    machine.tick(1 + len(text) // 16)
    out: list[str] = []
    size = automatic = position = 0
    while position < len(text):
        stop = next((i for i in range(position, len(text)) if text[i] in "{}"), len(text))
        out.append(text[position:stop])
        position = stop
        if position >= len(text):
            break
        if text[position : position + 2] in {"{{", "}}"}:
            out.append(text[position])
            position += 2
            continue
        if text[position] == "}":
            raise ValueError("Single '}' encountered in format string")
        field, position = read_field(text, position + 1)
        name, conversion, spec = split_field(field)
        if name == "" or name[0] in ".[":
            name, automatic = f"{automatic}{name}", automatic + 1
        value = field_value(machine, name, args, kwargs)
        if "{" in spec:
            spec, automatic = nested_spec(machine, spec, args, kwargs, automatic)
        if conversion and type(value) is not Unknown:
            value = convert(machine, value, conversion)
        piece = format_value(machine, value, spec)
        if type(piece) is Unknown:
            return piece
        size += len(piece)
        machine.charge_text(size)
        out.append(piece)
    return "".join(out)


def read_field(text: str, start: int) -> tuple[str, int]:
    """The inside of a {field} and the position after it."""
    depth = 1
    for position in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return text[start:position], position + 1
    raise ValueError("expected '}' before end of string")


def split_field(field: str) -> tuple[str, str, str]:
    """name!conversion:spec."""
    name, _, spec = field.partition(":")
    name, _, conversion = name.partition("!")
    return name, conversion, spec


def nested_spec(machine: Machine, spec: str, args: tuple[Any, ...], kwargs: dict[str, Any], automatic: int) -> tuple[str, int]:
    """A spec that itself holds fields, such as {:{width}}."""
    names = re.findall(r"\{(\w*)\}", spec)
    for name in names:
        key = name or str(automatic)
        automatic += not name
        spec = spec.replace("{" + name + "}", str(to_str(machine, field_value(machine, key, args, kwargs))), 1)
    return spec, automatic


def field_value(machine: Machine, field: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The value of a format field such as 0, name, name.attr or name[key]."""
    match = FIELD.match(field)
    if match is None:
        raise ValueError(f"Invalid format field '{field}'")
    name, path = match.group(1), match.group(2)
    if name.isdigit():
        if len(name) > 5 or int(name) >= len(args):
            raise IndexError("Replacement index out of range for positional args tuple")
        value = args[int(name)]
    elif name in kwargs:
        value = kwargs[name]
    else:
        raise KeyError(name)
    for step in re.findall(r"\.(\w+)|\[([^\]]*)\]", path):
        value = machine.getattr(value, step[0]) if step[0] else get_item(machine, value, int(step[1]) if step[1].isdigit() else step[1])
    return value


def percent_format(machine: Machine, text: Any, values: Any) -> Any:
    """Text % values."""
    if type(text) is not str or type(values) is Unknown:
        return machine.unknown("a %-formatted text")
    given = list(values) if type(values) is tuple else [values]
    used = 0
    out: list[str] = []
    position = size = 0
    for match in PERCENT.finditer(text):
        machine.tick(1)
        key, flags, width, precision, conversion = match.groups()
        out.append(text[position : match.start()])
        position = match.end()
        if conversion == "%":
            out.append("%")
            continue
        if width == "*" or precision == "*":
            return machine.unknown("a %-formatted text with a computed width")
        check_width(width, precision)
        if key is not None:
            value = get_item(machine, as_mapping(machine, values, "%"), key)
        elif used >= len(given):
            raise TypeError("not enough arguments for format string")
        else:
            value, used = given[used], used + 1
        piece = percent_piece(machine, flags + width + (f".{precision}" if precision is not None else ""), conversion, value)
        if type(piece) is Unknown:
            return piece
        size += len(piece)
        machine.charge_text(size)
        out.append(piece)
    if (type(values) is tuple or type(values) in NUMBERS or values is None) and used < len(given):
        raise TypeError("not all arguments converted during string formatting")
    return "".join([*out, text[position:]])


def percent_piece(machine: Machine, modifiers: str, conversion: str, value: Any) -> Any:
    """One conversion of %-formatting."""
    if type(value) is Unknown:
        return machine.unknown(f"text with {value.why}")
    if conversion in "sra":
        value = convert(machine, value, conversion)
        conversion = "s"
        if type(value) is Unknown:
            return value
    elif isinstance(value, Instance):
        value = value.payload
    if type(value) not in NUMBERS:
        raise TypeError(f"%{conversion} format: a real number is required, not {type(value).__name__}")
    return f"%{modifiers}{conversion}" % (value,)
