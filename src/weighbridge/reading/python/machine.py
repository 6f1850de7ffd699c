"""The machine: everything one run of interpreted code changes, and the doors through which Python code works with its values."""

from __future__ import annotations

import ast
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from weighbridge.base.errors import BadConfig, CannotTell, LimitExceeded, WeighError
from weighbridge.reading.python import (
    attribute_stores,
    attributes,
    builtins,
    calls,
    classes,
    comparisons,
    exceptions,
    formatting,
    imports,
    modules,
    operators,
    protocols,
)
from weighbridge.reading.python.code import FunctionCode
from weighbridge.reading.python.compile_statements import compile_body
from weighbridge.reading.python.foreign import Foreign
from weighbridge.reading.python.generators import Generator, read_generator
from weighbridge.reading.python.limits import Limits
from weighbridge.reading.python.objects import Annotation, Class, Instance
from weighbridge.reading.python.stdlib import STDLIB, contexts, tools
from weighbridge.reading.python.values import MISSING, Frame, Raised, TypeObject, Unknown

Result = TypeVar("Result")
OWN_READERS: dict[type, attributes.Reader] = {
    modules.SourceModule: attributes.read_module,
    Generator: read_generator,
    exceptions.ContextManager: contexts.read_context,
    tools.Compiled: tools.read_pattern,
    tools.Match: tools.read_match,
}
CLOCK_STEPS = 4_096  # steps between two looks at the clock
PYTHON_FRAMES = 40_000  # what 400 interpreted calls can need at the worst nesting that Python's parser lets through


