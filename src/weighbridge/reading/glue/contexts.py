"""torch's context managers that change a mode of the session, also usable as decorators."""

from collections.abc import Callable, Sequence
from typing import Any

from weighbridge.base.dtypes import DType
from weighbridge.phantom import Session, current
from weighbridge.reading.python import MISSING, Foreign, Machine, Native


class Mode:
    """A mode: `enter` changes the session and gives what `leave` needs to change it back."""

    __slots__ = ("before", "enter", "leave")

    def __init__(self, enter: Callable[[Session], Any], leave: Callable[[Session, Any], None]) -> None:
        self.enter, self.leave = enter, leave
        self.before: list[Any] = []


class ModeForeign(Foreign):
    """`with mode:` and `@mode`."""

    name = "context manager"

    def enter(self, machine: Machine, value: Any) -> Any:
        """Change the session."""
        value.before.append(value.enter(current()))
        return value

    def exit(self, machine: Machine, value: Any) -> None:
        """Change it back."""
        value.leave(current(), value.before.pop())

    def call(self, machine: Machine, value: Any, args: list[Any], kwargs: dict[str, Any] | None) -> Any:
        """Decorate a function."""
        return decorated(value, args[0])

    def getattr(self, machine: Machine, value: Any, name: str, default: Any = MISSING) -> Any:
        """__enter__ and __exit__, for code that calls them itself."""
        if name == "__enter__":
            return Native(lambda: self.enter(machine, value), name, lazy=True)
        if name == "__exit__":
            return Native(lambda *_: self.exit(machine, value), name, lazy=True)
        return super().getattr(machine, value, name, default)


def decorated(mode: Mode, function: Any) -> Native:
    """The function, run within the mode."""

    def run(machine: Machine, args: list[Any], kwargs: dict[str, Any]) -> Any:
        session = current()
        before = mode.enter(session)
        try:
            return machine.call(function, args, kwargs)
        finally:
            mode.leave(session, before)

    return Native(run, getattr(function, "name", "function"), lazy=True, raw=True)


def _grad(value: bool) -> Mode:
    def enter(session: Session) -> bool:
        before, session.grad_enabled = session.grad_enabled, value
        return before

    def leave(session: Session, before: bool) -> None:
        session.grad_enabled = before

    return Mode(enter, leave)


def grad_mode(machine: Machine, value: bool, args: Sequence[Any]) -> Any:
    """no_grad() and its kin, also as bare decorators."""
    machine.tick(1)
    return decorated(_grad(value), args[0]) if args else _grad(value)


def autocast_mode(*_: Any, dtype: Any = None, enabled: Any = True, **__: Any) -> Mode:
    """torch.autocast: the low-precision type, or off."""
    active = enabled is True

    def enter(session: Session) -> tuple[DType | None, bool]:
        before = session.autocast
        session.autocast = (dtype if isinstance(dtype, DType) else session.autocast_dtype) if active else None
        return before, before is None and not session.cast_cache

    def leave(session: Session, before: tuple[DType | None, bool]) -> None:
        session.autocast = before[0]
        if before[1]:
            session.cast_cache.clear()

    return Mode(enter, leave)


def inert_mode() -> Mode:
    """A context that changes nothing."""
    return Mode(lambda _: None, lambda _, __: None)
