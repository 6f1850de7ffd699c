"""The values interpreted code handles, beside plain Python ones (None, numbers, text, list, tuple, dict, set, range, slice, bytes)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final

from weighbridge.base.errors import CannotTell

if TYPE_CHECKING:
    from weighbridge.reading.python.code import FunctionCode
    from weighbridge.reading.python.machine import Machine
    from weighbridge.reading.python.modules import SourceModule
    from weighbridge.reading.python.objects import Annotation, Class, Instance


class _Missing:
    """The type of MISSING, the mark of an absent value."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = _Missing()
KEY_TYPES: Final = frozenset([str, int, float, tuple])


class Unknown:
    """A value the interpreter does not have.

    `kind` is "value", "stub" (inert stand-in), "lib" (absent library), "libcall" (its result) or "choice" (one of two).
    """

    __slots__ = ("kind", "place", "why")

    def __init__(self, why: str, kind: str = "value", place: tuple[str, int] | None = None) -> None:
        self.why, self.kind, self.place = why, kind, place

    def __repr__(self) -> str:
        return f"<unknown: {self.why}>"

    def __bool__(self) -> bool:
        raise CannotTell(f"a branch on {self.why}", "its value is unknown")

    def __iter__(self) -> Iterator[Any]:
        raise CannotTell(f"a loop over {self.why}", "its value is unknown")

    __hash__ = object.__hash__


class Cell:
    """A variable shared between a function and the functions inside it."""

    __slots__ = ("value",)

    def __init__(self, value: Any = MISSING) -> None:
        self.value = value


class Frame:
    """The variables of one running function, class body or module."""

    __slots__ = ("annotations", "cells", "function", "line", "machine", "module", "result", "vars")

    def __init__(self, machine: Machine, module: SourceModule, function: Function | None = None) -> None:
        self.machine, self.module, self.function = machine, module, function
        self.vars: dict[str, Any] = {}
        self.cells: dict[str, Cell] = {}
        self.line = 0
        self.result: Any = None
        self.annotations: dict[str, Annotation] | None = None


class Function:
    """A function of interpreted source, with its defaults and captured variables."""

    __slots__ = ("__weakref__", "attributes", "closure", "code", "defaults", "keyword_defaults", "module", "name", "qualname")

    def __init__(self, code: FunctionCode, module: SourceModule, closure: dict[str, Cell]) -> None:
        self.code, self.module, self.closure = code, module, closure
        self.name = self.qualname = code.name
        self.defaults: list[Any] = []
        self.keyword_defaults: dict[str, Any] = {}
        self.attributes: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"<function {self.name}>"


class Bound:
    """A function or native with its first argument."""

    __slots__ = ("fn", "self")

    def __init__(self, owner: Any, fn: Any) -> None:
        self.self, self.fn = owner, fn

    def __repr__(self) -> str:
        return f"<bound {self.fn!r}>"


class Native:
    """A Python callable offered to interpreted code.

    Non-lazy natives are not run on Unknown arguments, they give Unknown. `wants_machine` passes the machine first.
    `raw` natives are called as fn(machine, args, kwargs) and own the argument list: what they pop from it is released.
    """

    __slots__ = ("attributes", "fn", "lazy", "name", "raw", "wants_machine")

    def __init__(
        self, fn: Callable[..., Any], name: str | None = None, lazy: bool = False, *, wants_machine: bool = False, raw: bool = False
    ) -> None:
        self.fn, self.lazy, self.wants_machine, self.raw = fn, lazy, wants_machine, raw
        self.name = name or getattr(fn, "__name__", "native")
        self.attributes: dict[str, Any] | None = None

    def __repr__(self) -> str:
        return f"<native {self.name}>"


class TypeObject:
    """A builtin type as interpreted code sees it: callable, and usable in isinstance()."""

    __slots__ = ("construct", "methods", "name", "python")

    def __init__(self, name: str, python: type, construct: Callable[..., Any]) -> None:
        self.name, self.python, self.construct = name, python, construct
        self.methods: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"<class '{self.name}'>"


class Property:
    """property(), or with `on_class` a property of the class itself."""

    __slots__ = ("deleter", "getter", "on_class", "setter")

    def __init__(self, getter: Any, setter: Any = None, deleter: Any = None, on_class: bool = False) -> None:
        self.getter, self.setter, self.deleter, self.on_class = getter, setter, deleter, on_class


class CachedProperty:
    """functools.cached_property: computed once, then an ordinary attribute."""

    __slots__ = ("getter", "name")

    def __init__(self, getter: Any) -> None:
        self.getter = getter
        self.name: str = getattr(getter, "name", "")


class StaticMethod:
    """staticmethod()."""

    __slots__ = ("fn",)

    def __init__(self, fn: Any) -> None:
        self.fn = fn


class ClassMethod:
    """classmethod()."""

    __slots__ = ("fn",)

    def __init__(self, fn: Any) -> None:
        self.fn = fn


class Partial:
    """functools.partial()."""

    __slots__ = ("args", "attributes", "fn", "kwargs")

    def __init__(self, fn: Any, args: list[Any], kwargs: dict[str, Any]) -> None:
        self.fn, self.args, self.kwargs = fn, args, kwargs
        self.attributes: dict[str, Any] | None = None


class Super:
    """super(cls, owner)."""

    __slots__ = ("cls", "owner")

    def __init__(self, cls: Class, owner: Any) -> None:
        self.cls, self.owner = cls, owner


class Union:
    """X | Y between types, also Optional[X] and Union[X, Y]."""

    __slots__ = ("members",)

    def __init__(self, members: tuple[Any, ...]) -> None:
        self.members = members


class DefaultDict(dict[Any, Any]):
    """collections.defaultdict."""

    __slots__ = ("factory",)

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.factory: Any = None


class Namespace:
    """A stand-in module or object: explicit entries, then `fallback(name)`, then an Unknown of kind "lib"."""

    __slots__ = ("entries", "fallback", "name")

    def __init__(self, name: str, entries: dict[str, Any] | None = None, fallback: Callable[[str], Any] | None = None) -> None:
        self.name = name
        self.entries: dict[str, Any] = {} if entries is None else entries
        self.fallback = fallback

    def __repr__(self) -> str:
        return f"<stand-in {self.name}>"

    def get(self, name: str) -> Any:
        """The entry, or MISSING where the fallback has none either."""
        value = self.entries.get(name, MISSING)
        if value is MISSING:
            value = self.fallback(name) if self.fallback is not None else Unknown(f"{self.name}.{name}", "lib")
            if value is not MISSING:
                self.entries[name] = value
        return value


class Raised(Exception):  # noqa: N818 - it carries an interpreted exception, it is not one
    """An exception of an interpreted class on its way."""

    def __init__(self, value: Instance) -> None:
        super().__init__()
        self.value = value

    def __str__(self) -> str:
        payload = self.value.payload
        return f"{self.value.cls.name}: {payload}" if payload is not None else self.value.cls.name
