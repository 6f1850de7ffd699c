"""Generators that advance as their values are asked for."""

from __future__ import annotations

from collections.abc import Generator as PythonGenerator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from weighbridge.reading.python.functions import mark
from weighbridge.reading.python.values import MISSING, Bound, Frame, Native

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine


class Generator:
    """A running generator: its frame is the machine's frame while it runs."""

    __slots__ = ("frame", "machine", "result", "running", "steps")

    def __init__(self, machine: Machine, frame: Frame, steps: Iterator[Any]) -> None:
        self.machine, self.steps = machine, steps
        self.frame: Frame | None = frame
        self.result: Any = None
        self.running = False

    def __iter__(self) -> Generator:
        return self

    def __next__(self) -> Any:
        return self.resume("send", None)

    def resume(self, how: str, value: Any) -> Any:
        """Advance to the next yield; StopIteration at the end."""
        frame, machine = self.frame, self.machine
        if frame is None:
            if how == "throw":
                raise value
            raise StopIteration
        if self.running:
            raise ValueError("generator already executing")
        if machine.depth >= machine.limits.depth:
            raise machine.exceeded("depth", f"recursion deeper than {machine.limits.depth} calls")
        previous, handled = machine.frame, machine.handled
        machine.depth += 1
        machine.frame, machine.handled, self.running = frame, [], True
        machine.tick(1)
        try:
            if how == "send" and value is None:
                return next(self.steps)
            return getattr(self.steps, how)(value)
        except StopIteration as stop:
            self.result = stop.value = frame.result
            self.frame = None
            raise
        except Exception as error:
            mark(error, frame)
            self.frame = None
            if isinstance(error, RuntimeError) and isinstance(error.__cause__, StopIteration):
                error.__cause__ = None
            raise
        finally:
            machine.depth -= 1
            machine.frame, machine.handled, self.running = previous, handled, False

    def close(self) -> None:
        """Forget the rest; the generator's `finally` blocks do not run."""
        self.frame = None
        if isinstance(self.steps, PythonGenerator) and not self.running:
            self.steps.close()


def send(_machine: Machine, generator: Generator, value: Any) -> Any:
    """generator.send(value)."""
    return generator.resume("send", value)


def throw(machine: Machine, generator: Generator, error: Any, value: Any = None, _trace: Any = None) -> Any:
    """generator.throw(error)."""
    return generator.resume("throw", machine.to_exception(error if value is None else value))


GENERATOR_METHODS: dict[str, Native] = {
    "send": Native(send, "send", lazy=True, wants_machine=True),
    "throw": Native(throw, "throw", lazy=True, wants_machine=True),
    "close": Native(lambda _machine, generator: generator.close(), "close", lazy=True, wants_machine=True),
    "__next__": Native(lambda _machine, generator: next(generator), "__next__", lazy=True, wants_machine=True),
    "__iter__": Native(lambda _machine, generator: generator, "__iter__", lazy=True, wants_machine=True),
}


def read_generator(_machine: Machine, owner: Generator, name: str, default: Any) -> Any:
    """Attributes of a generator."""
    method = GENERATOR_METHODS.get(name)
    if method is not None:
        return Bound(owner, method)
    if default is not MISSING:
        return default
    raise AttributeError(f"'generator' object has no attribute '{name}'")
