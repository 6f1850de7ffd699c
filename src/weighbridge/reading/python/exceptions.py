"""Catching, raising and context managers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from weighbridge.base.errors import CannotTell, WeighError
from weighbridge.reading.python.calls import call
from weighbridge.reading.python.objects import Class, Instance
from weighbridge.reading.python.protocols import cannot, truth, type_name
from weighbridge.reading.python.values import MISSING, Frame, Namespace, Raised, Unknown

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine


class ContextManager:
    """A context manager written in Python, such as contextlib's."""

    def enter(self, machine: Machine) -> Any:
        """The value of `as`."""

    def exit(self, machine: Machine, error: BaseException | None) -> bool:
        """Whether the exception is swallowed."""
        del machine, error
        return False


def catchable(machine: Machine, error: BaseException) -> BaseException:
    """The exception, freed of what it would keep alive; refusals and Python's own exhaustion go on as refusals."""
    if isinstance(error, (WeighError, KeyboardInterrupt, SystemExit)):
        raise error
    if isinstance(error, (RecursionError, MemoryError)) and error.__traceback__ is not None and not error.args:
        raise machine.exceeded("depth", "nesting deeper than the interpreter can follow")
    if isinstance(error, RecursionError):
        raise machine.exceeded("depth", "nesting deeper than the interpreter can follow") from None
    error.__traceback__ = None
    error.__context__ = None
    return error


def matches(machine: Machine, error: BaseException, kind: Any) -> bool:
    """Whether `except kind` catches the exception."""
    if type(kind) is tuple:
        return any(matches(machine, error, member) for member in kind)
    if isinstance(kind, type) and issubclass(kind, BaseException):
        if isinstance(error, Raised):
            return isinstance(error.value.payload, kind)
        return isinstance(error, kind)
    if isinstance(kind, Class):
        return isinstance(error, Raised) and error.value.cls.subclass_of(kind)
    return False  # an unknown library's exception is never raised by what we read


def to_exception(machine: Machine, value: Any) -> BaseException:
    """What `raise value` throws."""
    if isinstance(value, (Class, type)):
        value = call(machine, value, [])
    if isinstance(value, Instance):
        if not isinstance(value.payload, BaseException) and not value.cls.unknown_base:
            raise TypeError("exceptions must derive from BaseException")
        return Raised(value)
    if isinstance(value, WeighError):
        return value
    if isinstance(value, BaseException):
        if not isinstance(value, Exception):
            raise CannotTell(f"what comes after a {type(value).__name__}", "the source ends the process there").at(*machine.place)
        value.__traceback__ = None
        value.__dict__.pop("weighbridge_trace", None)
        return value
    if type(value) is Unknown:
        return RuntimeError(f"an exception of unknown type ({value.why})")
    raise TypeError(f"exceptions must derive from BaseException, not {type_name(value)}")


def shown(error: BaseException) -> Any:
    """The value interpreted code sees for an exception."""
    return error.value if isinstance(error, Raised) else error


def enter(machine: Machine, manager: Any) -> Any:
    """The value of `with manager as value`."""
    if isinstance(manager, ContextManager):
        return manager.enter(machine)
    if isinstance(manager, Instance):
        method = manager.cls.find("__enter__")
        if method is not MISSING:
            return call(machine, machine.bind(method, manager), [])
        if manager.cls.unknown_base:
            return machine.unknown(f"a context of {manager.cls.name}", "lib")
    if isinstance(manager, (Unknown, Namespace)):
        return manager
    adapter = machine.foreign_of(type(manager))
    if adapter is not None:
        return adapter.enter(machine, manager)
    raise TypeError(f"'{type_name(manager)}' object does not support the context manager protocol")


def leave(machine: Machine, manager: Any, error: BaseException | None) -> bool:
    """End of a with block; whether its exception is swallowed. Interpreted code does not run after a refusal."""
    adapter = machine.foreign_of(type(manager))
    if adapter is not None:
        adapter.exit(machine, manager)
        return False
    if isinstance(error, WeighError) and not isinstance(manager, ContextManager):
        return False
    if isinstance(manager, ContextManager):
        return manager.exit(machine, error)
    if isinstance(manager, Instance):
        method = manager.cls.find("__exit__")
        if method is not MISSING:
            value = shown(error) if error is not None else None
            kind = (value.cls if isinstance(value, Instance) else type(value)) if error is not None else None
            result = call(machine, machine.bind(method, manager), [kind, value, None])
            if type(result) is Unknown:
                if error is not None:
                    raise cannot(machine, "whether an exception is swallowed by", result)
                return False
            return truth(machine, result)
    return False


def guarded(
    frame: Frame, body: Callable[[Frame], Any], handlers: list[tuple[Any, Any, Any, Callable[[Frame], Any]]], orelse: Callable[[Frame], Any]
) -> Any:
    """Try / except / else, without finally."""
    machine = frame.machine
    depth, nesting = len(machine.handled), machine.nesting
    caught: BaseException | None = None
    signal = None
    try:
        signal = body(frame)
    except Exception as error:
        caught = catchable(machine, error)
    if caught is None:
        return orelse(frame) if signal is None else signal
    del machine.handled[depth:]
    machine.nesting = nesting
    try:
        for kind, store, forget, block in handlers:
            if kind is None or matches(machine, caught, kind(frame)):
                return handle(frame, caught, store, forget, block)
        raise caught
    finally:
        caught = None


def forget(delete: Callable[[Frame], None], frame: Frame) -> None:
    """Unbind the name of an `except` clause, if its body did not."""
    try:
        delete(frame)
    except NameError:
        return


def handle(frame: Frame, caught: BaseException, store: Any, forget: Any, block: Callable[[Frame], Any]) -> Any:
    """Run the body of an `except`."""
    machine = frame.machine
    machine.handled.append(caught)
    if store is not None:
        store(frame, shown(caught))
    del caught
    depth = len(machine.handled)
    try:
        return block(frame)
    finally:
        del machine.handled[depth - 1 :]
        if forget is not None:
            forget(frame)


def finish(frame: Frame, inner: Callable[[Frame], Any], final: Callable[[Frame], Any]) -> Any:
    """Try / finally; the final block does not run after a refusal."""
    caught: BaseException | None = None
    signal = None
    try:
        signal = inner(frame)
    except Exception as error:
        caught = catchable(frame.machine, error)
    result = frame.result
    frame.result = None
    last = final(frame)
    if last is not None:
        return last
    frame.result = result
    try:
        if caught is not None:
            raise caught
    finally:
        caught = None
    return signal


def within(frame: Frame, manager: Any, body: Callable[[Frame, list[Any]], Any]) -> Any:
    """With manager: body. The body takes the entered value out of the list it is given, so that nothing else holds it."""
    machine = frame.machine
    entered = [enter(machine, manager)]
    caught: BaseException | None = None
    signal = None
    try:
        signal = body(frame, entered)
    except Exception as error:
        if isinstance(error, WeighError):
            leave(machine, manager, error)
            raise
        caught = error
    entered.clear()
    result = frame.result
    if caught is not None:
        try:
            if not leave(machine, manager, catchable(machine, caught)):
                raise caught
        finally:
            caught = None
        return None
    frame.result = None
    leave(machine, manager, None)
    frame.result = result
    return signal
