"""contextlib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weighbridge.base.errors import WeighError
from weighbridge.reading.python import exceptions
from weighbridge.reading.python.calls import call
from weighbridge.reading.python.generators import Generator
from weighbridge.reading.python.stdlib.helpers import native, strict
from weighbridge.reading.python.values import MISSING, Bound, Function, Namespace, Native, Unknown

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine


class GeneratorContext(exceptions.ContextManager):
    """What a @contextmanager function returns: runs to its yield on entry, on from there at the end."""

    def __init__(self, generator: Any) -> None:
        self.generator = generator

    def enter(self, machine: Machine) -> Any:
        """The yielded value."""
        if not isinstance(self.generator, Generator):
            return machine.unknown("the value of a context manager")
        try:
            return next(self.generator)
        except StopIteration:
            raise RuntimeError("generator didn't yield") from None

    def exit(self, machine: Machine, error: BaseException | None) -> bool:
        """Run the rest."""
        del machine
        if not isinstance(self.generator, Generator) or isinstance(error, WeighError):
            return False
        try:
            if error is None:
                next(self.generator)
            else:
                self.generator.resume("throw", error)
        except StopIteration:
            return error is not None
        except Exception as raised:
            if raised is error:
                return False
            raise
        raise RuntimeError("generator didn't stop" + (" after throw()" if error else ""))


class Suppress(exceptions.ContextManager):
    """contextlib.suppress."""

    def __init__(self, kinds: tuple[Any, ...]) -> None:
        self.kinds = kinds

    def exit(self, machine: Machine, error: BaseException | None) -> bool:
        """Swallow the named exceptions."""
        return error is not None and not isinstance(error, WeighError) and exceptions.matches(machine, error, self.kinds)


class Nothing(exceptions.ContextManager):
    """contextlib.nullcontext."""

    def __init__(self, value: Any = None) -> None:
        self.value = value

    def enter(self, machine: Machine) -> Any:
        """The value it was given."""
        del machine
        return self.value


class Closing(Nothing):
    """contextlib.closing and redirect_stdout, whose ends do nothing here."""


class Stack(exceptions.ContextManager):
    """contextlib.ExitStack."""

    def __init__(self) -> None:
        self.entered: list[Any] = []

    def enter(self, machine: Machine) -> Any:
        """Itself."""
        del machine
        return self

    def exit(self, machine: Machine, error: BaseException | None) -> bool:
        """Leave what was entered, last first."""
        swallowed = False
        while self.entered:
            manager = self.entered.pop()
            if isinstance(manager, Native):
                call(machine, manager, [])
            elif exceptions.leave(machine, manager, None if swallowed else error):
                swallowed = True
        return swallowed


def read_context(machine: Machine, owner: Any, name: str, default: Any) -> Any:
    """Attributes of context managers."""
    method = CONTEXT_METHODS.get(name) or (STACK_METHODS.get(name) if isinstance(owner, Stack) else None)
    if method is not None:
        return Bound(owner, method)
    del machine
    if default is not MISSING:
        return default
    raise AttributeError(f"'{type(owner).__name__}' object has no attribute '{name}'")


def _enter_context(machine: Machine, stack: Stack, manager: Any) -> Any:
    value = exceptions.enter(machine, manager)
    stack.entered.append(manager)
    return value


def _push_callback(machine: Machine, stack: Stack, function: Any, *args: Any, **kwargs: Any) -> Any:
    del machine
    stack.entered.append(native(lambda machine: call(machine, function, list(args), dict(kwargs)), "callback"))
    return function


def wrap_call(machine: Machine, owner: Any, function: Any) -> Any:
    """A context manager used as a decorator."""
    del machine

    def run(machine: Machine, args: list[Any], kwargs: dict[str, Any]) -> Any:
        frame = machine.frame
        assert frame is not None
        return exceptions.within(frame, owner, lambda _frame, _value: Box(call(machine, function, args, kwargs))).value

    return Native(run, getattr(function, "name", "wrapped"), lazy=True, raw=True)


class Box:
    """A value on its way out of a with block."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


CONTEXT_METHODS: dict[str, Native] = {
    "__enter__": native(lambda machine, owner: owner.enter(machine), "__enter__"),
    "__exit__": native(lambda machine, owner, *_args: owner.exit(machine, None), "__exit__"),
    "__call__": native(wrap_call, "__call__"),
}
STACK_METHODS: dict[str, Native] = {
    "enter_context": native(_enter_context, "enter_context"),
    "callback": native(_push_callback, "callback"),
    "push": native(_enter_context, "push"),
    "close": native(lambda machine, stack: stack.exit(machine, None), "close"),
    "pop_all": native(lambda _machine, stack: stack, "pop_all"),
}


def _context_manager(_machine: Machine, function: Any) -> Any:
    def make(machine: Machine, args: list[Any], kwargs: dict[str, Any]) -> Any:
        return GeneratorContext(call(machine, function, args, kwargs))

    made = Native(make, function.name if isinstance(function, Function) else "contextmanager", lazy=True, raw=True)
    made.attributes = {"__wrapped__": function}
    return made


def _contextlib_module(_machine: Machine) -> Namespace:
    return strict(
        "contextlib",
        {
            "contextmanager": native(_context_manager, "contextmanager"),
            "asynccontextmanager": native(_context_manager, "asynccontextmanager"),
            "suppress": native(lambda _machine, *kinds: Suppress(kinds), "suppress"),
            "nullcontext": native(lambda _machine, value=None: Nothing(value), "nullcontext"),
            "closing": native(lambda _machine, value=None: Closing(value), "closing"),
            "ExitStack": native(lambda _machine: Stack(), "ExitStack"),
            "redirect_stdout": native(lambda _machine, value=None: Closing(value), "redirect_stdout"),
            "redirect_stderr": native(lambda _machine, value=None: Closing(value), "redirect_stderr"),
            "ContextDecorator": Unknown("contextlib.ContextDecorator", "stub"),
            "AbstractContextManager": Unknown("contextlib.AbstractContextManager", "stub"),
        },
    )


MODULES = {"contextlib": _contextlib_module}
