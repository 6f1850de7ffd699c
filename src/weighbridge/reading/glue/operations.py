"""How interpreted code runs a phantom operation: unknown arguments, unknown values, and operations nobody has written yet."""

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from weighbridge.base.dtypes import BOOL, FLOAT64, INT64
from weighbridge.base.errors import CannotTell, DataDependent
from weighbridge.phantom import OPERATIONS, ops
from weighbridge.reading.python import Instance, Machine, Native, TypeObject, Unknown

if TYPE_CHECKING:
    from weighbridge.reading.glue.runtime import Runtime

PYTHON_DTYPES: Final = {float: FLOAT64, int: INT64, bool: BOOL}
PLACEMENT: Final = frozenset({"device", "layout", "pin_memory", "generator", "non_blocking"})
"""Keywords that say where a tensor lies, which a phantom does not."""


@cache
def load_operations() -> int:
    """Import every family of operations, once; gives how many there are."""
    for found in pkgutil.iter_modules(ops.__path__, f"{ops.__name__}."):
        importlib.import_module(found.name)
    return len(OPERATIONS)


def first_unknown(values: Iterable[Any]) -> Unknown | None:
    """The first Unknown among arguments, or inside a list of them."""
    for value in values:
        kind = type(value)
        if kind is Unknown:
            return value  # type: ignore[no-any-return]  # its type was just asked
        if kind in {list, tuple}:
            for part in value:
                if type(part) is Unknown:
                    return part
    return None


def plain(value: Any) -> Any:
    """An argument as the operations take it: builtin types as dtypes, objects derived from numbers as numbers."""
    if isinstance(value, TypeObject):
        return PYTHON_DTYPES.get(value.python, value)
    if isinstance(value, Instance) and isinstance(value.payload, (int, float, str)):
        return value.payload
    return value


class Operations:
    """The operations of one reading."""

    def __init__(self, runtime: "Runtime") -> None:
        self.runtime = runtime
        self.natives: dict[str, Native] = {}
        load_operations()

    def has(self, name: str) -> bool:
        """Whether torch's name is known."""
        return name in OPERATIONS

    def native(self, name: str, shown: str) -> Native:
        """An operation as a callable of interpreted code."""
        found = self.natives.get(shown)
        if found is None:
            function = OPERATIONS.get(name)

            def run(machine: Machine, args: list[Any], kwargs: dict[str, Any]) -> Any:
                if function is None:
                    return self.unknown_operation(machine, shown)
                return self.run(machine, shown, function, args, kwargs)

            found = self.natives[shown] = Native(run, shown, lazy=True, raw=True)
        return found

    def run(self, machine: Machine, shown: str, function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> Any:
        """Run one operation on interpreted values."""
        unknown = first_unknown(args)
        if unknown is None and kwargs:
            unknown = first_unknown(kwargs.values())
        if unknown is not None:
            return machine.unknown(f"{shown}({unknown.why})" if len(unknown.why) < 200 else unknown.why)
        if kwargs:
            kwargs = {name: plain(value) for name, value in kwargs.items() if name not in PLACEMENT}
        values = [plain(value) for value in args]
        args.clear()
        try:
            return function(*values, **kwargs)
        except DataDependent as error:
            return self.undecided(machine, error)

    def undecided(self, machine: Machine, error: DataDependent) -> Unknown:
        """What hangs on a tensor's values: Unknown while a model is built, where it seldom matters, and refused afterwards."""
        if not self.runtime.constructing:
            raise error.at(*machine.place)
        return machine.unknown(str(error))

    def unknown_operation(self, machine: Machine, shown: str) -> Unknown:
        """An operation that has not been written: Unknown while a model is built, refused afterwards."""
        if not self.runtime.constructing:
            file, line = machine.place
            raise CannotTell(shown, "this operation is not known", file=file, line=line)
        return machine.unknown(f"the result of {shown}()")

    def apply(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Run an operation by name from native code."""
        function = OPERATIONS.get(name)
        machine = self.runtime.machine
        if function is None:
            return self.unknown_operation(machine, f"torch.{name}")
        return self.run(machine, f"torch.{name}", function, list(args), kwargs)
