"""A torch module as the interpreter holds it: fields beside tables of parameters, buffers and modules."""

from collections.abc import Iterator
from typing import Any, Final

from weighbridge.base.errors import LimitExceeded
from weighbridge.phantom import Tensor
from weighbridge.reading.python import MISSING, Class, Instance, Machine, Property, Unknown

TABLES: Final = {"_parameters": "parameters", "_buffers": "buffers", "_modules": "modules"}
LEDGER: Final = "?ledger"
"""The class attribute of Module that holds the read's ledger; no interpreted name can spell it."""
HIDING_KINDS: Final = frozenset({"libcall", "choice"})
"""Kinds of Unknown that may hide a module or a parameter."""

DEEPEST: Final = 1_000
"""Modules inside one another: torch's own walk goes no deeper."""
PATHS: Final = 1_000_000


class Hole:
    """Something unknown that a module holds, and that may hide parameters."""

    __slots__ = ("name", "owner", "place", "why")

    def __init__(self, owner: str, name: str, why: str, place: tuple[str, int]) -> None:
        self.owner, self.name, self.why, self.place = owner, name, why, place


class Ledger:
    """What one read must remember about all modules: their order of birth, and the holes."""

    __slots__ = ("born", "building", "holes")

    def __init__(self) -> None:
        self.born = 0
        self.building = 0
        """The birth number from which modules belong to the innermost construction."""
        self.holes: list[Hole] = []


class ModuleInstance(Instance):
    """An nn.Module. `non_persistent` names the buffers that a checkpoint leaves out; `path` is set once the model stands."""

    __slots__ = ("buffers", "ledger", "modules", "non_persistent", "number", "parameters", "path", "runtime")

    def __init__(self, cls: Class) -> None:
        super().__init__(cls)
        self.fields["training"] = True
        self.parameters: dict[str, Tensor | None] = {}
        self.buffers: dict[str, Any] = {}
        self.modules: dict[str, ModuleInstance | None] = {}
        self.non_persistent: set[str] = set()
        self.path = ""
        self.runtime: dict[str, Any] | None = None
        """What forward-time glue keeps on a module (hooks and the like)."""
        self.ledger: Ledger = cls.find(LEDGER)
        self.ledger.born += 1
        self.number = self.ledger.born

    def lookup(self, name: str) -> Any:
        """A field, submodule, parameter or buffer; also the tables themselves."""
        for table in (self.fields, self.modules, self.parameters, self.buffers):
            if name in table:
                return table[name]
        if name in TABLES:
            return getattr(self, TABLES[name])
        return self.non_persistent if name == "_non_persistent_buffers_set" else MISSING

    def assign(self, machine: Machine, name: str, value: Any) -> None:
        """Store past torch, as object.__setattr__ does: always a field."""
        if self.number < self.ledger.building:
            machine.mutations += 1
        if type(value) is Unknown and value.kind in HIDING_KINDS:
            self.hole(machine, name, value)
        self.fields[name] = value

    def store(self, machine: Machine, name: str, value: Any) -> None:
        """Store as torch does: by what the value is, and by what stands under the name."""
        kind = type(value)
        if kind is Tensor and value.is_parameter:
            table: dict[str, Any] = self.parameters
        elif isinstance(value, ModuleInstance):
            table = self.modules
        elif kind is Tensor and (name in self.buffers or value.is_buffer):
            self.put_buffer(name, value, persistent=value.persistent if value.is_buffer else name not in self.non_persistent)
            return
        elif value is None and (held := self._table_of(name)) is not None:
            table = held
        else:
            self._store_plain(machine, name, value)
            return
        if self.number < self.ledger.building:
            machine.mutations += 1
        self._put(table, name, value)

    def _store_plain(self, machine: Machine, name: str, value: Any) -> None:
        holder = self.cls.find(name)
        if type(holder) is not Property:
            self.assign(machine, name, value)
        elif holder.setter is None:
            raise AttributeError(f"property '{name}' of '{self.cls.name}' object has no setter")
        else:
            machine.call(holder.setter, [self, value])

    def _table_of(self, name: str) -> dict[str, Any] | None:
        return next((table for table in (self.parameters, self.modules, self.buffers) if name in table), None)

    def _put(self, table: dict[str, Any], name: str, value: Any) -> None:
        for other in (self.fields, self.parameters, self.buffers, self.modules):
            if other is not table:
                other.pop(name, None)
        table[name] = value

    def put_buffer(self, name: str, value: Any, *, persistent: bool = True) -> None:
        """Register a buffer."""
        self._put(self.buffers, name, value)
        if persistent:
            self.non_persistent.discard(name)
        else:
            self.non_persistent.add(name)

    def put_parameter(self, name: str, value: Tensor | None) -> None:
        """Register a parameter, or None in its place."""
        self._put(self.parameters, name, value)

    def put_module(self, machine: Machine, name: str, value: Any) -> None:
        """Register a submodule, or None in its place."""
        if isinstance(value, ModuleInstance) or value is None:
            if self.number < self.ledger.building:
                machine.mutations += 1
            self._put(self.modules, name, value)
        elif type(value) is Unknown:
            self.hole(machine, name, value)
            self._put(self.fields, name, value)
        else:
            raise TypeError(f"{type(value).__name__} is not a Module subclass")

    def hole(self, machine: Machine, name: str, value: Unknown) -> None:
        """Note that something unknown is stored here."""
        self.ledger.holes.append(Hole(self.cls.name, name, value.why, machine.place))
        machine.mutations += 1

    def remove(self, name: str) -> None:
        """Delete from whichever table holds the name."""
        for table in (self.fields, self.parameters, self.buffers, self.modules):
            if name in table:
                del table[name]
                self.non_persistent.discard(name)
                return
        raise AttributeError(f"'{self.cls.name}' object has no attribute '{name}'")


def walk(module: ModuleInstance, prefix: str = "", seen: set[int] | None = None) -> Iterator[tuple[str, ModuleInstance]]:
    """Every module with its path, parents first; each once where `seen` is given. LimitExceeded where they nest or share without end."""
    waiting, count = [(prefix, module, 0)], 0
    while waiting:
        path, found, depth = waiting.pop()
        if seen is not None:
            if id(found) in seen:
                continue
            seen.add(id(found))
        count += 1
        if depth > DEEPEST or count > PATHS:
            raise LimitExceeded("depth", f"modules nested deeper than {DEEPEST}, or with more than {PATHS:,} paths")
        yield path, found
        if found.modules:
            stem = f"{path}." if path else ""
            waiting += [(stem + name, child, depth + 1) for name, child in reversed(found.modules.items()) if child is not None]


def named_parameters(module: ModuleInstance, *, once: bool = True) -> Iterator[tuple[str, Tensor]]:
    """Every parameter with its path; a shared one under its first path only, unless `once` is false."""
    seen: set[int] = set()
    for path, owner in walk(module, seen=set() if once else None):
        for name, tensor in owner.parameters.items():
            if tensor is None or (once and id(tensor) in seen):
                continue
            seen.add(id(tensor))
            yield (f"{path}.{name}" if path else name), tensor


def named_buffers(module: ModuleInstance, *, once: bool = True) -> Iterator[tuple[str, Any, bool]]:
    """Every buffer with its path and whether a checkpoint holds it."""
    seen: set[int] = set()
    for path, owner in walk(module, seen=set() if once else None):
        for name, value in owner.buffers.items():
            if value is None or (once and id(value) in seen):
                continue
            seen.add(id(value))
            yield (f"{path}.{name}" if path else name), value, name not in owner.non_persistent
