"""functools, json, re (patterns that cannot run away), string and textwrap."""

from __future__ import annotations

import json
import re
import string
from typing import TYPE_CHECKING, Any

from weighbridge.base.errors import CannotTell
from weighbridge.reading.python import protocols
from weighbridge.reading.python.calls import call
from weighbridge.reading.python.comparisons import COMPARISONS
from weighbridge.reading.python.objects import Class, Instance
from weighbridge.reading.python.stdlib.helpers import native, strict, stub
from weighbridge.reading.python.values import MISSING, Bound, CachedProperty, Function, Namespace, Native, Partial, Unknown

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine


def _partial(_machine: Machine, args: list[Any], kwargs: dict[str, Any]) -> Partial:
    if not args:
        raise TypeError("the first argument of partial() must be callable")
    return Partial(args[0], args[1:], kwargs)


def _reduce(machine: Machine, function: Any, items: Any, *initial: Any) -> Any:
    iterator = protocols.counted(machine, items)
    result: Any = initial[0] if initial else next(iterator, MISSING)
    if result is MISSING:
        raise TypeError("reduce() of empty iterable with no initial value")
    for item in iterator:
        result = call(machine, function, [result, item])
    return result


def _update_wrapper(_machine: Machine, wrapper: Any, wrapped: Any, **_options: Any) -> Any:
    if isinstance(wrapper, (Function, Native)):
        if isinstance(wrapper, Function) and isinstance(wrapped, (Function, Native)):
            wrapper.name = wrapped.name or wrapper.name
        if wrapper.attributes is None:
            wrapper.attributes = {}
        wrapper.attributes["__wrapped__"] = wrapped
    return wrapper


def _wraps(_machine: Machine, wrapped: Any, **_options: Any) -> Native:
    return native(lambda machine, wrapper: _update_wrapper(machine, wrapper, wrapped), "wraps")


def cache(machine: Machine, function: Any = None, **_options: Any) -> Any:
    """lru_cache and cache: results kept by plain arguments."""
    if function is None or type(function) is int:
        return native(cache, "lru_cache")
    known: dict[Any, Any] = {}

    def run(machine: Machine, args: list[Any], kwargs: dict[str, Any]) -> Any:
        key = (
            tuple((type(arg), protocols.dict_key(machine, arg)) for arg in args),
            tuple(sorted(kwargs.items(), key=lambda pair: pair[0])),
        )
        protocols.check_tuple(machine, key, 0)
        if key not in known:
            machine.charge(1)
            known[key] = call(machine, function, args, kwargs)
        return known[key]

    made = Native(run, getattr(function, "name", "cached"), lazy=True, raw=True)
    made.attributes = {
        "__wrapped__": function,
        "cache_clear": native(lambda _machine: known.clear(), "cache_clear"),
        "cache_info": native(lambda machine: machine.unknown("cache_info()"), "cache_info"),
    }
    del machine
    return made


def total_ordering(_machine: Machine, cls: Any) -> Any:
    """Fill in the comparisons from the one that is defined."""
    if not isinstance(cls, Class):
        return cls
    less = cls.find("__lt__")
    if less is MISSING:
        return cls
    rules = {
        "__gt__": lambda machine, a, b: protocols.truth(machine, call(machine, less, [b, a])),
        "__le__": lambda machine, a, b: not protocols.truth(machine, call(machine, less, [b, a])),
        "__ge__": lambda machine, a, b: not protocols.truth(machine, call(machine, less, [a, b])),
    }
    for _, name, _, _ in COMPARISONS.values():
        if name in rules and cls.find(name) is MISSING:
            cls.set(name, native(rules[name], name))
    return cls


def single_dispatch(_machine: Machine, function: Any) -> Native:
    """Singledispatch over classes."""
    table: list[tuple[Any, Any]] = []

    def run(machine: Machine, args: list[Any], kwargs: dict[str, Any]) -> Any:
        for kind, chosen in reversed(table):
            if args and machine.isinstance(args[0], kind) is True:
                return call(machine, chosen, args, kwargs)
        return call(machine, function, args, kwargs)

    def register(_machine: Machine, kind: Any, chosen: Any = None) -> Any:
        if chosen is None:
            return native(lambda machine, given: register(machine, kind, given), "register")
        table.append((kind, chosen))
        return chosen

    made = Native(run, getattr(function, "name", "dispatched"), lazy=True, raw=True)
    made.attributes = {"register": native(register, "register")}
    return made


