"""The adapter through which interpreted code touches a real Python object (a tensor, a dtype ...)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from weighbridge.reading.python.values import MISSING

if TYPE_CHECKING:
    from weighbridge.reading.python.machine import Machine


class Foreign:
    """What can be done with foreign values of one type; nothing, unless overridden. `op_name` is the name of an `ast` operator class."""

    name = "object"
    hashable = True

    def getattr(self, machine: Machine, value: Any, name: str, default: Any = MISSING) -> Any:  # noqa: ARG002 - the contract's signature
        """`value.name`; `default` where there is none, AttributeError where that is MISSING."""
        if default is not MISSING:
            return default
        raise AttributeError(f"'{self.name}' object has no attribute '{name}'")

    def setattr(self, machine: Machine, value: Any, name: str, new: Any) -> None:  # noqa: ARG002 - the contract's signature
        """`value.name = new`."""
        raise AttributeError(f"'{self.name}' object attribute '{name}' is read-only")

    def getitem(self, machine: Machine, value: Any, key: Any) -> Any:  # noqa: ARG002 - the contract's signature
        """`value[key]`."""
        raise TypeError(f"'{self.name}' object is not subscriptable")

    def setitem(self, machine: Machine, value: Any, key: Any, new: Any) -> None:  # noqa: ARG002 - the contract's signature
        """`value[key] = new`."""
        raise TypeError(f"'{self.name}' object does not support item assignment")

    def call(self, machine: Machine, value: Any, args: list[Any], kwargs: dict[str, Any] | None) -> Any:  # noqa: ARG002 - the contract's signature
        """`value(*args, **kwargs)`."""
        raise TypeError(f"'{self.name}' object is not callable")

    def iterate(self, machine: Machine, value: Any) -> Iterator[Any]:  # noqa: ARG002 - the contract's signature
        """`iter(value)`."""
        raise TypeError(f"'{self.name}' object is not iterable")

    def length(self, machine: Machine, value: Any) -> int:  # noqa: ARG002 - the contract's signature
        """`len(value)`."""
        raise TypeError(f"object of type '{self.name}' has no len()")

    def truth(self, machine: Machine, value: Any) -> Any:  # noqa: ARG002 - the contract's signature
        """`bool(value)`."""
        return True

    def number(self, machine: Machine, value: Any) -> Any:  # noqa: ARG002 - the contract's signature
        """The plain number (or Unknown) that int() and float() convert."""
        raise TypeError(f"argument must be a number, not '{self.name}'")

    def binop(self, machine: Machine, op_name: str, value: Any, other: Any, reflected: bool) -> Any:  # noqa: ARG002 - the contract's signature
        """`value op other`, or `other op value` where reflected; NotImplemented if it cannot."""
        return NotImplemented

    def inplace(self, machine: Machine, op_name: str, value: Any, other: Any) -> Any:  # noqa: ARG002 - the contract's signature
        """`value op= other`: what the name is bound to after; NotImplemented to fall back on binop."""
        return NotImplemented

    def unary(self, machine: Machine, op_name: str, value: Any) -> Any:  # noqa: ARG002 - the contract's signature
        """`-value`, `+value`, `~value`, and "Abs" for abs(value)."""
        raise TypeError(f"bad operand type for unary {op_name}: '{self.name}'")

    def compare(self, machine: Machine, op_name: str, value: Any, other: Any) -> Any:  # noqa: ARG002 - the contract's signature
        """`value < other` and the like; NotImplemented if it cannot."""
        return NotImplemented

    def equal(self, machine: Machine, value: Any, other: Any) -> Any:  # noqa: ARG002 - the contract's signature
        """`value == other`."""
        return value is other

    def not_equal(self, machine: Machine, value: Any, other: Any) -> Any:
        """`value != other`."""
        result = self.equal(machine, value, other)
        return (not result) if isinstance(result, bool) else machine.unary("Invert", result)

    def contains(self, machine: Machine, value: Any, item: Any) -> Any:  # noqa: ARG002 - the contract's signature
        """`item in value`."""
        raise TypeError(f"argument of type '{self.name}' is not iterable")

    def isinstance(self, machine: Machine, value: Any, cls: Any) -> Any:  # noqa: ARG002 - the contract's signature
        """`isinstance(value, cls)`."""
        return False

    def type(self, machine: Machine, value: Any) -> Any:  # noqa: ARG002 - the contract's signature
        """`type(value)`."""
        return machine.unknown(f"type of a {self.name}", "stub")

    def enter(self, machine: Machine, value: Any) -> Any:  # noqa: ARG002 - the contract's signature
        """`with value as result`."""
        raise TypeError(f"'{self.name}' object does not support the context manager protocol")

    def exit(self, machine: Machine, value: Any) -> None:
        """The end of the with block, however it ended."""

    def format(self, machine: Machine, value: Any, spec: str) -> Any:  # noqa: ARG002 - the contract's signature
        """`format(value, spec)`; also str() and repr()."""
        return f"<{self.name}>"