class Machine:
    """Runs interpreted code within its limits; holds no reference to any value beyond its modules."""

    def __init__(self, limits: Limits | None = None, resolve: Callable[[Machine, str], Any] | None = None) -> None:
        self.limits = limits or Limits()
        self.resolve = resolve
        self.steps = self.depth = self.cells = self.mutations = self.nesting = 0
        self.deadline = time.monotonic() + self.limits.seconds
        self.checkpoint = min(self.limits.steps, CLOCK_STEPS)
        self.frame: Frame | None = None
        self.notes: list[tuple[str, int, str]] = []
        self.handled: list[BaseException] = []
        self.modules: dict[str, Any] = {}
        self.importing: set[str] = set()
        self.foreign: dict[type, Foreign] = {}
        self.adapters: dict[type, Foreign | None] = {}
        self.readers: dict[type, attributes.Reader] = dict(OWN_READERS)
        self.builtins: dict[str, Any] = dict(builtins.BUILTINS)
        self.type_objects: dict[type, TypeObject] = builtins.TYPE_OBJECTS
        self.compile_body: Callable[[FunctionCode], None] = compile_body
        self.optional_present = False  # whether packages imported under `try` are taken as installed
        self.hides: Callable[[Any], bool] | None = None
        self.copiers: dict[str, Callable[..., Any]] = {}  # "copy"(value) and "deepcopy"(value, memo) of what only glue can copy, or MISSING

    # ------------------------------------------------------------------ limits
    @property
    def place(self) -> tuple[str, int]:
        """File and line being run."""
        return (self.frame.module.path, self.frame.line) if self.frame is not None else ("", 0)

    def exceeded(self, limit: str, message: str) -> LimitExceeded:
        """The refusal, with the place."""
        file, line = self.place
        return LimitExceeded(limit, message, file=file, line=line)

    def tick(self, count: int = 1) -> None:
        """Charge steps; looks at the clock now and then."""
        self.steps += count
        if self.steps > self.checkpoint:
            if self.steps > self.limits.steps:
                raise self.exceeded("steps", f"more than {self.limits.steps:,} steps")
            if time.monotonic() > self.deadline:
                raise self.exceeded("seconds", f"longer than {self.limits.seconds:g} s")
            self.checkpoint = min(self.limits.steps, self.steps + CLOCK_STEPS)

    def charge(self, count: int) -> None:
        """Charge container cells about to be made."""
        self.cells += count
        self.steps += count >> 4
        if self.cells > self.limits.cells:
            raise self.exceeded("cells", f"more than {self.limits.cells:,} elements")

    def charge_text(self, size: int) -> None:
        """Refuse a text that is too long, and charge a long one as work."""
        if size > self.limits.text_chars:
            raise self.exceeded("text_chars", f"a text longer than {self.limits.text_chars:,} characters")
        if size > 256:
            self.tick(size >> 8)

    def check_bits(self, bits: int) -> None:
        """Refuse an integer that is too large."""
        if bits > self.limits.int_bits:
            raise self.exceeded("int_bits", f"an integer of more than {self.limits.int_bits:,} bits")

    def deepen(self, by: int) -> None:
        """Count nesting of native recursion (comparing, formatting, copying nested containers)."""
        self.nesting += by
        if self.nesting > self.limits.depth and by > 0:
            self.nesting -= by
            raise self.exceeded("depth", f"values nested deeper than {self.limits.depth}")

    def note(self, text: str) -> None:
        """Keep something worth telling, with its place, once."""
        entry = (*self.place, text)
        if entry not in self.notes and len(self.notes) < 1000:
            self.notes.append(entry)

    def unknown(self, why: str, kind: str = "value") -> Unknown:
        """An Unknown that remembers this place."""
        return Unknown(why, kind, self.place)

    def may_hide(self, value: Any) -> bool:
        """Whether a value handed to unknown code could come back inside its result (glue says: modules)."""
        return self.hides is not None and self.hides(value)

    # ------------------------------------------------------------------ running
    def run(self, action: Callable[[], Result]) -> Result:
        """Run Python code that works with this machine: the outermost door, where Python's own limits become ours.

        The recursion limit is raised for the time of the run, because one interpreted call takes ten to sixty Python frames. Python
        frames take no C stack; what recurses in C (comparison, hashing, repr) never sees nested values, so the stack is safe.
        """
        if self.frame is not None or self.depth:
            return action()
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(max(before, PYTHON_FRAMES))
        try:
            return action()
        except RecursionError:
            raise self.exceeded("depth", "nesting deeper than the interpreter can follow") from None
        except MemoryError:
            raise self.exceeded("cells", "more memory than there is") from None
        finally:
            sys.setrecursionlimit(before)
            self.handled.clear()
            self.nesting = 0

    def call(self, function: Any, args: list[Any], kwargs: dict[str, Any] | None = None) -> Any:
        """function(*args, **kwargs); takes the containers over."""
        if self.frame is None and not self.depth:
            return self.run_call(function, args, kwargs)
        return calls.call(self, function, args, kwargs)

    def run_call(self, function: Any, args: list[Any], kwargs: dict[str, Any] | None) -> Any:
        """The first call of a run."""
        self.depth += 1
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(max(before, PYTHON_FRAMES))
        try:
            return calls.call(self, function, args, kwargs)
        except RecursionError:
            raise self.exceeded("depth", "nesting deeper than the interpreter can follow") from None
        except MemoryError:
            raise self.exceeded("cells", "more memory than there is") from None
        finally:
            self.depth -= 1
            sys.setrecursionlimit(before)
            self.handled.clear()
            self.nesting = 0

    def explain(self, error: BaseException) -> WeighError:
        """The error to show for an exception that left interpreted code, naming file and line."""
        if isinstance(error, WeighError):
            return error
        trace = getattr(error, "weighbridge_trace", None) or [(*self.place, "")]
        file, line, function = trace[0]
        name = error.value.cls.name if isinstance(error, Raised) else type(error).__name__
        text = formatting.exception_text(self, error)
        message = f"{name}: {text if type(text) is str else 'unknown text'}"[:400]
        if isinstance(error, (ValueError, AssertionError, KeyError, Raised)):
            return BadConfig(f"{file}:{line}: {message}" if file else message)
        return CannotTell(message, f"in {function}()" if function else "", file=file, line=line)

    # ------------------------------------------------------------------ modules
    def source_module(self, name: str, source: str | ast.Module, path: str, package: str) -> modules.SourceModule:
        """A module of interpreted source; nothing of it runs until a name is asked for."""
        tree = modules.parse(self, source, path) if isinstance(source, str) else source
        return modules.SourceModule(name, tree, path, package)

    def module(self, name: str) -> Any:
        """The module of that dotted name: given, standard library, or resolved; None where there is none."""
        return imports.load(self, name)

    def stdlib(self, name: str) -> Any:
        """The stand-in of a standard library module, or None."""
        make = STDLIB.get(name)
        return make(self) if make is not None else None

    # ------------------------------------------------------------------ values
    def foreign_of(self, kind: type) -> Foreign | None:
        """The adapter for a Python type, or None."""
        try:
            return self.adapters[kind]
        except KeyError:
            adapter = next((self.foreign[base] for base in kind.__mro__ if base in self.foreign), None)
            self.adapters[kind] = adapter
            return adapter

    def add_foreign(self, kind: type, adapter: Foreign) -> None:
        """Register an adapter after values were already looked up."""
        self.foreign[kind] = adapter
        self.adapters.clear()
        self.readers = dict(OWN_READERS)

    def getattr(self, owner: Any, name: str, default: Any = MISSING) -> Any:
        """owner.name."""
        return attributes.read_attribute(self, owner, name, default)

    def setattr(self, owner: Any, name: str, value: Any) -> None:
        """owner.name = value."""
        attribute_stores.write_attribute(self, owner, name, value)

    def delattr(self, owner: Any, name: str) -> None:
        """Del owner.name."""
        attribute_stores.delete_attribute(self, owner, name)

    def bind(self, value: Any, owner: Instance) -> Any:
        """A class attribute as read through an object."""
        return attributes.bind(self, value, owner, owner.cls)

    def getitem(self, owner: Any, key: Any) -> Any:
        """owner[key]."""
        return protocols.get_item(self, owner, key)

    def setitem(self, owner: Any, key: Any, value: Any) -> None:
        """owner[key] = value."""
        protocols.set_item(self, owner, key, value)

    def iterate(self, value: Any) -> Iterator[Any]:
        """iter(value), charging steps."""
        return protocols.counted(self, value)

    def as_list(self, value: Any) -> Any:
        """The elements; a list or tuple is given as it is."""
        return protocols.as_list(self, value)

    def truth(self, value: Any) -> bool:
        """bool(value)."""
        return protocols.truth(self, value)

    def length(self, value: Any) -> Any:
        """len(value)."""
        return protocols.length(self, value)

    def binop(self, operation: type[ast.operator], a: Any, b: Any) -> Any:
        """A op b."""
        return operators.binary(self, operation, a, b)

    def unary(self, name: str, value: Any) -> Any:
        """-value and the like, by the name of the ast class."""
        return operators.unary(self, name, value)

    def compare(self, operation: type[ast.cmpop], a: Any, b: Any) -> Any:
        """A < b and the like."""
        return comparisons.compare(self, operation, a, b)

    def equal(self, a: Any, b: Any) -> Any:
        """A == b."""
        return comparisons.equal(self, a, b)

    def contains(self, container: Any, item: Any) -> Any:
        """Item in container."""
        return comparisons.contains(self, container, item)

    def isinstance(self, value: Any, cls: Any) -> Any:
        """Whether a value is of a class: a bool or Unknown."""
        return builtins.is_instance(self, value, cls)

    def type_of(self, value: Any) -> Any:
        """The class of a value."""
        return builtins.type_of(self, value)

    def sorted(self, items: Any, key: Any = None, reverse: Any = False) -> list[Any]:
        """A sorted list."""
        return builtins.sort(self, items, key, reverse)

    def dir(self, value: Any) -> list[str]:
        """The names of a value's attributes."""
        return builtins.names_of(self, value)

    def text(self, value: Any) -> Any:
        """Text of a value, as `str` gives it."""
        return formatting.to_str(self, value)

    def repr(self, value: Any, plain: bool = False) -> Any:
        """Text of a value, as `repr` gives it."""
        return formatting.to_repr(self, value, plain)

    def format(self, value: Any, spec: Any = "") -> Any:
        """Text of a value in a format."""
        return formatting.format_value(self, value, spec)

    def format_text(self, text: Any, args: tuple[Any, ...], kwargs: dict[Any, Any]) -> Any:
        """A text with its fields filled in."""
        return formatting.format_text(self, text, args, kwargs)

    def percent_format(self, text: Any, values: Any) -> Any:
        """Text % values."""
        return formatting.percent_format(self, text, values)

    def make_class(
        self, name: Any, bases: list[Any], namespace: dict[Any, Any], module: Any = "builtins", keywords: dict[Any, Any] | None = None
    ) -> Class:
        """What type(name, bases, namespace) makes."""
        return classes.make_class(self, name, bases, namespace, module, keywords or {})

    def finish_class(self, name: Any, bases: list[Any], frame: Frame, options: dict[Any, Any], place: tuple[Any, int]) -> Class:
        """What a class statement makes of its body."""
        return classes.finish_class(self, name, bases, frame, options, place)

    def to_exception(self, value: Any) -> BaseException:
        """What `raise value` throws."""
        return exceptions.to_exception(self, value)

    def number(self, value: Any) -> Any:
        """A plain number, or Unknown, of a number-like value."""
        return builtins.to_number(self, value)

    def make_generator(self, frame: Frame, code: FunctionCode) -> Generator:
        """The iterator that a call of a generator function gives."""
        assert code.generator is not None
        return Generator(self, frame, code.generator(frame))

    def make_iterator(self, frame: Frame, steps: Iterator[Any]) -> Generator:
        """An iterator whose steps run in a frame of their own."""
        return Generator(self, frame, steps)

    def evaluate_annotation(self, annotation: Annotation) -> Any:
        """What an annotation means where it was written."""
        return modules.evaluate(self, annotation)