def _functools_module(_machine: Machine) -> Namespace:
    return strict(
        "functools",
        {
            "partial": Native(_partial, "partial", lazy=True, raw=True),
            "reduce": native(_reduce, "reduce"),
            "wraps": native(_wraps, "wraps"),
            "update_wrapper": native(_update_wrapper, "update_wrapper"),
            "lru_cache": native(cache, "lru_cache"),
            "cache": native(cache, "cache"),
            "cached_property": native(lambda _machine, getter: CachedProperty(getter), "cached_property"),
            "total_ordering": native(total_ordering, "total_ordering"),
            "singledispatch": native(single_dispatch, "singledispatch"),
            "cmp_to_key": native(lambda machine, _function: machine.unknown("cmp_to_key"), "cmp_to_key"),
            "partialmethod": Unknown("functools.partialmethod", "lib"),
        },
    )


# ---------------------------------------------------------------- json
def _dumps(machine: Machine, value: Any, **options: Any) -> Any:
    indent = options.get("indent")
    text = machine.repr(value)
    if type(text) is Unknown:
        return machine.unknown("json.dumps()")
    return json.dumps(
        plain(machine, value), indent=indent if type(indent) is int and indent < 9 else None, sort_keys=options.get("sort_keys") is True
    )


def plain(machine: Machine, value: Any) -> Any:
    """A value as JSON's own types."""
    machine.tick(1)
    if isinstance(value, Instance) and value.payload is not None:
        value = value.payload
    if type(value) in {str, int, float, bool} or value is None:
        return value
    machine.deepen(1)
    try:
        if isinstance(value, dict):
            return {str(key): plain(machine, item) for key, item in value.items()}
        if type(value) in {list, tuple}:
            return [plain(machine, item) for item in value]
    finally:
        machine.deepen(-1)
    raise TypeError(f"Object of type {protocols.type_name(value)} is not JSON serializable")


def _loads(machine: Machine, text: Any, **_options: Any) -> Any:
    if type(text) is not str:
        return machine.unknown("json.loads()")
    machine.charge_text(len(text))
    machine.charge(text.count(",") + text.count("[") + text.count("{"))
    if text.count("[") + text.count("{") > 100_000 or re.search(r"[\[{][\s\[{]{200}", text):
        raise machine.exceeded("depth", "JSON nested too deeply")
    try:
        return json.loads(text)
    except RecursionError:
        raise machine.exceeded("depth", "JSON nested too deeply") from None


def _json_module(_machine: Machine) -> Namespace:
    return strict("json", {"dumps": native(_dumps, "dumps"), "loads": native(_loads, "loads"), "JSONDecodeError": ValueError})


# ---------------------------------------------------------------- re
REPEAT = re.compile(r"(?<!\\)(?:[*+]|\{\d*,?\d*\})")
RISKY = re.compile(r"\)(?:[*+]|\{)|\\[1-9]|\(\?P=|\(\?[<!=]")
LARGEST_COST = 50_000_000


