"""Building the same module class from the same arguments again gives the same structure: from the third time on it is copied."""

from typing import TYPE_CHECKING, Any, Final

from weighbridge.phantom import Storage, Tensor
from weighbridge.reading.glue.config_classes import ConfigInstance
from weighbridge.reading.glue.module_instance import ModuleInstance
from weighbridge.reading.python import Bound, Class, Machine

if TYPE_CHECKING:
    from weighbridge.reading.glue.modules import ModuleLibrary

SCALARS: Final = frozenset({int, float, bool, str, type(None)})
WORTH_STEPS: Final = 60
"""Below this a template costs more than it saves."""


def key_of(cls: Class, args: list[Any], kwargs: dict[str, Any] | None) -> tuple[Any, ...] | None:
    """What decides a construction, or None where an argument may differ each time."""
    parts: list[Any] = [cls]
    for name, value in [(None, argument) for argument in args] + list((kwargs or {}).items()):
        kind = type(value)
        if kind in SCALARS:
            parts.append((name, kind, value))
        elif kind is ConfigInstance:
            parts.append((name, "config", id(value)))
        elif (kind is tuple and all(type(part) in SCALARS for part in value)) or kind is Class:
            parts.append((name, value))
        else:
            return None
    return tuple(parts)


class Templates:
    """The templates of one read, valid while nothing outside a construction was written."""

    def __init__(self, library: "ModuleLibrary") -> None:
        self.library = library
        self.seen: dict[tuple[Any, ...], tuple[ModuleInstance | None, int]] = {}
        self.enabled = True

    def build(self, cls: Class, args: list[Any], kwargs: dict[str, Any] | None) -> ModuleInstance:
        """Build a module, or copy the one built before."""
        library, machine = self.library, self.library.machine
        key = key_of(cls, args, kwargs) if self.enabled else None
        if key is None:
            return library.build(cls, args, kwargs)
        template, written = self.seen.get(key, (None, -1))
        if template is not None and written == machine.mutations:
            return Copier(library).module(template)
        mutations, steps, holes, again = machine.mutations, machine.steps, len(library.ledger.holes), key in self.seen
        module = library.build(cls, args, kwargs)
        if machine.mutations == mutations and machine.steps - steps > WORTH_STEPS and len(library.ledger.holes) == holes:
            self.seen[key] = (Copier(library).module(module) if again else None, mutations)
        return module


class Copier:
    """A deep copy of a module: its tensors and modules are new, all else that is not a container of them is shared."""

    def __init__(self, library: "ModuleLibrary", *, memo: dict[int, Any] | None = None) -> None:
        self.library = library
        self.memo: dict[int, Any] = {} if memo is None else memo

    def module(self, source: ModuleInstance) -> ModuleInstance:
        """The copy of a module."""
        found = self.memo.get(id(source))
        if found is not None:
            return found  # type: ignore[no-any-return]  # the memo holds a module under a module's id
        made = self.library.make(source.cls)
        self.memo[id(source)] = made
        made.fields = {name: value if type(value) in SCALARS else self.value(value) for name, value in source.fields.items()}
        if source.modules:
            made.modules = {name: None if child is None else self.module(child) for name, child in source.modules.items()}
        if source.parameters:
            made.parameters = {name: None if tensor is None else self.tensor(tensor) for name, tensor in source.parameters.items()}
        if source.buffers:
            made.buffers = {name: self.value(value) for name, value in source.buffers.items()}
            made.non_persistent = set(source.non_persistent)
        return made

    def tensor(self, source: Tensor) -> Tensor:
        """The copy of a tensor; tensors of one storage share one afterwards."""
        found = self.memo.get(id(source))
        if found is None:
            found = self.memo[id(source)] = copy_tensor(source, self._storage(source.storage))
        return found

    def _storage(self, source: Storage) -> Storage:
        found = self.memo.get(id(source))
        if found is None:
            found = self.memo[id(source)] = Storage(source.nbytes)
        return found

    def value(self, source: Any) -> Any:
        """The copy of a field."""
        kind = type(source)
        if isinstance(source, ModuleInstance):
            return self.module(source)
        if kind is Tensor:
            return self.tensor(source)
        if kind is list:
            return [self.value(part) for part in source]
        if kind is tuple:
            return tuple(self.value(part) for part in source)
        if kind is dict:
            return {key: self.value(part) for key, part in source.items()}
        if kind is Bound and isinstance(source.self, ModuleInstance):
            return Bound(self.module(source.self), source.fn)
        return source


def copy_tensor(source: Tensor, storage: Storage) -> Tensor:
    """The same tensor over another storage."""
    made = Tensor(source.shape, source.dtype, storage, source.stride, source.value)
    made.requires_grad = source.requires_grad
    made.is_parameter = source.is_parameter
    made.is_buffer, made.persistent, made.default_dtype = source.is_buffer, source.persistent, source.default_dtype
    return made


def deep_copy_module(
    machine: Machine, library: "ModuleLibrary", source: ModuleInstance, memo: dict[int, Any] | None = None
) -> ModuleInstance:
    """copy.deepcopy() of a module."""
    del machine
    return Copier(library, memo=memo).module(source)
