"""Interpreted classes and their objects."""

from __future__ import annotations

import ast
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar

from weighbridge.reading.python.values import KEY_TYPES, MISSING, Frame, Unknown

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine


class Instance:
    """An object of an interpreted class; `payload` holds the builtin value of classes derived from str, dict, an exception ..."""

    __slots__ = ("__weakref__", "cls", "fields", "payload")
    translates: ClassVar[bool] = False

    def __init__(self, cls: Class) -> None:
        self.cls = cls
        self.fields: dict[str, Any] = {}
        self.payload: Any = None

    def __repr__(self) -> str:
        return f"<{self.cls.name} object>"

    def __hash__(self) -> int:
        payload = self.payload
        if type(payload) in KEY_TYPES:
            return hash(payload)
        return hash(self.key()) if self.cls.key_names is not None else object.__hash__(self)

    def key(self) -> tuple[Any, ...]:
        """What objects of a hashable dataclass are told apart by."""
        return tuple(self.fields.get(name) for name in self.cls.key_names or ())

    def __eq__(self, other: object) -> bool:
        """As keys of dicts and sets: objects derived from text, numbers or tuples, and frozen dataclasses, are equal by value."""
        if self is other:
            return True
        payload = self.payload
        if type(payload) not in KEY_TYPES:
            return isinstance(other, Instance) and self.cls.key_names is not None and other.cls is self.cls and self.key() == other.key()
        value = other.payload if isinstance(other, Instance) else other
        return type(value) in KEY_TYPES and bool(payload == value)

    def translate(self, name: str) -> str:
        """The attribute that `name` is an alias of; asked only where `translates` is set."""
        return name

    def lookup(self, name: str) -> Any:
        """The object's own attribute, or MISSING."""
        return self.fields.get(name, MISSING)

    def assign(self, machine: Machine, name: str, value: Any) -> None:
        """Store an own attribute."""
        if self.fields.get(name, MISSING) is not value:
            machine.mutations += 1
            self.fields[name] = value

    def remove(self, name: str) -> None:
        """Delete an own attribute; AttributeError if there is none."""
        if name not in self.fields:
            raise AttributeError(f"'{self.cls.name}' object has no attribute '{name}'")
        del self.fields[name]


class Annotation:
    """A variable annotation, kept unevaluated, with the frame it would be evaluated in."""

    __slots__ = ("frame", "node", "scope")

    def __init__(self, node: Any, scope: Any, frame: Frame) -> None:
        self.node, self.scope, self.frame = node, scope, frame

    @property
    def text(self) -> str:
        """The annotation as source text."""
        return ast.unparse(self.node)

    def __repr__(self) -> str:
        return self.text


class FieldSpec:
    """What dataclasses.field() was told."""

    __slots__ = ("default", "factory", "init", "kw_only", "metadata")

    def __init__(self, default: Any = MISSING, factory: Any = MISSING, init: bool = True, kw_only: bool = False) -> None:
        self.default, self.factory, self.init, self.kw_only = default, factory, init, kw_only
        self.metadata: Any = {}


def merge_mro(sequences: list[list[Class]]) -> list[Class]:
    """C3 linearisation; an inconsistent order raises TypeError as Python does."""
    merged: list[Class] = []
    sequences = [sequence for sequence in sequences if sequence]
    while sequences:
        for sequence in sequences:
            head = sequence[0]
            if not any(head in other[1:] for other in sequences):
                break
        else:
            raise TypeError("Cannot create a consistent method resolution order (MRO)")
        merged.append(head)
        sequences = [[item for item in sequence if item is not head] for sequence in sequences]
        sequences = [sequence for sequence in sequences if sequence]
    return merged


class Class:
    """An interpreted (or stand-in) class.

    Attributes a stand-in may set, inherited through the method resolution order: `instance_type` (the Python class of instances),
    `constructor(machine, cls, args, kwargs)` (replaces making an instance), `hook(machine, cls, keywords)` (runs when a subclass is made).
    """

    def __init__(
        self,
        name: str,
        bases: list[Any] | tuple[Any, ...] = (),
        namespace: dict[str, Any] | None = None,
        module: str = "builtins",
        instance_type: type[Instance] | None = None,
    ) -> None:
        self.name, self.module = name, module
        self.namespace: dict[str, Any] = {} if namespace is None else namespace
        self.unknown_bases = [base for base in bases if isinstance(base, Unknown)]
        self.bases = [base for base in bases if isinstance(base, Class)]
        python_bases = [base for base in bases if isinstance(base, type)]
        if not self.bases and name != "object":
            self.bases = [OBJECT]
        elif len(self.bases) > 1 and OBJECT in self.bases[:-1]:
            self.bases = [base for base in self.bases if base is not OBJECT] + [OBJECT]
        self.mro: list[Class] = [self, *merge_mro([list(base.mro) for base in self.bases] + [list(self.bases)])]
        inherited = self.mro[1:]
        self.builtin: type | None = python_bases[0] if python_bases else next((c.builtin for c in inherited if c.builtin), None)
        self.instance_type: type[Instance] = instance_type or next(
            (c.instance_type for c in inherited if c.instance_type is not Instance), Instance
        )
        self.constructor: Callable[..., Any] | None = next((c.constructor for c in inherited if c.constructor), None)
        self.hook: Callable[..., Any] | None = None
        self.is_enum: bool = any(c.is_enum for c in inherited)
        self.unknown_base = next((c.unknown_bases[0].why for c in self.mro if c.unknown_bases), "")
        self.frozen: bool = False
        self.fields: dict[str, Any] | None = None
        self.key_names: tuple[str, ...] | None = next((c.key_names for c in inherited if c.key_names is not None), None)
        self.annotations: dict[str, Annotation] = {}
        self.place: tuple[str, int] = ("", 0)
        self.cache: dict[str, Any] = {}
        self.subclasses: weakref.WeakSet[Class] = weakref.WeakSet()
        for base in self.bases:
            base.subclasses.add(self)

    def __repr__(self) -> str:
        return f"<class '{self.module}.{self.name}'>"

    def find(self, name: str) -> Any:
        """The attribute as the class and its bases hold it, unbound, or MISSING."""
        value = self.cache.get(name)
        if value is None:
            value = MISSING
            for cls in self.mro:
                if name in cls.namespace:
                    value = cls.namespace[name]
                    break
            self.cache[name] = value
        return value

    def find_after(self, cls: Class, name: str) -> Any:
        """What super() finds: the attribute in the classes that follow `cls`."""
        start = self.mro.index(cls) + 1 if cls in self.mro else 0
        for later in self.mro[start:]:
            if name in later.namespace:
                return later.namespace[name]
        return MISSING

    def subclass_of(self, other: Class) -> bool:
        """Whether `other` is in the method resolution order."""
        return other in self.mro

    def set(self, name: str, value: Any) -> None:
        """Store a class attribute."""
        if self.frozen:
            raise TypeError(f"cannot set '{name}' attribute of immutable type '{self.name}'")
        self.namespace[name] = value
        self.forget(name)

    def remove(self, name: str) -> None:
        """Delete a class attribute."""
        if self.frozen or name not in self.namespace:
            raise AttributeError(f"type object '{self.name}' has no attribute '{name}'")
        del self.namespace[name]
        self.forget(name)

    def forget(self, name: str) -> None:
        """Drop what this class and those below remember about `name`."""
        self.cache.pop(name, None)
        for cls in list(self.subclasses):
            cls.forget(name)


OBJECT: Class = Class("object")