def checked(machine: Machine, pattern: Any, text: str) -> str:
    """The pattern, if matching it against a text of that length is certainly cheap."""
    if isinstance(pattern, Compiled):
        pattern = pattern.pattern
    if type(pattern) is not str or type(text) is not str:
        raise CannotTell("a regular expression", "its pattern or text is unknown")
    repeats = len(REPEAT.findall(pattern))
    if RISKY.search(pattern) and repeats:
        simple = re.sub(r"\((?:\?:)?[^()*+{}|]*\)[?]?", "", pattern)
        if RISKY.search(simple) or re.search(r"\([^()]*[*+|{][^()]*\)[*+{]", pattern):
            raise CannotTell(f"the regular expression {pattern[:60]!r}", "it could take unbounded time")
    cost = (len(text) + 1) ** min(repeats + 1, 8)
    if len(pattern) > 1000 or (repeats > 1 and cost > LARGEST_COST and len(text) > 64):
        raise CannotTell(f"the regular expression {pattern[:60]!r}", "it could take unbounded time")
    machine.tick(1 + min(cost, LARGEST_COST) // 1024)
    return pattern


class Compiled:
    """re.compile()'s result."""

    __slots__ = ("flags", "pattern")

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern, self.flags = pattern, flags


class Match:
    """A match: its groups as text."""

    __slots__ = ("found",)

    def __init__(self, found: re.Match[str]) -> None:
        self.found = found


def _flags_of(pattern: Any, flags: Any) -> int:
    own = pattern.flags if isinstance(pattern, Compiled) else 0
    return own | (flags if type(flags) is int else 0)


def _compiled(machine: Machine, pattern: Any, text: Any, flags: Any) -> re.Pattern[str]:
    checked_pattern = checked(machine, pattern, text)
    try:
        return re.compile(checked_pattern, _flags_of(pattern, flags) & (re.IGNORECASE | re.MULTILINE | re.DOTALL | re.VERBOSE | re.ASCII))
    except re.error as error:
        raise ValueError(f"invalid regular expression: {error}") from None


def searcher(name: str) -> Native:
    """match, fullmatch and search."""

    def run(machine: Machine, pattern: Any, text: Any, flags: Any = 0) -> Any:
        if type(pattern) is Unknown or type(text) is Unknown:
            return machine.unknown(f"re.{name}()")
        text = protocols.plain_index(text)
        found = getattr(_compiled(machine, pattern, text, flags), name)(text)
        return Match(found) if found is not None else None

    return native(run, name)


def _substitute(machine: Machine, pattern: Any, replacement: Any, text: Any, count: int = 0, flags: Any = 0) -> Any:
    if type(text) is Unknown or type(replacement) is Unknown:
        return machine.unknown("re.sub()")
    expression = _compiled(machine, pattern, text, flags)
    if type(replacement) is str:
        machine.charge_text((len(text) + 1) * (len(replacement) + 1))
        return expression.sub(replacement, text, count)
    return expression.sub(lambda found: str(machine.text(call(machine, replacement, [Match(found)]))), text, count)


def _split(machine: Machine, pattern: Any, text: Any, maxsplit: int = 0, flags: Any = 0) -> Any:
    return _compiled(machine, pattern, text, flags).split(text, maxsplit)


def _find_all(machine: Machine, pattern: Any, text: Any, flags: Any = 0) -> Any:
    return _compiled(machine, pattern, text, flags).findall(text)


def _find_each(machine: Machine, pattern: Any, text: Any, flags: Any = 0) -> Any:
    return iter([Match(found) for found in _compiled(machine, pattern, text, flags).finditer(text)])


def _compile_pattern(machine: Machine, pattern: Any, flags: Any = 0) -> Any:
    if type(pattern) is not str:
        return machine.unknown("re.compile()")
    return Compiled(pattern, flags if type(flags) is int else 0)


RE_FUNCTIONS: dict[str, Native] = {
    **{name: searcher(name) for name in ("match", "fullmatch", "search")},
    "sub": native(_substitute, "sub"),
    "split": native(_split, "split"),
    "findall": native(_find_all, "findall"),
    "finditer": native(_find_each, "finditer"),
}


def read_pattern(_machine: Machine, owner: Compiled, name: str, default: Any) -> Any:
    """Attributes of a compiled pattern."""
    if name in {"pattern", "flags"}:
        return getattr(owner, name)
    if name in RE_FUNCTIONS:
        return Bound(owner, RE_FUNCTIONS[name])
    if default is not MISSING:
        return default
    raise AttributeError(f"'re.Pattern' object has no attribute '{name}'")


MATCH_METHODS: dict[str, Native] = {
    "group": Native(lambda owner, *groups: owner.found.group(*groups), "group", lazy=True),
    "groups": Native(lambda owner, default=None: owner.found.groups(default), "groups", lazy=True),
    "groupdict": Native(lambda owner, default=None: owner.found.groupdict(default), "groupdict", lazy=True),
    "start": Native(lambda owner, *group: owner.found.start(*group), "start", lazy=True),
    "end": Native(lambda owner, *group: owner.found.end(*group), "end", lazy=True),
    "span": Native(lambda owner, *group: owner.found.span(*group), "span", lazy=True),
    "__getitem__": Native(lambda owner, group: owner.found[group], "__getitem__", lazy=True),
}


def read_match(_machine: Machine, owner: Match, name: str, default: Any) -> Any:
    """Attributes of a match."""
    if name in MATCH_METHODS:
        return Bound(owner, MATCH_METHODS[name])
    if default is not MISSING:
        return default
    raise AttributeError(f"'re.Match' object has no attribute '{name}'")


def _re_module(_machine: Machine) -> Namespace:
    flags = {
        name: int(getattr(re, name))
        for name in ("IGNORECASE", "I", "MULTILINE", "M", "DOTALL", "S", "VERBOSE", "X", "ASCII", "A", "UNICODE", "U")
    }
    entries = {
        **RE_FUNCTIONS,
        **flags,
        "compile": native(_compile_pattern, "compile"),
        "error": ValueError,
        "escape": Native(re.escape, "escape"),
    }
    return strict("re", {**entries, "Pattern": Class("Pattern", [], {}, "re"), "Match": Class("Match", [], {}, "re")})


def _string_module(_machine: Machine) -> Namespace:
    names = ("ascii_letters", "ascii_lowercase", "ascii_uppercase", "digits", "punctuation", "whitespace", "hexdigits")
    return strict("string", {name: getattr(string, name) for name in names})


def _textwrap_module(_machine: Machine) -> Namespace:
    return stub("textwrap", {"dedent": native(lambda _machine, text: text, "dedent")})


MODULES = {"functools": _functools_module, "json": _json_module, "re": _re_module, "string": _string_module, "textwrap": _textwrap_module}
